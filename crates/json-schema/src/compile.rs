//! From documents to a graph of nodes: each schema that can be reached is checked against its draft's metaschema and
//! its keywords are read.
//!
//! Schemas are compiled in the order in which they are first named, so that the first error is the one that Helm shows.
//! Where Go walks a map in random order, we walk it sorted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::document::{self, Document, Documents};
use super::draft::Draft;
use super::format::Format;
use super::node::{
    Additional, ArrayRules, Conditions, Dependency, Items, Node, NodeId, NumberRules, ObjectRules,
    References, TextRules, Types,
};
use super::number::Decimal;
use super::pattern::Pattern;
use super::pointer;
use super::validate;
use go_text::json::Json;
use go_text::quote::quoted;

/// Whether formats are asserted whatever the draft: so it is for metaschemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assertions {
    OfTheDraft,
    Formats,
}

/// Compiled schemas that name each other by their places.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

/// Compiles the metaschema of a draft.
pub(super) fn compile_metaschema(draft: Draft) -> (Graph, NodeId) {
    let mut compiler = Compiler::new(Documents::default(), Assertions::Formats);
    let root = compiler.compile(draft.url()).expect("metaschemas are valid");
    (compiler.into_graph(), root)
}

/// Compiles the document `url` and all that it names.
pub(super) struct Compiler<'a> {
    texts: Documents<'a>,
    documents: BTreeMap<String, Document<'a>>,
    assertions: Assertions,
    nodes: Vec<Node>,
    queue: Vec<(Arc<str>, Arc<str>)>,
    places: HashMap<(Arc<str>, Arc<str>), NodeId>,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(texts: Documents<'a>, assertions: Assertions) -> Self {
        Self {
            texts,
            documents: BTreeMap::new(),
            assertions,
            nodes: Vec::new(),
            queue: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Compiles; the node of the document's root comes back.
    pub(super) fn compile(&mut self, url: &str) -> Result<NodeId, String> {
        self.open(url)?;
        let root = self.enqueue(&url.into(), "");
        let mut next = 0;
        while next < self.queue.len() {
            let (url, at) = self.queue[next].clone();
            let node = self.node(&url, &at)?;
            self.nodes.push(node);
            next += 1;
        }
        Ok(root)
    }

    pub(super) fn into_graph(self) -> Graph {
        Graph { nodes: self.nodes }
    }

    /// URNs that were taken for `true`.
    pub(super) fn unresolved_urns(&self) -> impl Iterator<Item = &String> {
        self.texts.unresolved_urns.iter()
    }

    /// Loads a document once, and checks it against its metaschema.
    fn open(&mut self, url: &str) -> Result<(), String> {
        if self.documents.contains_key(url) {
            return Ok(());
        }
        let document = self.texts.open(url)?;
        let is_meta =
            url.starts_with("http://json-schema.org/") || url.starts_with("https://json-schema.org/");
        if !is_meta {
            check(&document, &document.root, "")?;
        }
        self.documents.insert(url.to_owned(), document);
        Ok(())
    }

    /// Gives a part of a document its place, which is where its node will be.
    fn enqueue(&mut self, url: &Arc<str>, at: &str) -> NodeId {
        let key = (url.clone(), Arc::from(at));
        if let Some(id) = self.places.get(&key) {
            return *id;
        }
        let id = self.queue.len();
        self.queue.push(key.clone());
        self.places.insert(key, id);
        id
    }

    fn node(&mut self, url: &Arc<str>, at: &Arc<str>) -> Result<Node, String> {
        self.ensure_collected(url, at)?;
        let document = &self.documents[&**url];
        let root = document.root.clone();
        let schema = document::lookup(&root, url, at)?;
        let (resource_at, resource) = document.resource(at);
        let draft = resource.draft;
        let base: Arc<str> = resource.id.as_str().into();
        let is_resource = resource_at == &**at;
        let resource_at = resource_at.to_owned();
        let mut references = References::default();
        let anchored: Vec<(String, String)> = resource
            .anchors
            .iter()
            .filter(|(anchor, _)| {
                draft >= Draft::D2020 && is_resource && resource.dynamic_anchors.contains(anchor)
            })
            .map(|(anchor, at)| (anchor.clone(), at.clone()))
            .collect();
        let resource = self.enqueue(url, &resource_at);
        for (anchor, at) in anchored {
            let id = self.enqueue(url, &at);
            references.dynamic_anchors.push((anchor, id));
        }
        let mut node = Node {
            draft,
            url: url.clone(),
            pointer: at.clone(),
            resource,
            boolean: None,
            all_properties_evaluated: false,
            all_items_evaluated: false,
            items_evaluated: 0,
            types: Types::default(),
            constant: None,
            choices: None,
            format: None,
            references,
            objects: None,
            arrays: None,
            texts: None,
            numbers: None,
            conditions: None,
            unevaluated_properties: None,
            unevaluated_items: None,
        };
        match schema {
            Json::Bool(allowed) => node.boolean = Some(*allowed),
            Json::Object(fields) if fields.is_empty() => node.boolean = Some(true),
            Json::Object(_) => {
                let mut keywords = Keywords {
                    compiler: self,
                    schema,
                    url,
                    at,
                    base: &base,
                    draft,
                };
                keywords.read(&mut node)?;
            }
            _ => {}
        }
        note_evaluated(&mut node);
        Ok(node)
    }

    /// Collects and checks a part that stands where no keyword holds schemas, as in `#/components/x`.
    fn ensure_collected(&mut self, url: &str, at: &str) -> Result<(), String> {
        self.open(url)?;
        let document = self.documents.get_mut(url).expect("opened just now");
        if document.is_processed(at) {
            return Ok(());
        }
        let root = document.root.clone();
        let value = document::lookup(&root, url, at)?;
        self.texts.collect_part(document, at)?;
        check(document, value, at)
    }

    fn reference(&mut self, url: &Arc<str>, base: &str, reference: &str) -> Result<NodeId, String> {
        let (target, fragment) = pointer::join(base, reference)?;
        if let Some(at) = self.documents[&**url].resolve(&target, &fragment)? {
            return Ok(self.enqueue(url, &at));
        }
        self.open(&target)?;
        let document = &self.documents[&target];
        let (at, resource) = document.resource("");
        let at = document.resolve_fragment(&fragment, at, resource)?;
        let target = document.url.clone();
        Ok(self.enqueue(&target, &at))
    }
}

/// Checks a part of a document against its draft's metaschema.
fn check(document: &Document<'_>, value: &Json<'_>, at: &str) -> Result<(), String> {
    let (_, resource) = document.resource(at);
    let (graph, root) = resource.draft.metaschema();
    let Err(problem) = validate::against_metaschema(graph, *root, value, document)? else {
        return Ok(());
    };
    let place = quoted(&pointer::location(&document.url, at));
    let url = resource.draft.url();
    Err(format!(
        "{place} is not valid against metaschema: jsonschema validation failed with '{url}#'{problem}"
    ))
}

/// Notes what the keywords evaluate whatever the value is, for `unevaluated…`.
fn note_evaluated(node: &mut Node) {
    let objects = node.objects.as_ref();
    node.all_properties_evaluated = objects.is_some_and(|rules| rules.additional_properties.is_some());
    let Some(arrays) = &node.arrays else { return };
    if node.draft < Draft::D2020 {
        node.all_items_evaluated = arrays.additional_items.is_some();
        match &arrays.items {
            Some(Items::Each(_)) => node.all_items_evaluated = true,
            Some(Items::Tuple(items)) => node.items_evaluated = items.len(),
            None => {}
        }
    } else {
        node.all_items_evaluated = arrays.rest_items.is_some();
        node.items_evaluated = arrays.prefix_items.len();
    }
}

/// Reads the keywords of one schema.
struct Keywords<'c, 'a, 's> {
    compiler: &'c mut Compiler<'a>,
    schema: &'s Json<'a>,
    url: &'s Arc<str>,
    at: &'s str,
    base: &'s str,
    draft: Draft,
}

impl Keywords<'_, '_, '_> {
    fn read(&mut self, node: &mut Node) -> Result<(), String> {
        node.references.plain = self.reference("$ref")?;
        // Before 2019-09 nothing beside a reference counts, but the Go library skips only the keywords of draft 4.
        if self.draft >= Draft::D2019 || node.references.plain.is_none() {
            self.read_draft_4(node)?;
        }
        if self.draft >= Draft::D6 {
            self.read_draft_6(node);
        }
        if self.draft >= Draft::D7 {
            self.read_draft_7(node);
        }
        if self.draft >= Draft::D2019 {
            self.read_draft_2019(node)?;
        }
        if self.draft >= Draft::D2020 {
            self.read_draft_2020(node)?;
        }
        Ok(())
    }

    fn read_draft_4(&mut self, node: &mut Node) -> Result<(), String> {
        let conditions = Conditions {
            all_of: self.list("allOf"),
            any_of: self.list("anyOf"),
            one_of: self.list("oneOf"),
            not: self.one("not"),
            ..Conditions::default()
        };
        if !(conditions.all_of.is_empty() && conditions.any_of.is_empty() && conditions.one_of.is_empty())
            || conditions.not.is_some()
        {
            node.conditions = Some(Box::new(conditions));
        }
        self.read_items(node);
        self.read_properties(node)?;
        self.read_assertions(node)
    }

    fn read_items(&mut self, node: &mut Node) {
        if self.draft >= Draft::D2020 {
            return;
        }
        match self.schema.get("items") {
            Some(Json::Array(_)) => {
                let rules = arrays(node);
                rules.items = Some(Items::Tuple(self.list("items")));
                rules.additional_items = self.additional("additionalItems");
            }
            Some(_) => arrays(node).items = self.one("items").map(Items::Each),
            None => {}
        }
    }

    fn read_properties(&mut self, node: &mut Node) -> Result<(), String> {
        if let Some(properties) = self.map("properties") {
            objects(node).properties = properties;
        }
        if let Some(patterns) = self.map("patternProperties") {
            for (pattern, id) in patterns {
                let pattern = self.pattern(&pattern, "patternProperties")?;
                objects(node).pattern_properties.push((pattern, id));
            }
        }
        if let Some(additional) = self.additional("additionalProperties") {
            objects(node).additional_properties = Some(additional);
        }
        if let Some(Json::Object(fields)) = self.schema.get("dependencies") {
            for (name, value) in fields {
                let dependency = match value {
                    Json::Array(names) => Dependency::Properties(texts(names)),
                    _ => Dependency::Schema(self.enqueue(&["dependencies", name])),
                };
                objects(node).dependencies.push((name.to_string(), dependency));
            }
        }
        Ok(())
    }

    fn read_assertions(&mut self, node: &mut Node) -> Result<(), String> {
        if let Some(types) = self.schema.get("type") {
            node.types = Types::named(types);
        }
        if let Some(Json::Array(choices)) = self.schema.get("enum") {
            node.choices = Some(choices.iter().map(|choice| choice.clone().into_owned()).collect());
        }
        self.read_numbers(node);
        let (min_length, max_length) = (self.whole("minLength"), self.whole("maxLength"));
        let pattern = match self.text("pattern") {
            Some(pattern) => Some(self.pattern(&pattern, "pattern")?),
            None => None,
        };
        if min_length.is_some() || max_length.is_some() || pattern.is_some() {
            node.texts = Some(Box::new(TextRules {
                min_length,
                max_length,
                pattern,
            }));
        }
        self.read_sizes(node);
        if self.draft.asserts_formats(self.compiler.assertions) {
            node.format = self.text("format").and_then(|name| Format::named(&name));
        }
        Ok(())
    }

    fn read_numbers(&mut self, node: &mut Node) {
        let mut rules = NumberRules {
            multiple_of: self.number("multipleOf"),
            maximum: self.number("maximum"),
            minimum: self.number("minimum"),
            ..NumberRules::default()
        };
        // Draft 4 says with a boolean that a bound is exclusive.
        rules.exclusive_maximum = if self.boolean("exclusiveMaximum") {
            rules.maximum.take()
        } else {
            self.number("exclusiveMaximum")
        };
        rules.exclusive_minimum = if self.boolean("exclusiveMinimum") {
            rules.minimum.take()
        } else {
            self.number("exclusiveMinimum")
        };
        let bounds = [
            &rules.maximum,
            &rules.minimum,
            &rules.exclusive_maximum,
            &rules.exclusive_minimum,
            &rules.multiple_of,
        ];
        if bounds.iter().any(|bound| bound.is_some()) {
            node.numbers = Some(Box::new(rules));
        }
    }

    fn read_sizes(&mut self, node: &mut Node) {
        let (min, max, unique) = (
            self.whole("minItems"),
            self.whole("maxItems"),
            self.boolean("uniqueItems"),
        );
        if min.is_some() || max.is_some() || unique {
            let rules = arrays(node);
            (rules.min_items, rules.max_items, rules.unique_items) = (min, max, unique);
        }
        let (min, max) = (self.whole("minProperties"), self.whole("maxProperties"));
        let required = match self.schema.get("required") {
            Some(Json::Array(names)) => texts(names),
            _ => Vec::new(),
        };
        if min.is_some() || max.is_some() || !required.is_empty() {
            let rules = objects(node);
            (rules.min_properties, rules.max_properties, rules.required) = (min, max, required);
        }
    }

    fn read_draft_6(&mut self, node: &mut Node) {
        if let Some(contains) = self.one("contains") {
            arrays(node).contains = Some(contains);
        }
        if let Some(names) = self.one("propertyNames") {
            objects(node).property_names = Some(names);
        }
        node.constant = self.schema.get("const").map(|value| value.clone().into_owned());
    }

    fn read_draft_7(&mut self, node: &mut Node) {
        let Some(condition) = self.one("if") else { return };
        let known = match self.schema.get("if") {
            Some(Json::Bool(known)) => Some(*known),
            _ => None,
        };
        let then = if known == Some(false) {
            None
        } else {
            self.one("then")
        };
        let otherwise = if known == Some(true) {
            None
        } else {
            self.one("else")
        };
        let conditions = node.conditions.get_or_insert_default();
        conditions.condition = Some(condition);
        conditions.then = then;
        conditions.otherwise = otherwise;
    }

    fn read_draft_2019(&mut self, node: &mut Node) -> Result<(), String> {
        node.references.recursive = self.reference("$recursiveRef")?;
        node.references.recursive_anchor = self.boolean("$recursiveAnchor");
        let contains = node.arrays.as_ref().is_some_and(|rules| rules.contains.is_some());
        if contains {
            let rules = arrays(node);
            rules.min_contains = self.whole("minContains");
            rules.max_contains = self.whole("maxContains");
        }
        if let Some(Json::Object(fields)) = self.schema.get("dependentRequired") {
            for (name, value) in fields {
                if let Json::Array(names) = value {
                    let required = (name.to_string(), texts(names));
                    objects(node).dependent_required.push(required);
                }
            }
        }
        if let Some(schemas) = self.map("dependentSchemas") {
            objects(node).dependent_schemas = schemas;
        }
        node.unevaluated_items = self.one("unevaluatedItems");
        node.unevaluated_properties = self.one("unevaluatedProperties");
        Ok(())
    }

    fn read_draft_2020(&mut self, node: &mut Node) -> Result<(), String> {
        if let Some(target) = self.reference("$dynamicRef")? {
            let reference = self.text("$dynamicRef").unwrap_or_default();
            let (_, fragment) = pointer::split_fragment(&reference)?;
            let anchor = if fragment.starts_with('/') {
                String::new()
            } else {
                fragment
            };
            node.references.dynamic = Some((target, anchor));
        }
        node.references.dynamic_anchor = self.text("$dynamicAnchor").unwrap_or_default();
        let prefix = self.list("prefixItems");
        if !prefix.is_empty() {
            arrays(node).prefix_items = prefix;
        }
        if let Some(items) = self.one("items") {
            arrays(node).rest_items = Some(items);
        }
        Ok(())
    }

    // Reading one keyword.

    fn enqueue(&mut self, tokens: &[&str]) -> NodeId {
        let mut at = self.at.to_owned();
        for token in tokens {
            pointer::push(&mut at, token);
        }
        self.compiler.enqueue(self.url, &at)
    }

    fn one(&mut self, keyword: &str) -> Option<NodeId> {
        self.schema.get(keyword)?;
        Some(self.enqueue(&[keyword]))
    }

    fn list(&mut self, keyword: &str) -> Vec<NodeId> {
        let Some(Json::Array(items)) = self.schema.get(keyword) else {
            return Vec::new();
        };
        (0..items.len())
            .map(|index| self.enqueue(&[keyword, &index.to_string()]))
            .collect()
    }

    fn map(&mut self, keyword: &str) -> Option<Vec<(String, NodeId)>> {
        let Some(Json::Object(fields)) = self.schema.get(keyword) else {
            return None;
        };
        let named = fields
            .iter()
            .map(|(name, _)| (name.to_string(), self.enqueue(&[keyword, name])));
        Some(named.collect())
    }

    fn additional(&mut self, keyword: &str) -> Option<Additional> {
        match self.schema.get(keyword)? {
            Json::Bool(allowed) => Some(Additional::Allowed(*allowed)),
            _ => self.one(keyword).map(Additional::Schema),
        }
    }

    fn reference(&mut self, keyword: &str) -> Result<Option<NodeId>, String> {
        let Some(reference) = self.text(keyword) else {
            return Ok(None);
        };
        self.compiler.reference(self.url, self.base, &reference).map(Some)
    }

    fn pattern(&self, text: &str, keyword: &str) -> Result<Pattern, String> {
        Pattern::new(text).map_err(|problem| {
            let place = quoted(&pointer::location(self.url, &pointer::append(self.at, keyword)));
            format!("invalid regex {} at {place}: {problem}", quoted(text))
        })
    }

    fn text(&self, keyword: &str) -> Option<String> {
        self.schema
            .get(keyword)
            .and_then(Json::as_text)
            .map(str::to_owned)
    }

    fn boolean(&self, keyword: &str) -> bool {
        self.schema.get(keyword) == Some(&Json::Bool(true))
    }

    fn number(&self, keyword: &str) -> Option<Decimal> {
        match self.schema.get(keyword)? {
            Json::Number(number) => Decimal::read(number),
            _ => None,
        }
    }

    fn whole(&self, keyword: &str) -> Option<i64> {
        self.number(keyword)?.wrapped()
    }
}

fn texts(values: &[Json<'_>]) -> Vec<String> {
    values
        .iter()
        .filter_map(Json::as_text)
        .map(str::to_owned)
        .collect()
}

fn objects(node: &mut Node) -> &mut ObjectRules {
    node.objects.get_or_insert_default()
}

fn arrays(node: &mut Node) -> &mut ArrayRules {
    node.arrays.get_or_insert_default()
}

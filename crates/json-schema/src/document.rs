//! Documents of schemas: which of their parts have a URL of their own, and where their anchors are.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::draft::{Draft, Holds};
use super::metaschema;
use super::pointer;
use super::url::Url;
use go_text::json::{self, Json};
use go_text::quote::quoted;

/// The URL under which Helm compiles a chart's schema.
pub(super) const MAIN: &str = "file:///values.schema.json";

/// A document and what is known of its parts.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) url: Arc<str>,
    pub(super) root: Arc<Json<'a>>,
    /// Parts with a URL of their own, by their pointers; the root is always one.
    pub(super) resources: BTreeMap<String, Resource>,
    processed: HashSet<String>,
}

/// A part of a document with a URL of its own.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) id: String,
    pub(super) draft: Draft,
    pub(super) anchors: BTreeMap<String, String>,
    pub(super) dynamic_anchors: Vec<String>,
}

impl<'a> Document<'a> {
    fn new(url: &str, root: Arc<Json<'a>>) -> Self {
        Self {
            url: url.into(),
            root,
            resources: BTreeMap::new(),
            processed: HashSet::new(),
        }
    }

    /// The resource that a part belongs to, and where it is.
    pub(super) fn resource<'s>(&'s self, mut pointer: &'s str) -> (&'s str, &'s Resource) {
        if self.resources.len() > 1 {
            loop {
                if let Some(resource) = self.resources.get(pointer) {
                    return (pointer, resource);
                }
                match pointer.rfind('/') {
                    Some(slash) => pointer = &pointer[..slash],
                    None => break,
                }
            }
        }
        let root = self.resources.get("").expect("the root is collected first");
        ("", root)
    }

    /// Finds what a fragment names within a resource.
    pub(super) fn resolve_fragment(
        &self,
        fragment: &str,
        at: &str,
        resource: &Resource,
    ) -> Result<String, String> {
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(format!("{at}{fragment}"));
        }
        resource.anchors.get(fragment).cloned().ok_or_else(|| {
            let reference = quoted(&pointer::location(&resource.id, fragment));
            format!("anchor in {reference} not found in schema {}", quoted(&self.url))
        })
    }

    /// Finds the part that a URL and fragment name; `None` if the URL is of another document.
    pub(super) fn resolve(&self, url: &str, fragment: &str) -> Result<Option<String>, String> {
        let found = if url == &*self.url {
            self.resources.get_key_value("")
        } else {
            self.resources.iter().find(|(_, resource)| resource.id == url)
        };
        found
            .map(|(at, resource)| self.resolve_fragment(fragment, at, resource))
            .transpose()
    }

    pub(super) fn is_processed(&self, at: &str) -> bool {
        self.processed.contains(at)
    }
}

/// Finds the part of a document that a pointer names.
pub(super) fn lookup<'s, 'a>(root: &'s Json<'a>, url: &str, at: &str) -> Result<&'s Json<'a>, String> {
    let mut value = root;
    for token in at.split('/').skip(1) {
        let place = || quoted(&pointer::location(url, at));
        let token = pointer::unescape(token).ok_or_else(|| format!("invalid json-pointer {}", place()))?;
        let inner = match value {
            Json::Object(_) => value.get(&token),
            Json::Array(items) => token.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        value = inner.ok_or_else(|| format!("json-pointer in {} not found", place()))?;
    }
    Ok(value)
}

/// All documents that a schema reaches.
#[derive(Debug, Default)]
pub(super) struct Documents<'a> {
    texts: BTreeMap<String, Arc<Json<'a>>>,
    /// URNs that no one resolves: Helm takes them for `true` and warns.
    pub(super) unresolved_urns: BTreeSet<String>,
}

impl<'a> Documents<'a> {
    pub(super) fn add(&mut self, url: &str, root: Arc<Json<'a>>) {
        self.texts.insert(url.to_owned(), root);
    }

    /// Collects the parts of a document.
    pub(super) fn open(&mut self, url: &str) -> Result<Document<'a>, String> {
        let root = self.load(url)?;
        let mut document = Document::new(url, root.clone());
        self.collect(&mut document, &root, url, "", Draft::LATEST)?;
        Ok(document)
    }

    /// Collects a part that stands where no keyword holds schemas.
    pub(super) fn collect_part(&mut self, document: &mut Document<'a>, at: &str) -> Result<(), String> {
        let root = document.root.clone();
        let value = lookup(&root, &document.url, at)?;
        let (_, resource) = document.resource(at);
        let (base, draft) = (resource.id.clone(), resource.draft);
        self.collect(document, value, &base, at, draft)?;
        if !document.resources.contains_key(at) {
            let resource_at = document.resource(at).0.to_owned();
            collect_anchors(document, value, at, &resource_at)?;
        }
        Ok(())
    }

    /// Loads a document. Nothing is read from a disk or the network: a schema must not make Windlass fetch.
    fn load(&mut self, url: &str) -> Result<Arc<Json<'a>>, String> {
        if let Some(text) = self.texts.get(url) {
            return Ok(text.clone());
        }
        let json = match metaschema::text(url) {
            Some(text) => json::decode_only(text.as_bytes()).expect("metaschemas are JSON"),
            None => self
                .load_elsewhere(url)
                .map_err(|problem| format!("failing loading {}: {problem}", quoted(url)))?,
        };
        let json = Arc::new(json);
        self.texts.insert(url.to_owned(), json.clone());
        Ok(json)
    }

    fn load_elsewhere(&mut self, text: &str) -> Result<Json<'a>, String> {
        let url = Url::parse(text)?;
        match url.scheme.as_str() {
            "urn" => {
                self.unresolved_urns.insert(text.to_owned());
                Ok(Json::Bool(true))
            }
            "file" => {
                let path = String::from_utf8_lossy(&url.path);
                Err(match &*path {
                    "/" => "read /: is a directory".to_owned(),
                    path => format!("open {path}: no such file or directory"),
                })
            }
            "http" | "https" => {
                let host = String::from_utf8_lossy(url.host_name()).into_owned();
                Err(format!(
                    "HTTP request failed for {text}: Get {}: dial tcp: lookup {host}: no such host",
                    quoted(text)
                ))
            }
            _ => Err(format!(
                "no URLLoader registered for {}",
                quoted(&url.to_string())
            )),
        }
    }

    /// Collects a schema and those in it. Without recursion: what is nested deeply must not exhaust the stack.
    fn collect(
        &mut self,
        document: &mut Document<'a>,
        schema: &Json<'a>,
        base: &str,
        at: &str,
        fallback: Draft,
    ) -> Result<(), String> {
        let mut tasks = vec![Task {
            schema,
            base: base.into(),
            at: at.to_owned(),
            fallback,
        }];
        while let Some(task) = tasks.pop() {
            if document.processed.contains(&task.at) {
                continue;
            }
            if let Json::Object(_) = task.schema {
                self.collect_object(document, &task, &mut tasks)?;
            } else if task.at.is_empty() {
                let resource = Resource::new(&task.base, task.fallback);
                document.resources.insert(String::new(), resource);
            }
            document.processed.insert(task.at);
        }
        Ok(())
    }

    fn collect_object<'t>(
        &mut self,
        document: &mut Document<'a>,
        task: &Task<'t, 'a>,
        tasks: &mut Vec<Task<'t, 'a>>,
    ) -> Result<(), String> {
        let (schema, at, fallback) = (task.schema, task.at.as_str(), task.fallback);
        let mut has_schema = schema.get("$schema").is_some_and(|url| url.as_text().is_some());
        let mut draft = self.draft_of(&document.url.clone(), at, schema, fallback)?;
        let mut id = draft.id_of(schema);
        if id.is_empty() && !at.is_empty() {
            // Only a schema with a URL of its own may change the draft.
            draft = fallback;
            has_schema = false;
            id = draft.id_of(schema);
        }
        let mut base = task.base.clone();
        if !id.is_empty() {
            let joined = pointer::join(&base, id);
            let place = || quoted(&pointer::location(&document.url, at));
            base = joined
                .map_err(|_| format!("error in parsing id at {}", place()))?
                .0
                .into();
        }
        if !id.is_empty() || at.is_empty() {
            let draft = if has_schema { draft } else { fallback };
            add_resource(document, at, &base, draft)?;
        }
        let base_resource = document
            .resources
            .iter()
            .find(|(_, resource)| *resource.id == *base);
        let Some((base_at, base_resource)) = base_resource else {
            return Err("baseres is nil".to_owned());
        };
        let (base_at, base_draft) = (base_at.clone(), base_resource.draft);
        collect_anchors(document, schema, at, &base_at)?;
        for (keyword, holds) in draft.subschemas() {
            if let Some(value) = schema.get(keyword) {
                push_held(value, holds, &pointer::append(at, keyword), |schema, at| {
                    tasks.push(Task {
                        schema,
                        base: base.clone(),
                        at,
                        fallback: base_draft,
                    });
                });
            }
        }
        Ok(())
    }

    /// The draft that `$schema` names, if need be through the metaschemas' own `$schema`.
    fn draft_of(&mut self, url: &str, at: &str, schema: &Json<'_>, fallback: Draft) -> Result<Draft, String> {
        let Some(named) = schema.get("$schema").and_then(Json::as_text) else {
            return Ok(fallback);
        };
        let mut named = named.to_owned();
        let mut place = (url.to_owned(), at.to_owned());
        let mut seen = BTreeSet::new();
        loop {
            if let Some(draft) = Draft::of_url(&named) {
                return Ok(draft);
            }
            let bare = pointer::split(&named).0.to_owned();
            if let Err(problem) = Url::parse(&bare) {
                let place = quoted(&pointer::location(&place.0, &place.1));
                return Err(format!("invalid $schema in {place}: {problem}"));
            }
            if place.1.is_empty() && bare == place.0 {
                return Err(format!("draft {} is not supported", quoted(&bare)));
            }
            if !seen.insert(bare.clone()) {
                return Err(format!("cycle in resolving $schema in {}", quoted(&bare)));
            }
            let metaschema = self.load(&bare)?;
            match metaschema.get("$schema").and_then(Json::as_text) {
                Some(next) => next.clone_into(&mut named),
                None => return Ok(fallback),
            }
            place = (bare, String::new());
        }
    }
}

/// A schema that is to be collected.
struct Task<'t, 'a> {
    schema: &'t Json<'a>,
    base: Arc<str>,
    at: String,
    fallback: Draft,
}

/// Pushes the schemas that a keyword's value holds, the last one first.
fn push_held<'t, 'a>(
    value: &'t Json<'a>,
    holds: Holds,
    at: &str,
    mut push: impl FnMut(&'t Json<'a>, String),
) {
    match (holds, value) {
        (Holds::One, value) => push(value, at.to_owned()),
        (Holds::List, Json::Array(items)) => {
            for (index, item) in items.iter().enumerate().rev() {
                push(item, format!("{at}/{index}"));
            }
        }
        (Holds::Map, Json::Object(fields)) => {
            for (name, value) in fields.iter().rev() {
                push(value, pointer::append(at, name));
            }
        }
        _ => {}
    }
}

impl Resource {
    fn new(id: &str, draft: Draft) -> Self {
        Self {
            id: id.to_owned(),
            draft,
            anchors: BTreeMap::new(),
            dynamic_anchors: Vec::new(),
        }
    }
}

fn add_resource(document: &mut Document<'_>, at: &str, id: &str, draft: Draft) -> Result<(), String> {
    if let Some((other, _)) = document.resources.iter().find(|(_, resource)| resource.id == id) {
        if other == at {
            return Ok(());
        }
        return Err(format!(
            "duplicate id {} in {} at {} and {}",
            quoted(id),
            quoted(&document.url),
            quoted(at),
            quoted(other)
        ));
    }
    document.resources.insert(at.to_owned(), Resource::new(id, draft));
    Ok(())
}

/// Notes the anchors of a schema with the resource that it belongs to.
fn collect_anchors(
    document: &mut Document<'_>,
    schema: &Json<'_>,
    at: &str,
    resource_at: &str,
) -> Result<(), String> {
    let url = document.url.clone();
    let Some(resource) = document.resources.get_mut(resource_at) else {
        return Ok(());
    };
    let text_of = |keyword: &str| schema.get(keyword).and_then(Json::as_text);
    if resource.draft < Draft::D2019 {
        if schema.get("$ref").is_some() {
            return Ok(());
        }
        let Some(id) = text_of(resource.draft.id_keyword()) else {
            return Ok(());
        };
        let place = || quoted(&pointer::location(&url, at));
        let (_, fragment) =
            pointer::split_fragment(id).map_err(|_| format!("error in parsing anchor at {}", place()))?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            add_anchor(resource, &url, &fragment, at)?;
        }
        return Ok(());
    }
    if let Some(anchor) = text_of("$anchor") {
        add_anchor(resource, &url, anchor, at)?;
    }
    if resource.draft >= Draft::D2020
        && let Some(anchor) = text_of("$dynamicAnchor")
    {
        add_anchor(resource, &url, anchor, at)?;
        resource.dynamic_anchors.push(anchor.to_owned());
    }
    Ok(())
}

fn add_anchor(resource: &mut Resource, url: &str, anchor: &str, at: &str) -> Result<(), String> {
    match resource.anchors.get(anchor) {
        Some(other) if other == at => Ok(()),
        Some(other) => Err(format!(
            "duplicate anchor {} in {} at {} and {}",
            quoted(anchor),
            quoted(url),
            quoted(other),
            quoted(at)
        )),
        None => {
            resource.anchors.insert(anchor.to_owned(), at.to_owned());
            Ok(())
        }
    }
}

//! From OpenAPI documents to what a strategic merge asks: which fields hold mappings, and which lists have merge keys.
//!
//! Follows kyaml's `openapi` package: a reference replaces what stands beside it; a list is merged if its patch
//! strategies have `merge`, by `x-kubernetes-list-map-keys` or else by `x-kubernetes-patch-merge-key`, and by its
//! values without either; keys without a strategy say nothing. Scalars and other lists are left out, as a merge never
//! goes into them. A mapping stays even when there is nothing below it: kyaml looks for the type of an object inside
//! only where it knows no schema.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::inputs::{Type, types_of};

/// Number of a node.
pub(super) type Node = usize;

/// Mappings of all documents.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Mapping>,
}

/// Known schema of one mapping.
#[derive(Clone, Default)]
pub(super) struct Mapping {
    /// The definition, and the fields that lead from there.
    pub(super) name: String,
    pub(super) fields: BTreeMap<String, Target>,
    /// Fields of any other name.
    pub(super) others: Option<Target>,
}

/// Content of a field.
#[derive(Clone)]
pub(super) enum Target {
    Mapping(Node),
    /// A list that is merged.
    List {
        elements: Option<Node>,
        keys: Vec<String>,
    },
}

impl Graph {
    /// Takes in a document; returns its types.
    pub(super) fn add(&mut self, document: &Value) -> Result<BTreeMap<Type, Node>> {
        let definitions = document["definitions"].as_object().context("no definitions")?;
        let mut reader = Reader {
            graph: self,
            document,
            known: HashMap::new(),
        };
        let mut types = BTreeMap::new();
        for (name, definition) in definitions {
            for of in types_of(definition)? {
                let node = reader.mapping(definition, name)?;
                ensure!(
                    types.insert(of.clone(), node).is_none(),
                    "two definitions of {of:?}"
                );
            }
        }
        Ok(types)
    }
}

struct Reader<'a> {
    graph: &'a mut Graph,
    document: &'a Value,
    /// The nodes of the values that were seen, by address.
    known: HashMap<*const Value, Node>,
}

impl<'a> Reader<'a> {
    fn mapping(&mut self, schema: &'a Value, name: &str) -> Result<Node> {
        if let Some(node) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(*node);
        }
        let node = self.graph.nodes.len();
        self.known.insert(std::ptr::from_ref(schema), node);
        self.graph.nodes.push(Mapping::default());
        let mut fields = BTreeMap::new();
        for (field, below) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(target) = self.target(below, &format!("{name}.{field}"))? {
                fields.insert(field.clone(), target);
            }
        }
        let others = match schema
            .get("additionalProperties")
            .filter(|below| below.is_object())
        {
            Some(below) => self.target(below, &format!("{name}.*"))?,
            None => None,
        };
        self.graph.nodes[node] = Mapping {
            name: name.to_owned(),
            fields,
            others,
        };
        Ok(node)
    }

    fn target(&mut self, schema: &'a Value, name: &str) -> Result<Option<Target>> {
        let (schema, name) = self.resolve(schema, name)?;
        let has_merge = strategies(schema).any(|strategy| strategy == "merge");
        match schema["type"].as_str() {
            Some("array") if has_merge => Ok(Some(Target::List {
                elements: match schema.get("items") {
                    Some(items) => self.elements(items, name)?,
                    None => None,
                },
                keys: keys(schema),
            })),
            _ if has_merge => anyhow::bail!("{name} is merged and no list"),
            Some("array" | "string" | "integer" | "number" | "boolean") => Ok(None),
            Some("object") | None => Ok(Some(Target::Mapping(self.mapping(schema, name)?))),
            Some(other) => anyhow::bail!("{name} is of the unknown type {other}"),
        }
    }

    fn elements(&mut self, items: &'a Value, name: &str) -> Result<Option<Node>> {
        Ok(match self.target(items, &format!("{name}[]"))? {
            Some(Target::Mapping(node)) => Some(node),
            _ => None,
        })
    }

    fn resolve<'n>(&self, mut schema: &'a Value, mut name: &'n str) -> Result<(&'a Value, &'n str)>
    where
        'a: 'n,
    {
        while let Some(reference) = schema["$ref"].as_str() {
            name = reference
                .strip_prefix("#/definitions/")
                .context("a reference leads elsewhere")?;
            schema = &self.document["definitions"][name];
            ensure!(schema.is_object(), "{reference} leads nowhere");
        }
        Ok((schema, name))
    }
}

fn strategies(schema: &Value) -> impl Iterator<Item = &str> {
    let text = schema["x-kubernetes-patch-strategy"].as_str();
    text.into_iter().flat_map(|text| text.split(','))
}

fn keys(schema: &Value) -> Vec<String> {
    let texts = |value: &Value| value.as_str().map(str::to_owned);
    match schema["x-kubernetes-list-map-keys"].as_array() {
        Some(keys) => keys.iter().filter_map(texts).collect(),
        None => texts(&schema["x-kubernetes-patch-merge-key"])
            .into_iter()
            .collect(),
    }
}

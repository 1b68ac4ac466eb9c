//! `values.schema.json`: chart values against their schemas, with the messages of Helm.
//!
//! Helm hands a chart's schema to santhosh-tekuri/jsonschema v6: drafts 4 to 2020-12 (the last where none is named),
//! formats asserted only before draft 2019-09. Nothing is loaded: a schema that names files or HTTP URLs is refused as
//! Helm refuses it where it cannot reach them, URNs are taken for `true`.

mod compile;
mod document;
mod draft;
mod escape;
mod failure;
mod format;
mod metaschema;
mod node;
mod number;
mod pattern;
mod pointer;
pub mod url;
mod validate;

use std::sync::Arc;

use serde_json::{Map, Value};

use compile::{Assertions, Compiler, Graph};
use document::{Documents, MAIN};
use go_text::json::{self, Json};
use node::NodeId;

/// Problem of values or of their schema, in Helm's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// A schema that values can be checked against any number of times.
#[derive(Debug)]
pub struct Compiled {
    graph: Graph,
    root: NodeId,
    unresolved_urns: Vec<String>,
}

impl Compiled {
    /// Compiles the content of a `values.schema.json`.
    pub fn new(schema: &[u8]) -> Result<Self, Error> {
        let json = json::decode_only(schema).map_err(Error)?;
        let mut documents = Documents::default();
        documents.add(MAIN, Arc::new(json));
        let mut compiler = Compiler::new(documents, Assertions::OfTheDraft);
        let root = compiler.compile(MAIN).map_err(Error)?;
        Ok(Self {
            unresolved_urns: compiler.unresolved_urns().cloned().collect(),
            root,
            graph: compiler.into_graph(),
        })
    }

    /// Checks values. The message has a line for each failure and ends with a line break.
    pub fn check(&self, values: &Map<String, Value>) -> Result<(), Error> {
        let values = Json::of_fields(values);
        let checked = validate::values(&self.graph, self.root, &values).map_err(Error)?;
        checked.map_err(|failures| {
            let failures = failures.strip_prefix('\n').unwrap_or(&failures);
            Error(format!("{failures}\n"))
        })
    }

    /// URNs that the schema refers to and that were taken for `true`; Helm warns of each.
    pub fn unresolved_urns(&self) -> &[String] {
        &self.unresolved_urns
    }
}

#[cfg(test)]
mod tests;

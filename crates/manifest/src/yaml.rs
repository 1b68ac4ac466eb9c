//! YAML as Go's libraries read and write it.
//!
//! Text becomes a tree of [`Nodes`] that keep what the text said (style, tag, anchor, line); two schemas read that tree:
//! [`json`] as sigs.k8s.io/yaml does for kubectl, Helm and Flux (YAML 1.1, through JSON), and [`scalar`] as kyaml does
//! for kustomize. [`write()`] emits JSON values as sigs.k8s.io/yaml does, [`write_tree`] a tree as kyaml does. Comments are in no
//! node, because none of the three keeps them in what Windlass applies: [`compose_all_with_comments`] lists them, [`compose_all_annotated`] says also where scalars
//! stand, for edits of the text itself, and
//! [`write_tree_commented`] writes them.

mod compose;
mod dialect;
mod emit;
mod error;
mod folded;
mod go_value;
mod input;
pub mod json;
mod node;
pub mod number;
mod parse;
pub mod scalar;
mod scan;
mod timestamp;
mod write_tree;

use serde_json::Value;

pub use compose::{
    Annotated, Composed, MAX_DEPTH, MAX_NODES, compose_all, compose_all_annotated, compose_all_with_comments,
    compose_first,
};
pub use dialect::Dialect;
pub use emit::{WriteError, check, write, write_mapping, write_values};
pub use error::{Error, Problem};
pub use input::Input;
pub use node::{Budget, Comment, Exhausted, Kind, Node, NodeId, Nodes, Style, Tag};
pub use write_tree::{Comments, write_tree, write_tree_commented, write_tree_indented};

/// One document of a stream, as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Value of the document; null for a document without content.
    pub value: Value,
    /// The line of its first node, counted from 1.
    pub line: u32,
    /// Lines of the elements of a top-level `items` sequence, for messages about the members of a List.
    pub item_lines: Vec<u32>,
}

/// Reads all documents of a stream by the rules of sigs.k8s.io/yaml; `file` is named in errors.
///
/// A stream without documents gives an empty vector.
///
/// ```
/// let documents = manifest::yaml::read_documents("a: yes\n---\nb: 0644\n", "f.yaml").unwrap();
/// assert_eq!(documents[0].value, serde_json::json!({"a": true}));
/// assert_eq!(documents[1].value, serde_json::json!({"b": 420}));
/// ```
pub fn read_documents(text: &str, file: &str) -> Result<Vec<Document>, Error> {
    let mut nodes = Nodes::default();
    let roots = compose_all(text, &mut nodes, Dialect::Sigs).map_err(|problem| Error::new(file, problem))?;
    roots
        .into_iter()
        .map(|root| document(&nodes, root, file))
        .collect()
}

fn document(nodes: &Nodes, root: NodeId, file: &str) -> Result<Document, Error> {
    let value = json::decode(nodes, root).map_err(|problem| Error::new(file, problem))?;
    let item_lines = match nodes.field(root, "items") {
        Some(items) => nodes[items]
            .content
            .iter()
            .map(|item| nodes[*item].line)
            .collect(),
        None => Vec::new(),
    };
    Ok(Document {
        value,
        line: nodes[root].line,
        item_lines,
    })
}

//! Rendered files as one stream of YAML documents, and back.

use std::collections::BTreeMap;

use manifest::yaml::{Dialect, Kind, Node, NodeId, Nodes, compose_all, write_tree};

use crate::manifest::{Files, base, split};
use helm_chart::Helm;

/// Where a document keeps the name of its file.
const FILE: &str = "postrenderer.helm.sh/postrender-filename";

/// Merges files: Helm's `annotateAndMerge`.
pub(super) fn merge(files: &Files) -> Result<String, String> {
    let mut stream = Stream::default();
    for (path, content) in files {
        if base(path).starts_with('_') {
            continue;
        }
        for document in split(content, Helm::V4) {
            let text = String::from_utf8_lossy(document);
            let mut nodes = Nodes::default();
            let roots = read(&text, &mut nodes).map_err(|problem| format!("parsing {path}: {problem}"))?;
            for root in roots {
                annotate(&mut nodes, root, path)
                    .map_err(|problem| format!("annotating {path}: {problem}"))?;
                stream.add(&mut nodes, root);
            }
        }
    }
    Ok(stream.text)
}

/// Sorts documents into files: Helm's `splitAndDeannotate`. Those without a file get one of their own.
pub(super) fn take_apart(documents: &str, prefix: &str) -> Result<Files, String> {
    let mut nodes = Nodes::default();
    let roots = read(documents, &mut nodes).map_err(|problem| format!("error parsing YAML: {problem}"))?;
    let mut files: BTreeMap<_, Stream> = BTreeMap::new();
    for (index, root) in roots.into_iter().enumerate() {
        let name = take_file(&mut nodes, root).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| format!("{prefix}-{index}.yaml"));
        files.entry(name.into()).or_default().add(&mut nodes, root);
    }
    let files = files.into_iter();
    Ok(files
        .map(|(path, stream)| (path, stream.text.into_bytes()))
        .collect())
}

/// Documents as kyaml joins them.
#[derive(Default)]
struct Stream {
    text: String,
}

impl Stream {
    fn add(&mut self, nodes: &mut Nodes, root: NodeId) {
        clear_empty_annotations(nodes, root);
        if !self.text.is_empty() {
            self.text.push_str("---\n");
        }
        self.text.push_str(&write_tree(nodes, root));
    }
}

/// Takes empty annotations out, then empty metadata, as kyaml does before it writes.
fn clear_empty_annotations(nodes: &mut Nodes, root: NodeId) {
    let Some(metadata) = nodes.field(root, "metadata") else {
        return;
    };
    let annotations = nodes.field(metadata, "annotations");
    if annotations.is_some_and(|annotations| nodes[annotations].content.is_empty()) {
        nodes.remove_field(metadata, "annotations");
    }
    if nodes[metadata].content.is_empty() {
        nodes.remove_field(root, "metadata");
    }
}

/// Reads documents, without those that say nothing; a single list gives its items.
fn read(text: &str, nodes: &mut Nodes) -> Result<Vec<NodeId>, String> {
    let roots = compose_all(text, nodes, Dialect::Kyaml).map_err(|problem| problem.to_string())?;
    if let [root] = roots[..]
        && is_list(nodes, root)
        && let Some(items) = nodes.field(root, "items")
    {
        return Ok(nodes[items].content.clone());
    }
    Ok(roots.into_iter().filter(|root| !nodes[*root].is_null()).collect())
}

fn is_list(nodes: &Nodes, root: NodeId) -> bool {
    let kind = nodes.field(root, "kind");
    kind.is_some_and(|kind| matches!(nodes[kind].value.as_str(), "List" | "ResourceList"))
}

fn annotate(nodes: &mut Nodes, root: NodeId, path: &str) -> Result<(), String> {
    let metadata = mapping(nodes, root, "metadata")?;
    let annotations = mapping(nodes, metadata, "annotations")?;
    nodes.remove_field(annotations, FILE);
    let name = nodes.add(Node::string(path));
    nodes.push_field(annotations, FILE, name);
    Ok(())
}

/// Returns a field that is a mapping, which is made where it is missing.
fn mapping(nodes: &mut Nodes, parent: NodeId, name: &str) -> Result<NodeId, String> {
    if nodes[parent].kind != Kind::Mapping {
        return Err("wrong node kind: expected MappingNode".to_owned());
    }
    match nodes.field(parent, name).filter(|field| !nodes[*field].is_null()) {
        Some(field) => Ok(field),
        None => {
            nodes.remove_field(parent, name);
            let field = nodes.add(Node::mapping());
            nodes.push_field(parent, name, field);
            Ok(field)
        }
    }
}

fn take_file(nodes: &mut Nodes, root: NodeId) -> Option<String> {
    let metadata = nodes.field(root, "metadata")?;
    let annotations = nodes.field(metadata, "annotations")?;
    let name = nodes.remove_field(annotations, FILE)?;
    Some(nodes[name].value.clone())
}

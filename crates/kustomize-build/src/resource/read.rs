//! Text to resources, as kyaml's reader and kustomize's factory do it.

use std::collections::VecDeque;
use std::sync::Arc;

use manifest::Origin;
use manifest::yaml::{self, Dialect, Kind, MAX_NODES, Node, NodeId, Problem, Style, Tag};
use serde_json::Value;

use super::Resource;
use crate::error::{Error, Result};
use crate::nodes::Nodes;
use crate::resource::metadata;

/// Reads the resources of a text. `file` is for positions; messages do not hold it, callers add it in kustomize's way.
pub(crate) fn parse_resources(nodes: &mut Nodes, text: &str, file: &str) -> Result<Vec<Resource>> {
    let text = text.replace("\r\n", "\n");
    let chunks = split_documents(&text)?;
    let only_one = chunks.len() == 1;
    let mut roots = Vec::new();
    for chunk in chunks {
        let line = chunk.line;
        let root = yaml::compose_first(&chunk.text, nodes, Dialect::Kyaml)
            .map_err(|problem| malformed(problem, line, file))?;
        let Some(root) = root.filter(|root| !nodes[*root].is_null()) else {
            continue;
        };
        if only_one && is_list_wrapper(nodes, root) {
            let items = nodes.field(root, "items");
            roots.extend(
                items
                    .map(|items| nodes[items].content.clone())
                    .unwrap_or_default(),
            );
            continue;
        }
        roots.push(root);
        shift_lines(nodes, root, line);
    }
    let mut good = VecDeque::new();
    for root in roots {
        let root = resolve_aliases(nodes, root, file)?;
        if is_good(nodes, root).map_err(|error| error.in_file(file, nodes[root].line))? {
            good.push_back((root, nodes[root].line));
        }
    }
    let file: Arc<str> = file.into();
    let expanded = expand_lists(nodes, good)?;
    let resource = |(root, line)| {
        let file = file.clone();
        let mut resource = Resource::new(root, Some(Origin { file, line }));
        // Some files are what a kustomize printed or kept: it then goes on from there.
        resource.read_history(nodes);
        resource
    };
    Ok(expanded.into_iter().map(resource).collect())
}

struct Chunk {
    text: String,
    /// Lines of the text before the chunk.
    line: u32,
}

/// Splits at lines that start with `---`, which must hold nothing else but a comment.
fn split_documents(text: &str) -> Result<Vec<Chunk>> {
    let mut chunks = Vec::new();
    if text.is_empty() {
        return Ok(chunks);
    }
    let mut start = 0;
    let mut search = 0;
    let mut line = 0;
    while let Some(found) = text[search..].find("\n---") {
        let at = search + found;
        let Some(end) = text[at + 1..].find('\n').map(|offset| at + 1 + offset) else {
            break;
        };
        let behind = text[at + 4..end].trim();
        if !behind.is_empty() && !behind.starts_with('#') {
            return Err(Error::invalid(format!(
                "invalid document separator: {}",
                text[at..end].trim()
            )));
        }
        chunks.push(Chunk {
            text: format!("{}\n", &text[start..at]),
            line,
        });
        line += count_lines(&text[start..=end]);
        start = end + 1;
        search = start;
    }
    chunks.push(Chunk {
        text: text[start..].to_owned(),
        line,
    });
    Ok(chunks)
}

fn count_lines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

fn malformed(problem: Problem, lines_before: u32, file: &str) -> Error {
    let message = format!("MalformedYAMLError: {problem}");
    let line = problem.below(lines_before).line;
    Error::invalid(message).in_file(file, line)
}

/// Only the lines that may be reported are moved: those of the document and of a List's members.
fn shift_lines(nodes: &mut Nodes, root: NodeId, lines: u32) {
    nodes[root].line += lines;
    if let Some(items) = nodes.field(root, "items") {
        for item in nodes[items].content.clone() {
            nodes[item].line += lines;
        }
    }
}

fn is_list_wrapper(nodes: &Nodes, root: NodeId) -> bool {
    matches!(metadata::text(nodes, root, "kind"), "List" | "ResourceList")
        && (nodes.field(root, "items").is_some() || nodes.field(root, "functionConfig").is_some())
}

/// Drops what is empty; refuses what is no object.
fn is_good(nodes: &Nodes, root: NodeId) -> Result<bool> {
    if nodes[root].is_null_or_empty() {
        return Ok(false);
    }
    check(nodes, root).map(|()| true)
}

/// Refuses what has no kind or no name (kyaml's `GetValidatedMetadata`).
pub(crate) fn check(nodes: &Nodes, root: NodeId) -> Result<()> {
    let present = |field: &str| {
        nodes
            .field(root, field)
            .is_some_and(|value| !nodes[value].is_null_or_empty())
    };
    if !present("apiVersion") && !present("kind") && !has_metadata(nodes, root) {
        return Err(Error::invalid("missing Resource metadata"));
    }
    let kind = metadata::text(nodes, root, "kind");
    if kind.is_empty() || !present("kind") {
        return Err(Error::invalid(format!(
            "missing kind in object {}",
            metadata::describe(nodes, root)
        )));
    }
    if metadata::name(nodes, root).is_empty() && !kind.ends_with("List") {
        let object = metadata::describe(nodes, root);
        return Err(Error::invalid(format!(
            "missing metadata.name in object {object}"
        )));
    }
    Ok(())
}

fn has_metadata(nodes: &Nodes, root: NodeId) -> bool {
    let Some(metadata) = nodes.field(root, "metadata") else {
        return false;
    };
    ["name", "namespace", "labels", "annotations"]
        .iter()
        .any(|field| {
            nodes
                .field(metadata, field)
                .is_some_and(|value| !nodes[value].is_null_or_empty())
        })
}

/// Puts the members of `…List` objects in their place, behind everything else.
fn expand_lists(nodes: &mut Nodes, mut queue: VecDeque<(NodeId, u32)>) -> Result<Vec<(NodeId, u32)>> {
    let mut result = Vec::new();
    while let Some((root, line)) = queue.pop_front() {
        let kind = metadata::text(nodes, root, "kind").to_owned();
        let Some(items) = nodes.field(root, "items").filter(|_| kind.ends_with("List")) else {
            result.push((root, line));
            continue;
        };
        if nodes[items].is_null() {
            continue;
        }
        if nodes[items].kind != Kind::Sequence {
            return Err(Error::invalid(format!(
                "expected array in {kind}/items, but found something else"
            )));
        }
        for item in nodes[items].content.clone() {
            let line = nodes[item].line;
            let value = yaml::json::decode_kyaml(nodes, item)
                .map_err(|problem| Error::invalid(problem.to_string()))?;
            let copy = node_from_json(nodes, &value, JsonStyle::Json);
            if is_good(nodes, copy)? {
                queue.push_back((copy, line));
            }
        }
    }
    Ok(result)
}

/// How text was made that is now read again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonStyle {
    /// By encoding/json: all strings are quoted.
    Json,
    /// By go-yaml v3 from decoded JSON, where every number is a float.
    Yaml,
}

/// Makes nodes of a JSON value, as they come out when it was written and read again.
pub(crate) fn node_from_json(nodes: &mut Nodes, value: &Value, style: JsonStyle) -> NodeId {
    let node = match value {
        Value::Null => Node::tagged_scalar("null", Tag::Null),
        Value::Bool(b) => Node::tagged_scalar(b.to_string(), Tag::Bool),
        Value::Number(number) => number_node(number, style),
        Value::String(text) => string_node(text, style),
        Value::Array(elements) => {
            let content = elements
                .iter()
                .map(|element| node_from_json(nodes, element, style))
                .collect();
            Node {
                content,
                ..Node::sequence()
            }
        }
        Value::Object(fields) => {
            let mut content = Vec::with_capacity(fields.len() * 2);
            for (key, value) in fields {
                content.push(nodes.add(string_node(key, style)));
                content.push(node_from_json(nodes, value, style));
            }
            Node {
                content,
                ..Node::mapping()
            }
        }
    };
    nodes.add(node)
}

fn number_node(number: &serde_json::Number, style: JsonStyle) -> Node {
    let text = match (style, number.as_f64()) {
        (JsonStyle::Yaml, Some(float)) => yaml::number::format_g(float),
        _ => number.to_string(),
    };
    let tag = yaml::scalar::resolve_plain(&text).tag();
    Node::tagged_scalar(text, tag)
}

fn string_node(text: &str, style: JsonStyle) -> Node {
    let plain =
        yaml::scalar::resolve_plain(text).tag() == Tag::Str && !yaml::scalar::is_no_string_in_yaml_1_1(text);
    let style = match style {
        _ if text.contains('\n') && style == JsonStyle::Yaml => Style::Literal,
        JsonStyle::Yaml if plain => Style::Plain,
        _ => Style::DoubleQuoted,
    };
    Node {
        style,
        ..Node::tagged_scalar(text, Tag::Str)
    }
}

/// Puts copies of what aliases refer to in their place, and folds merge keys into their mappings.
fn resolve_aliases(nodes: &mut Nodes, root: NodeId, file: &str) -> Result<NodeId> {
    let limit = nodes.len() + MAX_NODES;
    let line = nodes[root].line;
    Aliases {
        nodes,
        limit,
        open: Vec::new(),
    }
    .resolve(root)
    .map_err(|error| error.in_file(file, line))
}

struct Aliases<'a> {
    nodes: &'a mut Nodes,
    limit: usize,
    open: Vec<NodeId>,
}

impl Aliases<'_> {
    fn resolve(&mut self, id: NodeId) -> Result<NodeId> {
        if self.nodes.len() > self.limit {
            return Err(Error::invalid("yaml: document contains excessive aliasing"));
        }
        self.nodes[id].anchor = None;
        match self.nodes[id].kind {
            Kind::Scalar => Ok(id),
            Kind::Alias => self.follow(id),
            Kind::Mapping => {
                self.merge_keys(id)?;
                self.children(id)
            }
            Kind::Sequence => self.children(id),
        }
    }

    fn follow(&mut self, id: NodeId) -> Result<NodeId> {
        let Some(target) = self.nodes[id].alias else {
            return Ok(id);
        };
        if self.open.contains(&target) {
            let name = &self.nodes[id].value;
            return Err(Error::invalid(format!("anchor '{name}' value contains itself")));
        }
        self.open.push(target);
        let resolved = self.resolve(target)?;
        self.open.pop();
        Ok(self.nodes.deep_copy(resolved))
    }

    fn children(&mut self, id: NodeId) -> Result<NodeId> {
        if self.nodes[id].content.is_empty() {
            return Ok(id);
        }
        self.open.push(id);
        for index in 0..self.nodes[id].content.len() {
            let child = self.nodes[id].content[index];
            let resolved = self.resolve(child)?;
            self.nodes[id].content[index] = resolved;
        }
        self.open.pop();
        Ok(id)
    }

    fn merge_keys(&mut self, id: NodeId) -> Result<()> {
        let merges: Vec<NodeId> = {
            let nodes = &*self.nodes;
            nodes
                .pairs(id)
                .filter(|(key, _)| nodes[*key].tag == Tag::Merge)
                .map(|(_, value)| value)
                .collect()
        };
        let Some(value) = merges.first().copied() else {
            return Ok(());
        };
        if merges.len() > 1 {
            return Err(Error::invalid("duplicate merge key"));
        }
        let sources = self.merge_sources(value)?;
        self.nodes.remove_field(id, "<<");
        let own = self.nodes[id].content.clone();
        for source in sources {
            let fields: Vec<(NodeId, NodeId)> = self.nodes.pairs(source).collect();
            for (key, value) in fields {
                if self.nodes[key].tag == Tag::Merge {
                    self.set_entry(id, key, value);
                    continue;
                }
                let key = self.nodes.deep_copy(key);
                let value = self.nodes.deep_copy(value);
                self.set_entry(id, key, value);
            }
        }
        for pair in own.chunks_exact(2) {
            self.set_entry(id, pair[0], pair[1]);
        }
        Ok(())
    }

    /// Returns the mappings to merge, the one that gives way to all others first.
    fn merge_sources(&mut self, value: NodeId) -> Result<Vec<NodeId>> {
        match self.nodes[value].kind {
            Kind::Mapping => Ok(vec![value]),
            Kind::Alias => match self.nodes[value].alias {
                Some(target) if self.nodes[target].kind == Kind::Mapping => Ok(vec![target]),
                _ => Err(Error::invalid(
                    "invalid map merge: received alias for a non-map value",
                )),
            },
            Kind::Sequence => {
                let mut sources = Vec::new();
                for element in self.nodes[value].content.clone() {
                    if self.nodes[element].kind == Kind::Sequence {
                        return Err(Error::invalid("invalid map merge: received a nested sequence"));
                    }
                    let mut found = self.merge_sources(element)?;
                    found.append(&mut sources);
                    sources = found;
                }
                Ok(sources)
            }
            Kind::Scalar => Err(Error::invalid(
                "map merge requires map or sequence of maps as the value",
            )),
        }
    }

    fn set_entry(&mut self, mapping: NodeId, key: NodeId, value: NodeId) {
        let name = self.nodes[key].value.clone();
        let position = self
            .nodes
            .pairs(mapping)
            .position(|(known, _)| self.nodes[known].value == name);
        match position {
            Some(position) => {
                let content = &mut self.nodes[mapping].content;
                content[position * 2] = key;
                content[position * 2 + 1] = value;
            }
            None => self.nodes[mapping].content.extend([key, value]),
        }
    }
}

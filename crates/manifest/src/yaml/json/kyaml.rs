//! From a tree to JSON by the rules of kyaml's `RNode.MarshalJSON`: the tree is written, and read by go-yaml v3.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::error::Problem;
use super::super::node::{Kind, Node, NodeId, Nodes, Style, Tag};
use super::super::scalar::{self, Scalar};
use super::super::{MAX_DEPTH, folded, timestamp};
use super::failure;

/// How many problems of one document are told; go-yaml tells all, of which there may be the square of its keys.
const MAX_ERRORS: usize = 1000;

/// Makes JSON of a tree by the rules of kyaml: the tree must hold no alias and no merge key any more.
pub fn decode_kyaml(nodes: &Nodes, root: NodeId) -> Result<Value, Problem> {
    let mut decoder = Decoder {
        nodes,
        depth: 0,
        flow_depth: 0,
        errors: Vec::new(),
    };
    let value = decoder.value(root)?;
    if decoder.errors.is_empty() {
        return Ok(value.unwrap_or_default());
    }
    let lines = lines_when_written(nodes, root);
    let line_of = |id: NodeId| lines.get(&id).copied().unwrap_or(nodes[id].line);
    let mut text = "unmarshal errors:".to_owned();
    for error in &decoder.errors {
        text += &match *error {
            TypeError::Repeated(first, second) => format!(
                "\n  line {}: mapping key {} already defined at line {}",
                line_of(second),
                go_text::quote::quoted(&nodes[second].value),
                line_of(first)
            ),
            TypeError::NoText(key) => format!(
                "\n  line {}: cannot unmarshal {} into string",
                line_of(key),
                nodes[key].tag.as_str()
            ),
        };
    }
    Err(Problem::in_node(nodes[root].line, text))
}

/// A problem after which go-yaml goes on, to tell all of them together.
enum TypeError {
    /// A key of a mapping, and the same key again.
    Repeated(NodeId, NodeId),
    /// A collection as a key where only text can be one.
    NoText(NodeId),
}

struct Decoder<'a> {
    nodes: &'a Nodes,
    depth: usize,
    /// How many collections in flow style are open.
    flow_depth: usize,
    errors: Vec<TypeError>,
}

impl Decoder<'_> {
    /// Returns the value; None for a mapping with repeated keys.
    fn value(&mut self, id: NodeId) -> Result<Option<Value>, Problem> {
        let nodes = self.nodes;
        let node = &nodes[id];
        let is_root = self.depth == 0;
        self.depth += 1;
        // Changes may nest a tree deeper than the reader lets it be, but not without end.
        if self.depth > 2 * MAX_DEPTH {
            let text = format!("exceeded max depth of {}", 2 * MAX_DEPTH);
            return Err(Problem::in_node(node.line, text));
        }
        self.flow_depth += usize::from(node.flow);
        let value = match node.kind {
            Kind::Scalar if self.flow_depth > 0 && (is_written_as_quotes(node) || is_time_of_day(node)) => {
                Some(Value::from(node.value.as_str()))
            }
            Kind::Scalar => Some(scalar::to_json(node).map_err(|text| failure(node, text))?),
            Kind::Alias => match node.alias {
                Some(target) => self.value(target)?,
                None => Some(Value::Null),
            },
            Kind::Sequence => {
                let mut elements = Vec::with_capacity(node.content.len());
                for child in &node.content {
                    elements.extend(self.value(*child)?);
                }
                Some(Value::Array(elements))
            }
            Kind::Mapping => self.mapping(id, is_root)?,
        };
        self.flow_depth -= usize::from(node.flow);
        self.depth -= 1;
        Ok(value)
    }

    fn mapping(&mut self, id: NodeId, is_root: bool) -> Result<Option<Value>, Problem> {
        if self.has_repeated_keys(id) {
            return Ok(None);
        }
        let nodes = self.nodes;
        let mut map = Map::new();
        for (key, value) in nodes.pairs(id) {
            let name = if is_root {
                self.root_key(key)?
            } else {
                Some(self.key(key)?)
            };
            if let Some(name) = name
                && let Some(value) = self.value(value)?
            {
                map.insert(name, value);
            }
        }
        Ok(Some(Value::Object(map)))
    }

    /// Notes the keys that are there more than once, which go-yaml compares by their text.
    fn has_repeated_keys(&mut self, mapping: NodeId) -> bool {
        const FEW: usize = 16;
        let nodes = self.nodes;
        let is_same =
            |a: NodeId, b: NodeId| nodes[a].kind == nodes[b].kind && nodes[a].value == nodes[b].value;
        let keys: Vec<NodeId> = nodes.pairs(mapping).map(|(key, _)| key).collect();
        if keys.len() > FEW {
            let texts: std::collections::HashSet<&str> = keys.iter().map(|key| &*nodes[*key].value).collect();
            if texts.len() == keys.len() {
                return false;
            }
        }
        let before = self.errors.len();
        for (index, first) in keys.iter().enumerate() {
            let repeated = keys[index + 1..]
                .iter()
                .filter(|second| is_same(*first, **second));
            for second in repeated {
                self.errors.push(TypeError::Repeated(*first, *second));
                if self.errors.len() >= MAX_ERRORS {
                    return true;
                }
            }
        }
        self.errors.len() > before
    }

    /// The root is read into a `map[string]interface{}`: any scalar is text, but a null key is passed over.
    fn root_key(&mut self, id: NodeId) -> Result<Option<String>, Problem> {
        let node = &self.nodes[id];
        if node.kind != Kind::Scalar {
            self.errors.push(TypeError::NoText(id));
            return Ok(None);
        }
        match scalar::to_json(node).map_err(|text| failure(node, text)) {
            Ok(Value::Null) if is_written_as_quotes(node) => Ok(Some(String::new())),
            Ok(Value::Null) => Ok(None),
            Ok(Value::String(text)) if node.tag == Tag::Binary => Ok(Some(text)),
            Err(problem) if !problem.text.starts_with("json:") => Err(problem),
            _ => Ok(Some(node.value.clone())),
        }
    }

    /// Other mappings may have keys of any kind, of which encoding/json takes text, integers and times.
    fn key(&mut self, id: NodeId) -> Result<String, Problem> {
        let node = &self.nodes[id];
        if matches!(node.kind, Kind::Mapping | Kind::Sequence) {
            return Err(Problem::in_node(node.line, "invalid map key"));
        }
        match scalar::to_json(node).map_err(|text| failure(node, text))? {
            Value::String(text) => Ok(text),
            Value::Number(n) if is_integer(node) => Ok(n.to_string()),
            Value::Null if is_written_as_quotes(node) => Ok(String::new()),
            _ => {
                let text = format!(
                    "json: unsupported map key {:?}: object member name must be a string",
                    node.value
                );
                Err(Problem::in_json(node.line, text))
            }
        }
    }
}

/// Returns whether go-yaml's emitter writes the node as `''`, which reads as text: as a key, and in flow collections.
fn is_written_as_quotes(node: &Node) -> bool {
    let is_null = matches!(node.tag, Tag::Null | Tag::Empty) && !node.tagged;
    node.value.is_empty() && node.style == Style::Plain && is_null
}

/// Returns whether the node is a point in time with a colon, which go-yaml's emitter quotes in flow collections.
fn is_time_of_day(node: &Node) -> bool {
    node.tag == Tag::Timestamp && !node.tagged && node.value.contains(':')
}

fn is_integer(node: &Node) -> bool {
    node.tag != Tag::Float
        && timestamp::to_rfc3339(&node.value).is_none()
        && matches!(scalar::resolve_plain(&node.value), Scalar::Int(_))
}

/// Tells in which lines nodes stand when the tree is written, as far as comments do not move them.
fn lines_when_written(nodes: &Nodes, root: NodeId) -> HashMap<NodeId, u32> {
    let mut layout = Layout {
        nodes,
        line: 1,
        lines: HashMap::new(),
        depth: 0,
    };
    layout.place(root);
    layout.lines
}

struct Layout<'a> {
    nodes: &'a Nodes,
    line: u32,
    lines: HashMap<NodeId, u32>,
    depth: usize,
}

impl Layout<'_> {
    /// Places a node that starts in the current line; afterwards that is the node's last line.
    fn place(&mut self, id: NodeId) {
        let nodes = self.nodes;
        let node = &nodes[id];
        self.lines.insert(id, self.line);
        if self.depth > 2 * MAX_DEPTH {
            return;
        }
        self.depth += 1;
        match node.kind {
            Kind::Scalar | Kind::Alias => self.line += further_lines(node),
            Kind::Sequence | Kind::Mapping if node.flow => {
                for child in &node.content {
                    self.place(*child);
                }
            }
            Kind::Sequence => {
                for (index, child) in node.content.iter().enumerate() {
                    self.line += u32::from(index > 0);
                    self.place(*child);
                }
            }
            Kind::Mapping => {
                for (index, (key, value)) in nodes.pairs(id).enumerate() {
                    self.line += u32::from(index > 0);
                    self.place(key);
                    let value_node = &nodes[value];
                    let is_block = !value_node.flow && !value_node.content.is_empty();
                    self.line += u32::from(is_block);
                    self.place(value);
                }
            }
        }
        self.depth -= 1;
    }
}

fn further_lines(node: &Node) -> u32 {
    let breaks = node.value.matches('\n').count();
    let lines = match node.style {
        Style::DoubleQuoted => 0,
        Style::Literal | Style::Folded if !folded::is_written_as_block(&node.value) => 0,
        Style::Literal | Style::Folded => breaks + usize::from(!node.value.ends_with('\n')),
        Style::Plain | Style::SingleQuoted => {
            // Quotes keep a break by writing one more, once for all that follow each other.
            let runs = node
                .value
                .split('\n')
                .skip(1)
                .filter(|line| !line.is_empty())
                .count();
            breaks + runs + usize::from(node.value.ends_with('\n'))
        }
    };
    u32::try_from(lines).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{Dialect, compose_first};

    fn decoded(text: &str) -> String {
        let mut nodes = Nodes::default();
        let root = compose_first(text, &mut nodes, Dialect::Kyaml)
            .expect("valid")
            .expect("a document");
        match decode_kyaml(&nodes, root) {
            Ok(value) => value.to_string(),
            Err(problem) => problem.to_string(),
        }
    }

    /// Recorded from kyaml 0.21.3 with Go 1.27.
    #[test]
    fn keys_are_what_go_makes_of_them() {
        for (text, json) in [
            (
                "9000: a\n0x1F: b\ntrue: c\n",
                r#"{"0x1F":"b","9000":"a","true":"c"}"#,
            ),
            ("a: {9000: b, 0x1F: c}\n", r#"{"a":{"31":"c","9000":"b"}}"#),
            (
                "a: {b: , c}\nd:\n? \n: e\n",
                r#"{"":"e","a":{"b":"","c":""},"d":null}"#,
            ),
            (
                "a: 1\n{b: c}: d\n",
                "yaml: unmarshal errors:\n  line 2: cannot unmarshal !!map into string",
            ),
        ] {
            assert_eq!(decoded(text), json, "{text:?}");
        }
    }

    #[test]
    fn repeated_keys_are_told_with_the_lines_of_the_written_text() {
        for (text, message) in [
            (
                "a:\n\n  b: 1\n\n  b: 2\n",
                "yaml: unmarshal errors:\n  line 3: mapping key \"b\" already defined at line 2",
            ),
            (
                "a: |\n  x\n  y\nb: [1,\n  2]\na: 3\nb: 4\n",
                "yaml: unmarshal errors:\n  line 5: mapping key \"a\" already defined at line 1\n  line 6: mapping key \"b\" already defined at line 4",
            ),
            (
                "a: 'x\n\n  y\n\n\n  z'\nb: 1\nb: 2",
                "yaml: unmarshal errors:\n  line 8: mapping key \"b\" already defined at line 7",
            ),
        ] {
            assert_eq!(decoded(text), message, "{text:?}");
        }
    }
}

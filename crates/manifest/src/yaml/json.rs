//! From a tree to JSON.
//!
//! [`decode`] is what sigs.k8s.io/yaml makes of a document: go-yaml v2's types and merge keys, any scalar as a key.
//! [`decode_kyaml`] is what kyaml's `RNode.MarshalJSON` makes of a tree: go-yaml v3's types, and keys that are strings.

mod kyaml;

use std::collections::BTreeMap;

use serde_json::Value;

pub use kyaml::decode_kyaml;

use super::error::Problem;
use super::go_value::{GoKey, GoValue};
use super::node::{Kind, Node, NodeId, Nodes, Style, Tag};
use super::{MAX_DEPTH, scalar};

/// Makes JSON of a document by the rules of sigs.k8s.io/yaml.
pub fn decode(nodes: &Nodes, root: NodeId) -> Result<Value, Problem> {
    decode_value(nodes, root)?.into_json(nodes[root].line)
}

/// Makes JSON of a document as [`decode`] does, but tells `7244500.0` from `7244500`: where a struct of Go wants a
/// string, sigs.k8s.io/yaml writes the first as a float (`7.2445e+06`).
pub fn decode_with_floats(nodes: &Nodes, root: NodeId) -> Result<Value, Problem> {
    decode_value(nodes, root)?.into_json_with_floats(nodes[root].line)
}

/// Makes JSON of a document as [`decode_with_floats`] does, but refuses a mapping that has a key twice, as
/// `UnmarshalStrict` does. What `<<` brings counts as well.
pub fn decode_strict(nodes: &Nodes, root: NodeId) -> Result<Value, Problem> {
    let mut decoder = Decoder::new(nodes);
    decoder.strict = true;
    decoder.value(root)?.into_json_with_floats(nodes[root].line)
}

fn decode_value(nodes: &Nodes, root: NodeId) -> Result<GoValue, Problem> {
    Decoder::new(nodes).value(root)
}

struct Decoder<'a> {
    nodes: &'a Nodes,
    strict: bool,
    decoded: u64,
    through_aliases: u64,
    alias_depth: u32,
    depth: usize,
    open_aliases: Vec<NodeId>,
}

/// go-yaml's bound on alias expansion: up to 400,000 decoded nodes 99 % may come through aliases, from 4,000,000 on 10 %.
fn allowed_alias_ratio(decoded: u64) -> f64 {
    const LOW: f64 = 400_000.0;
    const RANGE: f64 = 3_600_000.0;
    #[expect(clippy::cast_precision_loss, reason = "counts of nodes stay far below 2^52")]
    let decoded = decoded as f64;
    if decoded <= LOW {
        0.99
    } else {
        0.99 - 0.89 * ((decoded - LOW) / RANGE).min(1.0)
    }
}

impl<'a> Decoder<'a> {
    fn new(nodes: &'a Nodes) -> Self {
        Self {
            nodes,
            strict: false,
            decoded: 0,
            through_aliases: 0,
            alias_depth: 0,
            depth: 0,
            open_aliases: Vec::new(),
        }
    }

    fn value(&mut self, id: NodeId) -> Result<GoValue, Problem> {
        let nodes = self.nodes;
        let node = &nodes[id];
        self.count(node)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Problem::in_node(
                node.line,
                format!("exceeded max depth of {MAX_DEPTH}"),
            ));
        }
        let value = match node.kind {
            Kind::Scalar => scalar::decode_v2(node).map_err(|text| Problem::in_node(node.line, text))?,
            Kind::Alias => self.alias(id)?,
            Kind::Sequence => {
                let elements = node.content.iter().map(|child| self.value(*child));
                GoValue::List(elements.collect::<Result<_, _>>()?)
            }
            Kind::Mapping => {
                let mut map = BTreeMap::new();
                self.mapping(id, &mut map)?;
                GoValue::Map(map)
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of nodes stay far below 2^52")]
    fn count(&mut self, node: &Node) -> Result<(), Problem> {
        self.decoded += 1;
        if self.alias_depth > 0 {
            self.through_aliases += 1;
        }
        let ratio = self.through_aliases as f64 / self.decoded as f64;
        if self.through_aliases > 100 && self.decoded > 1000 && ratio > allowed_alias_ratio(self.decoded) {
            return Err(Problem::in_node(
                node.line,
                "document contains excessive aliasing",
            ));
        }
        Ok(())
    }

    fn alias(&mut self, id: NodeId) -> Result<GoValue, Problem> {
        let node = &self.nodes[id];
        let Some(target) = node.alias else {
            return Ok(GoValue::Null);
        };
        if self.open_aliases.contains(&target) {
            return Err(Problem::in_node(
                node.line,
                format!("anchor '{}' value contains itself", node.value),
            ));
        }
        self.open_aliases.push(target);
        self.alias_depth += 1;
        let value = self.value(target);
        self.alias_depth -= 1;
        self.open_aliases.pop();
        value
    }

    /// Fills a map in the order of the text: what comes later wins, also what `<<` brings (go-yaml v2).
    fn mapping(&mut self, id: NodeId, map: &mut BTreeMap<GoKey, GoValue>) -> Result<(), Problem> {
        let nodes = self.nodes;
        for pair in nodes[id].content.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            if is_merge(&nodes[key]) {
                self.merge(value, map)?;
                continue;
            }
            let key = self.value(key)?.into_key().map_err(|refused| {
                Problem::in_node(nodes[key].line, format!("invalid map key: {refused}"))
            })?;
            let line = nodes[value].line;
            let value = self.value(value)?;
            self.insert(map, key, value, line)?;
        }
        Ok(())
    }

    fn insert(
        &self,
        map: &mut BTreeMap<GoKey, GoValue>,
        key: GoKey,
        value: GoValue,
        line: u32,
    ) -> Result<(), Problem> {
        if self.strict && map.contains_key(&key) {
            let text = format!("unmarshal errors:\n  line {line}: key {key} already set in map");
            return Err(Problem::in_node(line, text));
        }
        map.insert(key, value);
        Ok(())
    }

    fn merge(&mut self, id: NodeId, map: &mut BTreeMap<GoKey, GoValue>) -> Result<(), Problem> {
        let node = &self.nodes[id];
        let sources: Vec<NodeId> = match node.kind {
            // Earlier elements take precedence, so the last is laid down first.
            Kind::Sequence => node.content.iter().rev().copied().collect(),
            _ => vec![id],
        };
        for source in sources {
            if !self.is_mapping(source) {
                let text = "map merge requires map or sequence of maps as the value";
                return Err(Problem::in_node(self.nodes[source].line, text));
            }
            if let GoValue::Map(fields) = self.value(source)? {
                let line = self.nodes[self.nodes[source].alias.unwrap_or(source)].line;
                for (key, value) in fields {
                    self.insert(map, key, value, line)?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether a node is a mapping, or an alias of one: an alias of an alias does not exist.
    fn is_mapping(&self, id: NodeId) -> bool {
        let node = &self.nodes[id];
        let target = node.alias.unwrap_or(id);
        self.nodes[target].kind == Kind::Mapping
    }
}

fn failure(node: &Node, text: String) -> Problem {
    if text.starts_with("json:") {
        Problem::in_json(node.line, text)
    } else {
        Problem::in_node(node.line, text)
    }
}

fn is_merge(key: &Node) -> bool {
    key.kind == Kind::Scalar
        && key.value == "<<"
        && match &key.tag {
            Tag::Merge => true,
            // `!` stands for "not resolved", which v2 takes for "as if nothing were written".
            Tag::Other(tag) => &**tag == "!",
            _ => !key.tagged && key.style == Style::Plain,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Dialect, compose_first};
    use super::*;

    fn strict(text: &str) -> Result<Value, String> {
        let mut nodes = Nodes::default();
        let root = compose_first(text, &mut nodes, Dialect::Sigs).unwrap().unwrap();
        decode_strict(&nodes, root).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused_when_asked_to() {
        let twice = |line, key| {
            let text = format!("yaml: unmarshal errors:\n  line {line}: key {key} already set in map");
            Err(text)
        };
        assert_eq!(strict("a: 1\nb: {c: 1}"), Ok(json!({"a": 1, "b": {"c": 1}})));
        assert_eq!(strict("a: 1\nb: 2\na:\n  3"), twice(4, "\"a\""));
        assert_eq!(strict("- {1: a, 1: b}"), twice(1, "1"));
        assert_eq!(strict("x: &x {a: 1}\ny:\n  a: 2\n  <<: *x"), twice(1, "\"a\""));
    }
}

//! From a tree to JSON.
//!
//! [`decode`] is what sigs.k8s.io/yaml makes of a document: go-yaml v2's types and merge keys, any scalar as a key.
//! [`decode_kyaml`] is what kyaml's `RNode.MarshalJSON` makes of a tree: go-yaml v3's types, and keys that are strings.

use serde_json::{Map, Value};

use super::error::Problem;
use super::node::{Kind, Node, NodeId, Nodes, Style, Tag};
use super::{MAX_DEPTH, number, scalar};

/// Makes JSON of a document by the rules of sigs.k8s.io/yaml.
pub fn decode(nodes: &Nodes, root: NodeId) -> Result<Value, Problem> {
    Decoder {
        nodes,
        decoded: 0,
        through_aliases: 0,
        alias_depth: 0,
        depth: 0,
        open_aliases: Vec::new(),
    }
    .value(root)
}

struct Decoder<'a> {
    nodes: &'a Nodes,
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

impl Decoder<'_> {
    fn value(&mut self, id: NodeId) -> Result<Value, Problem> {
        let node = &self.nodes[id];
        self.count(node)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Problem::in_node(
                node.line,
                format!("exceeded max depth of {MAX_DEPTH}"),
            ));
        }
        let value = match node.kind {
            Kind::Scalar => scalar_value(node)?,
            Kind::Alias => self.alias(id)?,
            Kind::Sequence => {
                let elements = node.content.iter().map(|child| self.value(*child));
                Value::Array(elements.collect::<Result<_, _>>()?)
            }
            Kind::Mapping => {
                let mut map = Map::new();
                self.mapping(id, &mut map)?;
                Value::Object(map)
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

    fn alias(&mut self, id: NodeId) -> Result<Value, Problem> {
        let node = &self.nodes[id];
        let Some(target) = node.alias else {
            return Ok(Value::Null);
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
    fn mapping(&mut self, id: NodeId, map: &mut Map<String, Value>) -> Result<(), Problem> {
        for pair in self.nodes[id].content.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            if is_merge(&self.nodes[key]) {
                self.merge(value, map)?;
                continue;
            }
            let key = self.key(key, value)?;
            let value = self.value(value)?;
            map.insert(key, value);
        }
        Ok(())
    }

    fn merge(&mut self, id: NodeId, map: &mut Map<String, Value>) -> Result<(), Problem> {
        let node = &self.nodes[id];
        let sources: Vec<NodeId> = match node.kind {
            // Earlier elements take precedence, so the last is laid down first.
            Kind::Sequence => node.content.iter().rev().copied().collect(),
            _ => vec![id],
        };
        for source in sources {
            match self.value(source)? {
                Value::Object(fields) => map.extend(fields),
                _ => {
                    let text = "map merge requires map or sequence of maps as the value";
                    return Err(Problem::in_node(self.nodes[source].line, text));
                }
            }
        }
        Ok(())
    }

    fn key(&mut self, id: NodeId, value: NodeId) -> Result<String, Problem> {
        let line = self.nodes[id].line;
        match self.value(id)? {
            Value::String(text) => Ok(text),
            Value::Bool(b) => Ok(b.to_string()),
            Value::Number(n) => self.number_key(id, &n, value),
            Value::Null => {
                let shown = self.shown(value);
                let text = format!("unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}");
                Err(Problem::in_json(line, text))
            }
            Value::Array(_) | Value::Object(_) => Err(Problem::in_node(line, "invalid map key")),
        }
    }

    fn number_key(&self, id: NodeId, n: &serde_json::Number, value: NodeId) -> Result<String, Problem> {
        if let Some(n) = n.as_i64() {
            // A float key is written as a float of 32 bits: whole ones come out like integers below 1e+21.
            return Ok(n.to_string());
        }
        match n.as_u64() {
            Some(n) => {
                let shown = self.shown(value);
                let text = format!("unsupported map key of type: uint64, key: {n:#x}, value: {shown}");
                Err(Problem::in_json(self.nodes[id].line, text))
            }
            None => Ok(number::format_g(n.as_f64().unwrap_or_default())),
        }
    }

    /// Shows a value in an error about its key, as Go's `%+#v` does for strings and numbers.
    fn shown(&self, id: NodeId) -> String {
        match scalar_value(&self.nodes[id]) {
            Ok(value) if self.nodes[id].kind == Kind::Scalar => value.to_string(),
            _ => "…".to_owned(),
        }
    }
}

fn scalar_value(node: &Node) -> Result<Value, Problem> {
    scalar::to_json_v2(node).map_err(|text| failure(node, text))
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
        && (!key.tagged && key.style == Style::Plain || key.tag == Tag::Merge)
}

/// Makes JSON of a tree by the rules of kyaml: the tree must hold no alias and no merge key any more.
pub fn decode_kyaml(nodes: &Nodes, root: NodeId) -> Result<Value, Problem> {
    let node = &nodes[root];
    match node.kind {
        Kind::Scalar => scalar::to_json(node).map_err(|text| failure(node, text)),
        Kind::Alias => node
            .alias
            .map_or(Ok(Value::Null), |target| decode_kyaml(nodes, target)),
        Kind::Sequence => {
            let elements = node.content.iter().map(|child| decode_kyaml(nodes, *child));
            Ok(Value::Array(elements.collect::<Result<_, _>>()?))
        }
        Kind::Mapping => mapping_of_kyaml(nodes, root),
    }
}

fn mapping_of_kyaml(nodes: &Nodes, id: NodeId) -> Result<Value, Problem> {
    let mut map = Map::new();
    for (key, value) in nodes.pairs(id) {
        let key = &nodes[key];
        let name = key_of_kyaml(key)?;
        if map.contains_key(&name) {
            return Err(Problem::in_node(
                key.line,
                format!("mapping key {name:?} already defined"),
            ));
        }
        map.insert(name, decode_kyaml(nodes, value)?);
    }
    Ok(Value::Object(map))
}

/// encoding/json (since Go 1.27) writes keys that are integers as text, and refuses other keys that are no strings.
fn key_of_kyaml(key: &Node) -> Result<String, Problem> {
    if key.kind != Kind::Scalar {
        return Err(Problem::in_node(key.line, "invalid map key"));
    }
    match scalar::to_json(key).map_err(|text| failure(key, text))? {
        Value::String(name) => Ok(name),
        Value::Null if key.value.is_empty() => Ok(String::new()),
        Value::Number(n) if !n.is_f64() => Ok(n.to_string()),
        _ => {
            let text = format!(
                "json: unsupported map key {:?}: object member name must be a string",
                key.value
            );
            Err(Problem::in_json(key.line, text))
        }
    }
}

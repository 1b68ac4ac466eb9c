//! From YAML to trees. Aliases become what they stand for; styles and anchors are not kept.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::yaml::number::Integer;
use manifest::yaml::scalar::{Scalar, resolve_plain};
use manifest::yaml::{Dialect, Input, Kind, MAX_NODES, Node, NodeId, Nodes, Style, Tag, compose_all};

use crate::store::Problem;
use crate::time::Time;
use crate::tree::{Branch, Item, Key, Value};

/// Collections may be nested this deep when aliases are followed.
const MAX_DEPTH: usize = 256;

pub(crate) fn read(data: &[u8]) -> Result<Vec<Branch>, Problem> {
    let mut nodes = Nodes::default();
    let roots = compose_all(Input::from(data), &mut nodes, Dialect::Kyaml);
    let roots = roots.map_err(|problem| format!("Error unmarshaling input YAML: {problem}"))?;
    if let Some(first) = roots.first() {
        keys_are_unique(&nodes, *first)?;
    }
    let mut reader = Reader {
        nodes: &nodes,
        budget: MAX_NODES,
        depth: 0,
    };
    roots.into_iter().map(|root| reader.document(root)).collect()
}

/// SOPS looks at the first document only.
fn keys_are_unique(nodes: &Nodes, root: NodeId) -> Result<(), Problem> {
    let node = &nodes[root];
    if node.kind == Kind::Mapping {
        let mut seen = HashSet::new();
        for (key, _) in nodes.pairs(root) {
            let key = &nodes[key];
            if key.kind == Kind::Scalar && !seen.insert(key.value.as_str()) {
                return Err(format!(
                    "yaml: unmarshal errors:\n  line {}: mapping key {:?} already defined",
                    key.line, key.value
                ));
            }
        }
    }
    node.content
        .iter()
        .try_for_each(|child| keys_are_unique(nodes, *child))
}

struct Reader<'a> {
    nodes: &'a Nodes,
    /// How many values may still come, counting those behind aliases each time.
    budget: usize,
    depth: usize,
}

impl Reader<'_> {
    fn document(&mut self, root: NodeId) -> Result<Branch, Problem> {
        let node = &self.nodes[root];
        let only = |what: &str| {
            Err(format!(
                "Error unmarshaling input YAML: YAML documents that are {what} are not supported"
            ))
        };
        match node.kind {
            Kind::Mapping => self.mapping(root),
            Kind::Sequence => only("sequences"),
            Kind::Scalar if node.tag == Tag::Null => Ok(Branch::new()),
            Kind::Scalar | Kind::Alias => only("values"),
        }
    }

    fn mapping(&mut self, id: NodeId) -> Result<Branch, Problem> {
        let mut branch = Branch::new();
        for (key, value) in self.nodes.pairs(id) {
            branch.push(Item {
                key: self.key(key),
                value: self.value(value)?,
            });
        }
        Ok(branch)
    }

    fn key(&self, id: NodeId) -> Key {
        let node = &self.nodes[id];
        match node.kind {
            Kind::Scalar => match scalar(node) {
                Value::Text(text) => Key::Text(text),
                other => Key::Other(other.kind()),
            },
            Kind::Mapping => Key::Other("map[string]interface {}"),
            Kind::Sequence => Key::Other("[]interface {}"),
            Kind::Alias => match node.alias {
                Some(target) if self.nodes[target].kind == Kind::Scalar => self.key(target),
                _ => Key::Other("alias"),
            },
        }
    }

    fn value(&mut self, id: NodeId) -> Result<Value, Problem> {
        let problem = |text: &str| Err(format!("Error unmarshaling input YAML: {text}"));
        let Some(budget) = self.budget.checked_sub(1) else {
            return problem("document contains excessive aliasing");
        };
        self.budget = budget;
        if self.depth >= MAX_DEPTH {
            return problem("exceeded max depth");
        }
        self.depth += 1;
        let node = &self.nodes[id];
        let value = match node.kind {
            Kind::Scalar => scalar(node),
            Kind::Mapping => Value::Map(self.mapping(id)?),
            Kind::Sequence => {
                let elements = node.content.iter().map(|element| self.value(*element));
                Value::List(elements.collect::<Result<_, _>>()?)
            }
            Kind::Alias => match node.alias {
                Some(target) => self.value(target)?,
                None => Value::Null,
            },
        };
        self.depth -= 1;
        Ok(value)
    }
}

/// The value of a scalar; null for one that its tag does not fit, as in SOPS.
fn scalar(node: &Node) -> Value {
    let text = || Value::Text(node.value.clone().into_bytes());
    if !node.tagged {
        return if node.style == Style::Plain {
            resolved(node, &resolve_plain(&node.value))
        } else {
            text()
        };
    }
    match &node.tag {
        Tag::Str | Tag::Merge => text(),
        Tag::Binary => binary(&node.value),
        Tag::Empty => text(),
        tag => match (tag, resolve_plain(&node.value)) {
            (Tag::Float, Scalar::Int(integer)) => Value::Float(integer.as_f64()),
            (tag, scalar) if scalar.tag() == *tag => resolved(node, &scalar),
            _ => Value::Null,
        },
    }
}

fn resolved(node: &Node, scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(*flag),
        Scalar::Int(Integer::Signed(integer)) => Value::Int(*integer),
        Scalar::Int(Integer::Unsigned(_)) => Value::Other("uint64"),
        Scalar::Float(float) => Value::Float(*float),
        Scalar::Timestamp => match manifest::yaml::scalar::to_json(node) {
            Ok(serde_json::Value::String(time)) => Value::Time(Time::of_normal_text(time)),
            _ => Value::Text(node.value.clone().into_bytes()),
        },
        Scalar::Str => Value::Text(node.value.clone().into_bytes()),
    }
}

fn binary(text: &str) -> Value {
    let digits: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    STANDARD.decode(digits).map_or(Value::Null, Value::Text)
}

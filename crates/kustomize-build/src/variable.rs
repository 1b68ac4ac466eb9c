//! `vars`: values of fields, put where `$(NAME)` stands.

use std::collections::BTreeMap;

use manifest::yaml::{Kind, NodeId, Style, Tag, scalar};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::field_spec::{self, FieldSpec};
use crate::kustomization::Variable;
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource_map::ResourceMap;

/// The variables of a build, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    set: BTreeMap<String, Variable>,
}

impl Variables {
    /// Adds a kustomization's variables, and notes at each object which of them it gives a value.
    pub(crate) fn define(&mut self, nodes: &Nodes, map: &mut ResourceMap, added: &[Variable]) -> Result<()> {
        for variable in added {
            let wanted = &variable.object;
            let by_namespace = !wanted.namespace.is_empty() || nodes.schemas.is_cluster_scoped(&wanted.gvk);
            let found = map.matching_any_id(nodes, |known| {
                let same = known.name == wanted.name && known.gvk == wanted.gvk;
                same && (!by_namespace || known.is_in_namespace_of(wanted))
            });
            match found[..] {
                [] => {}
                [index] => map.list_mut()[index].variables.push(variable.name.clone()),
                _ => {
                    let message = format!(
                        "found {} resId matches for var {} (unable to disambiguate)",
                        found.len(),
                        variable.name
                    );
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
            }
        }
        self.merge(added.iter().cloned())
    }

    /// Takes over the variables of a base.
    pub(crate) fn merge(&mut self, added: impl IntoIterator<Item = Variable>) -> Result<()> {
        for variable in added {
            if self.set.contains_key(&variable.name) {
                let message = format!("var '{}' already encountered", variable.name);
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            self.set.insert(variable.name.clone(), variable);
        }
        Ok(())
    }

    /// Gives the variables away.
    pub(crate) fn into_list(self) -> impl Iterator<Item = Variable> {
        self.set.into_values()
    }

    /// Puts the values in all fields that may hold variables.
    pub(crate) fn resolve(&self, nodes: &mut Nodes, map: &ResourceMap, fields: &[FieldSpec]) -> Result<()> {
        if self.set.is_empty() {
            return Ok(());
        }
        let mut values = BTreeMap::new();
        for variable in self.set.values() {
            values.insert(variable.name.as_str(), value_of(nodes, map, variable)?);
        }
        for root in map.list().iter().filter_map(|resource| resource.root) {
            for spec in fields {
                field_spec::visit(nodes, root, spec, None, &mut |nodes, field| {
                    set(nodes, field, &values)
                })?;
            }
        }
        Ok(())
    }
}

fn value_of(nodes: &Nodes, map: &ResourceMap, variable: &Variable) -> Result<Value> {
    let gives = |resource: &&crate::resource::Resource| resource.variables.contains(&variable.name);
    let Some(root) = map.list().iter().find(gives).and_then(|resource| resource.root) else {
        let message = format!(
            "var '{}' cannot be mapped to a field in the set of known resources",
            variable.name
        );
        return Err(Error::invalid(message));
    };
    let path = expand_indexes(&lookup::split_field_path(&variable.field_path));
    let found = lookup::lookup(nodes, root, &path).ok().flatten();
    let missing = || {
        Error::invalid(format!(
            "field specified in var '{}' not found in corresponding resource",
            variable.name
        ))
    };
    let field = &nodes[found.ok_or_else(missing)?];
    match (field.kind, &field.tag) {
        (Kind::Scalar, Tag::Int | Tag::Float | Tag::Bool) => scalar::to_json(field).map_err(|_| missing()),
        (Kind::Scalar, _) => Ok(Value::from(field.value.as_str())),
        // What is no primitive is not put anywhere: `$(NAME)` stays.
        _ => Ok(Value::Null),
    }
}

/// Takes `ports[0]` apart.
fn expand_indexes(parts: &[String]) -> Vec<String> {
    let mut expanded = Vec::new();
    for part in parts {
        let index = part.strip_suffix(']').and_then(|part| part.rsplit_once('['));
        match index.filter(|(_, index)| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit())) {
            Some((name, index)) => {
                if !name.is_empty() {
                    expanded.push(name.to_owned());
                }
                expanded.push(index.to_owned());
            }
            None => expanded.push(part.clone()),
        }
    }
    expanded
}

type Values<'a> = BTreeMap<&'a str, Value>;

fn set(nodes: &mut Nodes, field: NodeId, values: &Values<'_>) -> Result<()> {
    if nodes[field].is_null() {
        return Ok(());
    }
    match nodes[field].kind {
        Kind::Scalar => {
            if is_string(nodes, field) {
                set_scalar(nodes, field, values);
            }
            Ok(())
        }
        Kind::Mapping => {
            for pair in nodes[field].content.clone().chunks_exact(2) {
                if !is_string(nodes, pair[0]) {
                    let key = &nodes[pair[0]];
                    let message = format!(
                        "invalid map key: value='{}', tag='{}'",
                        key.value,
                        key.tag.as_str()
                    );
                    return Err(Error::invalid(message));
                }
                if is_string(nodes, pair[1]) {
                    set_scalar(nodes, pair[1], values);
                }
            }
            Ok(())
        }
        Kind::Sequence => {
            for element in nodes[field].content.clone() {
                if !is_string(nodes, element) {
                    return Err(Error::invalid("invalid value type expect a string"));
                }
                set_scalar(nodes, element, values);
            }
            Ok(())
        }
        Kind::Alias => Err(Error::invalid("invalid type encountered")),
    }
}

fn is_string(nodes: &Nodes, id: NodeId) -> bool {
    nodes[id].kind == Kind::Scalar && matches!(nodes[id].tag, Tag::Str | Tag::Empty)
}

fn set_scalar(nodes: &mut Nodes, field: NodeId, values: &Values<'_>) {
    let node = &mut nodes[field];
    node.style = Style::Plain;
    let (text, tag) = match expand(&node.value, values) {
        Value::Bool(b) => (b.to_string(), Tag::Bool),
        Value::Number(n) if n.is_f64() => (n.to_string(), Tag::Float),
        Value::Number(n) => (n.to_string(), Tag::Int),
        Value::String(text) => (text, Tag::Str),
        other => (other.to_string(), Tag::Str),
    };
    node.value = text;
    node.tag = tag;
}

/// Replaces `$(NAME)`; a text that is nothing else gets the value's type. `$$` is a dollar.
fn expand(text: &str, values: &Values<'_>) -> Value {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let behind = &rest[at + 1..];
        if behind.is_empty() {
            break;
        }
        out.push_str(&rest[..at]);
        if let Some(escaped) = behind.strip_prefix('$') {
            out.push('$');
            rest = escaped;
            continue;
        }
        let name = behind.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        let Some((name, after)) = name else {
            out.push('$');
            let first = behind.chars().next().map_or(0, char::len_utf8);
            out.push_str(&behind[..first]);
            rest = &behind[first..];
            continue;
        };
        match values.get(name).filter(|value| !value.is_null()) {
            Some(value) if text.len() == name.len() + 3 => return value.clone(),
            Some(Value::String(value)) => out.push_str(value),
            Some(value) => out.push_str(&value.to_string()),
            None => {
                out.push_str("$(");
                out.push_str(name);
                out.push(')');
            }
        }
        rest = after;
    }
    out.push_str(rest);
    Value::String(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_are_replaced_and_keep_their_type_when_alone() {
        let values: Values<'_> = [("A", json!("x")), ("N", json!(5))].into();
        for (text, expected) in [
            ("$(A)", json!("x")),
            ("$(N)", json!(5)),
            ("a $(N) $(A)", json!("a 5 x")),
            ("$$(A)", json!("$(A)")),
            ("$(B) $", json!("$(B) $")),
            ("$x$(A", json!("$x$(A")),
        ] {
            assert_eq!(expand(text, &values), expected, "{text}");
        }
    }
}

//! `vars`: values of fields, put where `$(NAME)` stands.

mod expand;

use std::collections::BTreeMap;

use manifest::yaml::{self, Kind, NodeId, Tag};

use crate::error::{Error, ErrorKind, Result};
use crate::field_spec::{self, FieldSpec};
use crate::id::show_gvk;
use crate::kustomization::Variable;
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource_map::ResourceMap;

use expand::{Value, Values};

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
            let by_namespace = !wanted.namespace.is_empty();
            let found = map.matching_any_id(nodes, &wanted.name, |known| {
                known.gvk == wanted.gvk && (!by_namespace || known.is_in_namespace_of(wanted))
            });
            match found[..] {
                [] => {}
                [index] => map.list_mut()[index].variables.push(variable.name.clone()),
                _ => {
                    let message = format!(
                        "found {} resId matches for var {} (unable to disambiguate)",
                        found.len(),
                        show(variable, &variable.object.gvk, &variable.declared.1)
                    );
                    return Err(in_list(Error::new(ErrorKind::Conflict, message), added));
                }
            }
        }
        self.merge(added.iter().cloned())
            .map_err(|error| in_list(error, added))
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

/// Names the list of variables that an error is about.
fn in_list(error: Error, added: &[Variable]) -> Error {
    let shown: Vec<String> = added
        .iter()
        .map(|variable| show(variable, &variable.declared.0, &variable.declared.1))
        .collect();
    error.context(format!("merging vars [{}]", shown.join(" ")))
}

/// Shows a variable as Go's `%v` shows kustomize's struct.
fn show(variable: &Variable, gvk: &manifest::GroupVersionKind, field_path: &str) -> String {
    format!("{{{} {} {{{field_path}}}}}", variable.name, show_gvk(gvk))
}

fn value_of(nodes: &Nodes, map: &ResourceMap, variable: &Variable) -> Result<Value> {
    let shown = || show(variable, &variable.object.gvk, &variable.field_path);
    let gives = |resource: &&crate::resource::Resource| resource.variables.contains(&variable.name);
    let Some(root) = map.list().iter().find(gives).and_then(|resource| resource.root) else {
        let message = format!(
            "var '{}' cannot be mapped to a field in the set of known resources",
            shown()
        );
        return Err(Error::invalid(message));
    };
    let path = expand_indexes(&lookup::split_field_path(&variable.field_path));
    let found = lookup::lookup(nodes, root, &path).ok().flatten();
    found
        .and_then(|found| value_of_field(nodes, found))
        .ok_or_else(|| {
            Error::invalid(format!(
                "field specified in var '{}' not found in corresponding resource",
                shown()
            ))
        })
}

/// Reads a field by its tag, as Go's strconv reads its text; None when that fails.
fn value_of_field(nodes: &Nodes, field: NodeId) -> Option<Value> {
    let node = &nodes[field];
    if node.kind != Kind::Scalar {
        // What is no primitive is not put anywhere: `$(NAME)` stays.
        return yaml::json::decode_kyaml(nodes, field).ok().map(|_| Value::Other);
    }
    let text = node.value.as_str();
    match &node.tag {
        Tag::Int => text.parse().ok().map(Value::Integer),
        Tag::Float => text
            .parse()
            .ok()
            .filter(|f: &f64| f.is_finite())
            .map(Value::Float),
        Tag::Bool => match text {
            "true" | "True" | "TRUE" | "t" | "T" | "1" => Some(Value::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "F" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => Some(Value::Text(text.to_owned())),
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

fn set(nodes: &mut Nodes, field: NodeId, values: &Values<'_>) -> Result<()> {
    if nodes[field].is_null() {
        return Ok(());
    }
    match nodes[field].kind {
        Kind::Scalar => {
            if is_string(nodes, field) {
                expand::set_scalar(&mut nodes[field], values);
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
                    expand::set_scalar(&mut nodes[pair[1]], values);
                }
            }
            Ok(())
        }
        Kind::Sequence => {
            for element in nodes[field].content.clone() {
                if !is_string(nodes, element) {
                    return Err(Error::invalid("invalid value type expect a string"));
                }
                expand::set_scalar(&mut nodes[element], values);
            }
            Ok(())
        }
        Kind::Alias => Err(Error::invalid("invalid type encountered")),
    }
}

fn is_string(nodes: &Nodes, id: NodeId) -> bool {
    nodes[id].kind == Kind::Scalar && matches!(nodes[id].tag, Tag::Str | Tag::Empty)
}

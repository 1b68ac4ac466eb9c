//! The strategic merge itself: kyaml's walk over two trees, with the merge keys of the built-in types.
//!
//! The patch's nodes become part of the result. kyaml's oddities are kept: an empty null in the target goes with any
//! patch, an explicit one stays; a patch's list elements come before the target's; a list of a type that is not
//! built in is replaced as a whole.

use manifest::yaml::{Kind, NodeId};

use crate::error::{Error, Result};
use crate::lookup;
use crate::nodes::Nodes;
use crate::schema::Schema;

/// Merges a patch into a target in place; returns false when the patch deletes it.
///
/// A patch that says `$patch: replace` at its top changes nothing: kustomize forgets to take over what the merge
/// returned.
pub(crate) fn merge(nodes: &mut Nodes, target: NodeId, patch: NodeId) -> Result<bool> {
    Ok(walk(nodes, Some(target), Some(patch), None)? != Merged::Gone)
}

/// Result of merging a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merged {
    /// Nothing: it is cleared.
    Gone,
    /// This node.
    Node(NodeId),
    /// An explicit null of the target, which stays.
    KeptNull(NodeId),
}

impl From<Option<NodeId>> for Merged {
    fn from(node: Option<NodeId>) -> Self {
        node.map_or(Self::Gone, Self::Node)
    }
}

/// Value of `$patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

const DIRECTIVE: &str = "$patch";

fn walk(
    nodes: &mut Nodes,
    target: Option<NodeId>,
    patch: Option<NodeId>,
    schema: Option<Schema>,
) -> Result<Merged> {
    let sources: Vec<NodeId> = [target, patch]
        .into_iter()
        .flatten()
        .filter(|id| !nodes[*id].is_null())
        .collect();
    let schema = schema.or_else(|| sources.iter().find_map(|id| schema_of_object(nodes, *id)));
    let kind = sources.first().map(|id| nodes[*id].kind);
    if let Some(kind) = kind {
        for source in &sources {
            lookup::expect_kind(nodes, *source, kind)?;
        }
    }
    // A target that is empty takes over the patch's style: it may be `{}` only because nothing was there.
    if let (Some(target), Some(patch)) = (target, patch)
        && nodes[target].kind != Kind::Scalar
        && nodes[target].content.is_empty()
    {
        lookup::keep_style(nodes, target, patch);
    }
    match kind {
        None | Some(Kind::Mapping) => walk_map(nodes, target, patch, schema),
        Some(Kind::Sequence) => match schema.as_ref().and_then(Schema::merge_keys) {
            Some(keys) => walk_list(nodes, target, patch, schema.as_ref(), &keys),
            None => Ok(patch.or(target).into()),
        },
        Some(Kind::Scalar) => Ok(patch.or(target).into()),
        Some(Kind::Alias) => Ok(Merged::Gone),
    }
}

fn schema_of_object(nodes: &Nodes, id: NodeId) -> Option<Schema> {
    let text = |field: &str| {
        nodes
            .field(id, field)
            .map_or("", |value| nodes[value].value.as_str())
    };
    nodes.schemas.of_type(text("apiVersion"), text("kind"))
}

fn walk_map(
    nodes: &mut Nodes,
    target: Option<NodeId>,
    patch: Option<NodeId>,
    schema: Option<Schema>,
) -> Result<Merged> {
    let target = match visit_map(nodes, target, patch)? {
        Merged::Node(target) => target,
        other => return Ok(other),
    };
    for name in field_names(nodes, target, patch) {
        let below = schema.as_ref().and_then(|schema| schema.field(&name));
        let (old, new) = (
            nodes.field(target, &name),
            patch.and_then(|patch| nodes.field(patch, &name)),
        );
        match walk(nodes, old, new, below)? {
            Merged::Gone => {
                nodes.remove_field(target, &name);
            }
            Merged::Node(value) => lookup::set_field(nodes, target, &name, value)?,
            Merged::KeptNull(value) => lookup::set_field_kept(nodes, target, &name, value),
        }
    }
    Ok(Merged::Node(target))
}

/// Decides which mapping the walk goes on with.
fn visit_map(nodes: &mut Nodes, target: Option<NodeId>, patch: Option<NodeId>) -> Result<Merged> {
    let Some(present) = target.filter(|target| !nodes[*target].is_null()) else {
        if let Some(patch) = patch.filter(|patch| nodes[*patch].kind == Kind::Mapping)
            && directive_of_map(nodes, patch).is_ok_and(|directive| directive == Directive::Delete)
        {
            return Ok(Merged::Gone);
        }
        return Ok(match (target, patch) {
            (Some(null), None) if !nodes[null].value.is_empty() => Merged::KeptNull(null),
            _ => patch.into(),
        });
    };
    let Some(patch) = patch else {
        return Ok(Merged::Node(present));
    };
    if nodes[patch].is_null() {
        return Ok(Merged::Gone);
    }
    Ok(match directive_of_map(nodes, patch)? {
        Directive::Delete => Merged::Gone,
        Directive::Replace => Merged::Node(patch),
        Directive::Merge => Merged::Node(present),
    })
}

fn field_names(nodes: &Nodes, target: NodeId, patch: Option<NodeId>) -> Vec<String> {
    let mut names: Vec<String> = nodes
        .pairs(target)
        .chain(patch.into_iter().flat_map(|patch| nodes.pairs(patch)))
        .map(|(key, _)| nodes[key].value.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

fn directive(text: &str) -> Result<Directive> {
    match text {
        "delete" => Ok(Directive::Delete),
        "replace" => Ok(Directive::Replace),
        "merge" => Ok(Directive::Merge),
        other => Err(Error::patch(format!("unknown patch strategy '{other}'"))),
    }
}

/// Reads a mapping's directive, and takes it out.
fn directive_of_map(nodes: &mut Nodes, patch: NodeId) -> Result<Directive> {
    let Some(value) = nodes.field(patch, DIRECTIVE) else {
        return Ok(Directive::Merge);
    };
    let directive = directive(&nodes[value].value)?;
    nodes.remove_field(patch, DIRECTIVE);
    Ok(directive)
}

/// Reads a list's directive: an element that holds nothing else. Takes it out.
fn directive_of_list(nodes: &mut Nodes, patch: NodeId) -> Result<Directive> {
    let is_mapping = |id: &NodeId| nodes[*id].kind == Kind::Mapping;
    let element = nodes[patch]
        .content
        .iter()
        .copied()
        .find(|id| is_mapping(id) && nodes.field(*id, DIRECTIVE).is_some());
    let Some(element) = element.filter(|element| nodes[*element].content.len() == 2) else {
        return Ok(Directive::Merge);
    };
    let Some(value) = nodes.field(element, DIRECTIVE) else {
        return Ok(Directive::Merge);
    };
    let text = nodes[value].value.clone();
    let directive = directive(&text)?;
    set_element(nodes, patch, None, &[DIRECTIVE], &[text])?;
    Ok(directive)
}

fn walk_list(
    nodes: &mut Nodes,
    target: Option<NodeId>,
    patch: Option<NodeId>,
    schema: Option<&Schema>,
    keys: &[&str],
) -> Result<Merged> {
    let target = match visit_list(nodes, target, patch)? {
        Merged::Node(target) => target,
        other => return Ok(other),
    };
    let elements = schema.and_then(Schema::elements);
    // The patch's elements come first.
    let sources: Vec<NodeId> = patch.into_iter().chain([target]).collect();
    let merge = ListMerge {
        target,
        patch,
        schema: elements,
    };
    if keys.is_empty() {
        let mut values: Vec<Vec<String>> = Vec::new();
        for source in sources {
            for element in &nodes[source].content {
                let value = vec![nodes[*element].value.clone()];
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        return merge.run(nodes, values, &[""]);
    }
    let mut values: Vec<Vec<String>> = Vec::new();
    for source in sources {
        for element in &nodes[source].content {
            let of_key = |key: &&str| key_value(nodes, *element, key);
            let value: Vec<String> = keys.iter().map(of_key).collect();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    merge.run(nodes, values, keys)
}

fn key_value(nodes: &Nodes, element: NodeId, key: &str) -> String {
    let field = nodes
        .field(element, key)
        .filter(|field| !nodes[*field].is_null_or_empty());
    field.map(|field| nodes[field].value.clone()).unwrap_or_default()
}

/// Decides which list the walk goes on with.
fn visit_list(nodes: &mut Nodes, target: Option<NodeId>, patch: Option<NodeId>) -> Result<Merged> {
    let Some(present) = target.filter(|target| !nodes[*target].is_null()) else {
        return Ok(patch.into());
    };
    let Some(patch) = patch else {
        return Ok(Merged::Node(present));
    };
    if nodes[patch].is_null() {
        return Ok(Merged::Gone);
    }
    Ok(match directive_of_list(nodes, patch)? {
        Directive::Delete => Merged::Gone,
        Directive::Replace => Merged::Node(patch),
        Directive::Merge => Merged::Node(present),
    })
}

struct ListMerge {
    target: NodeId,
    patch: Option<NodeId>,
    schema: Option<Schema>,
}

impl ListMerge {
    /// Merges element by element, for each combination of key values, and puts the result before what is left.
    fn run(&self, nodes: &mut Nodes, mut values_list: Vec<Vec<String>>, keys: &[&str]) -> Result<Merged> {
        if values_list.is_empty() {
            return Ok(if nodes[self.target].is_null() {
                Merged::Gone
            } else {
                Merged::Node(self.target)
            });
        }
        if keys.len() > 1 {
            unify(&mut values_list);
        }
        let added = nodes.add(lookup::empty(Kind::Sequence));
        let mut valid_keys: Vec<&str> = keys.to_vec();
        for values in &values_list {
            let valid_values;
            (valid_keys, valid_values) = validate_keys(&values_list, values, keys);
            let old = self.element(nodes, Some(self.target), &valid_keys, &valid_values);
            let new = self.element(nodes, self.patch, &valid_keys, &valid_values);
            let element = match walk(nodes, old, new, self.schema.clone())? {
                Merged::Node(element) if !is_null_or_empty_map(nodes, element) => element,
                _ => {
                    set_element(nodes, self.target, None, &valid_keys, &valid_values)?;
                    continue;
                }
            };
            for (key, value) in valid_keys.iter().zip(&valid_values) {
                if !key.is_empty() && !value.is_empty() && nodes.field(element, key).is_none() {
                    let value = nodes.add(manifest::yaml::Node::scalar(value.as_str()));
                    lookup::set_field(nodes, element, key, value)?;
                }
            }
            set_element(nodes, added, Some(element), &valid_keys, &valid_values)?;
        }
        append_list(nodes, added, self.target, &valid_keys)?;
        Ok(Merged::Node(added))
    }

    fn element(
        &self,
        nodes: &Nodes,
        list: Option<NodeId>,
        keys: &[&str],
        values: &[String],
    ) -> Option<NodeId> {
        let list = list.filter(|list| nodes[*list].kind == Kind::Sequence)?;
        let (keys, values) = validate_keys(&[values.to_vec()], values, keys);
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        if !keys.first().is_none_or(|key| key.is_empty()) && keys.len() != values.len() {
            return None;
        }
        lookup::find_element(nodes, list, &keys, &values)
    }
}

fn is_null_or_empty_map(nodes: &Nodes, id: NodeId) -> bool {
    let node = &nodes[id];
    node.is_null() || (node.kind == Kind::Mapping && node.content.is_empty())
}

/// Fills keys that one element lacks from another that has the same values in the rest.
fn unify(values_list: &mut [Vec<String>]) {
    for i in 0..values_list.len() {
        for j in 0..values_list.len() {
            if let Some(values) = combine(&values_list[i], &values_list[j]) {
                values_list[i].clone_from(&values);
                values_list[j] = values;
            }
        }
    }
}

fn combine(a: &[String], b: &[String]) -> Option<Vec<String>> {
    if a.len() != b.len() {
        return None;
    }
    let mut common = false;
    let mut combined = Vec::with_capacity(a.len());
    for (x, y) in a.iter().zip(b) {
        if x == y {
            common = true;
            combined.push(x.clone());
        } else if !x.is_empty() && !y.is_empty() {
            return None;
        } else {
            combined.push(if x.is_empty() { y.clone() } else { x.clone() });
        }
    }
    common.then_some(combined)
}

/// Leaves out keys for which no element has a value; all stay when none has any.
fn validate_keys<'a>(
    values_list: &[Vec<String>],
    values: &[String],
    keys: &[&'a str],
) -> (Vec<&'a str>, Vec<String>) {
    let used = |index: usize| {
        values_list
            .iter()
            .any(|values| values.get(index).is_some_and(|v| !v.is_empty()))
    };
    if !(0..keys.len()).any(used) {
        return (keys.to_vec(), values.to_vec());
    }
    let valid_keys = keys
        .iter()
        .enumerate()
        .filter(|(index, _)| used(*index))
        .map(|(_, key)| *key)
        .collect();
    let valid = |(index, value): (usize, &String)| (!value.is_empty() || used(index)).then(|| value.clone());
    (valid_keys, values.iter().enumerate().filter_map(valid).collect())
}

/// Replaces the elements of these key values by one, or removes them; appends what replaced nothing.
///
/// Elements that are null or empty go as well (kyaml's `ElementSetter`).
fn set_element<V: AsRef<str>>(
    nodes: &mut Nodes,
    list: NodeId,
    element: Option<NodeId>,
    keys: &[&str],
    values: &[V],
) -> Result<()> {
    let sets_mapping = keys.first().is_some_and(|key| !key.is_empty())
        && values.first().is_some_and(|value| !value.as_ref().is_empty());
    let mut content = Vec::new();
    let mut found = false;
    for old in nodes[list].content.clone() {
        if is_null_or_empty_map(nodes, old) {
            continue;
        }
        let is_mapping = nodes[old].kind == Kind::Mapping;
        if !is_mapping && sets_mapping {
            content.push(old);
            continue;
        }
        if !has_values(nodes, old, keys, values)? {
            if !values.is_empty() {
                content.push(old);
            }
            continue;
        }
        found = true;
        content.extend(element);
    }
    if !found {
        content.extend(element.filter(|element| !nodes[*element].is_null()));
    }
    nodes[list].content = content;
    Ok(())
}

/// Compares an element with key values; one that is not of the kind that has such keys is an error.
fn has_values<V: AsRef<str>>(nodes: &Nodes, element: NodeId, keys: &[&str], values: &[V]) -> Result<bool> {
    if values.is_empty() {
        return Ok(false);
    }
    for (key, value) in keys.iter().zip(values) {
        let value = value.as_ref();
        let same = if key.is_empty() {
            lookup::expect_kind(nodes, element, Kind::Scalar)?;
            nodes[element].value == value
        } else {
            // A key without a value matches any element that has the key.
            lookup::get(nodes, element, key)?
                .is_some_and(|field| value.is_empty() || nodes[field].value == value)
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Appends the elements of a list to another, in place of those that have their key values.
fn append_list(nodes: &mut Nodes, destination: NodeId, source: NodeId, keys: &[&str]) -> Result<()> {
    for element in nodes[source].content.clone() {
        if keys.first().is_none_or(|key| key.is_empty()) {
            let value = nodes[element].value.clone();
            set_element(nodes, destination, Some(element), &[""], &[value])?;
            continue;
        }
        let mut values = Vec::new();
        for key in keys {
            match lookup::get(nodes, element, key)? {
                Some(field) => values.push(nodes[field].value.clone()),
                None => nodes[destination].content.push(element),
            }
        }
        if keys.len() > 1 {
            set_element(nodes, destination, None, keys, &values)?;
        }
        set_element(nodes, destination, Some(element), keys, &values)?;
    }
    Ok(())
}

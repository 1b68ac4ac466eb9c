//! `replacements`: a value of one object, copied to fields of others.

mod path;
mod structured;

use manifest::yaml::{Kind, Node, NodeId};

use crate::error::{Error, Result};
use crate::id::ResourceId;
use crate::kustomization::{
    FieldOptions, Replacement, ReplacementField, Selector, SourceSelector, TargetSelector,
};
use crate::load::Loader;
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource::Resource;
use crate::resource_map::ResourceMap;
use crate::selector::CompiledSelector;

const DEFAULT_FIELD: &str = "metadata.name";

/// Reads the replacements of a kustomization, from files where it names some.
pub(crate) fn load(loader: &Loader<'_>, entries: &[ReplacementField]) -> Result<Vec<Replacement>> {
    let mut replacements = Vec::new();
    for entry in entries {
        if entry.path.is_empty() {
            let mut replacement = entry.replacement.clone();
            // An empty list is lost on the way to the plugin, and counts as none.
            replacement.targets = replacement.targets.filter(|targets| !targets.is_empty());
            replacements.push(replacement);
            continue;
        }
        let has_targets = entry.replacement.targets.iter().flatten().next().is_some();
        if entry.replacement.source.is_some() || has_targets {
            return Err(Error::invalid("cannot specify both path and inline replacement"));
        }
        replacements.extend(load_file(loader, &entry.path)?);
    }
    Ok(replacements)
}

fn load_file(loader: &Loader<'_>, file: &str) -> Result<Vec<Replacement>> {
    use crate::kustomization::decode::{Decode, Place};
    let place = loader.place(file);
    let text = loader.load_text(file)?;
    let documents = manifest::yaml::read_documents(&text, &place)
        .map_err(|error| Error::invalid(error.problem.to_string()).in_file(&place, error.problem.line))?;
    let value = documents
        .into_iter()
        .next()
        .map(|document| document.value)
        .unwrap_or_default();
    match &value {
        serde_json::Value::Array(_) => Vec::decode(&value, &Place::yaml("")),
        serde_json::Value::Object(_) => {
            Replacement::decode(&value, &Place::yaml("Replacement")).map(|one| vec![one])
        }
        _ => Err(Error::invalid(
            "unsupported replacement type encountered within replacement path: invalid",
        )),
    }
    .map_err(|error| error.in_file(&place, 0))
}

/// Carries out replacements, one after the other. Paths and messages see kustomize's own annotations.
pub(crate) fn apply(nodes: &mut Nodes, map: &mut ResourceMap, replacements: &[Replacement]) -> Result<()> {
    for resource in map.list_mut() {
        resource.write_history(nodes);
    }
    carry_out(nodes, map, replacements)?;
    for resource in map.list_mut() {
        resource.read_history(nodes);
    }
    Ok(())
}

fn carry_out(nodes: &mut Nodes, map: &ResourceMap, replacements: &[Replacement]) -> Result<()> {
    for replacement in replacements {
        let has_source = replacement.source.is_some() || replacement.source_value.is_some();
        let Some(targets) = replacement.targets.as_ref().filter(|_| has_source) else {
            return Err(Error::invalid(
                "replacements must specify a source and at least one target",
            ));
        };
        let value = value_of(nodes, map, replacement)?;
        for target in targets {
            apply_to_target(nodes, map, value, target)?;
        }
    }
    Ok(())
}

fn value_of(nodes: &mut Nodes, map: &ResourceMap, replacement: &Replacement) -> Result<NodeId> {
    match (&replacement.source, &replacement.source_value) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "value and resource selectors are mutually exclusive",
        )),
        (None, Some(text)) => Ok(nodes.add(Node::scalar(text.as_str()))),
        (Some(source), None) => value_of_source(nodes, map, source),
        (None, None) => Err(Error::invalid(
            "replacements must specify a source and at least one target",
        )),
    }
}

fn value_of_source(nodes: &mut Nodes, map: &ResourceMap, source: &SourceSelector) -> Result<NodeId> {
    let root = source_object(nodes, map, source)?;
    let path = if source.field_path.is_empty() {
        DEFAULT_FIELD
    } else {
        &source.field_path
    };
    let found = lookup::lookup(nodes, root, &lookup::split_field_path(path))
        .map_err(|error| error.context("error looking up replacement source"))?;
    let Some(found) = found.filter(|found| !nodes[*found].is_null_or_empty()) else {
        let message = format!(
            "fieldPath `{path}` is missing for replacement source {}",
            source.id
        );
        return Err(Error::invalid(message));
    };
    let Some(options) = source
        .options
        .as_ref()
        .filter(|options| !options.delimiter.is_empty())
    else {
        return Ok(found);
    };
    if nodes[found].kind != Kind::Scalar {
        return Err(Error::invalid(
            "delimiter option can only be used with scalar nodes",
        ));
    }
    let text = nodes[found].value.clone();
    let part = usize::try_from(options.index)
        .ok()
        .and_then(|index| text.split(&options.delimiter).nth(index));
    let Some(part) = part else {
        let message = format!(
            "options.index {} is out of bounds for value {text}",
            options.index
        );
        return Err(Error::invalid(message));
    };
    let node = Node {
        value: part.to_owned(),
        ..nodes[found].clone()
    };
    Ok(nodes.add(node))
}

/// The ids by which replacements know a resource: scopes are unknown to them.
fn ids_of(nodes: &Nodes, resource: &Resource) -> Vec<ResourceId> {
    let current = ResourceId {
        cluster_scoped: false,
        ..resource.id(nodes)
    };
    let mut ids = vec![current];
    ids.extend(resource.previous_ids(nodes));
    ids
}

fn source_object(nodes: &Nodes, map: &ResourceMap, source: &SourceSelector) -> Result<NodeId> {
    let is_selected = |resource: &&Resource| {
        ids_of(nodes, resource)
            .iter()
            .any(|id| id.is_selected_by(&source.id))
    };
    let mut matches = map.list().iter().filter(is_selected);
    let (first, second) = (matches.next(), matches.next());
    let selector = || show(source);
    if second.is_some() {
        return Err(Error::invalid(format!(
            "multiple matches for selector {}",
            selector()
        )));
    }
    first
        .and_then(|resource| resource.root)
        .ok_or_else(|| Error::invalid(format!("nothing selected by {}", selector())))
}

fn show(source: &SourceSelector) -> String {
    let mut text = source.id.to_string();
    if !source.field_path.is_empty() {
        text = format!("{text}:{}", source.field_path);
    }
    match &source.options {
        Some(o) if !o.delimiter.is_empty() || o.create => {
            format!("{text}:{}({}), create={}", o.delimiter, o.index, o.create)
        }
        _ => text,
    }
}

fn apply_to_target(
    nodes: &mut Nodes,
    map: &ResourceMap,
    value: NodeId,
    target: &TargetSelector,
) -> Result<()> {
    let Some(select) = &target.select else {
        return Err(Error::invalid("target must specify resources to select"));
    };
    let failed = |error: Error| error.context("error creating target selector");
    let select = CompiledSelector::new(select).map_err(failed)?;
    let rejects: Vec<Reject> = target
        .reject
        .iter()
        .map(Reject::new)
        .collect::<Result<_>>()
        .map_err(failed)?;
    for resource in map.list() {
        let metadata =
            select.matches_annotations(nodes, resource)? & select.matches_labels(nodes, resource)?;
        if !metadata {
            continue;
        }
        let ids = ids_of(nodes, resource);
        if rejects_metadata(nodes, &rejects, resource)?
            || rejects.iter().any(|reject| reject.refuses_any(&ids))
            || !ids.iter().any(|id| matches_id(&select, id))
        {
            continue;
        }
        if let Some(root) = resource.root {
            copy_to(nodes, root, value, target)?;
        }
    }
    Ok(())
}

fn matches_id(selector: &CompiledSelector, id: &ResourceId) -> bool {
    selector.matches_gvk(&id.gvk)
        && selector.matches_name(&id.name)
        && selector.matches_namespace(&id.namespace)
}

/// Objects that a target leaves out.
struct Reject {
    selector: CompiledSelector,
    /// True if it says something of ids.
    by_id: bool,
    /// Whether it says something of labels or annotations; kustomize looks at them apart from the ids.
    by_metadata: bool,
}

impl Reject {
    fn new(reject: &Selector) -> Result<Self> {
        Ok(Self {
            selector: CompiledSelector::new(reject)?,
            by_id: reject.id != ResourceId::default(),
            by_metadata: !reject.label_selector.is_empty() || !reject.annotation_selector.is_empty(),
        })
    }

    fn refuses_any(&self, ids: &[ResourceId]) -> bool {
        self.by_id && ids.iter().any(|id| matches_id(&self.selector, id))
    }
}

fn rejects_metadata(nodes: &Nodes, rejects: &[Reject], resource: &Resource) -> Result<bool> {
    for reject in rejects.iter().filter(|reject| reject.by_metadata) {
        let annotations = reject.selector.matches_annotations(nodes, resource)?;
        if reject.selector.matches_labels(nodes, resource)? && annotations {
            return Ok(true);
        }
    }
    Ok(false)
}

fn copy_to(nodes: &mut Nodes, root: NodeId, value: NodeId, target: &TargetSelector) -> Result<()> {
    let options = target.options.as_ref();
    let create = options
        .is_some_and(|options| options.create)
        .then(|| nodes[value].kind);
    let default = [DEFAULT_FIELD.to_owned()];
    let paths = if target.field_paths.is_empty() {
        &default[..]
    } else {
        &target.field_paths
    };
    for field_path in paths {
        let parts = lookup::split_field_path(field_path);
        if structured::set(nodes, root, &parts, value, options, create)? {
            continue;
        }
        let what = if create.is_some() {
            "find or create"
        } else {
            "find"
        };
        let missing = format!("unable to {what} field {field_path:?} in replacement target");
        let fields = path::find(nodes, root, &parts, create).map_err(|error| error.context(&missing))?;
        if fields.is_empty() {
            return Err(Error::invalid(missing));
        }
        for field in fields {
            set_field(nodes, field, value, options)?;
        }
    }
    Ok(())
}

/// Sets a field to a value, or a part of its text. A scalar keeps its type as far as the new text allows.
fn set_field(nodes: &mut Nodes, field: NodeId, value: NodeId, options: Option<&FieldOptions>) -> Result<()> {
    let mut text = nodes[value].value.clone();
    if let Some(options) = options.filter(|options| !options.delimiter.is_empty()) {
        if nodes[field].kind != Kind::Scalar {
            return Err(Error::invalid(
                "delimiter option can only be used with scalar nodes",
            ));
        }
        // Charged in advance: each replacement can double the text.
        let length = nodes[field].value.len() + text.len();
        nodes.charge(length);
        text = with_part(&nodes[field].value, &text, options);
    }
    if nodes[field].kind == Kind::Scalar {
        nodes.charge(text.len());
        nodes[field].value = text;
        return Ok(());
    }
    let copy = nodes.deep_copy(value);
    nodes[copy].value = text;
    lookup::replace(nodes, field, copy);
    Ok(())
}

fn with_part(old: &str, part: &str, options: &FieldOptions) -> String {
    let mut parts: Vec<&str> = old.split(&options.delimiter).collect();
    match usize::try_from(options.index) {
        Err(_) => parts.insert(0, part),
        Ok(index) if index >= parts.len() => parts.push(part),
        Ok(index) => parts[index] = part,
    }
    parts.join(&options.delimiter)
}

//! The configuration of a built-in transformer, as kustomize writes it into messages about it.
//!
//! kustomize turns the parts of a kustomization into configurations of plugins, which its messages then show as YAML.

use manifest::yaml;
use serde_json::{Map, Value};

use crate::id::ResourceId;
use crate::kustomization::{FieldOptions, Patch, ReplacementField, Selector, SourceSelector, TargetSelector};

/// Shows an entry of `patches`.
pub(crate) fn of_patch(entry: &Patch) -> String {
    write(patch(entry, "patch"))
}

/// Shows an entry of `patchesJson6902`.
pub(crate) fn of_json_patch(entry: &Patch) -> String {
    write(patch(entry, "jsonOp"))
}

/// Shows `patchesStrategicMerge`.
pub(crate) fn of_strategic_patches(paths: &[String]) -> String {
    write(Map::from_iter([("paths".to_owned(), Value::from(paths))]))
}

/// Shows `replacements`.
pub(crate) fn of_replacements(entries: &[ReplacementField]) -> String {
    let list: Vec<Value> = entries.iter().map(replacement).collect();
    write(Map::from_iter([("Replacements".to_owned(), Value::from(list))]))
}

fn write(config: Map<String, Value>) -> String {
    yaml::write(&Value::Object(config)).unwrap_or_default()
}

/// A struct as Go writes one whose fields are left out when they are empty.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0.insert(name.to_owned(), Value::from(value));
        }
    }

    fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.0.insert(name.to_owned(), Value::from(true));
        }
    }

    fn value(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value);
        }
    }

    fn list(&mut self, name: &str, elements: Vec<Value>) {
        self.value(
            name,
            Some(Value::from(elements)).filter(|list| *list != Value::Array(Vec::new())),
        );
    }

    fn id(&mut self, id: &ResourceId) {
        self.text("group", &id.gvk.group);
        self.text("version", &id.gvk.version);
        self.text("kind", &id.gvk.kind);
        self.text("name", &id.name);
        self.text("namespace", &id.namespace);
    }
}

fn patch(entry: &Patch, text: &str) -> Map<String, Value> {
    let mut fields = Fields::default();
    fields.text(text, &entry.patch);
    fields.text("path", &entry.path);
    fields.value("target", entry.target.as_ref().map(selector));
    let options = entry.options.map(|options| {
        let mut fields = Fields::default();
        fields.flag("allowNameChange", options.allow_name_change);
        fields.flag("allowKindChange", options.allow_kind_change);
        Value::Object(fields.0)
    });
    fields.value("options", options);
    fields.0
}

fn selector(selector: &Selector) -> Value {
    let mut fields = Fields::default();
    fields.id(&selector.id);
    fields.text("annotationSelector", &selector.annotation_selector);
    fields.text("labelSelector", &selector.label_selector);
    Value::Object(fields.0)
}

fn replacement(entry: &ReplacementField) -> Value {
    let mut fields = Fields::default();
    fields.text("path", &entry.path);
    fields.value("source", entry.replacement.source.as_ref().map(source));
    fields.value(
        "sourceValue",
        entry.replacement.source_value.as_deref().map(Value::from),
    );
    let targets = entry.replacement.targets.iter().flatten();
    fields.list("targets", targets.map(target).collect());
    Value::Object(fields.0)
}

fn source(source: &SourceSelector) -> Value {
    let mut fields = Fields::default();
    fields.id(&source.id);
    fields.text("fieldPath", &source.field_path);
    fields.value("options", source.options.as_ref().map(options));
    Value::Object(fields.0)
}

fn target(target: &TargetSelector) -> Value {
    let mut fields = Fields::default();
    fields.value(
        "select",
        Some(target.select.as_ref().map_or(Value::Null, selector)),
    );
    fields.list("reject", target.reject.iter().map(selector).collect());
    let paths = target.field_paths.iter().map(|path| Value::from(path.as_str()));
    fields.list("fieldPaths", paths.collect());
    fields.value("options", target.options.as_ref().map(options));
    Value::Object(fields.0)
}

fn options(options: &FieldOptions) -> Value {
    let mut fields = Fields::default();
    fields.text("delimiter", &options.delimiter);
    fields.value(
        "index",
        Some(options.index).filter(|index| *index != 0).map(Value::from),
    );
    fields.text("encoding", &options.encoding);
    fields.flag("create", options.create);
    Value::Object(fields.0)
}

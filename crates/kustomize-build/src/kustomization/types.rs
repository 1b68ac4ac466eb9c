//! The entries of the kustomization's lists.

use std::collections::BTreeMap;

use manifest::GroupVersionKind;
use serde_json::Value;

use super::decode::{self, Decode, Fields, Place};
use crate::error::Result;
use crate::field_spec::FieldSpec;
use crate::id::ResourceId;

fn take_gvk(fields: &mut Fields<'_>, gvk: &mut GroupVersionKind) {
    fields.embedded(|fields| {
        fields.take("group", &mut gvk.group);
        fields.take("version", &mut gvk.version);
        fields.take("kind", &mut gvk.kind);
    });
}

fn take_id(fields: &mut Fields<'_>, id: &mut ResourceId) {
    take_gvk(fields, &mut id.gvk);
    fields.embedded(|fields| {
        fields.take("name", &mut id.name);
        fields.take("namespace", &mut id.namespace);
    });
}

impl Decode for FieldSpec {
    fn go_type() -> String {
        "types.FieldSpec".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut spec = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        take_gvk(&mut fields, &mut spec.selector);
        fields.take("path", &mut spec.path);
        fields.take("create", &mut spec.create);
        fields.finish()?;
        Ok(spec)
    }
}

/// Labels to set, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Label {
    pub(crate) pairs: BTreeMap<String, String>,
    pub(crate) include_selectors: bool,
    pub(crate) include_templates: bool,
    pub(crate) include_volume_claim_templates: bool,
    pub(crate) fields: Vec<FieldSpec>,
}

impl Decode for Label {
    fn go_type() -> String {
        "types.Label".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut label = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("pairs", &mut label.pairs);
        fields.take("includeSelectors", &mut label.include_selectors);
        fields.take("includeTemplates", &mut label.include_templates);
        fields.take(
            "includeVolumeClaimTemplates",
            &mut label.include_volume_claim_templates,
        );
        fields.take("fields", &mut label.fields);
        fields.finish()?;
        Ok(label)
    }
}

/// Selects objects: parts are regular expressions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selector {
    pub(crate) id: ResourceId,
    pub(crate) annotation_selector: String,
    pub(crate) label_selector: String,
}

impl Decode for Selector {
    fn go_type() -> String {
        "types.Selector".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut selector = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        take_id(&mut fields, &mut selector.id);
        fields.take("annotationSelector", &mut selector.annotation_selector);
        fields.take("labelSelector", &mut selector.label_selector);
        fields.finish()?;
        Ok(selector)
    }
}

/// A patch in a file or inline, and what it is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Patch {
    pub(crate) path: String,
    pub(crate) patch: String,
    pub(crate) target: Option<Selector>,
    pub(crate) options: Option<PatchOptions>,
}

/// Changes that a patch may make.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PatchOptions {
    pub(crate) allow_name_change: bool,
    pub(crate) allow_kind_change: bool,
}

impl Patch {
    /// Takes the fields out of a patch's entry, which may be part of a plugin's configuration.
    pub(crate) fn take(&mut self, fields: &mut Fields<'_>) {
        fields.take("path", &mut self.path);
        fields.take("patch", &mut self.patch);
        fields.take("target", &mut self.target);
        fields.take("options", &mut self.options);
    }
}

impl Decode for Patch {
    fn go_type() -> String {
        "types.Patch".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut patch = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        patch.take(&mut fields);
        fields.finish()?;
        Ok(patch)
    }
}

impl Decode for PatchOptions {
    fn go_type() -> String {
        "types.PatchArgs".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut options = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("allowNameChange", &mut options.allow_name_change);
        fields.take("allowKindChange", &mut options.allow_kind_change);
        fields.finish()?;
        Ok(options)
    }
}

/// An image to rename, retag or pin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) new_name: String,
    pub(crate) tag_suffix: String,
    pub(crate) new_tag: String,
    pub(crate) digest: String,
}

impl Decode for Image {
    fn go_type() -> String {
        "types.Image".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut image = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("name", &mut image.name);
        fields.take("newName", &mut image.new_name);
        fields.take("tagSuffix", &mut image.tag_suffix);
        fields.take("newTag", &mut image.new_tag);
        fields.take("digest", &mut image.digest);
        fields.finish()?;
        Ok(image)
    }
}

/// A number of replicas by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) count: i64,
}

impl Decode for Replica {
    fn go_type() -> String {
        "types.Replica".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut replica = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("name", &mut replica.name);
        fields.take("count", &mut replica.count);
        fields.finish()?;
        Ok(replica)
    }
}

/// A replacement inline or in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReplacementField {
    pub(crate) replacement: Replacement,
    pub(crate) path: String,
}

impl Decode for ReplacementField {
    fn go_type() -> String {
        "types.ReplacementField".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut entry = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        entry.replacement.take(&mut fields);
        fields.take("path", &mut entry.path);
        fields.finish()?;
        Ok(entry)
    }
}

/// A value and the places that it goes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Replacement {
    pub(crate) source: Option<SourceSelector>,
    pub(crate) source_value: Option<String>,
    pub(crate) targets: Option<Vec<TargetSelector>>,
}

impl Replacement {
    fn take(&mut self, fields: &mut Fields<'_>) {
        fields.take("source", &mut self.source);
        fields.take("sourceValue", &mut self.source_value);
        fields.take_named("targets", "[]*types.TargetSelector", &mut self.targets);
    }
}

impl Decode for Replacement {
    fn go_type() -> String {
        "types.Replacement".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut replacement = Self::default();
        // A file of replacements is read without strictness.
        let mut fields = Fields::new::<Self>(value, place)?;
        replacement.take(&mut fields);
        fields.finish_loosely()?;
        Ok(replacement)
    }
}

/// Where a replacement's value comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SourceSelector {
    pub(crate) id: ResourceId,
    pub(crate) field_path: String,
    pub(crate) options: Option<FieldOptions>,
}

impl Decode for SourceSelector {
    fn go_type() -> String {
        "types.SourceSelector".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut source = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        take_id(&mut fields, &mut source.id);
        fields.take("fieldPath", &mut source.field_path);
        fields.take("options", &mut source.options);
        fields.finish()?;
        Ok(source)
    }
}

/// Where a replacement's value goes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TargetSelector {
    pub(crate) select: Option<Selector>,
    pub(crate) reject: Vec<Selector>,
    pub(crate) field_paths: Vec<String>,
    pub(crate) options: Option<FieldOptions>,
}

impl Decode for TargetSelector {
    fn go_type() -> String {
        "types.TargetSelector".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut target = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("select", &mut target.select);
        fields.take_named("reject", "[]*types.Selector", &mut target.reject);
        fields.take("fieldPaths", &mut target.field_paths);
        fields.take("options", &mut target.options);
        fields.finish()?;
        Ok(target)
    }
}

/// Which part of a field's text is meant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldOptions {
    pub(crate) delimiter: String,
    pub(crate) index: i64,
    /// kustomize reads the field and does nothing with it.
    pub(crate) encoding: String,
    pub(crate) create: bool,
}

impl Decode for FieldOptions {
    fn go_type() -> String {
        "types.FieldOptions".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut options = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("delimiter", &mut options.delimiter);
        fields.take_named("index", "int", &mut options.index);
        fields.take("encoding", &mut options.encoding);
        fields.take("create", &mut options.create);
        fields.finish()?;
        Ok(options)
    }
}

/// A variable: a name for a field of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) object: ResourceId,
    pub(crate) field_path: String,
    /// The type as the file has it beside `apiVersion`, and the path as it has it: messages show them so.
    pub(crate) declared: (GroupVersionKind, String),
}

impl Decode for Variable {
    fn go_type() -> String {
        "types.Var".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut variable = Self::default();
        let mut object = ObjectReference::default();
        let mut field = FieldReference::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("name", &mut variable.name);
        fields.take("objref", &mut object);
        fields.take("fieldref", &mut field);
        fields.finish()?;
        (variable.object, variable.declared.0) = object.0;
        variable.declared.1.clone_from(&field.0);
        variable.field_path = if field.0.is_empty() {
            "metadata.name".to_owned()
        } else {
            field.0
        };
        Ok(variable)
    }
}

#[derive(Default)]
struct ObjectReference((ResourceId, GroupVersionKind));

impl Decode for ObjectReference {
    fn go_type() -> String {
        "types.Target".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut id = ResourceId::default();
        let mut api_version = String::new();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("apiVersion", &mut api_version);
        take_id(&mut fields, &mut id);
        fields.finish()?;
        let declared = id.gvk.clone();
        match api_version.split('/').collect::<Vec<_>>()[..] {
            [""] => {}
            [version] => version.clone_into(&mut id.gvk.version),
            [group, version] => {
                group.clone_into(&mut id.gvk.group);
                version.clone_into(&mut id.gvk.version);
            }
            _ => {}
        }
        Ok(Self((id, declared)))
    }
}

#[derive(Default)]
struct FieldReference(String);

impl Decode for FieldReference {
    fn go_type() -> String {
        "types.FieldSelector".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut reference = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("fieldPath", &mut reference.0);
        fields.finish()?;
        Ok(reference)
    }
}

/// The order of the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SortOptions {
    pub(crate) order: String,
    pub(crate) legacy: Option<LegacySortOptions>,
}

/// Kinds that come first and last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LegacySortOptions {
    pub(crate) order_first: Vec<String>,
    pub(crate) order_last: Vec<String>,
}

impl Decode for SortOptions {
    fn go_type() -> String {
        "types.SortOptions".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut options = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take_named("order", "types.SortOrder", &mut options.order);
        fields.take("legacySortOptions", &mut options.legacy);
        fields.finish()?;
        Ok(options)
    }
}

impl Decode for LegacySortOptions {
    fn go_type() -> String {
        "types.LegacySortOptions".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut options = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("orderFirst", &mut options.order_first);
        fields.take("orderLast", &mut options.order_last);
        fields.finish()?;
        Ok(options)
    }
}

/// An entry of `patchesStrategicMerge`: a file or a patch.
#[derive(Default)]
pub(crate) struct StrategicMerge(pub(crate) String);

impl Decode for StrategicMerge {
    fn go_type() -> String {
        "types.PatchStrategicMerge".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        decode::text(value, place, &Self::go_type()).map(Self)
    }
}

/// The metadata of a kustomization, which change nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ObjectMetadata;

impl Decode for ObjectMetadata {
    fn go_type() -> String {
        "types.ObjectMeta".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let (mut text, mut texts) = (String::new(), BTreeMap::new());
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("name", &mut text);
        fields.take("namespace", &mut text);
        fields.take("labels", &mut texts);
        fields.take("annotations", &mut texts);
        fields.finish().map(|()| Self)
    }
}

//! `.Chart`: a struct for Helm 3, a map with the names of its fields for Helm 4.

use std::collections::BTreeMap;

use go_template::{Kind, List, Map, Type, TypeInfo, Value};

use super::record::{Field, Record};
use crate::values::value_from_json;
use helm_chart::{Chart, Dependency, Helm, Maintainer, Metadata};

/// Makes `.Chart`.
pub(super) fn chart_data(chart: &Chart, helm: Helm) -> Value {
    match helm {
        Helm::V3 => structure(chart),
        Helm::V4 => Value::Map(metadata_map(&chart.metadata, chart.is_root)),
    }
}

/// Helm 4's `MetadataAsMap`: all fields of the struct, lists as `[]interface {}` that are never nil.
fn metadata_map(metadata: &Metadata, is_root: bool) -> Map {
    let text = |text: &str| Value::from(text);
    let dependencies = metadata.dependencies.as_deref().unwrap_or_default();
    [
        ("Name", text(&metadata.name)),
        ("Home", text(&metadata.home)),
        ("Sources", any_list(&metadata.sources)),
        ("Version", text(&metadata.version)),
        ("Description", text(&metadata.description)),
        ("Keywords", any_list(&metadata.keywords)),
        (
            "Maintainers",
            metadata
                .maintainers
                .iter()
                .map(maintainer_map)
                .collect::<List>()
                .into(),
        ),
        ("Icon", text(&metadata.icon)),
        ("APIVersion", text(&metadata.api_version)),
        ("Condition", text(&metadata.condition)),
        ("Tags", text(&metadata.tags)),
        ("AppVersion", text(&metadata.app_version)),
        ("Deprecated", Value::Bool(metadata.deprecated)),
        ("Annotations", string_map(metadata.annotations.as_ref())),
        ("KubeVersion", text(&metadata.kube_version)),
        (
            "Dependencies",
            dependencies.iter().map(dependency_map).collect::<List>().into(),
        ),
        ("Type", text(&metadata.kind)),
        ("IsRoot", Value::Bool(is_root)),
    ]
    .into_iter()
    .collect()
}

fn maintainer_map(maintainer: &Maintainer) -> Value {
    let fields = [
        ("Name", &maintainer.name),
        ("Email", &maintainer.email),
        ("URL", &maintainer.url),
    ];
    let map: Map = fields
        .into_iter()
        .map(|(key, text)| (key, Value::from(text.as_str())))
        .collect();
    map.into()
}

fn dependency_map(dependency: &Dependency) -> Value {
    let text = |text: &str| Value::from(text);
    let map: Map = [
        ("Name", text(&dependency.name)),
        ("Version", text(&dependency.version)),
        ("Repository", text(&dependency.repository)),
        ("Condition", text(&dependency.condition)),
        ("Tags", any_list(&dependency.tags)),
        ("Enabled", Value::Bool(dependency.enabled)),
        ("ImportValues", import_values(dependency)),
        ("Alias", text(&dependency.alias)),
    ]
    .into_iter()
    .collect();
    map.into()
}

fn import_values(dependency: &Dependency) -> Value {
    let values = dependency.import_values.iter().map(value_from_json);
    values.collect::<List>().into()
}

fn any_list(texts: &[String]) -> Value {
    texts
        .iter()
        .map(|text| Value::from(text.as_str()))
        .collect::<List>()
        .into()
}

fn string_map(entries: Option<&BTreeMap<String, String>>) -> Value {
    let Some(entries) = entries else {
        return Map::nil(Type::MAP_STRING).into();
    };
    let entries = entries
        .iter()
        .map(|(key, text)| (key.into(), Value::from(text.as_str())));
    Map::with_entries(Type::MAP_STRING, entries.collect()).into()
}

const fn structure_type(name: &'static str, kind: Kind) -> TypeInfo {
    TypeInfo {
        named: true,
        ..TypeInfo::plain(name, kind)
    }
}

static CHART: TypeInfo = TypeInfo::plain("struct { chart.Metadata; IsRoot bool }", Kind::Struct);
static METADATA: TypeInfo = structure_type("chart.Metadata", Kind::Struct);
static MAINTAINER: TypeInfo = structure_type("*chart.Maintainer", Kind::Pointer);
static DEPENDENCY: TypeInfo = structure_type("*chart.Dependency", Kind::Pointer);
static MAINTAINERS: TypeInfo = TypeInfo::new("[]*chart.Maintainer", Kind::Slice, Type::new(&MAINTAINER));
static DEPENDENCIES: TypeInfo = TypeInfo::new("[]*chart.Dependency", Kind::Slice, Type::new(&DEPENDENCY));

/// Helm 3's struct around the metadata.
fn structure(chart: &Chart) -> Value {
    Value::object(Record::new(
        Type::new(&CHART),
        vec![
            Field::embedded("Metadata", metadata_struct(&chart.metadata)),
            Field::new("IsRoot", "IsRoot", chart.is_root),
        ],
    ))
}

fn metadata_struct(metadata: &Metadata) -> Value {
    let maintainers = metadata.maintainers.iter().map(maintainer_struct).collect();
    let dependencies = metadata.dependencies.as_deref().unwrap_or_default();
    let dependencies = dependencies.iter().map(dependency_struct).collect();
    Value::object(Record::new(
        Type::new(&METADATA),
        vec![
            Field::unless_empty("Name", "name", metadata.name.as_str()),
            Field::unless_empty("Home", "home", metadata.home.as_str()),
            Field::unless_empty("Sources", "sources", string_list(&metadata.sources)),
            Field::unless_empty("Version", "version", metadata.version.as_str()),
            Field::unless_empty("Description", "description", metadata.description.as_str()),
            Field::unless_empty("Keywords", "keywords", string_list(&metadata.keywords)),
            Field::unless_empty(
                "Maintainers",
                "maintainers",
                typed_list(&MAINTAINERS, maintainers),
            ),
            Field::unless_empty("Icon", "icon", metadata.icon.as_str()),
            Field::unless_empty("APIVersion", "apiVersion", metadata.api_version.as_str()),
            Field::unless_empty("Condition", "condition", metadata.condition.as_str()),
            Field::unless_empty("Tags", "tags", metadata.tags.as_str()),
            Field::unless_empty("AppVersion", "appVersion", metadata.app_version.as_str()),
            Field::unless_empty("Deprecated", "deprecated", metadata.deprecated),
            Field::unless_empty(
                "Annotations",
                "annotations",
                string_map(metadata.annotations.as_ref()),
            ),
            Field::unless_empty("KubeVersion", "kubeVersion", metadata.kube_version.as_str()),
            Field::unless_empty(
                "Dependencies",
                "dependencies",
                typed_list(&DEPENDENCIES, dependencies),
            ),
            Field::unless_empty("Type", "type", metadata.kind.as_str()),
        ],
    ))
}

fn maintainer_struct(maintainer: &Maintainer) -> Value {
    Value::object(Record::new(
        Type::new(&MAINTAINER),
        vec![
            Field::unless_empty("Name", "name", maintainer.name.as_str()),
            Field::unless_empty("Email", "email", maintainer.email.as_str()),
            Field::unless_empty("URL", "url", maintainer.url.as_str()),
        ],
    ))
}

fn dependency_struct(dependency: &Dependency) -> Value {
    let import_values = match dependency.import_values.is_empty() {
        true => List::nil(Type::LIST_ANY).into(),
        false => import_values(dependency),
    };
    Value::object(Record::new(
        Type::new(&DEPENDENCY),
        vec![
            Field::new("Name", "name", dependency.name.as_str()),
            Field::unless_empty("Version", "version", dependency.version.as_str()),
            Field::new("Repository", "repository", dependency.repository.as_str()),
            Field::unless_empty("Condition", "condition", dependency.condition.as_str()),
            Field::unless_empty("Tags", "tags", string_list(&dependency.tags)),
            Field::unless_empty("Enabled", "enabled", dependency.enabled),
            Field::unless_empty("ImportValues", "import-values", import_values),
            Field::unless_empty("Alias", "alias", dependency.alias.as_str()),
        ],
    ))
}

fn string_list(texts: &[String]) -> Value {
    if texts.is_empty() {
        return List::nil(Type::LIST_STRING).into();
    }
    List::of_strings(texts).into()
}

fn typed_list(type_: &'static TypeInfo, items: Vec<Value>) -> Value {
    if items.is_empty() {
        return List::nil(Type::new(type_)).into();
    }
    List::new(Type::new(type_), items).into()
}

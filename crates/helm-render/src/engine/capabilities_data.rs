//! `.Capabilities`: a pointer to a struct, with methods on it and on its fields.

use go_template::{Function, Kind, List, Type, TypeInfo, Value};

use super::record::{Field, Record};
use crate::capabilities::{Capabilities, HelmVersion, KubeVersion};
use helm_chart::Helm;

/// Makes `.Capabilities`.
pub(super) fn capabilities_data(capabilities: &Capabilities, helm: Helm) -> Value {
    let types = match helm {
        Helm::V3 => &V3,
        Helm::V4 => &V4,
    };
    let api_versions = capabilities
        .api_versions
        .iter()
        .map(|version| Value::from(version.as_str()));
    let api_versions = List::new(Type::new(types.version_set), api_versions.collect());
    Value::object(Record::new(
        Type::new(types.capabilities),
        vec![
            Field::new(
                "KubeVersion",
                "KubeVersion",
                kube_version(&capabilities.kube_version, types, helm),
            ),
            Field::new("APIVersions", "APIVersions", api_versions),
            Field::new(
                "HelmVersion",
                "HelmVersion",
                helm_version(&capabilities.helm_version, helm),
            ),
        ],
    ))
}

struct Types {
    capabilities: &'static TypeInfo,
    kube_version: &'static TypeInfo,
    version_set: &'static TypeInfo,
}

const fn named(name: &'static str, kind: Kind, method: Option<fn(&str) -> Option<Function>>) -> TypeInfo {
    TypeInfo {
        named: true,
        method,
        ..TypeInfo::plain(name, kind)
    }
}

const fn version_set(name: &'static str) -> TypeInfo {
    TypeInfo {
        named: true,
        method: Some(version_set_method),
        ..TypeInfo::new(name, Kind::Slice, Type::STRING)
    }
}

static V3: Types = Types {
    capabilities: &CAPABILITIES_V3,
    kube_version: &KUBE_VERSION_V3,
    version_set: &VERSION_SET_V3,
};
static V4: Types = Types {
    capabilities: &CAPABILITIES_V4,
    kube_version: &KUBE_VERSION_V4,
    version_set: &VERSION_SET_V4,
};
static CAPABILITIES_V3: TypeInfo = named(
    "*chartutil.Capabilities",
    Kind::Pointer,
    Some(capabilities_method),
);
static CAPABILITIES_V4: TypeInfo = named("*common.Capabilities", Kind::Pointer, Some(capabilities_method));
static KUBE_VERSION_V3: TypeInfo = named("chartutil.KubeVersion", Kind::Struct, Some(kube_version_method));
static KUBE_VERSION_V4: TypeInfo = named("common.KubeVersion", Kind::Struct, Some(kube_version_method));
static VERSION_SET_V3: TypeInfo = version_set("chartutil.VersionSet");
static VERSION_SET_V4: TypeInfo = version_set("common.VersionSet");
static BUILD_INFO: TypeInfo = named("version.BuildInfo", Kind::Struct, None);

fn kube_version(version: &KubeVersion, types: &Types, helm: Helm) -> Value {
    let mut fields = vec![Field::new("Version", "Version", version.version.as_str())];
    if helm == Helm::V4 {
        fields.push(Field::hidden("normalizedVersion", version.normalized.as_str()));
    }
    fields.push(Field::new("Major", "Major", version.major.as_str()));
    fields.push(Field::new("Minor", "Minor", version.minor.as_str()));
    let record = Record::new(Type::new(types.kube_version), fields);
    Value::object(record.with_addressed_text(version.to_string()))
}

fn helm_version(version: &HelmVersion, helm: Helm) -> Value {
    let mut fields = vec![
        Field::unless_empty("Version", "version", version.version.as_str()),
        Field::unless_empty("GitCommit", "git_commit", version.git_commit.as_str()),
        Field::unless_empty("GitTreeState", "git_tree_state", version.git_tree_state.as_str()),
        Field::unless_empty("GoVersion", "go_version", version.go_version.as_str()),
    ];
    if helm == Helm::V4 {
        let version = version.kube_client_version.as_str();
        fields.push(Field::new("KubeClientVersion", "kube_client_version", version));
    }
    Value::object(Record::new(Type::new(&BUILD_INFO), fields))
}

/// `Copy`, which templates cannot tell from the original.
fn capabilities_method(name: &str) -> Option<Function> {
    (name == "Copy").then(|| Function::new(&[], |_, arguments| Ok(arguments[0].clone())))
}

/// `String` and `GitVersion`, which belong to the pointer: Helm hands the struct out in a place that has an address.
fn kube_version_method(name: &str) -> Option<Function> {
    match name {
        "String" => Some(Function::new(&[], |_, arguments| {
            let Value::Object(object) = &arguments[0] else {
                return Ok(Value::Nil);
            };
            Ok(Value::String(object.addressed_text().unwrap_or_default()))
        })),
        "GitVersion" => Some(Function::new(&[], |_, arguments| {
            let Value::Object(object) = &arguments[0] else {
                return Ok(Value::Nil);
            };
            Ok(object.field("Version").unwrap_or_default())
        })),
        _ => None,
    }
}

/// `Has`.
fn version_set_method(name: &str) -> Option<Function> {
    (name == "Has").then(|| {
        Function::new(&[Type::STRING], |_, arguments| {
            let (Some(set), Some(wanted)) = (arguments[0].as_list(), arguments[1].as_string()) else {
                return Ok(Value::Bool(false));
            };
            let found = set.iter().any(|version| version.as_string() == Some(wanted));
            Ok(Value::Bool(found))
        })
    })
}

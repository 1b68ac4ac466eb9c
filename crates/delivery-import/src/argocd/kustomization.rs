//! What an Application applies from a folder.

use serde_json::{Map, Value, json};

use super::source::Source;
use super::{Notes, folder};
use crate::{is_set, list, object, set, text};

const VERSION: &str = "kustomize.toolkit.fluxcd.io/v1";

/// The Kustomization of a source, without its name.
pub(crate) fn kustomization(source: &Value, from: &Source, notes: &mut Notes<'_>) -> Value {
    let path = folder(source);
    let mut spec = json!({"interval": "10m", "path": path, "prune": true, "sourceRef": from.reference()});
    if is_set(&source["kustomize"]) {
        kustomize(&source["kustomize"], &mut spec, notes);
    }
    directory(&source["directory"], notes);
    if is_set(&source["plugin"]) {
        notes.add(
            "source.plugin",
            "there are no plugins: render it elsewhere and deliver the result as an OCI artifact",
        );
    }
    object(VERSION, "Kustomization", spec)
}

fn directory(directory: &Value, notes: &mut Notes<'_>) {
    for (field, text) in [
        (
            "include",
            "all YAML files are applied: list those that are wanted in a kustomization.yaml",
        ),
        (
            "exclude",
            "leave the files out with spec.ignore of the GitRepository, or in a .sourceignore",
        ),
        ("jsonnet", "there is no Jsonnet: render it elsewhere"),
    ] {
        if is_set(&directory[field]) {
            notes.add(&format!("source.directory.{field}"), text);
        }
    }
    if is_set(directory) && directory["recurse"] != true {
        notes.add(
            "source.directory.recurse",
            "without a kustomization.yaml, files in folders below are applied as well",
        );
    }
}

fn kustomize(kustomize: &Value, spec: &mut Value, notes: &mut Notes<'_>) {
    for field in ["namePrefix", "nameSuffix", "components"] {
        set(spec, field, kustomize[field].clone());
    }
    set(
        spec,
        "ignoreMissingComponents",
        kustomize["ignoreMissingComponents"].clone(),
    );
    set(spec, "targetNamespace", kustomize["namespace"].clone());
    let images: Vec<Value> = list(kustomize, "/images")
        .iter()
        .filter_map(Value::as_str)
        .map(image)
        .collect();
    set(spec, "images", Value::Array(images));
    let mut metadata = Value::Object(Map::new());
    set(&mut metadata, "labels", kustomize["commonLabels"].clone());
    set(
        &mut metadata,
        "annotations",
        kustomize["commonAnnotations"].clone(),
    );
    set(spec, "commonMetadata", metadata);
    if is_set(&kustomize["commonLabels"]) && kustomize["labelWithoutSelector"] != true {
        notes.add(
            "source.kustomize.commonLabels",
            "they become labels only: selectors and templates of Pods do not get them",
        );
    }
    let mut patches = Vec::new();
    for patch in list(kustomize, "/patches") {
        if is_set(&patch["path"]) {
            notes.add(
                "source.kustomize.patches",
                format!(
                    "the patch in {} is not carried over: list it in the kustomization.yaml",
                    patch["path"]
                ),
            );
            continue;
        }
        let mut kept = json!({"patch": patch["patch"]});
        set(&mut kept, "target", patch["target"].clone());
        if is_set(&patch["options"]) {
            notes.add(
                "source.kustomize.patches",
                "options of a patch are not carried over",
            );
        }
        patches.push(kept);
    }
    for replicas in list(kustomize, "/replicas") {
        let name = text(replicas, "/name");
        // A number, or a text with one.
        let count = match &replicas["count"] {
            Value::String(text) => text.parse::<i64>().map_or(Value::Null, Value::from),
            count => count.clone(),
        };
        let patch = format!("- op: replace\n  path: /spec/replicas\n  value: {count}\n");
        patches.push(json!({"patch": patch, "target": {"kind": "Deployment", "name": name}}));
        notes.add(
            "source.kustomize.replicas",
            format!(
                "replicas of {name} are patched as those of a Deployment; name another kind if it is one"
            ),
        );
    }
    set(spec, "patches", Value::Array(patches));
    for field in [
        "forceCommonLabels",
        "forceCommonAnnotations",
        "commonAnnotationsEnvsubst",
        "version",
        "apiVersions",
        "kubeVersion",
    ] {
        if is_set(&kustomize[field]) {
            notes.add(
                &format!("source.kustomize.{field}"),
                "it has no counterpart, and is left out",
            );
        }
    }
}

/// Reads an image as Kustomize's command writes it: `NAME=NEW:TAG`, `NAME:TAG`, `NAME@DIGEST`.
fn image(text: &str) -> Value {
    let (name, new) = match text.split_once('=') {
        Some((name, new)) => (Some(name), new),
        None => (None, text),
    };
    let (rest, digest) = match new.split_once('@') {
        Some((rest, digest)) => (rest, digest),
        None => (new, ""),
    };
    // A colon before the last slash is that of a port.
    let after = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (image, tag) = match rest[after..].find(':') {
        Some(colon) => (&rest[..after + colon], &rest[after + colon + 1..]),
        None => (rest, ""),
    };
    let mut made = json!({"name": name.unwrap_or(image)});
    if name.is_some_and(|name| name != image) {
        set(&mut made, "newName", image.into());
    }
    set(&mut made, "newTag", tag.into());
    set(&mut made, "digest", digest.into());
    made
}

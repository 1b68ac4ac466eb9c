//! The fields of a kustomization. A new field is one function and one line of [`FIELDS`].

use serde_json::{Map, Value, json};

use super::{Draft, generator, plugin, word};
use crate::tree::File;

type Make = fn(&mut Draft) -> Value;

/// Each field, how often it is taken, and what makes its value: null when there is nothing to say.
const FIELDS: &[(&str, usize, Make)] = &[
    ("namespace", 10, namespace),
    ("namePrefix", 8, |draft| {
        json!(draft.random.pick(&["pre-", "dev-", "a", ""]))
    }),
    ("nameSuffix", 8, |draft| {
        json!(draft.random.pick(&["-v1", "-x", "b", ""]))
    }),
    ("labels", 10, labels),
    ("commonLabels", 6, common_labels),
    ("commonAnnotations", 6, common_annotations),
    ("images", 8, images),
    ("imageTags", 1, images),
    ("replicas", 6, replicas),
    ("configMapGenerator", 12, generator::config_maps),
    ("secretGenerator", 8, generator::secrets),
    ("generatorOptions", 4, generator::options),
    ("vars", 6, vars),
    ("configurations", 5, configurations),
    ("crds", 4, definitions),
    ("sortOptions", 3, sort_options),
    ("buildMetadata", 5, build_metadata),
    ("transformers", 7, plugin::transformers),
    ("generators", 4, plugin::generators),
];

/// Makes one field.
pub fn any(draft: &mut Draft) -> (&'static str, Value) {
    let all: usize = FIELDS.iter().map(|(_, weight, _)| weight).sum();
    loop {
        let mut left = draft.random.below(all);
        let chosen = FIELDS
            .iter()
            .find(|(_, weight, _)| match left.checked_sub(*weight) {
                Some(less) => {
                    left = less;
                    false
                }
                None => true,
            });
        let Some((name, _, make)) = chosen else { continue };
        let value = make(draft);
        if !value.is_null() {
            return (name, value);
        }
    }
}

fn namespace(draft: &mut Draft) -> Value {
    json!(word::namespace(&mut draft.random))
}

fn labels(draft: &mut Draft) -> Value {
    let entries = draft.random.several(1, 2, |random| {
        let mut entry = json!({"pairs": word::labels(random)});
        for option in [
            "includeSelectors",
            "includeTemplates",
            "includeVolumeClaimTemplates",
        ] {
            if random.chance(25) {
                entry[option] = json!(random.chance(80));
            }
        }
        entry
    });
    let mut entries = json!(entries);
    if draft.random.chance(15) {
        entries[0]["fields"] = json!([field_spec(
            draft,
            &["spec/template/metadata/labels", "spec/more", "metadata/labels"]
        )]);
    }
    entries
}

fn common_labels(draft: &mut Draft) -> Value {
    word::labels(&mut draft.random)
}

fn common_annotations(draft: &mut Draft) -> Value {
    word::pairs(&mut draft.random, 1, 2)
}

pub fn images(draft: &mut Draft) -> Value {
    json!(draft.random.several(1, 2, |random| {
        let mut entry = json!({"name": random.pick(&["nginx", "busybox", "team/web", "web", "registry.example:5000/team/web", "registry.example/web"])});
        if random.chance(50) {
            entry["newName"] = json!(random.pick(&["mirror.example/nginx", "other", "localhost:5000/x"]));
        }
        if random.chance(60) {
            entry["newTag"] = match random.chance(95) {
                true => json!(random.pick(&["v2", "1.0", "latest", ""])),
                false => word::scalar(random),
            };
        }
        if random.chance(15) {
            entry["digest"] = json!("sha256:aaaa");
        }
        if random.chance(8) {
            entry["tagSuffix"] = json!("-alpine");
        }
        entry
    }))
}

pub fn replicas(draft: &mut Draft) -> Value {
    let scaled = ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"];
    let targets: Vec<String> = draft
        .known
        .iter()
        .filter(|known| scaled.contains(&known.kind.as_str()))
        .map(|known| known.name.clone())
        .collect();
    if targets.is_empty() && draft.random.chance(95) {
        return Value::Null;
    }
    let name = targets
        .get(draft.random.below(targets.len()))
        .map_or("web", String::as_str);
    json!([{"name": name, "count": draft.random.below(9)}])
}

fn vars(draft: &mut Draft) -> Value {
    let target = draft.object();
    let mut reference = json!({"kind": target.kind, "name": target.name});
    if draft.random.chance(70) {
        reference["apiVersion"] = json!(target.api_version);
    }
    if draft.random.chance(20) {
        reference["namespace"] = json!(target.namespace);
    }
    let mut variable = json!({"name": draft.random.pick(&["APP", "A"]), "objref": reference});
    if draft.random.chance(30) {
        let path = draft.random.pick(&[
            "metadata.name",
            "metadata.name",
            "metadata.name",
            "metadata.name",
            "metadata.name",
            "metadata.namespace",
            "metadata.labels.app",
            "data.app",
            "data.key\\.txt",
            "spec.replicas",
            "spec.template.spec.containers[0].image",
            "spec",
            "kind",
            "spec.ports[0].targetPort",
            "spec.text",
            "metadata.labels[app.kubernetes.io/name]",
        ]);
        variable["fieldref"] = json!({"fieldpath": path});
    }
    json!([variable])
}

/// Makes a field specification of one of the paths.
pub fn field_spec(draft: &mut Draft, paths: &[&'static str]) -> Value {
    let path = if draft.random.chance(1) {
        ""
    } else {
        draft.random.pick(paths)
    };
    let mut spec = json!({"path": path});
    if draft.random.chance(50) {
        spec["create"] = json!(draft.random.chance(80));
    }
    if draft.random.chance(50) {
        let target = draft.object();
        spec["kind"] = json!(target.kind);
        if draft.random.chance(40) {
            let (group, version) = target
                .api_version
                .split_once('/')
                .unwrap_or(("", &target.api_version));
            spec["version"] = json!(version);
            if draft.random.chance(60) {
                spec["group"] = json!(group);
            }
        }
    }
    spec
}

const PATHS: &[&str] = &[
    "spec/secretName",
    "spec/configMap/name",
    "spec/text",
    "spec/image",
    "spec/items[]/name",
    "spec/items/value",
    "spec/list",
    "spec/replicas",
    "metadata/name",
    "metadata/labels",
    "spec/selector/matchLabels",
    "spec/more/deep",
    "data/app",
    "spec/template/metadata/annotations",
    "spec/containers[]/image",
    "metadata/annotations/app.kubernetes.io\\/name",
    "spec",
];

fn configurations(draft: &mut Draft) -> Value {
    let mut content = Map::new();
    for name in [
        "namePrefix",
        "nameSuffix",
        "namespace",
        "commonLabels",
        "commonAnnotations",
        "images",
        "replicas",
        "varReference",
        "labels",
        "templateLabels",
    ] {
        if draft.random.chance(25) {
            let specs = [field_spec(draft, PATHS), field_spec(draft, PATHS)];
            content.insert(name.to_owned(), json!(&specs[..1 + draft.random.below(2)]));
        }
    }
    if draft.random.chance(50) {
        let target = draft.object();
        let mut reference = json!({"kind": target.kind, "fieldSpecs": [field_spec(draft, PATHS)]});
        if draft.random.chance(30) {
            reference["version"] = json!(target.api_version.rsplit('/').next());
        }
        content.insert("nameReference".to_owned(), json!([reference]));
    }
    let name = draft.file("configuration.yaml", File::Yaml(vec![Value::Object(content)]));
    json!([name])
}

fn definitions(draft: &mut Draft) -> Value {
    let target = draft.object();
    let mut properties = json!({
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        "spec": {"$ref": "com.example.v1.WidgetSpec"},
    });
    if draft.random.chance(10) {
        properties["kind"].take();
    }
    let reference = json!({"x-kubernetes-object-ref-api-version": target.api_version, "x-kubernetes-object-ref-kind": target.kind});
    let mut named = reference.clone();
    named["x-kubernetes-object-ref-name-key"] = json!(draft.random.pick(&["name", "value"]));
    let content = json!({
        "com.example.v1.Widget": {"Schema": {"properties": properties}},
        "com.example.v1.WidgetSpec": {"Schema": {"properties": {
            "configMap": named,
            "text": {"x-kubernetes-annotation": ""},
            "selector": {"x-kubernetes-label-selector": ""},
            "secretName": {"x-kubernetes-identity": ""},
            "items": reference,
        }}},
    });
    let file = match draft.random.chance(50) {
        true => File::Text(content.to_string()),
        false => File::Yaml(vec![content]),
    };
    json!([draft.file("definitions.json", file)])
}

fn sort_options(draft: &mut Draft) -> Value {
    match draft.random.below(30) {
        0..10 => json!({"order": "fifo"}),
        10..14 => json!({"order": "legacy"}),
        14..29 => json!({"order": "legacy", "legacySortOptions": {
            "orderFirst": draft.random.several(0, 2, |random| json!(random.pick(&["Deployment", "Service", "Secret"]))),
            "orderLast": draft.random.several(0, 2, |random| json!(random.pick(&["Namespace", "ConfigMap", "Service"])))}}),
        _ => json!({"order": draft.random.pick(&["", "other", "fifo"]), "legacySortOptions": {}}),
    }
}

fn build_metadata(draft: &mut Draft) -> Value {
    json!(draft.random.several(1, 3, |random| {
        json!(random.pick(&[
            "originAnnotations",
            "transformerAnnotations",
            "managedByLabel",
            "managedByLabel"
        ]))
    }))
}

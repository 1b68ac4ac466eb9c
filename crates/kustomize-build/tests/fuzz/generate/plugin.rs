//! Configurations of built-in plugins, as files of `transformers` and `generators`.

use serde_json::{Value, json};

use super::{Draft, field, generator, word};
use crate::tree::{File, RAW};

type Make = fn(&mut Draft) -> (&'static str, Value);

const TRANSFORMERS: &[Make] = &[
    |draft| {
        (
            "PrefixTransformer",
            json!({"prefix": "pp-", "fieldSpecs": specs(draft, &["metadata/name", "spec/secretName", "spec/text"])}),
        )
    },
    |draft| {
        (
            "SuffixTransformer",
            json!({"suffix": "-ss", "fieldSpecs": specs(draft, &["metadata/name", "spec/secretName"])}),
        )
    },
    |draft| {
        let paths = &[
            "metadata/labels",
            "spec/selector/matchLabels",
            "spec/template/metadata/labels",
            "spec/more",
        ];
        (
            "LabelTransformer",
            json!({"labels": word::labels(&mut draft.random), "fieldSpecs": specs(draft, paths)}),
        )
    },
    |draft| {
        let paths = &["metadata/annotations", "spec/template/metadata/annotations"];
        (
            "AnnotationsTransformer",
            json!({"annotations": word::pairs(&mut draft.random, 1, 2), "fieldSpecs": specs(draft, paths)}),
        )
    },
    namespace,
    |draft| {
        let image = field::images(draft)[0].clone();
        (
            "ImageTagTransformer",
            json!({"imageTag": image, "fieldSpecs": specs(draft, &["spec/image", "spec/containers[]/image", "spec/items[]/value"])}),
        )
    },
    |draft| {
        let replica = match field::replicas(draft) {
            Value::Null => json!({"name": "app", "count": 2}),
            replicas => replicas[0].clone(),
        };
        (
            "ReplicaCountTransformer",
            json!({"replica": replica, "fieldSpecs": specs(draft, &["spec/replicas", "spec/text"])}),
        )
    },
    |draft| {
        (
            "HashTransformer",
            json!({"fieldSpecs": specs(draft, &["metadata/name"])}),
        )
    },
    |draft| {
        let target = draft.object();
        let value = word::scalar(&mut draft.random);
        let path = draft.random.pick(&[
            "metadata/name",
            "metadata/annotations/x",
            "spec/text",
            "spec/items",
        ]);
        (
            "ValueAddTransformer",
            json!({"value": value, "targets": [{"selector": {"kind": target.kind}, "fieldPath": path}]}),
        )
    },
];

fn specs(draft: &mut Draft, paths: &[&'static str]) -> Value {
    let count = draft.random.below(3);
    Value::Array((0..count).map(|_| field::field_spec(draft, paths)).collect())
}

fn namespace(draft: &mut Draft) -> (&'static str, Value) {
    let mut fields =
        json!({"fieldSpecs": specs(draft, &["metadata/namespace", "spec/namespace", "metadata/name"])});
    if draft.random.chance(40) {
        fields["setRoleBindingSubjects"] =
            json!(
                draft
                    .random
                    .pick(&["none", "allServiceAccounts", "defaultOnly", "other"])
            );
    }
    if draft.random.chance(30) {
        fields["unsetOnly"] = json!(true);
    }
    ("NamespaceTransformer", fields)
}

fn configuration(draft: &mut Draft, kind: &str, mut fields: Value) -> Value {
    fields["apiVersion"] = json!("builtin");
    fields["kind"] = json!(kind);
    fields["metadata"] = json!({"name": word::name(&mut draft.random)});
    if kind == "NamespaceTransformer" {
        fields["metadata"]["namespace"] = json!(word::namespace(&mut draft.random));
    }
    fields
}

/// Makes one or two transformers: in a file or inline.
pub fn transformers(draft: &mut Draft) -> Value {
    let count = 1 + draft.random.below(2);
    let documents: Vec<Value> = (0..count)
        .map(|_| {
            let make = TRANSFORMERS[draft.random.below(TRANSFORMERS.len())];
            let (kind, fields) = make(draft);
            configuration(draft, kind, fields)
        })
        .collect();
    listed(draft, "transformers.yaml", documents)
}

/// Makes one generator: in a file or inline.
pub fn generators(draft: &mut Draft) -> Value {
    let document = match draft.random.below(5) {
        0 => {
            let fields = json!({
                "cloud": "gke",
                "kubernetesService": {"name": word::name(&mut draft.random), "namespace": word::namespace(&mut draft.random)},
                "serviceAccount": {"name": "x", "projectId": "project"},
            });
            configuration(draft, "IAMPolicyGenerator", fields)
        }
        chosen => {
            let kind = if chosen < 3 { "ConfigMap" } else { "Secret" };
            let mut fields = generator::arguments(draft, kind);
            let metadata = json!({"name": fields["name"], "namespace": fields["namespace"]});
            if let (true, Some(fields)) = (draft.random.chance(70), fields.as_object_mut()) {
                fields.remove("name");
                fields.remove("namespace");
            }
            let mut document = configuration(draft, &format!("{kind}Generator"), fields);
            document["metadata"] = metadata;
            if document["metadata"]["namespace"].is_null() {
                document["metadata"] = json!({"name": document["metadata"]["name"]});
            }
            document
        }
    };
    listed(draft, "generators.yaml", vec![document])
}

fn listed(draft: &mut Draft, name: &str, documents: Vec<Value>) -> Value {
    if draft.random.chance(25) {
        // Inline: YAML (here JSON) in a block scalar of the list.
        let inline = documents
            .iter()
            .map(|document| json!(format!("{RAW}'{}'", plain(document).replace('\'', "''"))));
        return inline.collect();
    }
    json!([draft.file(name, File::Yaml(documents))])
}

/// Takes the marks of raw scalars away, which JSON cannot hold.
fn plain(value: &Value) -> String {
    value.to_string().replace("\\u0001", "")
}

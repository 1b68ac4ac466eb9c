//! What an Application installs of a chart.

use helm_chart::{Helm, set_values};
use serde_json::{Map, Value, json};

use super::source::Source;
use super::{Notes, folder, plain_path};
use crate::{is_set, list, object, set, text};

const VERSION: &str = "helm.toolkit.fluxcd.io/v2";

/// The HelmRelease of a source, without its name.
pub(crate) fn release(source: &Value, from: &Source, notes: &mut Notes<'_>) -> Value {
    let helm = &source["helm"];
    let mut chart = match text(source, "/chart") {
        "" => {
            let path = folder(source);
            // A chart in Git is another one with each commit, as it is for Argo CD.
            json!({"chart": path, "reconcileStrategy": "Revision"})
        }
        chart => {
            let mut spec = json!({"chart": chart});
            set(&mut spec, "version", source["targetRevision"].clone());
            spec
        }
    };
    chart["sourceRef"] = from.reference();
    let files = value_files(source, notes);
    set(&mut chart, "valuesFiles", Value::Array(files));
    set(
        &mut chart,
        "ignoreMissingValuesFiles",
        helm["ignoreMissingValueFiles"].clone(),
    );
    let mut spec = json!({"interval": "10m", "chart": {"spec": chart}});
    set(&mut spec, "releaseName", helm["releaseName"].clone());
    set(&mut spec, "values", Value::Object(values(helm, notes)));
    if helm["skipCrds"] == true {
        spec["install"] = json!({"crds": "Skip"});
        spec["upgrade"] = json!({"crds": "Skip"});
    } else {
        // Argo CD applies the definitions of a chart as all else.
        spec["install"] = json!({"crds": "CreateReplace"});
        spec["upgrade"] = json!({"crds": "CreateReplace"});
    }
    if is_set(&helm["namespace"]) {
        set(&mut spec, "targetNamespace", helm["namespace"].clone());
    }
    for (field, text) in [
        (
            "fileParameters",
            "put the contents into values, or into a ConfigMap that valuesFrom names",
        ),
        ("kubeVersion", "the version of the cluster is used"),
        ("apiVersions", "what the cluster serves is used"),
        (
            "skipSchemaValidation",
            "set install.disableSchemaValidation and upgrade.disableSchemaValidation",
        ),
    ] {
        if is_set(&helm[field]) {
            notes.add(&format!("source.helm.{field}"), text);
        }
    }
    notes.add(
        "source.helm",
        "it becomes a release of Helm, which takes over what Argo CD has applied; sync waves and hooks of Argo CD in the chart do nothing",
    );
    object(VERSION, "HelmRelease", spec)
}

/// Files of values, from the root of the source.
fn value_files(source: &Value, notes: &mut Notes<'_>) -> Vec<Value> {
    let path = plain_path(source);
    let mut files = Vec::new();
    for file in list(source, "/helm/valueFiles").iter().filter_map(Value::as_str) {
        if file.starts_with('$') {
            notes.add(
                "source.helm.valueFiles",
                format!("{file} is in another source: put it into values, or into a ConfigMap that valuesFrom names"),
            );
        } else if file.contains("://") {
            notes.add(
                "source.helm.valueFiles",
                format!("{file} is not fetched: put it into values"),
            );
        } else if path.is_empty() || file.starts_with('/') {
            files.push(Value::from(file.trim_start_matches('/')));
        } else {
            files.push(Value::from(joined(path, file)));
        }
    }
    if !files.is_empty() {
        // Those that are named replace those of the chart.
        let own = if path.is_empty() {
            "values.yaml".to_owned()
        } else {
            format!("{path}/values.yaml")
        };
        files.insert(0, own.into());
    }
    files
}

fn joined(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Values, the more important ones over the others: `values`, `valuesObject`, `parameters`.
fn values(helm: &Value, notes: &mut Notes<'_>) -> Map<String, Value> {
    let mut values = Map::new();
    let given = text(helm, "/values");
    if !given.is_empty() && !is_set(&helm["valuesObject"]) {
        match helm_chart::values::read(given.as_bytes(), Helm::V4) {
            Ok(read) => values = read,
            Err(_) => notes.add(
                "source.helm.values",
                "they cannot be read as YAML, and are left out",
            ),
        }
    }
    if let Value::Object(given) = &helm["valuesObject"] {
        values.clone_from(given);
    }
    for parameter in list(helm, "/parameters") {
        let (name, value) = (text(parameter, "/name"), text(parameter, "/value"));
        let line = format!("{name}={}", value.replace('\\', "\\\\").replace(',', "\\,"));
        let read = match parameter["forceString"] == true {
            true => set_values::string(&mut values, &line, Helm::V4),
            false => set_values::parse_into(&mut values, &line, Helm::V4),
        };
        if read.is_err() {
            notes.add(
                "source.helm.parameters",
                format!("{name} cannot be read, and is left out"),
            );
        }
    }
    values
}

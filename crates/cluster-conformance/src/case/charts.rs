//! Recorded renderings of Helm.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Case, Content, answer, claims, name_of};

/// A chart that a HelmRelease installs.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The packed chart.
    pub archive: Vec<u8>,
    /// The name in its Chart.yaml.
    pub name: String,
    /// The version in its Chart.yaml.
    pub version: String,
    /// The values of the case.
    pub values: Value,
}

/// What a new cluster serves.
const SERVED: [&str; 11] = [
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "networking.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
    "v1",
];

/// The case in `folder` and the name of its archive, if a HelmRelease can have it.
pub fn read(folder: &Path) -> Result<Option<(String, Case)>> {
    let command: Value = serde_json::from_str(&fs::read_to_string(folder.join("cmd.json"))?)?;
    let list = |name: &str| command[name].as_array().map(Vec::len).unwrap_or_default();
    let is_fit = command["expect"] == "ok"
        && list("extraArgs") == 0
        && list("apiVersions") == 0
        && list("nondet_lines") == 0
        && list("nondet_paths") == 0;
    if !is_fit {
        return Ok(None);
    }
    let objects = answer(&folder.join("expected.yaml.gz"))?;
    // Helm maps all objects before it makes a record, and tries again without end where it cannot.
    let is_served = |object: &Value| SERVED.contains(&object["apiVersion"].as_str().unwrap_or_default());
    let Some(claims) = claims(&objects).filter(|_| objects.iter().all(is_served)) else {
        return Ok(None);
    };
    let archive = fs::read_to_string(folder.join("chart.txt"))?.trim().to_owned();
    let packed = fs::read(folder.join("../../charts").join(&archive))
        .with_context(|| format!("failed to read {archive}"))?;
    let mut values = json!({});
    for file in command["values"].as_array().into_iter().flatten() {
        let file = file.as_str().context("a file of values without a name")?;
        let text = fs::read_to_string(folder.join(file))?;
        match serde_saphyr::from_str(&text) {
            Ok(read) => merge(&mut values, read),
            // A document that only one reader takes is nothing to compare clusters by.
            Err(_) => return Ok(None),
        }
    }
    let text = |name: &str| command["source"][name].as_str().map(str::to_owned);
    let (Some(name), Some(version)) = (text("chart"), text("version")) else {
        return Ok(None);
    };
    let case = Case {
        name: name_of(folder)?,
        id: String::new(),
        content: Content::Chart(Chart {
            archive: packed,
            name,
            version,
            values,
        }),
        claims,
    };
    Ok(Some((archive, case)))
}

fn merge(values: &mut Value, read: Value) {
    match (values, read) {
        (Value::Object(values), Value::Object(read)) => {
            for (name, value) in read {
                merge(values.entry(name).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (values, read) => *values = read,
    }
}

//! Composes values of charts in memory: one JSON case a line in, one JSON result a line out.
//!
//! For comparison with a program of Go that asks Helm's own packages the same (`compose_values v4|v3`). A case is
//! `{"files": {NAME: TEXT}, "values": {…}}`; the result holds values, charts and sorted warnings, or an error.

use std::io::{BufRead, Write};

use helm_chart::{Chart, Dependency, File, Helm, Warning, load_files};
use helm_render::{dependencies, values};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let helm = match std::env::args().nth(1).as_deref() {
        Some("v3") => Helm::V3,
        _ => Helm::V4,
    };
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for line in std::io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", answer(&case, helm))?;
    }
    Ok(())
}

fn answer(case: &Value, helm: Helm) -> Value {
    let files = case["files"].as_object().into_iter().flatten();
    let files = files.map(|(name, text)| File {
        name: name.clone(),
        data: text.as_str().unwrap_or_default().into(),
    });
    let mut warnings = Vec::new();
    let mut answer = match compose(files.collect(), &case["values"], helm, &mut warnings) {
        Ok(answer) => answer,
        Err(error) => json!({"error": error.to_string()}),
    };
    let mut lines: Vec<&str> = warnings.iter().map(Warning::text).collect();
    lines.sort_unstable();
    answer["warnings"] = json!(lines);
    answer
}

fn compose(
    files: Vec<File>,
    given: &Value,
    helm: Helm,
    warnings: &mut Vec<Warning>,
) -> Result<Value, helm_chart::Error> {
    let chart = load_files(files, helm, warnings)?;
    warnings.clear();
    // Numbers become floats, as where Helm reads a file of values.
    let given = helm_chart::values::read(given.to_string().as_bytes(), helm).unwrap_or_default();
    let given = values::from_json(&given);
    let chart = dependencies::process(&chart, &given, helm, warnings)?;
    let mut tree = Vec::new();
    show(&chart, &mut tree);
    let composed = values::coalesce(&chart, &given, helm, warnings)?;
    Ok(json!({"tree": tree, "values": values::to_json(&composed)}))
}

fn show(chart: &Chart, tree: &mut Vec<Value>) {
    let named = chart.metadata.dependencies.as_ref();
    let named = named.map(|list| list.iter().map(dependency).collect::<Vec<_>>());
    tree.push(json!([&*chart.path, chart.name(), chart.is_root, named]));
    for below in &chart.dependencies {
        show(below, tree);
    }
}

/// Writes what encoding/json writes of Helm's struct.
fn dependency(dependency: &Dependency) -> Value {
    let mut fields = json!({"name": dependency.name, "repository": dependency.repository});
    let texts = [
        ("version", &dependency.version),
        ("condition", &dependency.condition),
        ("alias", &dependency.alias),
    ];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        fields[key] = json!(text);
    }
    if !dependency.tags.is_empty() {
        fields["tags"] = json!(dependency.tags);
    }
    if dependency.enabled {
        fields["enabled"] = json!(true);
    }
    if !dependency.import_values.is_empty() {
        fields["import-values"] = json!(dependency.import_values);
    }
    fields
}

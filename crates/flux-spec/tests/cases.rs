//! Runs the cases that were recorded from Flux's own generator, build and substitution (tests/cases/flux).

use std::fs;
use std::path::{Path, PathBuf};

use api::kustomize::{KustomizationSpec, SubstituteReference};
use flux_spec::build::{Data, Mode};
use kustomize_build::DirectoryFs;
use serde_json::{Value, json};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/flux");
    let entries = fs::read_dir(folder)
        .expect("tests/cases/flux")
        .map(|entry| entry.expect("entry").path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

fn text(case: &Path, name: &str) -> Option<String> {
    fs::read_to_string(case.join(name)).ok()
}

fn documents(text: &str) -> Vec<Value> {
    let documents = manifest::yaml::read_documents(text, "case").expect("the case is YAML");
    documents.into_iter().map(|document| document.value).collect()
}

fn spec(case: &Path) -> KustomizationSpec {
    let spec = documents(&text(case, "spec.yaml").expect("spec.yaml")).pop();
    let mut spec = spec.unwrap_or_else(|| json!({}));
    let required =
        json!({"interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "a"}});
    let fields = spec.as_object_mut().expect("a mapping");
    fields.extend(required.as_object().expect("a mapping").clone());
    serde_json::from_value(spec).expect("a spec")
}

fn build(case: &Path) -> Result<String, String> {
    let tree = DirectoryFs::new(case.join("input")).expect("input");
    let spec = spec(case);
    let folder = flux_spec::build::path::clamp(spec.path.as_deref().unwrap_or_default());
    let mut objects =
        flux_spec::build::build(&tree, &folder, &spec).map_err(|error| error_chain::chain(&error) + "\n")?;
    if let Some(post_build) = &spec.post_build {
        let cluster = documents(&text(case, "cluster.yaml").unwrap_or_default());
        let mode = if case.join("lenient").exists() {
            Mode::Lenient
        } else {
            Mode::Strict
        };
        flux_spec::build::substitute(&mut objects, post_build, mode, &|reference| {
            data(&cluster, reference)
        })
        .map_err(|error| error_chain::chain(&error) + "\n")?;
    }
    Ok(flux_spec::build::to_yaml(&objects))
}

fn data(cluster: &[Value], reference: &SubstituteReference) -> Data {
    let object = cluster.iter().find(|object| {
        object["kind"] == format!("{:?}", reference.kind) && object["metadata"]["name"] == reference.name
    })?;
    let field = if object["kind"] == "Secret" {
        "stringData"
    } else {
        "data"
    };
    let entries = object[field].as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().expect("a text").as_bytes().to_vec();
    Some(entries.map(|(key, value)| (key.clone(), text(value))).collect())
}

fn check(case: &Path) -> Result<(), String> {
    // Recorded messages hold the artifact's root; ours are relative to it. `our.yaml` and
    // `our-error.txt` are where we answer otherwise on purpose: see README.md.
    let relative = |error: String| {
        error
            .replace("{ROOT}/", "")
            .replace("{ROOT}", ".")
            .replace("{PARENT}", "..")
    };
    let refused = text(case, "our-error.txt").or_else(|| text(case, "expected-error.txt").map(relative));
    let expected = match refused {
        Some(error) => Err(error),
        None => Ok(text(case, "our.yaml")
            .or_else(|| text(case, "expected.yaml"))
            .expect("expected.yaml or expected-error.txt")),
    };
    let actual = build(case);
    if actual == expected {
        return Ok(());
    }
    Err(format!("--- expected\n{expected:?}\n--- actual\n{actual:?}"))
}

#[test]
fn recorded_cases_build_as_flux_builds_them() {
    let wanted = std::env::var("FLUX_CASE").unwrap_or_default();
    let all = cases();
    let cases: Vec<_> = all
        .iter()
        .filter(|case| case.to_string_lossy().contains(&wanted))
        .collect();
    assert!(!cases.is_empty(), "no cases were found");
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| check(case).err().map(|why| format!("{}\n{why}", case.display())))
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases fail:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n\n")
    );
}

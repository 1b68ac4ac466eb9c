//! Helm charts of kustomizations, as the real kustomize inflates them with the real helm. Each folder of tests/charts has a
//! kustomization, and what `kustomize build --enable-helm` printed (`expected.yaml`) or said (`refused.txt`).
//!
//! `KUSTOMIZE=path HELM=path` records anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use build_remote::{Remote, Settings};
use kustomize_build::{DirectoryFs, Options, build_fetching};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charts");
    let entries = fs::read_dir(&folder).expect("the folder of cases");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    cases
}

fn build(case: &Path) -> Result<String, String> {
    let tree = DirectoryFs::new("/").expect("the root");
    let settings = Settings {
        charts: true,
        ..Settings::default()
    };
    let options = Options {
        shown_root: "/".to_owned(),
        ..Options::default()
    };
    let folder = case.to_str().expect("text").trim_start_matches('/');
    build_fetching(&tree, folder, &options, &Remote::new(settings, None))
        .map(|built| built.to_yaml())
        .map_err(|error| error.to_string())
}

/// Takes the machine out of a message.
fn shown(message: &str, case: &Path) -> String {
    let all = case.parent().unwrap_or(case);
    let message = message.trim().replace(case.to_str().expect("text"), "[case]");
    message.replace(all.to_str().expect("text"), "[cases]")
}

#[test]
fn charts_are_inflated_as_kustomize_does() {
    if let (Ok(kustomize), Ok(helm)) = (std::env::var("KUSTOMIZE"), std::env::var("HELM")) {
        cases().iter().for_each(|case| record(case, &kustomize, &helm));
    }
    let mut wrong = Vec::new();
    for case in cases() {
        let built = build(&case);
        let expected = fs::read_to_string(case.join("expected.yaml"));
        let refused = fs::read_to_string(case.join("refused.txt"));
        let name = case
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_equal = match (&built, &expected, &refused) {
            (Ok(built), Ok(expected), Err(_)) => built == expected,
            (Err(error), Err(_), Ok(refused)) => shown(error, &case) == refused.trim(),
            _ => false,
        };
        if !is_equal {
            wrong.push(format!(
                "{name}: {}",
                built.unwrap_or_else(|error| shown(&error, &case))
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn record(case: &Path, kustomize: &str, helm: &str) {
    let output = Command::new(kustomize)
        .args(["build", "--enable-helm", "--helm-command", helm])
        .arg(case)
        .output()
        .expect("kustomize runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for file in ["expected.yaml", "refused.txt"] {
        _ = fs::remove_file(case.join(file));
    }
    let (file, content) = match output.status.success() {
        true => ("expected.yaml", text(&output.stdout)),
        false => {
            let said = text(&output.stderr);
            let said = said.trim().trim_start_matches("Error: ");
            ("refused.txt", format!("{}\n", shown(said, case)))
        }
    };
    fs::write(case.join(file), content).expect("written");
}

//! Every metric that a controller registers is in `docs/operations/metrics.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::repository_root;

const PAGE: &str = "docs/operations/metrics.md";
const CRATES: [&str; 5] = [
    "controller-kit",
    "source-controller",
    "apply-controller",
    "helm-controller",
    "notification-controller",
];
/// How names begin. Those of controller-runtime and of its queues are put together in the code, and their test holds them.
const BEGINNINGS: [&str; 5] = [
    "gotk_",
    "windlass_",
    "leader_election_",
    "rest_client_",
    "process_",
];

/// Texts of a program that are names of metrics, its tests aside.
fn names(program: &str) -> impl Iterator<Item = &str> {
    let program = program.split("#[cfg(test)]").next().unwrap_or_default();
    let is_name = |text: &&str| {
        BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
            && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
    };
    program.split('"').filter(is_name)
}

fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let program = fs::read_to_string(&path).unwrap();
            found.extend(names(&program).map(str::to_owned));
        }
    }
}

#[test]
fn every_metric_is_told_of() {
    let root = repository_root();
    let page = fs::read_to_string(root.join(PAGE)).unwrap();
    let mut found = BTreeSet::new();
    for name in CRATES {
        collect(&root.join("crates").join(name).join("src"), &mut found);
    }
    assert!(found.contains("windlass_notifications"), "{found:?}");
    let missing: Vec<_> = found
        .iter()
        .filter(|name| !page.contains(&format!("`{name}")))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are not in {PAGE}");
}

//! Every verdict's status equals what kstatus (and, for Jobs, Flux) gave for the same object.
//!
//! The cases in `tests/cases` were recorded by a Go program around the modules that each file's header names.

use std::path::Path;

use kube_health::verdict::compute;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    status: String,
    object: Value,
}

#[test]
fn statuses_are_those_of_kstatus() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut compared = 0;
    let mut different = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the cases are in the repository") {
        let path = entry.expect("directory is readable").path();
        let file: File = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for case in file.cases {
            let verdict = compute(&case.object);
            assert!(!verdict.message.is_empty(), "{}: {}", path.display(), case.name);
            if verdict.status.to_string() != case.status {
                different.push(format!(
                    "{}: {}: is {}, should be {}",
                    path.display(),
                    case.name,
                    verdict.status,
                    case.status
                ));
            }
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} cases were found");
    assert!(different.is_empty(), "{}", different.join("\n"));
}

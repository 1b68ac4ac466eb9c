//! Runs the project's own cases (tests/cases/kustomize of the repository), whose answers the real kustomize gave.

use std::fs;
use std::path::{Path, PathBuf};

use kustomize_build::{DefaultOrder, DirectoryFs, LoadRestrictions, Options, build};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/kustomize");
    let entries = fs::read_dir(folder)
        .expect("tests/cases/kustomize")
        .map(|entry| entry.expect("entry").path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

fn options(flags: &str) -> Options {
    let mut options = Options::default();
    let mut words = flags.split_whitespace();
    while let Some(flag) = words.next() {
        match (flag, words.next()) {
            ("--load-restrictor", Some("LoadRestrictionsNone")) => {
                options.load_restrictions = LoadRestrictions::None;
            }
            ("--reorder", Some("none")) => options.default_order = DefaultOrder::Fifo,
            other => panic!("flags.txt: {other:?}"),
        }
    }
    options
}

fn check(case: &Path) -> Result<(), String> {
    let text = |name: &str| fs::read_to_string(case.join(name)).ok();
    let tree = DirectoryFs::new(case.join("input")).expect("input");
    let folder = text("path.txt").unwrap_or_default();
    let options = options(&text("flags.txt").unwrap_or_default());
    let actual = match build(&tree, folder.trim(), &options) {
        Ok(built) => built.to_yaml(),
        Err(error) => format!("Error: {error}").trim_end().to_owned() + "\n",
    };
    let expected = match text("expected-error.txt") {
        // Recorded messages hold the tree's root; ours are relative to it.
        Some(error) => {
            error
                .replace("{ROOT}/", "")
                .replace("{ROOT}", ".")
                .replace("{PARENT}/", "../")
                .trim_end()
                .to_owned()
                + "\n"
        }
        None => text("expected.yaml").expect("expected.yaml or expected-error.txt"),
    };
    if actual == expected {
        Ok(())
    } else {
        Err(format!("--- expected\n{expected}\n--- actual\n{actual}"))
    }
}

#[test]
fn own_cases_build_as_the_real_kustomize_builds_them() {
    let cases = cases();
    assert!(cases.len() >= 20, "only {} cases were found", cases.len());
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

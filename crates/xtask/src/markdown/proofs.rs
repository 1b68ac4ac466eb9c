//! Every test that a page names as proof exists: `tests/folder/file.rs::name`.

use std::fs;
use std::path::Path;

use super::repository_root;

/// The tests that a text names, as file and function.
fn proofs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.split_once(".rs::"))
}

/// Returns whether a program has a test of this name.
fn has_test(program: &str, name: &str) -> bool {
    let heads = [format!("fn {name}("), format!("async fn {name}(")];
    let mut after_mark = false;
    for line in program.lines().map(str::trim_start) {
        if after_mark && heads.iter().any(|head| line.starts_with(head)) {
            return true;
        }
        after_mark = line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    }
    false
}

fn missing(root: &Path, page: &str) -> (usize, Vec<String>) {
    let text = fs::read_to_string(root.join(page)).unwrap();
    let mut count = 0;
    let mut missing = Vec::new();
    for (file, name) in proofs(&text) {
        count += 1;
        let program = fs::read_to_string(root.join(format!("{file}.rs"))).unwrap_or_default();
        if !has_test(&program, name) {
            missing.push(format!("{page}: there is no test {name} in {file}.rs"));
        }
    }
    (count, missing)
}

#[test]
fn every_test_that_a_page_names_exists() {
    let (count, missing) = missing(&repository_root(), "docs/reliability.md");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(count > 20, "{count} are named");
}

#[test]
fn a_test_is_a_function_that_is_marked() {
    let program = "#[test]\nfn one() {}\n\nfn two() {}\n\n    #[tokio::test]\n    async fn three() {}\n";
    assert!(has_test(program, "one") && has_test(program, "three"));
    assert!(!has_test(program, "two") && !has_test(program, "on"));
    let named: Vec<_> = proofs("see `a/b.rs::c` and `d.rs` and `e`").collect();
    assert_eq!(named, [("a/b", "c")]);
}

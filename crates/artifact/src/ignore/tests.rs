//! Cases recorded from fluxcd/pkg/sourceignore (its own copy of go-git's matcher, v5.16.4, filter as in
//! fluxcd/pkg/artifact). Each line of cases.jsonl is one question and Flux's answer.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Case {
    spec: Option<String>,
    files: BTreeMap<String, String>,
    path: String,
    dir: bool,
    want: bool,
}

#[test]
fn every_path_is_decided_as_flux_decides_it() {
    let mut count = 0;
    for line in include_str!("cases.jsonl").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let mut matcher = Matcher::new(case.spec.as_deref());
        for (folder, text) in case.files.iter().rev() {
            matcher.add_file(folder, text).unwrap();
        }
        assert_eq!(matcher.is_ignored(&case.path, case.dir), case.want, "{line}");
        count += 1;
    }
    assert!(count > 90, "{count}");
}

#[test]
fn ignore_files_of_git_itself_are_not_read() {
    let mut matcher = Matcher::new(None);
    matcher.add_file("a/.git", "x").unwrap();
    assert!(matcher.is_ignored("a.png", false), "the defaults still hold");
}

#[test]
fn lines_after_one_that_is_too_long_are_not_read() {
    let text = format!("a\n{}\nb", "x".repeat(LONGEST_LINE));
    let matcher = Matcher::new(Some(&text));
    assert!(matcher.is_ignored("a", false));
    assert!(!matcher.is_ignored("b", false));
}

#[test]
fn what_is_no_path_is_left_out_and_refused_as_a_folder() {
    let mut matcher = Matcher::new(None);
    assert!(matcher.is_ignored("../a", false) && matcher.is_ignored("/a", false));
    assert!(!matcher.is_ignored("", true));
    assert!(matcher.add_file("../a", "x").is_err());
}

#[test]
fn hostile_patterns_and_names_take_no_time() {
    let glob = "*a".repeat(2000) + "b";
    let name = "a".repeat(250);
    let matcher = Matcher::new(Some(&glob));
    assert!(!matcher.is_ignored(&name, false));
}

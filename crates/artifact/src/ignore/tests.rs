//! Cases recorded from fluxcd/pkg/sourceignore (its own copy of go-git's matcher, v5.16.4, filter as in
//! fluxcd/pkg/artifact). Each line of cases.jsonl is one question and Flux's answer.

use std::collections::BTreeMap;

use proptest::prelude::*;
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

proptest! {
    #[test]
    fn no_rules_make_it_panic(spec in any::<Option<String>>(), folder in ".*", text in ".*", path in ".*", dir: bool) {
        let mut matcher = Matcher::new(spec.as_deref());
        let _ = matcher.add_file(&folder, &text);
        let _ = matcher.is_ignored(&path, dir);
        let _ = malformed(&text).count();
    }

    /// Made of the pieces of real rules, so that the deeper parts are reached: whatever they say, a path that leads out of
    /// the source is left out, and what takes long is bounded by the length of rule and path.
    #[test]
    fn no_rule_lets_a_path_lead_out(
        pieces in prop::collection::vec(
            prop::sample::select(vec!["a", "b", "/", "**", "*", "?", "[", "]", "[a-b]", "[^", "\\", "!", "#", " ", "\n", "\r", "..", "."]),
            0..60,
        ),
        names in prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "..", ".", "", ".git"]), 0..20),
        dir: bool,
    ) {
        let text = pieces.concat();
        let mut matcher = Matcher::new(Some(&text));
        matcher.add_file("a", &text).unwrap();
        let path = names.join("/");
        let ignored = matcher.is_ignored(&path, dir);
        prop_assert!(ignored || clean_path(&path).is_ok(), "{path:?} {text:?}");
        for (line, rule) in malformed(&text) {
            // One carriage return belongs to the end of the line; more are part of the rule.
            let found = text.split('\n').nth(line - 1).unwrap();
            prop_assert_eq!(found.strip_suffix('\r').unwrap_or(found), rule);
        }
    }

    #[test]
    fn a_glob_takes_no_time_that_grows_with_its_stars(stars in 1..2000_usize, length in 0..2000_usize) {
        let glob = glob::Glob::parse(&"*a".repeat(stars)).unwrap();
        prop_assert_eq!(glob.matches(&"a".repeat(length)), length >= stars);
        prop_assert!(!glob.matches(&"b".repeat(length)));
    }
}

#[test]
fn rules_that_match_nothing_are_told_with_their_line() {
    let text = "# [\n*.png\n[abc\n\ndir/[\n!x\\\nok/**\n/a**b/c\r\n";
    let lines: Vec<_> = malformed(text).collect();
    assert_eq!(lines, [(3, "[abc"), (5, "dir/["), (6, "!x\\"), (8, "/a**b/c")]);
}

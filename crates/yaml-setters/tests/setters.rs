//! Which values are set, and that nothing else changes. The table is what Flux's image-automation-controller 1.2.4 does.

#![allow(clippy::unwrap_used, reason = "tests only")]

use proptest::prelude::*;
use yaml_setters::{Outcome, Setters, Update, update};

const KEY: &str = "$imagepolicy";

fn setters() -> Setters {
    [
        ("ns:app", "registry/app:1.20"),
        ("ns:app:tag", "1.20"),
        ("ns:app:name", "registry/app"),
        ("ns:app:digest", ""),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// `M` stands for the marker of the whole image, `T` for that of its tag.
fn marked(text: &str) -> String {
    text.replace("# M", r##"# {"$imagepolicy": "ns:app"}"##)
        .replace("# T", r##"# {"$imagepolicy": "ns:app:tag"}"##)
}

fn set(text: &str) -> Update {
    update(&marked(text), KEY, &setters()).unwrap()
}

/// The text afterwards, with the markers short again.
fn after(text: &str) -> Option<String> {
    let short = |text: String| {
        text.replace(r##"# {"$imagepolicy": "ns:app"}"##, "# M")
            .replace(r##"# {"$imagepolicy": "ns:app:tag"}"##, "# T")
            .replace("registry/app:1.20", "NEW")
    };
    set(text).text.map(short)
}

#[test]
fn marked_scalars_are_set_and_keep_their_style() {
    for (before, expected) in [
        ("a: x:1 # M", "a: NEW # M"),
        ("a: \"x:1\" # M\n", "a: \"NEW\" # M\n"),
        ("a: 'x:1' # M\n", "a: 'NEW' # M\n"),
        (
            "a:    x:1      # M   \n\n\nb:   c\n",
            "a:    NEW      # M   \n\n\nb:   c\n",
        ),
        ("s:\n- x:1 # M\n- y\n", "s:\n- NEW # M\n- y\n"),
        ("s:\n# M\n- x:1\n", "s:\n# M\n- NEW\n"),
        ("s:\n- y\n\n  # M\n- x:1\n", "s:\n- y\n\n  # M\n- NEW\n"),
        ("s:\n- # M\n  x:1\n", "s:\n- # M\n  NEW\n"),
        ("a:\n  # M\n  x:1\n", "a:\n  # M\n  NEW\n"),
        ("f: {a: x:1, # M\n  b: y}\n", "f: {a: NEW, # M\n  b: y}\n"),
        (
            "f: [\n  x:1, # M\n  x:2 # M\n]\n",
            "f: [\n  NEW, # M\n  NEW # M\n]\n",
        ),
        ("a: &x x:1 # M\nb: *x\n", "a: &x NEW # M\nb: *x\n"),
        ("a: !!str x:1 # M\n", "a: !!str NEW # M\n"),
        ("a: ~ # M\n", "a: NEW # M\n"),
        ("a: x:1\n  y # M\nb: c\n", "a: NEW # M\nb: c\n"),
        ("a: \"x\n  y\" # M\n", "a: \"NEW\" # M\n"),
        ("a: | # M\n  x:1\nb: c\n", "a: | # M\n  NEW\nb: c\n"),
        (
            "a: >- # M\n    x:1\n    y\n\nb: c\n",
            "a: >- # M\n    NEW\n\nb: c\n",
        ),
        ("a: 1.19 # T\n", "a: \"1.20\" # T\n"),
        ("a: latest # T\n", "a: \"1.20\" # T\n"),
        ("a: '1.19' # T\n", "a: '1.20' # T\n"),
        ("\u{feff}ä: x:1 # M\n", "\u{feff}ä: NEW # M\n"),
        (
            "ü: \"ö\"   \nä: x:1 # M\r\nb: c\r\n",
            "ü: \"ö\"   \nä: NEW # M\r\nb: c\r\n",
        ),
        ("a: x:1 # M\n---\nb: x:1 # M\n", "a: NEW # M\n---\nb: NEW # M\n"),
        (
            "kind: List\nitems:\n- a: x:1 # M\n",
            "kind: List\nitems:\n- a: NEW # M\n",
        ),
    ] {
        assert_eq!(after(before).as_deref(), Some(expected), "{before}");
    }
}

#[test]
fn what_flux_leaves_alone_is_left_alone_and_named() {
    for before in [
        "# M\na: x:1\n",
        "b: c\n# M\na: x:1\n",
        "a: # M\n  x:1\n",
        "a: # M\nb: c\n",
        "f: {a: x:1, b: y} # M\n",
        "f: [x:1, y] # M\n",
        "a: &x y\nb: *x # M\n",
        "? x:1 # M\n: y\n",
        "s:\n# other\n# M\n- x:1\n",
        "s:\n- a: b\n# M\n- k: x:1\n",
        "a: x:1 # M trailing\n",
        "- x:1 # M\n",
        "x:1 # M\n",
        "a: x:1\n# M\n",
    ] {
        let update = set(before);
        assert_eq!(update.text, None, "{before}");
        assert_eq!(update.markers.len(), 1, "{before}");
        assert!(
            matches!(update.markers[0].outcome, Outcome::Misplaced(_)),
            "{before}: {update:?}"
        );
        let line = 1 + before[..before.find("# M").unwrap()].matches('\n').count();
        assert_eq!(update.markers[0].line as usize, line, "{before}");
    }
}

#[test]
fn each_marker_says_what_became_of_it() {
    let text = "a: x:1 # M\nb: \"1.20\" # T\nc: x # {\"$imagepolicy\": \"other:app\"}\nd: x # a comment\n";
    let update = set(text);
    let outcomes: Vec<_> = update
        .markers
        .iter()
        .map(|m| (m.line, m.setter.as_str(), m.outcome))
        .collect();
    assert_eq!(
        outcomes,
        [
            (1, "ns:app", Outcome::Changed),
            (2, "ns:app:tag", Outcome::UpToDate),
            (3, "other:app", Outcome::UnknownSetter),
        ]
    );
}

#[test]
fn changes_name_their_object() {
    let text =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: prod\nimage: x # M\n";
    let update = set(text);
    let [change] = update.changes.as_slice() else {
        panic!("{update:?}")
    };
    let object = &change.object;
    assert_eq!(
        [&object.api_version, &object.kind, &object.namespace, &object.name],
        ["apps/v1", "Deployment", "prod", "web"]
    );
    assert_eq!(
        (change.old.as_str(), change.new.as_str(), change.line),
        ("x", "registry/app:1.20", 6)
    );
}

#[test]
fn a_file_that_is_no_yaml_is_an_error_with_its_line() {
    let error = update("a: x:1 # {}\nb: [\n", KEY, &setters()).unwrap_err();
    assert!(error.line >= 2, "{error}");
    assert!(update("kind: X\n a: {{ .Values.x }}: y\n", KEY, &setters()).is_err());
}

#[test]
fn hostile_values_stay_one_scalar() {
    for value in [
        "a\nb: c", "x # y", "x: y", "'", "\"", "*a", "&a", "- a", "", " ", "\u{85}x", "true", "0x10", "a:",
    ] {
        let setters: Setters = [("ns:app".to_owned(), value.to_owned())].into();
        for style in ["x", "'x'", "\"x\"", "|\n  x", ">-\n  x"] {
            let text = match style.split_once('\n') {
                None => format!("a: {style} # {{\"$imagepolicy\": \"ns:app\"}}\nb: c\n"),
                Some((header, rest)) => {
                    format!("a: {header} # {{\"$imagepolicy\": \"ns:app\"}}\n{rest}\nb: c\n")
                }
            };
            // Refused is as good as set: nothing else may change.
            if let Ok(updated) = update(&text, KEY, &setters) {
                let new = updated.text.unwrap();
                let documents = manifest::yaml::read_documents(&new, "f").unwrap();
                let read = documents[0].value["a"]
                    .as_str()
                    .map(|read| read.trim_end_matches('\n').to_owned());
                assert_eq!(read.as_deref(), Some(value.trim_end_matches('\n')), "{new}");
                assert_eq!(documents[0].value["b"], "c", "{new}");
            }
        }
    }
}

proptest! {
    /// Whatever the text is, no byte changes outside of the marked scalars.
    #[test]
    fn no_other_byte_changes(lines in proptest::collection::vec(
        prop_oneof![
            Just("a: x:1 # M".to_owned()),
            Just("k: 'x' # T".to_owned()),
            Just("  - y # M".to_owned()),
            Just("# M".to_owned()),
            Just(String::new()),
            Just("l: |".to_owned()),
            Just("  text # M".to_owned()),
            Just("---".to_owned()),
            Just("f: {a: b, # M".to_owned()),
            Just("}".to_owned()),
            "[ -~]{0,12}",
        ],
        0..12,
    )) {
        // Keys are made unique, so that most texts are valid.
        let text: String = lines.iter().enumerate().map(|(n, line)| format!("{}\n", line.replacen(':', &format!("{n}:"), 1))).collect();
        let text = marked(&text);
        if let Ok(updated) = update(&text, KEY, &setters()) {
            let new = updated.text.unwrap_or_else(|| text.clone());
            prop_assert_eq!(updated.changes.is_empty(), new == text);
            // All that is between the changed values is there, in its order.
            let mut rest = new.as_str();
            let mut at = 0;
            for change in &updated.changes {
                let found = rest.find(&change.new);
                prop_assert!(found.is_some());
                let found = found.unwrap();
                prop_assert!(text[at..].starts_with(&rest[..found]) || change.new.is_empty());
                at += found;
                rest = &rest[found + change.new.len()..];
                at += text[at..].len() - text[at..].trim_start_matches(['\'', '"']).len();
                at += change.old.len();
            }
            prop_assert!(text.ends_with(rest.trim_start_matches(['\'', '"'])));
        }
    }
}

/// Markers of pipelines name a pipeline and an environment, and perhaps a field, as Weave's do.
#[test]
fn markers_of_promotions_are_set_by_the_same_editor() {
    let setters: Setters = [
        ("ns:app:prod", "1.2.0"),
        ("ns:app:prod:image", "h/app:1.2.0@sha256:1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let text = "a: 1.1.0 # {\"$promotion\": \"ns:app:prod\"}\nb: \"h/app:1.1.0\" # {\"$promotion\": \"ns:app:prod:image\"}\n\
                c: 1.1.0 # {\"$promotion\": \"ns:app:dev\"}\nd: 1.1.0 # {\"$imagepolicy\": \"ns:app:prod\"}\n";
    let update = update(text, "$promotion", &setters).unwrap();
    let expected =
        text.replacen("a: 1.1.0", "a: 1.2.0", 1)
            .replacen("h/app:1.1.0", "h/app:1.2.0@sha256:1", 1);
    assert_eq!(update.text.as_deref(), Some(&*expected));
    let outcomes: Vec<_> = update
        .markers
        .iter()
        .map(|marker| (marker.line, marker.outcome))
        .collect();
    assert_eq!(
        outcomes,
        [
            (1, Outcome::Changed),
            (2, Outcome::Changed),
            (3, Outcome::UnknownSetter)
        ]
    );
}

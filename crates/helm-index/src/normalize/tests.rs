use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::{find, pick};

const INDEX: &str = r#"apiVersion: v1
entries:
  # a comment
  app:
  - apiVersion: v2
    name: app
    version: 1.2.0
    created: "2024-01-02T03:04:05.120+01:00"
    description: |
      - not an item
      other: not a chart
    digest: 1234
    urls:
    - app-1.2.0.tgz
  - name: app
    version: 1.10.0
    urls: [https://h/app-1.10.0.tgz]
    home: "<a&b>"
  - name: app
    version: one
  - null
  "other.app":
    - {name: other, version: 2.0.0, urls: [], maintainers: [{name: me}]}
  none: []
generated: "2024-01-01T00:00:00Z"
"#;

fn run(text: &str) -> Result<(Summary, String), Error> {
    let mut json = Vec::new();
    let summary = normalize(&mut Cursor::new(text), Cursor::new(Vec::new()), &mut json)?;
    Ok((summary, String::from_utf8(json).unwrap()))
}

fn message(text: &str) -> String {
    run(text).unwrap_err().to_string()
}

/// Reads the text in one go, as Helm does.
fn run_whole(text: &str) -> Result<String, Error> {
    let mut json = Vec::new();
    let mut index = Index::new(Cursor::new(Vec::new()), true);
    yaml_input::read_whole(&mut Cursor::new(text), &mut index, None)?;
    index.finish(&mut json)?;
    Ok(String::from_utf8(json).unwrap())
}

fn is_cut(text: &str) -> bool {
    let mut index = Index::new(Cursor::new(Vec::new()), true);
    matches!(
        yaml_input::read_pieces(&mut Cursor::new(text), &mut index),
        Ok(Attempt::Done)
    )
}

#[test]
fn entries_are_sorted_and_written_as_flux_stores_them() {
    let (summary, json) = run(INDEX).unwrap();
    assert_eq!(
        (summary.charts, summary.versions, summary.dropped_count),
        (3, 3, 2)
    );
    assert_eq!(
        summary.dropped[0].reason,
        "validation: chart.metadata.version \"one\" is invalid"
    );
    assert_eq!((summary.dropped[0].line, summary.dropped[1].line), (19, 21));
    let expected = r#"{
  "apiVersion": "v1",
  "generated": "2024-01-01T00:00:00Z",
  "entries": {
    "app": [
      {
        "name": "app",
        "home": "\u003ca\u0026b\u003e",
        "version": "1.10.0",
        "apiVersion": "v1",
        "urls": [
          "https://h/app-1.10.0.tgz"
        ],
        "created": "0001-01-01T00:00:00Z"
      },
      {
        "name": "app",
        "version": "1.2.0",
        "description": "- not an item other: not a chart ",
        "apiVersion": "v2",
        "urls": [
          "app-1.2.0.tgz"
        ],
        "created": "2024-01-02T03:04:05.12+01:00",
        "digest": "1234"
      }
    ],
    "none": [],
    "other.app": [
      {
        "name": "other",
        "version": "2.0.0",
        "maintainers": [
          {
            "name": "me"
          }
        ],
        "apiVersion": "v1",
        "urls": [],
        "created": "0001-01-01T00:00:00Z"
      }
    ]
  }
}"#;
    assert_eq!(json, expected);
    assert!(is_cut(INDEX));
    assert_eq!(run_whole(INDEX).unwrap(), json);
    assert_eq!(run(&json).unwrap().1, json, "what was written reads the same");
}

#[test]
fn a_chart_is_found_in_what_was_written() {
    let (_, json) = run(INDEX).unwrap();
    let versions = find(json.as_bytes(), "app").unwrap().unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!(pick(&versions, "app", "<1.5").unwrap().digest, "1234");
    assert_eq!(
        find(json.as_bytes(), "other.app").unwrap().unwrap()[0].version,
        "2.0.0"
    );
    assert_eq!(find(json.as_bytes(), "none").unwrap(), Some(Vec::new()));
    assert_eq!(find(json.as_bytes(), "name").unwrap(), None);
    assert_eq!(find(&b""[..], "app").unwrap(), None);
}

#[test]
fn what_is_no_index_is_refused_with_the_place() {
    let entry = |line: &str| format!("apiVersion: v1\nentries:\n  app:\n  - name: app\n    {line}\n");
    let cases = [
        ("", "empty index.yaml file"),
        (
            "a: 1",
            "error unmarshaling JSON: while decoding JSON: json: unknown field \"a\" (line 1)",
        ),
        ("entries: {}", "no API version specified"),
        ("null", "no API version specified"),
        ("apiVersion: ", "no API version specified"),
        (
            "- a",
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type \
             repo.IndexFile",
        ),
        (
            "apiVersion: v1\napiVersion: v1",
            "error converting YAML to JSON: yaml: unmarshal errors:\n  line 2: key \"apiVersion\" already set in map \
             (line 2)",
        ),
        (
            &entry("appVersion: 1.0"),
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal number into Go struct field \
             ChartVersion.entries.appVersion of type string (chart 'app', line 4)",
        ),
        (
            &entry("created: now"),
            "error unmarshaling JSON: while decoding JSON: parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot \
             parse \"now\" as \"2006\" (chart 'app', line 4)",
        ),
        (
            &entry("name: twice"),
            "error converting YAML to JSON: yaml: unmarshal errors:\n  line 2: key \"name\" already set in map \
             (chart 'app', line 5)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text), expected, "{text}");
    }
    assert!(message("a: [").starts_with("error converting YAML to JSON: yaml: "));
    let json = r#"{"apiVersion": "v1", "unknown": 1, "entries": {"a": [{"name": "a", "version": 1}]}}"#;
    assert!(
        message(json).contains("ChartVersion.entries.version of type string"),
        "{}",
        message(json)
    );
}

#[test]
fn unusual_yaml_is_read_whole() {
    let anchors = "apiVersion: v1\nentries:\n  a:\n  - &base {name: a, version: 1.0.0}\n  b:\n  - *base\n";
    assert!(!is_cut(anchors));
    assert_eq!(run(anchors).unwrap().0.versions, 2);
    let quoted =
        "apiVersion: v1\nentries:\n  a:\n  - name: a\n    version: 1.0.0\n    home: \"x\n  b: y\n  - z\"\n";
    assert!(!is_cut(quoted));
    assert!(run(quoted).unwrap().1.contains("\"home\": \"x b: y - z\""));
    let flow = "{apiVersion: v1, entries: {a: [{name: a, version: 1.0.0}]}}";
    assert_eq!(run(flow).unwrap().0.versions, 1);
    let documents = "---\napiVersion: v1\nentries: {}\n---\nother: 1\n";
    assert_eq!(run(documents).unwrap().0.charts, 0);
}

#[test]
fn an_entry_that_is_too_large_is_refused() {
    let long = "x".repeat(crate::limits::MAX_ENTRY);
    let yaml = format!("apiVersion: v1\nentries:\n  a:\n  - name: a\n    home: {long}\n");
    assert_eq!(
        message(&yaml),
        "failed to read the index: an entry is larger than 524288 bytes (chart 'a', line 4)"
    );
    let json = format!("{{\"entries\": {{\"a\": [{{\"home\": \"{long}{long}\"}}]}}}}");
    assert!(message(&json).starts_with("failed to read the index: an entry is larger than 524288 bytes"));
}

/// Lines that an index may be made of, in any order and indentation.
fn line() -> impl Strategy<Value = String> {
    let content = prop::sample::select(vec![
        "apiVersion: v1",
        "entries:",
        "entries: {}",
        "app:",
        "\"quoted app\":",
        "'x':",
        "other: []",
        "- name: app",
        "name: app",
        "version: 1.0.0",
        "version: 2.0.0-rc.1",
        "- version: 3",
        "-",
        "- ",
        "- null",
        "urls:",
        "- a.tgz",
        "description: |",
        "description: >-",
        "text",
        "# comment",
        "",
        "---",
        "...",
        "a: &a",
        "*a",
        "- *a",
        "<<: *a",
        "description: \"open",
        "close\"",
        "{",
        "}",
        "[",
        "]",
        "? x",
        ": y",
        "\tname: app",
        "%YAML 1.1",
        "digest: 12",
        "created: 2020-01-01T00:00:00Z",
        "maintainers: [{name: a}]",
        "generated: null",
        "annotations: {a: b}",
        "!!str x: y",
        "a/b: 1",
        "- - name: x",
        "name: 'it''s'",
    ]);
    (
        prop::sample::select(vec![0_usize, 0, 2, 2, 2, 4, 4, 6, 1, 3]),
        content,
    )
        .prop_map(|(indent, content)| format!("{}{content}\n", " ".repeat(indent)))
}

/// Indexes that are mostly right.
fn index() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..8).prop_map(|lines| {
        let start = "apiVersion: v1\nentries:\n  app:\n  - name: app\n    version: 1.0.0\n";
        format!("{start}{}", lines.concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(3000)))]

    #[test]
    fn cut_in_pieces_it_is_what_it_is_as_a_whole(text in index()) {
        let pieces = run(&text).map(|(_, json)| json);
        let whole = run_whole(&text);
        prop_assert_eq!(pieces.is_ok(), whole.is_ok(), "{:?} {:?}", pieces, whole);
        if let (Ok(pieces), Ok(whole)) = (pieces, whole) {
            prop_assert_eq!(&pieces, &whole);
        }
    }

    #[test]
    fn any_lines_are_read_or_refused(lines in prop::collection::vec(line(), 0..12)) {
        let text = lines.concat();
        prop_assert_eq!(run(&text).is_ok(), run_whole(&text).is_ok() && !text.is_empty());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = normalize(&mut Cursor::new(bytes), Cursor::new(Vec::new()), Vec::new());
    }
}

//! Compares the YAML reader and writer with what Go's sigs.k8s.io/yaml answered for the recorded inputs.
//!
//! The recorded set lies beside the repository and not in it; without it that test says so and passes. The table in
//! this file are cases of our own, with answers from the same library (1.6, over go.yaml.in/yaml/v2 2.4). So are those in
//! go_answers.jsonl, a line each with the question, the text and Go's answer: hack/oracle/yaml's program fills in the
//! answers (`go run . record ../../../crates/manifest/tests/go_answers.jsonl`), with kyaml 0.21.3 and Go 1.27.

use std::path::{Path, PathBuf};

use manifest::yaml::{self, Dialect, Kind, Nodes};
use serde_json::Value;

#[path = "generator/random_text.rs"]
mod random_text;

fn recorded() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/yaml");
    folder.is_dir().then_some(folder)
}

/// Go's answer for the first document of a text: JSON, or ERR and the message.
fn answer(text: &str) -> String {
    match yaml::read_documents(text, "f") {
        Ok(documents) => documents
            .first()
            .map_or(Value::Null, |d| d.value.clone())
            .to_string(),
        Err(error) => format!("ERR {}", error.problem),
    }
}

fn same(expected: &str, actual: &str) -> bool {
    if expected.starts_with("ERR") || actual.starts_with("ERR") {
        return expected.starts_with("ERR") && actual.starts_with("ERR");
    }
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("recorded answers are JSON");
    numbers(parse(expected)) == numbers(parse(actual))
}

/// Brings numbers that read the same from JSON into one form (`1.0` and `1`).
fn numbers(value: Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => {
            yaml::number::float_to_json(n.as_f64().expect("is_f64")).unwrap_or(Value::Number(n))
        }
        Value::Array(elements) => elements.into_iter().map(numbers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, numbers(v))).collect(),
        other => other,
    }
}

#[test]
fn recorded_inputs_read_as_in_go() {
    let Some(folder) = recorded() else {
        println!("../shared/conformance/yaml is not there: skipped");
        return;
    };
    let table = std::fs::read_to_string(folder.join("sigs-k8s-io-yaml.expected.tsv")).expect("table");
    let mut failed = Vec::new();
    let mut passed = 0;
    for line in table.lines() {
        let (name, expected) = line.split_once('\t').expect("two columns");
        let Ok(text) = std::fs::read_to_string(folder.join("input").join(name)) else {
            continue;
        };
        let actual = answer(&text);
        if same(expected, &actual) {
            passed += 1;
        } else {
            failed.push(format!("{name}\n  expected {expected}\n  actual   {actual}"));
        }
        if expected.starts_with("ERR") && expected != actual {
            println!("{name}: other words\n  expected {expected}\n  actual   {actual}");
        }
    }
    assert!(
        failed.is_empty(),
        "{passed} passed, {} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(passed >= 60, "only {passed} cases were found");
}

#[test]
fn recorded_json_is_written_as_in_go() {
    let Some(folder) = recorded() else {
        println!("../shared/conformance/yaml is not there: skipped");
        return;
    };
    let read = |name: &str| std::fs::read_to_string(folder.join("emit").join(name)).expect("recorded");
    let input: Value = serde_json::from_str(&read("input.json")).expect("JSON");
    assert_eq!(
        yaml::write(&as_floats(input)).expect("writable"),
        read("sigs-k8s-io-yaml.expected.yaml")
    );
}

/// The recording went through encoding/json, which reads every number as a float.
fn as_floats(value: Value) -> Value {
    match value {
        Value::Number(n) => yaml::number::float_to_json(n.as_f64().expect("number")).expect("finite"),
        Value::Array(elements) => elements.into_iter().map(as_floats).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, as_floats(v))).collect(),
        other => other,
    }
}

#[test]
fn own_inputs_read_as_in_go() {
    for (text, expected) in [
        (
            "a: yes\nb: 'yes'\nc: !!str yes\n",
            r#"{"a":true,"b":"yes","c":"yes"}"#,
        ),
        ("n: x\non: y\n", r#"{"false":"x","true":true}"#),
        (
            "a: 0o17\nb: 0b11\nc: 0x_f\nd: 1_0.5\n",
            r#"{"a":15,"b":3,"c":15,"d":10.5}"#,
        ),
        (
            "a: 2024-02-30\nb: 2024-02-28\n",
            r#"{"a":"2024-02-30","b":"2024-02-28"}"#,
        ),
        (
            "a: &x {k: 1}\nb: {k: 2, <<: *x}\nc: {<<: *x, k: 2}\n",
            r#"{"a":{"k":1},"b":{"k":1},"c":{"k":2}}"#,
        ),
        ("a: &x [1]\nb: [*x, *x]\n", r#"{"a":[1],"b":[[1],[1]]}"#),
        ("1.5: a\n0x10: b\n", r#"{"1.5":"a","16":"b"}"#),
        ("a: !!float 3\nb: !!int 0x1f\n", r#"{"a":3,"b":31}"#),
        ("a: !!int x\n", "ERR"),
        ("a: !!binary aGk=\n", r#"{"a":"hi"}"#),
        ("a: |+\n  x\n\nb: >-\n  y\n  z\n", r#"{"a":"x\n\n","b":"y z"}"#),
        ("? {a: 1}\n: b\n", "ERR"),
        ("a: *b\n", "ERR"),
        ("a: &a [*a]\n", "ERR"),
        ("a: .5e3\nb: 5.\nc: .\nd: +.inf\n", "ERR"),
        ("a: |\n  x", r#"{"a":"x"}"#),
        ("a: |+\n  x\n  ", r#"{"a":"x\n"}"#),
        ("a: |\n  x\n# end", r#"{"a":"x\n"}"#),
        ("a: >-\n  x\n  y", r#"{"a":"x y"}"#),
        ("[!a, b]", r#"["b"]"#),
        ("{a: 1, d:}", r#"{"a":1,"d:":null}"#),
        (r#"a: "\/""#, "ERR"),
        ("\u{feff}a: 1\r\nb: 2\r\n", r#"{"a":1,"b":2}"#),
    ] {
        let actual = answer(text);
        assert!(
            same(expected, &actual),
            "{text:?}\n  expected {expected}\n  actual   {actual}"
        );
    }
}

#[test]
fn hostile_texts_are_refused_in_bounded_time() {
    let deep = "[".repeat(100_000);
    assert!(answer(&deep).starts_with("ERR"));
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..30 {
        let below = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", [below.as_str(); 10].join(","));
    }
    assert_eq!(answer(&bomb), "ERR yaml: document contains excessive aliasing");
}

/// One line of go_answers.jsonl.
struct Recorded {
    ask: String,
    text: Vec<u8>,
    answer: Result<String, String>,
}

fn recorded_answers() -> Vec<Recorded> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/go_answers.jsonl");
    let lines = std::fs::read_to_string(file).expect("part of the repository");
    let one = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let field = |name: &str| {
            value
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let bytes = value
            .get("bytes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let bytes = bytes
            .iter()
            .map(|byte| u8::try_from(byte.as_u64().expect("byte")).expect("byte"));
        Recorded {
            ask: field("ask"),
            text: field("text").into_bytes().into_iter().chain(bytes).collect(),
            answer: match value.get("error") {
                Some(_) => Err(field("error")),
                None => Ok(field("result")),
            },
        }
    };
    lines.lines().map(one).collect()
}

/// Our answer to the questions of hack/oracle/yaml; None for those that kyaml is not asked.
fn our_answer(ask: &str, text: &[u8]) -> Option<Result<String, String>> {
    let mut nodes = Nodes::default();
    let shown = |problem: yaml::Problem| problem.to_string();
    let answer = match ask {
        "j" => match yaml::compose_first(text, &mut nodes, Dialect::Sigs) {
            Ok(Some(root)) => yaml::json::decode(&nodes, root)
                .map(|value| value.to_string())
                .map_err(shown),
            Ok(None) => Ok("null".to_owned()),
            Err(problem) => Err(shown(problem)),
        },
        "k" => match yaml::compose_first(text, &mut nodes, Dialect::Kyaml) {
            Ok(Some(root)) if matches!(nodes[root].kind, Kind::Mapping | Kind::Sequence) => {
                yaml::json::decode_kyaml(&nodes, root)
                    .map(|value| value.to_string())
                    .map_err(shown)
            }
            Ok(_) => return None,
            Err(problem) => Err(shown(problem)),
        },
        "y" => {
            let value = serde_json::from_slice(text).expect("JSON");
            yaml::write(&numbers(value)).map_err(|error| error.to_string())
        }
        other => panic!("unknown question {other}"),
    };
    Some(answer)
}

#[test]
fn recorded_answers_are_those_of_go() {
    let mut failed = Vec::new();
    for case in recorded_answers() {
        let Some(actual) = our_answer(&case.ask, &case.text) else {
            continue;
        };
        let agrees = match (&case.answer, &actual) {
            (Ok(go), Ok(ours)) if case.ask == "y" => go == ours,
            (Ok(go), Ok(ours)) => same(go, ours),
            // What kustomize says of keys that JSON does not know names the whole object: kustomize-build words it.
            (Err(go), Err(ours)) if case.ask == "k" && go.starts_with("json:") => ours.starts_with("json:"),
            (Err(go), Err(ours)) if case.ask == "k" && go.contains("invalid map key") => {
                go.starts_with(&**ours)
            }
            (Err(go), Err(ours)) => go == ours,
            _ => false,
        };
        if !agrees {
            let text = String::from_utf8_lossy(&case.text);
            failed.push(format!(
                "{} {text:?}\n  go   {:?}\n  ours {actual:?}",
                case.ask, case.answer
            ));
        }
    }
    assert!(
        failed.is_empty(),
        "{} differ:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn random_texts_are_read_and_written_without_a_panic() {
    let mut random = random_text::Random::new(20_261_121);
    for _ in 0..4_000 {
        let text = random_text::text(&mut random, &[]);
        for ask in ["j", "k"] {
            let _ = our_answer(ask, &text);
        }
        let value = random_text::json(&mut random);
        if let Ok(written) = yaml::write(&value) {
            let _ = yaml::read_documents(&written, "f");
        }
    }
}

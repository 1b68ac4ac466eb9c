//! Messages recorded from Helm's own validator.

use serde_json::{Value, json};

use super::*;

fn problem(schema: &str, values: Value) -> String {
    let Value::Object(values) = values else {
        panic!("values are an object")
    };
    match Compiled::new(schema.as_bytes()).and_then(|schema| schema.check(&values)) {
        Ok(()) => String::new(),
        Err(error) => format!("demo:\n{error}"),
    }
}

/// Each case is a schema, values, and what is said behind the chart's name.
fn check_all(cases: &[(&str, Value, &str)]) {
    for (schema, values, expected) in cases {
        let expected = if expected.is_empty() {
            String::new()
        } else {
            format!("demo:\n{expected}")
        };
        assert_eq!(problem(schema, values.clone()), expected, "{schema} {values}");
    }
}

#[test]
fn each_kind_of_value_has_its_messages() {
    check_all(&[
        (
            r#"{"properties":{"a":{"type":"integer"}}}"#,
            json!({"a": 3.0}),
            "",
        ),
        (
            r#"{"properties":{"a":{"type":["string","integer"]}}}"#,
            json!({"a": 1.5}),
            "- at '/a': got number, want integer or string\n",
        ),
        (
            r#"{"properties":{"a":{"minimum":1e7,"exclusiveMaximum":-5,"multipleOf":0.3}}}"#,
            json!({"a": 1234.5}),
            "- at '/a': minimum: got 1,234.5, want 1×10⁰⁷\n- at '/a': exclusiveMaximum: got 1,234.5, want -5\n",
        ),
        (
            r#"{"properties":{"a":{"minLength":1000,"pattern":"^'\\d"}}}"#,
            json!({"a": "x\"'"}),
            "- at '/a': minLength: got 3, want 1,000\n- at '/a': 'x\"\\'' does not match pattern '^\\'\\\\d'\n",
        ),
        (
            r#"{"additionalProperties":false,"properties":{"a":{}},"required":["b","c"],"maxProperties":1}"#,
            json!({"a": 1, "x": 2, "y/z": 3}),
            "- at '': maxProperties: got 3, want 1\n- at '': missing properties 'b', 'c'\n- at '': additional properties 'x', 'y/z' not allowed\n",
        ),
        (
            r#"{"properties":{"a/b":{"items":{"type":"string"},"uniqueItems":true,"minItems":4}}}"#,
            json!({"a/b": [1, "x", 1.0]}),
            "- at '/a~1b': minItems: got 3, want 4\n- at '/a~1b': items at 0 and 2 are equal\n- at '/a~1b/0': got number, want string\n- at '/a~1b/2': got number, want string\n",
        ),
        (
            r#"{"properties":{"a":{"enum":["x",1000,null,true]},"b":{"const":{}},"c":{"enum":[[]]}}}"#,
            json!({"a": 2, "b": 1, "c": 1}),
            "- at '/a': value must be one of 'x', 1000, <nil>, true\n- at '/b': 'const' failed\n- at '/c': 'enum' failed\n",
        ),
    ]);
}

#[test]
fn schemas_within_schemas_are_told_as_a_tree() {
    check_all(&[
        (
            r##"{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"allOf":[{"$ref":"#/$defs/x"},{"oneOf":[{},{}]}]}},"$defs":{"x":{"type":"string","minLength":2}}}"##,
            json!({"a": 1, "b": 2}),
            "- at '/a': got number, want string\n- at '/b': 'allOf' failed\n  - at '/b': got number, want string\n  - at '/b': 'oneOf' failed, subschemas 0, 1 matched\n",
        ),
        (
            r#"{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"not":{}},"propertyNames":{"maxLength":1}}"#,
            json!({"long": 1}),
            "- at '': invalid propertyName 'long'\n  - at '': maxLength: got 4, want 1\n- at '': 'not' failed\n",
        ),
        (
            r#"{"unevaluatedProperties":false,"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{"type":"null"}}}]}"#,
            json!({"a": 1, "b": 1, "c": 1}),
            "- at '/b': false schema\n- at '/c': false schema\n",
        ),
    ]);
}

#[test]
fn the_draft_decides_about_formats() {
    let draft_7 =
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"format":"ipv4"}}}"#;
    let latest = r#"{"properties":{"a":{"format":"ipv4"}}}"#;
    check_all(&[
        (
            draft_7,
            json!({"a": "x"}),
            "- at '/a': 'x' is not valid ipv4: expected four decimals\n",
        ),
        (latest, json!({"a": "x"}), ""),
    ]);
}

#[test]
fn schemas_that_cannot_be_compiled_are_refused_without_a_last_line_break() {
    check_all(&[
        ("", json!({}), "EOF"),
        ("{", json!({}), "unexpected EOF"),
        ("{}}", json!({}), "invalid character after top-level value"),
        (
            r#"{"type":"foo"}"#,
            json!({}),
            "\"file:///values.schema.json#\" is not valid against metaschema: jsonschema validation failed with 'https://json-schema.org/draft/2020-12/schema#'\n- at '': 'allOf' failed\n  - at '/type': 'anyOf' failed\n    - at '/type': value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'\n    - at '/type': got string, want array",
        ),
        (
            r##"{"$ref":"#/foo"}"##,
            json!({}),
            "json-pointer in \"file:///values.schema.json#/foo\" not found",
        ),
        (
            r##"{"$ref":"#foo"}"##,
            json!({}),
            "anchor in \"file:///values.schema.json#foo\" not found in schema \"file:///values.schema.json\"",
        ),
        (
            r#"{"$ref":"x.json"}"#,
            json!({}),
            "failing loading \"file:///x.json\": open /x.json: no such file or directory",
        ),
        (
            r#"{"$schema":"foo"}"#,
            json!({}),
            "failing loading \"foo\": no URLLoader registered for \"foo\"",
        ),
    ]);
}

#[test]
fn a_reference_to_itself_is_a_cycle() {
    check_all(&[(
        r##"{"$ref":"#"}"##,
        json!({}),
        "- at '': both /$ref and  resolve to \"file:///values.schema.json#\" causing reference cycle\n",
    )]);
}

#[test]
fn urns_are_taken_for_true() {
    let schema = Compiled::new(br#"{"$ref":"urn:foo"}"#).expect("valid");
    assert_eq!(schema.unresolved_urns(), ["urn:foo"]);
    assert_eq!(schema.check(&Map::new()), Ok(()));
}

#[test]
fn hostile_schemas_end() {
    let mut definitions = vec![r#""x0":{"type":"string"}"#.to_owned()];
    for level in 1..40 {
        let below = level - 1;
        let reference = format!("{{\"$ref\":\"#/$defs/x{below}\"}}");
        definitions.push(format!("\"x{level}\":{{\"anyOf\":[{reference},{reference}]}}"));
    }
    let schema = format!(
        "{{\"$ref\":\"#/$defs/x39\",\"$defs\":{{{}}}}}",
        definitions.join(",")
    );
    let message = "demo:\nunable to validate schema: it takes too many steps";
    assert_eq!(problem(&schema, json!({})), message);
}

#[test]
fn deep_schemas_do_not_exhaust_the_stack() {
    let nested = |levels: usize| format!("{}true{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
    assert_eq!(problem(&nested(200), json!({})), "");
    assert_eq!(problem(&nested(201), json!({})), "demo:\n- at '': 'not' failed\n");
    let message = "demo:\nunable to validate schema: it is nested too deeply";
    assert_eq!(problem(&nested(1_900), json!({})), message);
}

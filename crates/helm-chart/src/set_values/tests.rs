//! Values that each flag's text produces; recorded from Helm's strvals package.

use serde_json::{Map, Value, json};

use super::*;

fn set(flag: &str, values: Value, text: &str, helm: Helm) -> Result<Value, String> {
    let mut values = match values {
        Value::Object(values) => values,
        _ => Map::new(),
    };
    let mut read = |name: &str| Ok(format!("<{name}>"));
    let done = match flag {
        "set" => parse_into(&mut values, text, helm),
        "string" => string(&mut values, text, helm),
        "file" => file(&mut values, text, helm, &mut read),
        "json" => json(&mut values, text, helm),
        _ => literal(&mut values, text, helm),
    };
    done.map(|()| Value::Object(values))
        .map_err(|error| error.to_string())
}

fn check(flag: &str, cases: &[(Value, &str, Value)]) {
    for (values, text, expected) in cases {
        assert_eq!(
            set(flag, values.clone(), text, Helm::V4),
            Ok(expected.clone()),
            "{flag} {text}"
        );
    }
}

fn check_errors(flag: &str, cases: &[(Value, &str, &str)]) {
    for (values, text, expected) in cases {
        assert_eq!(
            set(flag, values.clone(), text, Helm::V4),
            Err((*expected).to_owned()),
            "{flag} {text}"
        );
    }
}

#[test]
fn names_lead_into_maps_and_lists() {
    check(
        "set",
        &[
            (json!({}), "", json!({})),
            (json!({}), "a=1,b=x", json!({"a": 1, "b": "x"})),
            (json!({}), "a.b.c=1", json!({"a": {"b": {"c": 1}}})),
            (json!({"a": {"b": 1}}), "a.c=2", json!({"a": {"b": 1, "c": 2}})),
            (json!({}), r"a\.b=1\,2\=3", json!({"a.b": "1,2=3"})),
            (json!({}), "a[1]=x,a[0]=y", json!({"a": ["y", "x"]})),
            (json!({}), "a[0].b=1,a[0].c=2", json!({"a": [{"b": 1, "c": 2}]})),
            (json!({}), "a[1][1]=x", json!({"a": [null, [null, "x"]]})),
            (json!({"a": [1]}), "a[0].b=1", json!({"a": [{"b": 1}]})),
            (
                json!({}),
                "a={x,1,null},b=2",
                json!({"a": ["x", 1, null], "b": 2}),
            ),
            (json!({}), "a={}", json!({"a": [""]})),
            (json!({}), "a=", json!({"a": ""})),
            (json!({}), "a=,b=1", json!({"a": "", "b": 1})),
            (json!({}), "a=b=c", json!({"a": "b=c"})),
            (json!({}), "=1", json!({})),
            (json!({}), "a=1,", json!({"a": 1})),
            (json!({}), r"a=x\", json!({"a": "x"})),
        ],
    );
}

#[test]
fn an_end_within_a_list_is_taken_for_success_and_loses_what_is_new() {
    check(
        "set",
        &[
            (json!({}), "a[0]", json!({"a": []})),
            (json!({}), "a[0].b=", json!({"a": []})),
            (json!({"a": [{}]}), "a[0].b=", json!({"a": [{"b": ""}]})),
            (json!({"a": [1]}), "a[0].b=", json!({"a": [{"b": ""}]})),
            (json!({}), "a[0]=", json!({"a": [""]})),
            (json!({}), "a.b=", json!({"a": {"b": ""}})),
            (json!({"a": 1}), "a[0", json!({"a": 1})),
        ],
    );
}

#[test]
fn helm_3_tells_of_an_index_that_does_not_end() {
    let message = Err("error parsing index: EOF".to_owned());
    assert_eq!(set("set", json!({}), "a[0", Helm::V3), message);
    assert_eq!(set("literal", json!({}), "a[0", Helm::V3), message);
}

#[test]
fn refusals_are_worded_as_helm_words_them() {
    check_errors(
        "set",
        &[
            (json!({}), "a", "key \"a\" has no value"),
            (json!({}), "a,b=1", "key \"a\" has no value (cannot end with ,)"),
            (json!({}), "a.=1", "key map \"a\" has no value"),
            (json!({}), "a={x", "list must terminate with '}'"),
            (
                json!({}),
                "a[x]=1",
                "error parsing index: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                json!({}),
                "a[99999999999999999999]=1",
                "error parsing index: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            (json!({}), "a[-1]=1", "negative -1 index not allowed"),
            (
                json!({}),
                "a[65537]=1",
                "index of 65537 is greater than maximum supported index of 65536",
            ),
            (
                json!({}),
                "a[0]xy=1",
                "unexpected data at end of array index: ['x' 'y']",
            ),
            (
                json!({"a": "s"}),
                "a.b=1",
                "unable to parse key: interface conversion: interface {} is string, not map[string]interface {}",
            ),
            (
                json!({"a": null}),
                "a[0]=1",
                "unable to parse key: interface conversion: interface {} is nil, not []interface {}",
            ),
            (
                json!({"a": [1.5]}),
                "a[0][0]=1",
                "unable to parse key: interface conversion: interface {} is float64, not []interface {}",
            ),
        ],
    );
}

#[test]
fn the_number_of_levels_is_bounded() {
    let deep = format!("{}a=1", "a.".repeat(30));
    assert!(set("set", json!({}), &deep, Helm::V4).is_ok());
    let deeper = format!("{}a=1", "a.".repeat(31));
    let message = "value name nested level is greater than maximum supported nested level of 30";
    assert_eq!(set("set", json!({}), &deeper, Helm::V4), Err(message.to_owned()));
}

#[test]
fn brackets_do_not_exhaust_the_stack() {
    let text = format!("a{}=1", "[0]".repeat(1_000_000));
    let message = "value name has more than 1000 indexes";
    for flag in ["set", "literal"] {
        assert_eq!(set(flag, json!({}), &text, Helm::V4), Err(message.to_owned()));
    }
}

#[test]
fn texts_and_files_are_not_typed() {
    check(
        "string",
        &[(json!({}), "a=1,b={true,x}", json!({"a": "1", "b": ["true", "x"]}))],
    );
    check(
        "file",
        &[(json!({}), "a=x,b={y,z}", json!({"a": "<x>", "b": ["<y>", "<z>"]}))],
    );
}

#[test]
fn json_values_are_read_to_their_end() {
    check(
        "json",
        &[
            (
                json!({}),
                r#"a={"x":1},b=[1, 2] , c="é,",d="#,
                json!({"a": {"x": 1.0}, "b": [1.0, 2.0], " c": "é,", "d": null}),
            ),
            (
                json!({}),
                "a[1]=2,a[0]= ,b.c=true",
                json!({"a": [null, 2.0], "b": {"c": true}}),
            ),
        ],
    );
}

#[test]
fn a_literal_is_taken_as_it_stands() {
    check(
        "literal",
        &[
            (json!({}), r"a.b=1,c={\x}=", json!({"a": {"b": r"1,c={\x}="}})),
            (json!({}), r"a\.b=1", json!({r"a\": {"b": "1"}})),
            (json!({}), "a[1].b=x", json!({"a": [null, {"b": "x"}]})),
        ],
    );
    check_errors("literal", &[(json!({}), "a,b", "key \"a,b\" has no value")]);
}

//! Go's own functions beside what Go answered.

use crate::{Function, Functions, List, Map, Options, Templates, Type, Value};

fn run(text: &str) -> String {
    let mut functions = Functions::default();
    functions.add(
        "function",
        Function::new(&[], |_, _| {
            let callee = Function::new(&[Type::INT8], |_, arguments| Ok(arguments[0].clone()));
            Ok(Value::Func(callee.with_rest(Type::STRING)))
        }),
    );
    let list = List::from(vec![Value::int(7), Value::from("é<"), Value::Nil]);
    let map: Map = [("a", Value::int(1)), ("none", Value::Nil)].into_iter().collect();
    let entries = [
        ("list", list.into()),
        ("map", Value::from(map)),
        ("strings", List::of_strings(["x", "y"]).into()),
        ("bytes", Value::Bytes("ab".into())),
        ("uint", Value::Uint(3, crate::Kind::Uint64)),
        ("one", Value::int(1)),
    ];
    let data = Value::Map(entries.into_iter().collect());
    let mut templates = Templates::new("root");
    templates.parse("t", text, &functions).unwrap();
    match templates.execute("t", &data, &functions, &Options::default()) {
        Ok(out) => String::from_utf8(out).unwrap(),
        Err(error) => {
            let message = error.to_string();
            let (_, reason) = message.split_once(": error calling ").unwrap();
            reason.to_owned()
        }
    }
}

fn check(text: &str, expected: &str) {
    assert_eq!(run(text), expected, "{text}");
}

#[test]
fn values_are_compared_by_kind() {
    check(
        "{{eq 1 2 1}} {{eq .uint 3}} {{eq 3 .uint}} {{eq -1 .uint}} {{ne 1.5 1.5}}",
        "true true true false false",
    );
    check(
        "{{lt -1 .uint}} {{gt .uint -1}} {{le `a` `b`}} {{ge 2 3}} {{lt 1.5 2.5}}",
        "true true true false true",
    );
    check(
        "{{eq .missing nil}} {{eq .map.none nil}} {{eq .map nil}} {{eq nil nil}} {{eq 1i 1i}}",
        "true true false true true",
    );
    check("{{eq 1}}", "eq: missing argument for comparison");
    check(
        "{{eq 1 1.0}}",
        "eq: incompatible types for comparison: int and float64",
    );
    check(
        "{{lt 1 `a`}}",
        "lt: incompatible types for comparison: int and string",
    );
    check("{{lt true false}}", "lt: invalid type for comparison");
    check("{{lt 1 nil}}", "lt: invalid type for comparison");
    check(
        "{{eq .strings .strings}}",
        "eq: non-comparable type [x y]: []string",
    );
    check(
        "{{eq .map .strings}}",
        "eq: non-comparable types map[a:%!s(int=1) none:<nil>]: map[string]interface {}, []string: [x y]",
    );
}

#[test]
fn indexes_are_checked_as_in_go() {
    check(
        "{{index .list 0}} {{index .map `a`}} {{index .map `z`}} {{index `abc` 1}} {{index .bytes 0}}",
        "7 1 <no value> 98 97",
    );
    check("{{index .list 4}}", "index: index out of range: 4");
    check("{{index .list 3}}", "index: reflect: slice index out of range");
    check("{{index `a` 1}}", "index: reflect: string index out of range");
    check("{{index .list -1}}", "index: index out of range: -1");
    check(
        "{{index .list `a`}}",
        "index: cannot index slice/array with type string",
    );
    check("{{index .list nil}}", "index: cannot index slice/array with nil");
    check("{{index .map 1}}", "index: value has type int; should be string");
    check(
        "{{index .map nil}}",
        "index: value is nil; should be of type string",
    );
    check("{{index .missing 1}}", "index: index of untyped nil");
    check("{{index .map `none` 1}}", "index: index of nil pointer");
    check("{{index 1 1}}", "index: can't index item of type int");
}

#[test]
fn slices_and_lengths_are_as_in_go() {
    check(
        "{{slice `abcd` 1 3}} {{slice .strings 1}} {{slice .list 0 1 1}} {{slice .bytes}}",
        "bc [y] [7] [97 98]",
    );
    check("{{slice `abc` 1 2 3}}", "slice: cannot 3-index slice a string");
    check("{{slice `abc` 2 1}}", "slice: invalid slice index: 2 > 1");
    check("{{slice `abc` 4}}", "slice: index out of range: 4");
    check("{{slice .list 1 2 3 4}}", "slice: too many slice indexes: 4");
    check(
        "{{slice .map}}",
        "slice: can't slice item of type map[string]interface {}",
    );
    // An index from a map is in an interface, into which this function does not look.
    check(
        "{{slice `abc` .one}}",
        "slice: cannot index slice/array with type interface {}",
    );
    check("{{slice `abc` (.one)}}", "bc");
    check("{{len .list}}{{len .map}}{{len `é`}}{{len .bytes}}", "3222");
    check("{{len 1}}", "len: len of type int");
    check("{{len .map.none}}", "len: len of nil pointer");
    check(
        "{{len (.map.none)}}",
        "len: reflect: call of reflect.Value.Type on zero Value",
    );
}

#[test]
fn functions_that_are_values_are_called() {
    check("{{call function 300}} {{call function 1 `a` `b`}}", "44 1");
    check("{{call .one}}", "call: non-function .one of type int");
    check("{{call nil}}", "call: call of nil");
    check(
        "{{call function}}",
        "call: wrong number of args for function: got 0 want at least 1",
    );
    check(
        "{{call function `a`}}",
        "call: arg 0: value has type string; should be int8",
    );
    check(
        "{{call function nil}}",
        "call: arg 0: value is nil; should be of type int8",
    );
}

#[test]
fn texts_are_escaped_and_joined_as_in_go() {
    check(
        r#"{{html "<a href='x'>&\"\x00"}}"#,
        "&lt;a href=&#39;x&#39;&gt;&amp;&#34;\u{fffd}",
    );
    check(
        r#"{{js "a'b\"c\\<=>&\n\u2028é"}}"#,
        r#"a\'b\"c\\\u003C\u003D\u003E\u0026\u000A\u2028é"#,
    );
    check(r#"{{urlquery "a b/é~" 1 nil}}"#, "a+b%2F%C3%A9~1%3Cno+value%3E");
    check(
        "{{print 1 2 `a` `b` nil}} {{println 1 `a`}}{{not 0}}",
        "1 2ab<nil> 1 a\ntrue",
    );
}

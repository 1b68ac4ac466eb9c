//! Execution beside what Go answers, and bounds that Go does not have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::{
    Context, Error, Function, Functions, Kind, Limits, List, Map, MissingKey, Options, Templates, Type,
    TypeInfo, Value, on_stack,
};

fn functions() -> Functions {
    let mut functions = Functions::default();
    functions.add(
        "add",
        Function::new(&[Type::INT, Type::INT], |_, arguments| match arguments {
            [Value::Int(one, _), Value::Int(two, _)] => Ok(Value::int(one + two)),
            _ => Err(Error::new("the parameters are integers")),
        }),
    );
    functions.add(
        "id",
        Function::new(&[Type::ANY], |_, arguments| Ok(arguments[0].clone())),
    );
    functions.add(
        "size",
        Function::new(&[Type::MAP_ANY], |_, arguments| {
            Ok(Value::int(arguments[0].as_map().map_or(0, Map::len) as i64))
        }),
    );
    functions.add(
        "small",
        Function::new(&[Type::INT8], |_, arguments| Ok(arguments[0].clone())),
    );
    functions.add(
        "fail",
        Function::new(&[Type::STRING], |_, arguments| {
            Err(Error::new(arguments[0].as_string().unwrap().to_string()))
        }),
    );
    functions.add("list", Function::new(&[], list).with_rest(Type::ANY));
    functions.add(
        "set",
        Function::new(&[Type::MAP_ANY, Type::STRING, Type::ANY], set),
    );
    functions.add(
        "include",
        Function::new(&[Type::STRING, Type::ANY], |context, arguments| {
            let name = arguments[0].as_string().unwrap();
            Ok(Value::String(context.execute(name, &arguments[1])?.into()))
        }),
    );
    functions.add(
        "tpl",
        Function::new(&[Type::STRING, Type::ANY], |context, arguments| {
            let text = arguments[0].as_string().unwrap();
            Ok(Value::String(context.execute_text(text, &arguments[1])?.into()))
        }),
    );
    functions
}

fn list(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    Ok(List::from(arguments.to_vec()).into())
}

fn set(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let map = arguments[0].as_map().unwrap();
    context.mutated(map);
    assert!(map.insert(arguments[1].as_string().unwrap().clone(), arguments[2].clone()));
    Ok(arguments[0].clone())
}

static VALUES: TypeInfo = TypeInfo {
    named: true,
    method: Some(|name| {
        (name == "Get").then(|| {
            Function::new(&[Type::STRING], |_, arguments| {
                let key = arguments[1].as_string().unwrap();
                let found = arguments[0].as_map().unwrap().get(key);
                found.ok_or_else(|| Error::new("not there"))
            })
        })
    }),
    ..TypeInfo::new("test.Values", Kind::Map, Type::ANY)
};

fn data() -> Value {
    let values = Map::with_entries(Type::new(&VALUES), [("k".into(), Value::from("v"))].into());
    let inner: Map = [("x", Value::int(1)), ("nothing", Value::Nil)]
        .into_iter()
        .collect();
    let items = List::from(vec![
        Value::int(7),
        Value::from("s"),
        Value::Nil,
        inner.clone().into(),
    ]);
    let strings = Map::with_entries(Type::MAP_STRING, [("a".into(), Value::from("A"))].into());
    let entries = [
        ("values", Value::Map(values)),
        ("map", inner.into()),
        ("list", items.into()),
        ("strings", strings.into()),
        ("name", "ann".into()),
        ("count", Value::int(3)),
        ("float", Value::Float(1e6)),
        ("nothing", Value::Nil),
    ];
    Value::Map(entries.into_iter().collect())
}

fn run(text: &str, options: &Options) -> Result<String, Error> {
    let functions = functions();
    let mut templates = Templates::new("root");
    templates.parse("t", text, &functions)?;
    let out = templates.execute("t", &data(), &functions, options)?;
    Ok(String::from_utf8(out).unwrap())
}

fn check(text: &str, expected: &str) {
    let out = run(text, &Options::default()).unwrap_or_else(|error| error.to_string());
    assert_eq!(out, expected, "{text}");
}

/// Checks an error at the start of a template that is one action.
fn check_error(text: &str, node: &str, expected: &str) {
    let error = run(text, &Options::default()).unwrap_err().to_string();
    let (location, message) = error.split_once(": executing ").unwrap();
    assert!(location.starts_with("template: t:1:"), "{error}");
    assert_eq!(message, format!("\"t\" at <{node}>: {expected}"), "{text}");
}

#[test]
fn values_are_found_and_printed() {
    check(
        "{{.name}} {{.map.x}} {{$.count}} {{.float}} {{true}} {{1.5}}",
        "ann 1 3 1e+06 true 1.5",
    );
    check(
        "{{.missing}} {{.nothing}} {{.missing.deeper}}",
        "<no value> <no value> <no value>",
    );
    check(
        "{{.map}} {{.list}}",
        "map[nothing:<nil> x:1] [7 s <nil> map[nothing:<nil> x:1]]",
    );
    check(
        r#"{{.values.Get "k"}} {{"k" | .values.Get}} {{.values.k}}"#,
        "v v v",
    );
    check(
        "{{(id .map).x}} {{$m := .map}}{{$m.x}} {{(index .list 3).x}}",
        "1 1 1",
    );
}

#[test]
fn variables_live_until_their_list_ends() {
    check(
        "{{$x := 1}}{{if true}}{{$x = 2}}{{$y := 3}}{{$x := 4}}{{$x}}{{$y}}{{end}}{{$x}}",
        "432",
    );
    check(
        "{{range $i, $e := .list}}{{$i}}={{$e}};{{end}}",
        "0=7;1=s;2=<no value>;3=map[nothing:<nil> x:1];",
    );
    check("{{$x := 0}}{{range $x = .list}}{{end}}{{$x.x}}", "1");
    check(
        "{{range $k, $v := .strings}}{{$k}}{{$v}}{{end}}{{with $n := .name}}{{$n}}{{end}}",
        "aAann",
    );
}

#[test]
fn loops_end_as_in_go() {
    check(
        "{{range 3}}{{.}}{{end}} {{range $i := .count}}{{$i}}{{end}} {{range 0}}{{else}}e{{end}}",
        "012 012 e",
    );
    check(
        "{{range .list}}{{if eq (print .) `7`}}{{continue}}{{end}}{{.}}{{break}}{{end}}",
        "s",
    );
    check(
        "{{range .list}}{{else}}e{{end}}{{range .nothing}}x{{else}}e{{end}}",
        "e",
    );
    // A break in an else ends only the loop that it belongs to, though that has ended.
    check("{{range 2}}{{range 0}}{{else}}{{break}}{{end}}a{{end}}", "aa");
    check("{{range 2}}{{range 0}}{{else}}{{continue}}{{end}}a{{end}}", "");
    check_error("{{range .name}}{{end}}", ".name", "range can't iterate over ann");
    let message = "can't use 3 to iterate over more than one variable";
    check_error("{{range $i, $e := 3}}{{end}}", "3", message);
}

#[test]
fn templates_see_no_variables_of_their_caller() {
    check(
        r#"{{define "a"}}[{{.}}{{$}}]{{end}}{{$x := 1}}{{template "a" .name}}{{template "a"}}"#,
        "[annann][<no value><no value>]",
    );
    check(r#"{{block "b" .map}}{{.x}}{{end}}"#, "1");
    check_error(
        r#"{{template "nope"}}"#,
        r#"{{template "nope"}}"#,
        r#"template "nope" not defined"#,
    );
    let error = run(
        "\n{{define \"a\"}}{{.x.y}}{{end}} {{template \"a\" .map}}",
        &Options::default(),
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "template: t:2:18: executing \"a\" at <.x.y>: can't evaluate field y in type interface {}"
    );
}

#[test]
fn fields_are_refused_as_in_go() {
    check_error(
        "{{.name.x}}",
        ".name.x",
        "can't evaluate field x in type interface {}",
    );
    check_error(
        "{{$n := .name}}{{$n.x}}",
        "$n.x",
        "can't evaluate field x in type string",
    );
    check_error(
        "{{.nothing.x}}",
        ".nothing.x",
        "nil pointer evaluating interface {}.x",
    );
    check_error("{{.name 1}}", ".name", "name is not a method but has arguments");
    check_error(
        "{{.values.Get}}",
        ".values.Get",
        "wrong number of args for Get: want 1 got 0",
    );
    let message = "error calling Get: not there";
    check_error(r#"{{.values.Get "z"}}"#, ".values.Get", message);
    check_error("{{1 2}}", "1", "can't give argument to non-function 1");
    check_error(
        "{{18446744073709551615}}",
        "18446744073709551615",
        "18446744073709551615 overflows int",
    );
}

#[test]
fn arguments_are_checked_as_in_go() {
    check(
        "{{add 1 0x10}} {{2 | add 1}} {{small 200}} {{size nil}} {{add 1e3 'a'}}",
        "17 3 -56 0 1097",
    );
    check_error("{{add 1}}", "add", "wrong number of args for add: want 2 got 1");
    check_error(
        "{{printf}}",
        "printf",
        "wrong number of args for printf: want at least 1 got 0",
    );
    check_error(
        "{{add 1 .name}}",
        ".name",
        "wrong type for value; expected int; got string",
    );
    check_error(
        "{{add 1 .nothing}}",
        ".nothing",
        "wrong type for value; expected int; got interface {}",
    );
    check_error("{{add 1 .missing}}", ".missing", "invalid value; expected int");
    check_error("{{add 1 nil}}", "nil", "cannot assign nil to int");
    check_error("{{add 1 1.5}}", "1.5", "expected integer; found 1.5");
    check_error(
        r#"{{size "a"}}"#,
        r#""a""#,
        r#"can't handle "a" for arg of type map[string]interface {}"#,
    );
    check_error(
        r#"{{fail "why" | id}}"#,
        r#"fail "why""#,
        "error calling fail: why",
    );
    check("{{size .values}}", "1");
}

#[test]
fn and_and_or_stop_early() {
    check(
        r#"{{and 0 (fail "x")}} {{or 1 (fail "x")}} {{and 1 2}} {{or 0 ""}} {{0 | or 0}}"#,
        "0 1 2  0",
    );
    check_error(
        "{{and}}",
        "and",
        "wrong number of args for and: want at least 1 got 0",
    );
}

#[test]
fn missing_keys_are_treated_as_the_option_says() {
    let check = |missing_key, text: &str, expected: &str| {
        let options = Options {
            missing_key,
            ..Options::default()
        };
        let out = run(text, &options).unwrap_or_else(|error| error.to_string());
        assert!(out.ends_with(expected), "{text}: {out}");
    };
    check(MissingKey::Zero, "{{.strings.z}}{{.map.z}}", "<no value>");
    check(
        MissingKey::Zero,
        "{{.map.z.y}}",
        "<.map.z.y>: nil pointer evaluating interface {}.y",
    );
    check(
        MissingKey::Error,
        "{{.map.z}}",
        "<.map.z>: map has no entry for key \"z\"",
    );
    check(
        MissingKey::Error,
        "{{template \"x\"}}{{define \"x\"}}{{.y}}{{end}}",
        "nil data; no entry for key \"y\"",
    );
    check(MissingKey::Invalid, "{{.map.z.y}}", "<no value>");
}

#[test]
fn a_text_sees_its_callers_templates_and_hides_its_own() {
    check(
        r#"{{define "a"}}old{{end}}{{tpl `{{define "a"}}new{{end}}{{include "a" .}}{{template "a"}}` .}}{{include "a" .}}"#,
        "newnewold",
    );
    check(
        r#"{{define "a"}}old{{end}}{{tpl `{{define "a"}} {{end}}{{include "a" .}}` .}}"#,
        "old",
    );
    check(r#"{{tpl `{{.name}}{{tpl "{{.x}}" .map}}` .}}"#, "ann1");
    check_error(
        "{{tpl `\n{{.name.x}}` .}}",
        "tpl `\n{{.name.x}}` .",
        "error calling tpl: template: root:2:7: executing \"root\" at <.name.x>: can't evaluate field x in type interface {}",
    );
    check_error(
        r#"{{include "z" .}}"#,
        r#"include "z" ."#,
        r#"error calling include: template: no template "z" associated with template "root""#,
    );
}

#[test]
fn changed_maps_are_seen_by_later_executions_and_emptied_at_the_end() {
    let functions = functions();
    let mut templates = Templates::new("root");
    templates
        .parse("one", r#"{{$_ := set .map "self" .map}}"#, &functions)
        .unwrap();
    templates
        .parse("two", "{{.map.self.self.x}}", &functions)
        .unwrap();
    let data = data();
    let map = data.as_map().unwrap().get("map").unwrap();
    let mut render = crate::Render::new(&templates, &functions, &Options::default());
    render.execute("one", &data).unwrap();
    assert_eq!(render.execute("two", &data).unwrap(), b"1");
    drop(render);
    assert!(map.as_map().unwrap().is_empty());
}

#[test]
fn state_lives_as_long_as_the_render() {
    let mut functions = functions();
    functions.add(
        "count",
        Function::new(&[], |context, _| {
            let count: &mut i64 = context.state();
            *count += 1;
            Ok(Value::int(*count))
        }),
    );
    let mut templates = Templates::new("root");
    templates
        .parse("t", "{{count}}{{tpl `{{count}}` .}}", &functions)
        .unwrap();
    let mut render = crate::Render::new(&templates, &functions, &Options::default());
    assert_eq!(render.execute("t", &Value::Nil).unwrap(), b"12");
    assert_eq!(render.execute("t", &Value::Nil).unwrap(), b"34");
}

fn check_limit(text: &str, limits: Limits, expected: &str) {
    let options = Options {
        limits,
        ..Options::default()
    };
    let error = run(text, &options).unwrap_err();
    assert!(error.is_limit(), "{text}: {error}");
    let message = error.to_string();
    assert!(
        message.contains(expected),
        "{text}: {}",
        &message[..message.len().min(500)]
    );
}

#[test]
fn endless_recursion_ends_with_gos_message() {
    let expected = "exceeded maximum template depth (100000)";
    let endless = [
        r#"{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}"#,
        r#"{{define "a"}}{{if true}}{{range 1}}{{with 1}}{{template "a" .}}{{end}}{{end}}{{end}}{{end}}{{template "a" .}}"#,
        r#"{{define "a"}}{{include "a" .}}{{end}}{{include "a" .}}"#,
        r#"{{define "a"}}{{tpl "{{include `a` .}}" .}}{{end}}{{include "a" .}}"#,
    ];
    for text in endless {
        check_limit(text, Limits::default(), expected);
    }
    let deep = format!(
        "{}1{}",
        "{{".to_owned() + &"(".repeat(9_000),
        ")".repeat(9_000) + "}}"
    );
    check_limit(&deep, Limits::default(), expected);
}

#[test]
fn a_large_stack_allows_gos_whole_depth() {
    let limits = Limits {
        stack: 900 << 20,
        ..Limits::default()
    };
    let text = r#"{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}"#;
    on_stack(1 << 30, || {
        check_limit(text, limits, "exceeded maximum template depth (100000)");
    })
    .unwrap();
}

#[test]
fn endless_work_is_stopped() {
    let steps = Limits {
        steps: 10_000,
        ..Limits::default()
    };
    check_limit(
        "{{range 1000000000000}}{{end}}",
        steps.clone(),
        "exceeded 10000 steps",
    );
    check_limit(
        "{{range 1000000000000}}{{range 3}}{{.}}{{end}}{{end}}",
        steps,
        "exceeded 10000 steps",
    );
    let bytes = Limits {
        bytes: 1000,
        ..Limits::default()
    };
    check_limit(
        "{{range 1000000}}some text{{end}}",
        bytes.clone(),
        "exceeded 1000 bytes",
    );
    check_limit(r#"{{printf "%1000000d" 1}}"#, bytes, "exceeded 1000 bytes");
    let cancelled = Limits {
        cancelled: Some(Arc::new(AtomicBool::new(true))),
        ..Limits::default()
    };
    check_limit("{{range 1000000000000}}{{end}}", cancelled, "cancelled");
    let time = Limits {
        time: Some(Duration::ZERO),
        ..Limits::default()
    };
    check_limit(
        "{{range 1000000000000}}{{end}}",
        time.clone(),
        "took longer than 0 seconds",
    );
    // A single function may work for long, so that the clock is asked before each.
    check_limit(r#"{{printf "%d" 1}}"#, time, "took longer than 0 seconds");
}

#[test]
fn who_makes_much_waits_for_its_turn_once_and_keeps_it_to_the_end() {
    let (taken, given_back) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    struct Mine(Arc<AtomicU32>);
    impl Drop for Mine {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let take = {
        let (taken, given_back) = (Arc::clone(&taken), Arc::clone(&given_back));
        move || {
            taken.fetch_add(1, Ordering::Relaxed);
            Box::new(Mine(Arc::clone(&given_back))) as Box<dyn std::any::Any>
        }
    };
    let turn = crate::Turn {
        above: 1000,
        take: Arc::new(take),
    };
    let options = Options {
        limits: Limits {
            turn: Some(turn),
            ..Limits::default()
        },
        ..Options::default()
    };
    let turns = || (taken.load(Ordering::Relaxed), given_back.load(Ordering::Relaxed));
    run("{{range 50}}some text{{end}}", &options).unwrap();
    assert_eq!(turns(), (0, 0));
    run("{{range 5000}}some text{{end}}", &options).unwrap();
    assert_eq!(turns(), (1, 1));
}

#[test]
fn what_a_function_made_is_counted_and_what_it_passed_on_is_not() {
    let limits = Limits {
        bytes: 50_000,
        ..Limits::default()
    };
    check_limit(
        r#"{{$t := printf "%10000d" 1}}{{range 10}}{{$x := js $t}}{{end}}"#,
        limits.clone(),
        "exceeded 50000 bytes",
    );
    let options = Options {
        limits,
        ..Options::default()
    };
    run(
        r#"{{$t := printf "%10000d" 1}}{{range 1000}}{{$x := and true $t}}{{end}}"#,
        &options,
    )
    .unwrap();
}

#[test]
fn values_too_deep_or_too_large_to_print_are_refused() {
    let limits = || Limits {
        bytes: 10_000_000,
        ..Limits::default()
    };
    check_limit(
        "{{$l := 1}}{{range 100000}}{{$l = list $l}}{{end}}{{$l}}",
        limits(),
        "levels of a formatted value",
    );
    check_limit(
        "{{$l := 1}}{{range 100}}{{$l = list $l $l}}{{end}}{{$l}}",
        limits(),
        "bytes of formatted text",
    );
    check_limit(
        r#"{{$m := set .map "m" .map}}{{$m}}"#,
        limits(),
        "levels of a formatted value",
    );
    check_limit(
        r#"{{$m := set .map "m" .map}}{{range $m}}{{printf "%v" .}}{{end}}"#,
        limits(),
        "levels",
    );
}

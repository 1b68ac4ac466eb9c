//! Templates that mean harm: each ends with an error or an output, in bounded memory and time, and never with the process.
//!
//! A stack that overflows ends the test binary, so that no assertion is needed for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use go_template::{
    Context, Error, Function, Functions, Limits, List, Map, Options, Str, Templates, Type, Value, json,
    on_stack,
};

const TOO_DEEP: &str = "exceeded maximum template depth (100000)";

fn text(value: &Value) -> &Str {
    value.as_string().expect("the parameter is a string")
}

fn functions() -> Functions {
    let mut functions = Functions::default();
    functions.add(
        "include",
        Function::new(&[Type::STRING, Type::ANY], |context, arguments| {
            Ok(Value::String(
                context.execute(text(&arguments[0]), &arguments[1])?.into(),
            ))
        }),
    );
    functions.add(
        "tpl",
        Function::new(&[Type::STRING, Type::ANY], |context, arguments| {
            Ok(Value::String(
                context.execute_text(text(&arguments[0]), &arguments[1])?.into(),
            ))
        }),
    );
    functions.add(
        "toJson",
        Function::new(&[Type::ANY], |_, arguments| {
            json::encode(&arguments[0], json::Style::MARSHAL).map(Value::from)
        }),
    );
    functions.add(
        "list",
        Function::new(&[], |_, arguments| {
            Ok(Value::List(List::from(arguments.to_vec())))
        })
        .with_rest(Type::ANY),
    );
    functions.add("dict", Function::new(&[], |_, _| Ok(Value::Map(Map::new()))));
    functions.add(
        "set",
        Function::new(&[Type::MAP_ANY, Type::STRING, Type::ANY], set),
    );
    functions
}

fn set(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    if let Value::Map(map) = &arguments[0] {
        context.mutated(map);
        assert!(map.insert(text(&arguments[1]).clone(), arguments[2].clone()));
    }
    Ok(arguments[0].clone())
}

fn limits() -> Limits {
    Limits {
        bytes: 8 << 20,
        steps: 200_000,
        ..Limits::default()
    }
}

fn execute_with(template: &str, data: &Value, limits: Limits) -> Result<String, Error> {
    let functions = functions();
    let mut templates = Templates::new("root");
    templates.parse("t", template, &functions)?;
    let options = Options {
        limits,
        ..Options::default()
    };
    let output = templates.execute("t", data, &functions, &options)?;
    Ok(String::from_utf8(output).expect("these templates print text"))
}

/// Executes on the 2 MiB that a thread of a test has.
fn execute(template: &str) -> Result<String, Error> {
    execute_with(template, &Value::from("data"), limits())
}

fn check_limit(template: &str, words: &str) {
    let error = execute(template).expect_err("a bound is reached");
    let shown: String = template.chars().take(80).collect();
    assert!(error.is_limit(), "{shown}: {error:.200}");
    assert!(error.message().ends_with(words), "{shown}: {error:.200}");
}

#[test]
fn endless_recursion_ends_at_the_end_of_the_stack() {
    check_limit(
        r#"{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}"#,
        TOO_DEEP,
    );
    check_limit(
        r#"{{define "a"}}{{if true}}{{with 1}}{{range 1}}{{template "a" .}}{{end}}{{end}}{{end}}{{end}}{{template "a" .}}"#,
        TOO_DEEP,
    );
    check_limit(
        r#"{{define "a"}}{{template "b" .}}{{end}}{{define "b"}}{{template "a" (printf "%v" .)}}{{end}}{{template "a" .}}"#,
        TOO_DEEP,
    );
    check_limit(
        r#"{{define "a"}}{{include "a" .}}{{end}}{{include "a" .}}"#,
        TOO_DEEP,
    );
    check_limit(
        r#"{{define "a"}}{{((include "b" (list .)) | printf "%s") }}{{end}}{{define "b"}}{{include "a" .}}{{end}}{{include "a" .}}"#,
        TOO_DEEP,
    );
}

#[test]
fn endless_templates_are_counted_where_the_stack_is_large() {
    let template = r#"{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}"#;
    let error = on_stack(1 << 30, || {
        let limits = Limits {
            stack: 1 << 30,
            steps: 1_000_000,
            ..limits()
        };
        execute_with(template, &Value::Nil, limits)
            .expect_err("it has no end")
            .to_string()
    });
    assert_eq!(
        error.unwrap(),
        format!(r#"template: t:1:25: executing "a" at <{{{{template "a" .}}}}>: {TOO_DEEP}"#)
    );
}

#[test]
fn endless_texts_end() {
    for template in [
        "{{tpl . .}}",
        r#"{{tpl . .}}{{define "x"}}{{end}}{{include "y" .}}"#,
    ] {
        let large = Limits {
            stack: 256 << 20,
            ..limits()
        };
        for limits in [limits(), large] {
            let error = on_stack(limits.stack + (1 << 20), || {
                let error =
                    execute_with("{{tpl . .}}", &Value::from(template), limits).expect_err("it has no end");
                (error.is_limit(), error.message().len())
            });
            let (is_limit, length) = error.unwrap();
            assert!(is_limit);
            assert!(length < 5 << 20);
        }
    }
}

#[test]
fn the_error_of_a_deep_include_is_as_long_as_its_places() {
    let template = r#"{{define "a"}}{{include "a" .}}{{end}}{{include "a" .}}"#;
    let length = on_stack(64 << 20, || {
        let limits = Limits {
            stack: 64 << 20,
            ..limits()
        };
        let error = execute_with(template, &Value::Nil, limits).expect_err("it has no end");
        let texts = std::iter::successors(Some(&error), |error| error.cause()).map(Error::message);
        texts.map(str::len).max()
    });
    assert!(length.unwrap().unwrap() < 5 << 20);
}

#[test]
fn deep_templates_execute_where_the_stack_is_large_and_are_refused_elsewhere() {
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(9_999), ")".repeat(9_999));
    let ifs = "{{if 1}}".repeat(5_000) + "1" + &"{{end}}".repeat(5_000);
    let elses = "{{if 0}}".to_owned() + &"{{else if 0}}".repeat(5_000) + "{{else}}1{{end}}";
    let ranges = "{{range 1}}".repeat(5_000) + "1" + &"{{end}}".repeat(5_000);
    for template in [parentheses, ifs, elses, ranges] {
        let found = execute(&template);
        assert!(found.is_ok() || found.is_err_and(|error| error.message().ends_with(TOO_DEEP)));
        let found = on_stack(512 << 20, || {
            let limits = Limits {
                stack: 512 << 20,
                ..limits()
            };
            execute_with(&template, &Value::Nil, limits).map_err(|error| error.to_string())
        });
        assert_eq!(found.unwrap(), Ok("1".to_owned()));
    }
}

#[test]
fn deep_values_are_refused_and_dropped() {
    let deep = "{{$l := list}}{{range 20000}}{{$l = list $l}}{{end}}";
    check_limit(
        &format!("{deep}{{{{$l}}}}"),
        "exceeded 400 levels of a formatted value",
    );
    check_limit(
        &format!("{deep}{{{{toJson $l}}}}"),
        "json: the value is more than 400 levels deep",
    );
    check_limit(
        &format!("{deep}{{{{eq $l $l}}}}"),
        "exceeded 400 levels of a formatted value",
    );
    check_limit(
        &format!("{deep}{{{{printf \"%d%q%v\" $l $l $l}}}}"),
        "exceeded 400 levels of a formatted value",
    );
    assert_eq!(
        execute(&format!("{deep}{{{{len $l}}}}{{{{not $l}}}}")).unwrap(),
        "1false"
    );
}

/// Checks that the reserve suffices for encoders and printers, wherever they are called.
#[test]
fn deep_values_are_written_at_the_end_of_the_stack() {
    for (depth, write) in [
        (399, r#"{{$x := printf "%v%q" . .}}{{$x = html .}}"#),
        (399, "{{$x := toJson .}}"),
    ] {
        let values = format!("{{{{$l := list}}}}{{{{range {depth}}}}}{{{{$l = list $l}}}}{{{{end}}}}");
        let template = r#"{{define "a"}}WRITE{{template "a" .}}{{end}}"#.replace("WRITE", write)
            + &values
            + r#"{{template "a" $l}}"#;
        let limits = Limits {
            bytes: 1 << 30,
            ..limits()
        };
        let error = execute_with(&template, &Value::Nil, limits).expect_err("it has no end");
        assert!(error.message().ends_with(TOO_DEEP), "{error:.300}");
    }
}

#[test]
fn values_that_hold_another_twice_are_not_written_forever() {
    let doubled = r#"{{$l := list (printf "%1000000d" 1)}}{{range 60}}{{$l = list $l $l}}{{end}}"#;
    for write in [
        "$l",
        "toJson $l",
        "printf \"%v\" $l",
        "print $l",
        "html $l",
        "js $l",
        "urlquery $l",
        "eq $l $l",
    ] {
        let error = execute(&format!("{doubled}{{{{{write}}}}}")).expect_err("it has no end");
        assert!(error.is_limit(), "{write}: {error:.200}");
    }
    assert_eq!(execute(&format!("{doubled}{{{{len $l}}}}")).unwrap(), "2");
}

#[test]
fn maps_that_hold_themselves_are_refused_and_freed() {
    let cycle = r#"{{$d := dict}}{{$_ := set $d "a" (list $d)}}"#;
    check_limit(
        &format!("{cycle}{{{{$d}}}}"),
        "exceeded 400 levels of a formatted value",
    );
    let error = execute(&format!("{cycle}{{{{toJson $d}}}}")).expect_err("a cycle has no JSON");
    assert!(
        error
            .message()
            .ends_with("encountered a cycle via map[string]interface {}")
    );
    let map = Map::new();
    execute_with(r#"{{$_ := set . "a" .}}"#, &Value::Map(map.clone()), limits()).unwrap();
    assert!(map.is_empty());
}

#[test]
fn strings_do_not_grow_beyond_the_bound() {
    for grow in [
        "print $s $s",
        r#"printf "%s%s" $s $s"#,
        "println $s $s",
        "html $s $s",
        "js $s $s",
        "urlquery $s $s",
        "tpl $s $s",
        r#"printf "%*d" 999999 1 | print $s"#,
    ] {
        let error = execute(&format!(
            r#"{{{{$s := "<<<<{{{{1}}}}"}}}}{{{{range 1000}}}}{{{{$s = {grow} | print $s}}}}{{{{end}}}}"#
        ));
        assert!(error.is_err_and(|error| error.is_limit()), "{grow}");
    }
    check_limit(
        "{{range 100000}}{{printf \"%1000d\" .}}{{end}}",
        "render stopped: exceeded 8388608 bytes of output",
    );
    check_limit(
        &format!("{{{{range 100000}}}}{}{{{{end}}}}", "text".repeat(100)),
        "render stopped: exceeded 8388608 bytes of output",
    );
    assert_eq!(
        execute("{{printf \"%.999999f\" 1e308 | len}}").unwrap(),
        "1000309"
    );
}

#[test]
fn parsed_texts_are_counted_by_what_they_take() {
    let text = "{{.}}".repeat(100_000);
    let error = execute_with("{{tpl . 1}}", &Value::from(text), limits()).expect_err("it takes too much");
    assert!(error.is_limit());
}

#[test]
fn long_loops_end_at_the_bound_of_steps() {
    const STEPS: &str = "render stopped: exceeded 200000 steps";
    check_limit("{{range 9223372036854775807}}{{end}}", STEPS);
    check_limit(
        "{{range $i := 9223372036854775807}}{{if $i}}{{continue}}{{end}}{{end}}",
        STEPS,
    );
    check_limit(
        "{{range 10000}}{{range 10000}}{{range 10000}}{{end}}{{end}}{{end}}",
        STEPS,
    );
    assert_eq!(
        execute("{{range 9223372036854775807}}{{break}}{{end}}{{range -5}}a{{else}}b{{end}}").unwrap(),
        "b"
    );
}

#[test]
fn a_render_can_be_cancelled() {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    let started = Instant::now();
    let render = std::thread::spawn(move || {
        let limits = Limits {
            steps: u64::MAX,
            cancelled: Some(flag),
            ..Limits::default()
        };
        let error = execute_with("{{range 9223372036854775807}}{{end}}", &Value::Nil, limits)
            .expect_err("it is cancelled");
        (error.is_limit(), error.to_string())
    });
    std::thread::sleep(Duration::from_millis(20));
    cancelled.store(true, Ordering::Relaxed);
    assert_eq!(
        render.join().unwrap(),
        (true, "render stopped: cancelled".to_owned())
    );
    assert!(started.elapsed() < Duration::from_secs(20));
}

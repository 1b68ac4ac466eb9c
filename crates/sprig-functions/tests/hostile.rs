//! Values that mean harm to functions that walk them.

use go_template::{Error, Options, Templates, Value};

fn execute(template: &str) -> Result<String, Error> {
    let functions = sprig_functions::all();
    let mut templates = Templates::new("root");
    templates.parse("t", template, &functions)?;
    let output = templates.execute("t", &Value::Nil, &functions, &Options::default())?;
    Ok(String::from_utf8(output).expect("these templates print text"))
}

#[test]
fn values_that_hold_another_twice_are_compared_in_one_walk() {
    let values = "{{$a := list 1}}{{$b := list 1}}{{range 60}}{{$a = list $a $a}}{{$b = list $b $b}}{{end}}";
    assert_eq!(
        execute(&format!("{values}{{{{deepEqual $a $b}}}}")).unwrap(),
        "true"
    );
}

/// A stack that overflows would end the test binary.
#[test]
fn deep_values_are_walked_at_the_end_of_the_stack() {
    let recursion = r#"{{define "a"}}WALK{{template "a" .}}{{end}}"#;
    let lists = r#"{{$l := list}}{{range 990}}{{$l = list $l}}{{end}}{{template "a" $l}}"#;
    let maps = r#"{{$d := dict}}{{range 990}}{{$d = dict "a" $d}}{{end}}{{template "a" $d}}"#;
    for (walk, values) in [
        ("{{$x := deepCopy .}}", lists),
        ("{{$x := deepCopy .}}", maps),
        ("{{$x := merge (dict) .}}", maps),
        (
            r#"{{$x := mergeOverwrite (deepCopy .) (dict "a" (dict "a" (dict "b" 1)))}}"#,
            maps,
        ),
        ("{{$x := toJson . | fromJson}}", maps),
    ] {
        let error = execute(&(recursion.replace("WALK", walk) + values)).expect_err("it has no end");
        assert!(error.is_limit(), "{walk}: {error:.300}");
    }
}

//! Templates and what Go makes of them: each expectation was printed by Go 1.26.

use super::parse;
use crate::Str;
use crate::ast::{Ideal, Node, NodeRef, Operand, Tree};

fn parse_all(source: &[u8]) -> Result<Vec<Tree>, String> {
    let is_function = |name: &str| ["f", "g", "printf", "len", "include", "not"].contains(&name);
    parse(&Str::from("t"), &Str::from(source), &is_function).map_err(|error| error.to_string())
}

fn error_of(source: &str) -> String {
    let error = parse_all(source.as_bytes()).expect_err("the template is wrong");
    error
        .strip_prefix("template: t:")
        .expect("errors name the file")
        .to_owned()
}

#[test]
fn trees_print_as_in_go() {
    let check = |source: &str, expected: &str| {
        let trees = parse_all(source.as_bytes()).unwrap();
        assert_eq!(trees.last().unwrap().to_string(), expected, "{source}");
    };
    check("a{{ .x }}b", "a{{.x}}b");
    check("a \n{{- .x -}}\n\t b", "a{{.x}}b");
    check("{{/* gone */}}a{{- /* gone */ -}} b", "ab");
    check(
        r#"{{ f .a.b $.c "x" `y` 'z' 1.5 true nil . | g (f 1).d.e }}"#,
        r#"{{f .a.b $.c "x" `y` 'z' 1.5 true nil . | g (f 1).d.e}}"#,
    );
    check("{{ $x := 1 }}{{ $x = f $x.y }}", "{{$x := 1}}{{$x = f $x.y}}");
    check(
        "{{ if .a }}1{{ else if .b }}2{{ else }}3{{ end }}",
        "{{if .a}}1{{else}}{{if .b}}2{{else}}3{{end}}{{end}}",
    );
    check(
        "{{ with $w := .a }}{{ $w }}{{ else with .b }}2{{ else }}3{{ end }}",
        "{{with $w := .a}}{{$w}}{{else}}{{with .b}}2{{else}}3{{end}}{{end}}",
    );
    check(
        "{{ range $i, $e := .a }}{{ continue }}{{ $i }}{{ else }}{{ $e }}{{ end }}",
        "{{range $i, $e := .a}}{{continue}}{{$i}}{{else}}{{$e}}{{end}}",
    );
    check(
        "{{ range $i = .a }}{{ break }}{{ end }}",
        "{{range $i = .a}}{{break}}{{end}}",
    );
    check(
        r#"{{ template "d" }}{{ template `d` . }}{{ define "d" }}x{{ end }}"#,
        r#"{{template "d"}}{{template "d" .}}"#,
    );
    check(
        r#"{{ block "b\n" .x | f }}x{{ end }}"#,
        r#"{{template "b\n" .x | f}}"#,
    );
    check(
        "{{ if .a }}{{ $x := 1 }}{{ else }}{{ $x }}{{ end }}",
        "{{if .a}}{{$x := 1}}{{else}}{{$x}}{{end}}",
    );
    check("{{ $never = 1 }}", "{{$never = 1}}");
    check("{{ (f | g).a }}{{ f.a.b }}", "{{(f | g).a}}{{f.a.b}}");
    check("{{3}}{{-3}}{{- 3}}{{3 -}} a", "{{3}}{{-3}}{{3}}{{3}}a");
    check("{{ f | }}", "{{f}}");
}

#[test]
fn errors_are_worded_and_placed_as_in_go() {
    let check = |source: &str, expected: &str| assert_eq!(error_of(source), expected, "{source}");
    check("{{", "1: unclosed action");
    check("{{ f", "1: unclosed action");
    check("{{ f\n\n", "3: unclosed action started at t:1");
    check(
        "{{ f\n\"abc",
        "2: unterminated quoted string in action started at t:1",
    );
    check(
        "{{ if .a }}\n{{/* ",
        "2: unclosed comment in action started at t:1",
    );
    check("{{ if .a }}x\n{{ end }}{{/* ", "2: unclosed comment");
    check("{{/* x */ }}", "1: comment ends before closing delimiter");
    check(r#"{{ "abc"#, "1: unterminated quoted string");
    check("{{ 'abc", "1: unterminated character constant");
    check("{{ \"a\nb\" }}", "1: unterminated quoted string");
    check("{{ `abc", "1: unterminated raw quoted string");
    check("{{ (f }}", "1: unclosed left paren");
    check("{{ f) }}", "1: unexpected right paren");
    check("{{ f : }}", "1: expected :=");
    check("{{ @ }}", r#"1: unexpected "@" in command"#);
    check("{{ € }}", "1: unrecognized character in action: U+20AC '€'");
    check("{{ f € }}", "1: unrecognized character in action: U+20AC '€'");
    check("{{ f@ }}", "1: bad character U+0040 '@'");
    check("{{ .a@ }}", "1: bad character U+0040 '@'");
    check("{{ $x@ }}", "1: bad character U+0040 '@'");
    check("{{ 1a }}", r#"1: bad number syntax: "1a""#);
    check("{{ 1+2 }}", r#"1: bad number syntax: "1+2""#);
    check("{{ 1+ }}", r#"1: bad number syntax: "1+""#);
    check("{{ 08 }}", r#"1: integer overflow: "08""#);
    check("{{ 1e400 }}", r#"1: illegal number syntax: "1e400""#);
    check(
        "{{ 18446744073709551616 }}",
        r#"1: integer overflow: "18446744073709551616""#,
    );
    check("{{ 'ab' }}", "1: malformed character constant: 'ab'");
    check("{{ '' }}", "1: invalid syntax");
    check(r#"{{ "\q" }}"#, "1: invalid syntax");
    check(
        "{{ 1+1e999i }}",
        r#"1: strconv.ParseFloat: parsing "+1e999": value out of range"#,
    );
    check(
        "{{ +i+1i }}",
        r#"1: strconv.ParseFloat: parsing "+i": invalid syntax"#,
    );
    check("{{ 0b1+1i }}", "1: syntax error scanning complex number");
    check("{{.", r#"1: illegal number syntax: ".""#);
    check("{{}}", "1: missing value for command");
    check("{{ | f }}", r#"1: unexpected "|" in command"#);
    check("{{ f || g }}", r#"1: unexpected "|" in command"#);
    check("{{ f | 1 }}", "1: non executable command in pipeline stage 2");
    check(
        r#"{{ f | g | "a" | . }}"#,
        "1: non executable command in pipeline stage 3",
    );
    check("{{ () }}", "1: missing value for parenthesized pipeline");
    check("{{ nofunc }}", r#"1: function "nofunc" not defined"#);
    check("{{ f (nofunc) }}", r#"1: function "nofunc" not defined"#);
    check("{{ $x }}", r#"1: undefined variable "$x""#);
    check(
        "{{ if .a }}{{ $x := 1 }}{{ end }}{{ $x }}",
        r#"1: undefined variable "$x""#,
    );
    check(
        r#"{{ block "b" . }}{{ $x := 1 }}{{ end }}{{ $x }}"#,
        r#"1: undefined variable "$x""#,
    );
    check(
        r#"{{ $x := 1 }}{{ define "d" }}{{ $x }}{{ end }}"#,
        r#"1: undefined variable "$x""#,
    );
    check("{{ 1.a }}", r#"1: bad number syntax: "1.a""#);
    check(
        r#"{{ "it is long".a }}"#,
        r#"1: unexpected . after term "\"it is long\"""#,
    );
    check("{{ nil.a }}", r#"1: unexpected . after term "nil""#);
    check("{{ ..a }}", r#"1: unexpected . after term ".""#);
    check("{{ true.a }}", r#"1: unexpected . after term "true""#);
    check(r#"{{ f"a" }}"#, r#"1: bad character U+0022 '"'"#);
    check("{{ f,g }}", r#"1: unexpected "," in operand"#);
    check("{{ $x, $y := f }}", "1: too many declarations in command");
    check("{{ range $x, 1 }}", "1: range can only initialize variables");
    check(
        "{{ range $x, $y, $z := .a }}{{ end }}",
        "1: too many declarations in range",
    );
    check(
        "{{ with $x, $y := .a }}{{ end }}",
        "1: too many declarations in with",
    );
    check("{{ if }}", "1: missing value for if");
    check("{{ range }}", "1: missing value for range");
    check("{{ with }}", "1: missing value for with");
    check("{{ $x := }}", "1: missing value for command");
    check("{{ template }}", r#"1: unexpected "}}" in template clause"#);
    check("{{ template f }}", r#"1: unexpected "f" in template clause"#);
    check(r#"{{ template "a\q" }}"#, "1: invalid syntax");
    check(r#"{{ template "a" . else }}"#, "1: unexpected <else> in operand");
    check(r#"{{ block "a" }}{{ end }}"#, "1: missing value for block clause");
    check("{{ define }}", r#"1: unexpected "}}" in define clause"#);
    check(r#"{{ define "a" . }}"#, "1: unexpected <.> in define clause");
    check(r#"{{ define "a\q" }}"#, "1: invalid syntax");
    check(r#"{{ define "averylongname""#, "1: unclosed action");
    check(r#"{{ define "a" }}"#, "1: unexpected EOF");
    check(
        r#"{{ define "a" }}{{ else }}{{ end }}"#,
        "1: unexpected {{else}} in define clause",
    );
    check(
        "{{ block \"a\" . }}\n\n{{ else }}{{ end }}",
        "1: unexpected {{else}} in block clause",
    );
    check(
        r#"{{ if .a }}{{ define "a" }}{{ end }}{{ end }}"#,
        "1: unexpected <define> in command",
    );
    check("{{ if .a }}", "1: unexpected EOF");
    check("{{ end }}", "1: unexpected {{end}}");
    check("{{ else }}", "1: unexpected {{else}}");
    check("{{ else if .a }}", "1: unexpected {{else}}");
    check(
        "{{ if .a }}{{ else }}{{ else }}{{ end }}",
        "1: expected end; found {{else}}",
    );
    check(
        "{{ if .a }}{{ else }}{{ else if .b }}{{ end }}",
        "1: expected end; found {{else}}",
    );
    check(
        "{{ if .a }}{{ else with .b }}{{ end }}",
        "1: unexpected <with> in input",
    );
    check(
        "{{ with .a }}{{ else if .b }}{{ end }}",
        "1: unexpected <if> in input",
    );
    check(
        "{{ range .a }}{{ else if .b }}{{ end }}",
        "1: unexpected <if> in input",
    );
    check("{{ end .a }}", r#"1: unexpected ".a" in end"#);
    check("{{ else .a }}", r#"1: unexpected ".a" in else"#);
    check("{{ break }}", "1: {{break}} outside {{range}}");
    check("{{ continue }}", "1: {{continue}} outside {{range}}");
    check(
        "{{ range .a }}{{ else }}{{ break }}{{ end }}",
        "1: {{break}} outside {{range}}",
    );
    check(
        "{{ range .a }}{{ break 1 }}{{ end }}",
        r#"1: unexpected "1" in {{break}}"#,
    );
    check(
        r#"{{ range .a }}{{ define "x" }}{{ break }}{{ end }}{{ end }}"#,
        "1: unexpected <define> in command",
    );
    check(
        r#"{{ range .a }}{{ block "x" . }}{{ break }}{{ end }}{{ end }}"#,
        "1: {{break}} outside {{range}}",
    );
    check(
        "{{ define \"a\" }}1{{ end }}\n{{ define \"a\" }}2{{ end }}",
        r#"2: template: multiple definition of template "a""#,
    );
    check(
        "text{{ define \"t\" }}1{{ end }}\n",
        r#"2: template: multiple definition of template "t""#,
    );
    check(
        r#"{{ f "this is a long string" .x@ }}"#,
        "1: bad character U+0040 '@'",
    );
    check(
        "{{ template f.averylongfieldname }}",
        r#"1: unexpected "f" in template clause"#,
    );
    check(
        "{{ range $i, := .a }}{{ end }}",
        "1: range can only initialize variables",
    );
    check(
        "{{ range $i, $e, .a }}{{ end }}",
        "1: too many declarations in range",
    );
}

#[test]
fn nodes_stand_where_go_says() {
    let source = "a\nbé{{ f .a.b.c (g).d $.x.y | g }}{{ template \"d\" . }}";
    let trees = parse_all(source.as_bytes()).unwrap();
    let [_, Node::Action(pipe), invocation] = &trees[0].root().nodes[..] else {
        panic!("three nodes are expected");
    };
    let check = |node: NodeRef<'_>, text: &str, column: usize| {
        assert_eq!(String::from_utf8(trees[0].node_text(node)).unwrap(), text);
        assert_eq!(trees[0].location(node.position()), (2, column), "{text}");
    };
    let first = &pipe.commands[0];
    check(NodeRef::Pipe(pipe), "f .a.b.c (g).d $.x.y | g", 6);
    check(NodeRef::Command(first), "f .a.b.c (g).d $.x.y", 6);
    check(NodeRef::Operand(&first.operands[0]), "f", 6);
    check(NodeRef::Operand(&first.operands[1]), ".a.b.c", 10); // where .b is
    check(NodeRef::Operand(&first.operands[2]), "(g).d", 18);
    check(NodeRef::Operand(&first.operands[3]), "$.x.y", 22);
    check(NodeRef::Command(&pipe.commands[1]), "g", 29);
    check(NodeRef::Node(invocation), r#"{{template "d" .}}"#, 45);
}

#[test]
fn numbers_are_kept_under_all_types_that_hold_them() {
    type Kept = (Option<i64>, Option<u64>, Option<f64>, Option<(f64, f64)>, Ideal);
    let check = |source: &str, expected: Kept| {
        let trees = parse_all(format!("{{{{ {source} }}}}").as_bytes()).unwrap();
        let Node::Action(pipe) = &trees[0].root().nodes[0] else {
            panic!("{source} is an action")
        };
        let Operand::Number(number) = &pipe.commands[0].operands[0] else {
            panic!("{source} is a number")
        };
        assert_eq!(
            (
                number.int,
                number.uint,
                number.float,
                number.complex,
                number.ideal
            ),
            expected,
            "{source}"
        );
    };
    let int = |value: i64| {
        (
            Some(value),
            u64::try_from(value).ok(),
            Some(value as f64),
            None,
            Ideal::Int(value),
        )
    };
    check("42", int(42));
    check("-42", int(-42));
    check("+42", (Some(42), None, Some(42.0), None, Ideal::Int(42)));
    check("-0", int(0));
    check("0x1E", int(30));
    check("0o17", int(15));
    check("017", int(15));
    check("0b1_01", int(5));
    check("'a'", int(97));
    check("'e'", int(101));
    check("'\\xff'", int(255));
    check("1.0", (Some(1), Some(1), Some(1.0), None, Ideal::Float(1.0)));
    check(
        "1e2",
        (Some(100), Some(100), Some(100.0), None, Ideal::Float(100.0)),
    );
    check("-1.5", (None, None, Some(-1.5), None, Ideal::Float(-1.5)));
    check("0x1p-1", (None, None, Some(0.5), None, Ideal::Float(0.5)));
    check("-0x1E", (Some(-30), None, Some(-30.0), None, Ideal::Float(-30.0))); // Go takes the E for an exponent
    check("9223372036854775807", int(i64::MAX));
    check(
        "9223372036854775808",
        (
            None,
            Some(1 << 63),
            Some(9223372036854775808.0),
            None,
            Ideal::Overflow,
        ),
    );
    check(
        "9223372036854775808.0",
        (
            None,
            Some(1 << 63),
            Some(9223372036854775808.0),
            None,
            Ideal::Float(9223372036854775808.0),
        ),
    );
    check(
        "-9223372036854775808.0",
        (
            Some(i64::MIN),
            None,
            Some(-9223372036854775808.0),
            None,
            Ideal::Float(-9223372036854775808.0),
        ),
    );
    check("1e20", (None, None, Some(1e20), None, Ideal::Float(1e20)));
    check(
        "0i",
        (
            Some(0),
            Some(0),
            Some(0.0),
            Some((0.0, 0.0)),
            Ideal::Complex(0.0, 0.0),
        ),
    );
    check(
        "2i",
        (None, None, None, Some((0.0, 2.0)), Ideal::Complex(0.0, 2.0)),
    );
    check(
        "-1.5+0i",
        (
            None,
            None,
            Some(-1.5),
            Some((-1.5, 0.0)),
            Ideal::Complex(-1.5, 0.0),
        ),
    );
    check(
        "0x1p2-1e1i",
        (None, None, None, Some((4.0, -10.0)), Ideal::Complex(4.0, -10.0)),
    );
}

#[test]
fn empty_trees_give_way_to_others_of_their_name() {
    let check = |source: &str, expected: &[(&str, bool, &str)]| {
        let trees = parse_all(source.as_bytes()).unwrap();
        let found: Vec<_> = trees
            .iter()
            .map(|tree| (tree.name().to_string(), tree.is_empty(), tree.to_string()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, empty, text)| ((*name).to_owned(), *empty, (*text).to_owned()))
            .collect();
        assert_eq!(found, expected, "{source}");
    };
    check("", &[("t", true, "")]);
    check(" \n\u{2003}{{/* x */}}\t", &[("t", true, " \n\u{2003}\t")]);
    check("{{ f }}", &[("t", false, "{{f}}")]);
    check(
        r#"{{ define "a" }} {{ end }}x"#,
        &[("a", true, " "), ("t", false, "x")],
    );
    check(
        r#"{{ define "a" }} {{ end }}{{ define "a" }}1{{ end }}"#,
        &[("a", false, "1"), ("t", true, "")],
    );
    check(
        r#"{{ define "a" }}1{{ end }}{{ define "a" }} {{ end }}"#,
        &[("a", false, "1"), ("t", true, "")],
    );
    check(r#"{{ define "t" }}1{{ end }} "#, &[("t", false, "1")]); // the file itself gives way too
    check(
        r#"{{ block "a" . }}{{ block "b" . }}1{{ end }}{{ end }}"#,
        &[
            ("b", false, "1"),
            ("a", false, r#"{{template "b" .}}"#),
            ("t", false, r#"{{template "a" .}}"#),
        ],
    );
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let trees = parse_all(b"a\xff{{ f `\xff` \"\xff\" }}").unwrap();
    assert_eq!(
        trees[0].node_text(NodeRef::List(trees[0].root())),
        b"a\xff{{f `\xff` \"\xff\"}}"
    );
    let Node::Action(pipe) = &trees[0].root().nodes[1] else {
        panic!("an action follows the text")
    };
    let values: Vec<_> = pipe.commands[0]
        .operands
        .iter()
        .filter_map(|operand| match operand {
            Operand::Text(text) => Some(text.value.as_bytes()),
            _ => None,
        })
        .collect();
    assert_eq!(values, [&b"\xff"[..], "\u{fffd}".as_bytes()]); // quoted strings are read as characters
    assert_eq!(error_of("{{ é\u{fffd} }}"), "1: bad character U+FFFD '\u{fffd}'");
}

#[test]
fn functions_may_take_the_names_of_loop_keywords() {
    let parse_with_break = |source: &str| parse(&Str::from("t"), &Str::from(source), &|name| name == "break");
    assert_eq!(
        parse_with_break("{{ break }}").unwrap()[0].to_string(),
        "{{break}}"
    );
    assert!(parse_with_break("{{ continue }}").is_err());
}

#[test]
fn variables_of_one_name_have_one_symbol() {
    let trees =
        parse_all(b"{{ $x := 1 }}{{ $y := $x }}{{ if $y }}{{ $x := 2 }}{{ end }}{{ f $ $x $y }}").unwrap();
    let Node::Action(pipe) = trees[0].root().nodes.last().unwrap() else {
        panic!("an action is last")
    };
    let symbols: Vec<_> = pipe.commands[0]
        .operands
        .iter()
        .filter_map(|operand| match operand {
            Operand::Variable(variable) => Some(variable.symbol),
            _ => None,
        })
        .collect();
    assert_eq!(symbols, [0, 1, 2]);
}

#[test]
fn trees_are_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Tree>();
}

#[test]
fn parentheses_nest_as_deep_as_in_go() {
    let nested = |depth: usize| format!("{{{{ {}f{} }}}}", "(".repeat(depth), ")".repeat(depth));
    let trees = parse_all(nested(10_000).as_bytes()).unwrap();
    assert_eq!(trees[0].depth(), 10_001);
    assert_eq!(trees[0].to_string().len(), 20_005);
    assert_eq!(error_of(&nested(10_001)), "1: max expression depth exceeded");
    assert_eq!(
        error_of(&"{{ (f ".repeat(100_000)),
        "1: unexpected \"{\" in operand"
    );
}

#[test]
fn deep_structures_do_not_overflow_the_stack() {
    let check = |opening: &str, depth: usize, closing: &str, expected: Result<u32, &str>| {
        let source = opening.repeat(depth) + &closing.repeat(depth);
        let found = parse_all(source.as_bytes()).map(|trees| {
            let deepest = trees.iter().map(Tree::depth).max().unwrap();
            trees
                .iter()
                .for_each(|tree| assert!(tree.to_string().len() < 4 * source.len() + 100));
            deepest
        });
        assert_eq!(
            found,
            expected.map_err(|error| format!("template: t:1: {error}")),
            "{opening}"
        );
    };
    let depth = 20_000;
    check("{{if f}}", depth, "{{end}}", Ok(depth as u32 + 1));
    check("{{range f}}", depth, "{{break}}{{end}}", Ok(depth as u32 + 1));
    check("{{with $x := f}}", depth, "{{else}}{{end}}", Ok(depth as u32 + 1));
    check(
        "{{block `b` .}}",
        depth,
        " {{end}}",
        Err("template: multiple definition of template \"b\""),
    );
    check("{{if f}}", depth, "", Err("unexpected EOF"));
    check("{{else if f}}", depth, "", Err("unexpected {{else}}"));
    let chain = "{{if f}}".to_owned() + &"{{else if (f)}}".repeat(depth);
    check(&chain, 1, "{{end}}", Ok(depth as u32 + 2));
    check(&chain, 1, "{{f", Err("unclosed action"));
}

#[test]
fn long_hostile_inputs_are_read_in_one_pass() {
    for piece in [
        "{{",
        "{{/*",
        "{{-",
        "{",
        "}}",
        "(",
        "`",
        "\"",
        "'",
        ".",
        "$x",
        " ",
        "\n",
        "\\",
        "1_",
        "\u{1f600}",
        "{{- /* */ -}}\n",
    ] {
        for start in ["", "{{", "{{ f ", "{{ \"", "{{ $x, "] {
            let _ = parse_all((start.to_owned() + &piece.repeat(30_000)).as_bytes());
        }
    }
    // Every variable is a new one, and all stay in scope.
    let declarations: String = (0..50_000)
        .map(|number| format!("{{{{$v{number} := $}}}}"))
        .collect();
    assert!(parse_all(declarations.as_bytes()).is_ok());
}

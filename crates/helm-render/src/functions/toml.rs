//! `toToml`, `mustToToml` and `fromToml`, as BurntSushi/toml has them.

use go_template::json::charge_values;
use go_template::{Error, Function, Functions, Type, Value};

use super::json;
use helm_chart::Helm;

pub(super) fn register(functions: &mut Functions, helm: Helm) {
    functions.add(
        "toToml",
        Function::new(&[Type::ANY], |context, arguments| {
            match go_toml::encode(context, &arguments[0])? {
                Ok(text) => Ok(Value::String(text.into())),
                // What cannot be written is told in the output.
                Err(problem) => Ok(problem.into()),
            }
        }),
    );
    functions.add(
        "fromToml",
        Function::new(&[Type::STRING], |context, arguments| {
            charge_values(context, json::text(&arguments[0]))?;
            let decoded = go_toml::decode(json::text(&arguments[0]));
            Ok(decoded.unwrap_or_else(|problem| json::error_map(&Error::new(problem))))
        }),
    );
    if helm == Helm::V4 {
        functions.add(
            "mustToToml",
            Function::new(&[Type::ANY], |context, arguments| {
                let text = go_toml::encode(context, &arguments[0])?.map_err(Error::new)?;
                Ok(Value::String(text.into()))
            }),
        );
    }
}

#[cfg(test)]
mod tests {
    use go_template::json::{Style, encode as encode_json};
    use go_template::{List, Map, Options, Render, Templates};

    use super::*;

    fn list(items: Vec<Value>) -> Value {
        items.into_iter().collect::<List>().into()
    }

    fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
        entries.into_iter().collect::<Map>().into()
    }

    fn check(value: Value, expected: Result<&str, &str>) {
        let (templates, functions) = (Templates::default(), Functions::default());
        let mut render = Render::new(&templates, &functions, &Options::default());
        let written = go_toml::encode(&mut render.context(), &value).expect("within bounds");
        let written = written.map(|text| String::from_utf8(text).expect("UTF-8"));
        assert_eq!(written, expected.map(str::to_owned).map_err(str::to_owned));
    }

    fn check_reading(text: &str, expected: &str) {
        let shown = match go_toml::decode(text.as_bytes()) {
            Ok(value) => encode_json(&value, Style::MARSHAL).expect("it can be written"),
            Err(problem) => problem,
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn documents_are_read() {
        for (text, expected) in [
            ("", "{}"),
            (
                "a = 1\nb.c = 0x_f",
                "toml: line 2 (last key \"b.c\"): not a hexadecimal number: '0x_'",
            ),
            (
                "a = 1_0 # x\n[b.c]\nd = [1, 'x',\n true,]\n",
                r#"{"a":10,"b":{"c":{"d":[1,"x",true]}}}"#,
            ),
            (
                "[[t]]\na = 1\n[[t]]\na = {b = 2, c.d = 3}",
                r#"{"t":[{"a":1},{"a":{"b":2,"c":{"d":3}}}]}"#,
            ),
            ("a = \"\"\"\nx\\\n  y\\u00e9\"\"\"", r#"{"a":"xyé"}"#),
            ("a = 1979-05-27T07:32:00Z", r#"{"a":"1979-05-27T07:32:00Z"}"#),
        ] {
            check_reading(text, expected);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_line_and_key() {
        for (text, expected) in [
            ("bad", "toml: line 1: unexpected EOF; expected key separator '='"),
            (
                "a = ",
                "toml: line 1 (last key \"a\"): unexpected EOF; expected value",
            ),
            (
                "a = 1\na = 2",
                "toml: line 2 (last key \"a\"): Key 'a' has already been defined.",
            ),
            (
                "[a]\nb = 01",
                "toml: line 2 (last key \"a.b\"): Invalid integer \"01\": cannot have leading zeroes",
            ),
            (
                "a = 1 b",
                "toml: line 1: expected a top-level item to end with a newline, comment, or EOF, but got 'b' instead",
            ),
            (
                "a = \"x\n\"",
                "toml: line 1 (last key \"a\"): strings cannot contain newlines",
            ),
            (
                "a = [1 2]",
                "toml: line 1 (last key \"a\"): expected a comma (',') or array terminator (']'), but got '2'",
            ),
        ] {
            check_reading(text, expected);
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let text = format!("a = {}", "[".repeat(1_000_000));
        check_reading(
            &text,
            "toml: line 1 (last key \"a\"): arrays and tables are nested too deeply",
        );
    }

    #[test]
    fn tables_stand_behind_what_is_none() {
        let table = map([("e", true.into()), ("f", 1.5.into()), ("g", map([]))]);
        let value = map([
            ("b", "x".into()),
            ("a table", table),
            ("c", list(vec![Value::int(1), 2.0.into()])),
            ("n", Value::Nil),
        ]);
        let expected = "b = \"x\"\nc = [1, 2.0]\n\n[\"a table\"]\n  e = true\n  f = 1.5\n  [\"a table\".g]\n";
        check(value, Ok(expected));
    }

    #[test]
    fn lists_of_tables_have_headers_where_they_can() {
        let tables = || list(vec![map([("a", Value::int(1))]), map([("a", Value::int(2))])]);
        check(map([("l", tables())]), Ok("[[l]]\n  a = 1\n\n[[l]]\n  a = 2\n"));
        check(
            map([("l", list(vec![tables()]))]),
            Ok("l = [[{a = 1}, {a = 2}]]\n"),
        );
        check(tables(), Err("toml: top-level values must be Go maps or structs"));
    }

    #[test]
    fn scalars_are_written_as_toml_has_them() {
        for (value, expected) in [
            (Value::from("a\"\\\n\u{1}é"), "\"a\\\"\\\\\\n\\u0001é\""),
            (1e21.into(), "1e+21"),
            (1.0.into(), "1.0"),
            (f64::NAN.into(), "nan"),
            (list(vec![]), "[]"),
        ] {
            check(value, Ok(expected));
        }
    }

    #[test]
    fn nothing_within_a_list_is_refused() {
        let nothing = list(vec![list(vec![Value::Nil])]);
        check(
            map([("a", nothing)]),
            Err("toml: cannot encode array with nil element"),
        );
    }

    #[test]
    fn a_value_that_toml_does_not_have_is_refused_as_in_go() {
        check(
            Value::Complex(0.0, 1.0),
            Err("unsupported type for key '': complex128"),
        );
        check(
            map([("a", Value::Complex(0.0, 1.0))]),
            Err("unsupported type: complex128"),
        );
    }

    #[test]
    fn a_null_within_braces_leaves_its_comma() {
        let table = map([("a", Value::int(1)), ("b", Value::Nil)]);
        check(
            map([("l", list(vec![table, Value::int(1)]))]),
            Ok("l = [{a = 1, }, 1]\n"),
        );
    }
}

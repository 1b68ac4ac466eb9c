//! `toToml`, `mustToToml` and `fromToml`, as BurntSushi/toml has them.

mod encode;

use go_template::{Error, Function, Functions, Type, Value};

use crate::Helm;

pub(super) fn register(functions: &mut Functions, helm: Helm) {
    functions.add(
        "toToml",
        Function::new(&[Type::ANY], |context, arguments| {
            match encode::encode(context, &arguments[0])? {
                Ok(text) => {
                    context.charge(text.len())?;
                    Ok(Value::String(text.into()))
                }
                // What cannot be written is told in the output.
                Err(problem) => Ok(problem.into()),
            }
        }),
    );
    if helm == Helm::V4 {
        functions.add(
            "mustToToml",
            Function::new(&[Type::ANY], |context, arguments| {
                let text = encode::encode(context, &arguments[0])?.map_err(Error::new)?;
                context.charge(text.len())?;
                Ok(Value::String(text.into()))
            }),
        );
    }
}

#[cfg(test)]
mod tests {
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
        let written = encode::encode(&mut render.context(), &value).expect("within bounds");
        let written = written.map(|text| String::from_utf8(text).expect("UTF-8"));
        assert_eq!(written, expected.map(str::to_owned).map_err(str::to_owned));
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
    fn a_null_within_braces_leaves_its_comma() {
        let table = map([("a", Value::int(1)), ("b", Value::Nil)]);
        check(
            map([("l", list(vec![table, Value::int(1)]))]),
            Ok("l = [{a = 1, }, 1]\n"),
        );
    }
}

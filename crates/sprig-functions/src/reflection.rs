//! Go types of values: `typeOf`, `kindOf` and their tests.

use go_template::{Functions, Type, Value};

use crate::arguments::{add, any, text};
use crate::deep_equal::deep_equal;

const ONE: &[Type] = &[Type::ANY];
const NAME_AND_ONE: &[Type] = &[Type::STRING, Type::ANY];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("typeOf", ONE, |_, arguments| Ok(type_of(arguments, 0).into())),
            ("kindOf", ONE, |_, arguments| {
                Ok(kind_of(&any(arguments, 0)).into())
            }),
            ("typeIs", NAME_AND_ONE, |_, arguments| {
                Ok((text(arguments, 0) == type_of(arguments, 1).as_bytes()).into())
            }),
            ("typeIsLike", NAME_AND_ONE, |_, arguments| {
                let (target, found) = (text(arguments, 0), type_of(arguments, 1).as_bytes());
                Ok((target == found || found.strip_prefix(b"*") == Some(target)).into())
            }),
            ("kindIs", NAME_AND_ONE, |_, arguments| {
                Ok((text(arguments, 0) == kind_of(&any(arguments, 1)).as_bytes()).into())
            }),
            ("deepEqual", &[Type::ANY, Type::ANY], |_, arguments| {
                Ok(deep_equal(&any(arguments, 0), &any(arguments, 1)).into())
            }),
        ],
    );
}

fn type_of(arguments: &[Value], index: usize) -> &'static str {
    arguments.get(index).map_or("<nil>", Value::type_name)
}

/// Returns what `reflect.ValueOf(value).Kind()` prints.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Invalid | Value::Nil => "invalid",
        value => value.kind().map_or("invalid", go_template::Kind::name),
    }
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    #[test]
    fn types_and_kinds_are_named_as_go_names_them() {
        let check = |template: &str, expected: &str| crate::testing::check(template, &Value::Nil, expected);
        check(
            "{{ typeOf nil }} {{ kindOf nil }} {{ typeOf (dict) }} {{ kindOf (list) }}",
            "<nil> invalid map[string]interface {} slice",
        );
        check(
            r#"{{ typeIs "int" 1 }} {{ typeIsLike "string" "" }} {{ kindIs "map" (split "" "") }}"#,
            "true true true",
        );
        check(
            "{{ deepEqual (dict 1 (list 1)) (dict 1 (list 1)) }} {{ deepEqual 1 1.0 }}",
            "true false",
        );
    }
}

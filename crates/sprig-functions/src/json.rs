//! `toJson`, `fromJson` and their kin.

use go_template::json::{Style, charge_values, decode, decode_as, encode};
use go_template::{Context, Error, Functions, Type, Value};

use crate::arguments::{add, any, text};

const ONE: &[Type] = &[Type::ANY];
const TEXT: &[Type] = &[Type::STRING];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("toJson", ONE, |context, arguments| {
                quietly(context, arguments, Style::MARSHAL)
            }),
            ("mustToJson", ONE, |context, arguments| {
                to_json(context, arguments, Style::MARSHAL)
            }),
            ("toPrettyJson", ONE, |context, arguments| {
                quietly(context, arguments, Style::PRETTY)
            }),
            ("mustToPrettyJson", ONE, |context, arguments| {
                to_json(context, arguments, Style::PRETTY)
            }),
            // Unlike the others this one does not swallow its error.
            ("toRawJson", ONE, |context, arguments| {
                to_json(context, arguments, Style::RAW)
            }),
            ("mustToRawJson", ONE, |context, arguments| {
                to_json(context, arguments, Style::RAW)
            }),
            ("fromJson", TEXT, |context, arguments| {
                charge_values(context, text(arguments, 0))?;
                Ok(decode_as(text(arguments, 0), Type::ANY)
                    .value
                    .unwrap_or(Value::Nil))
            }),
            ("mustFromJson", TEXT, |context, arguments| {
                charge_values(context, text(arguments, 0))?;
                decode(text(arguments, 0))
            }),
        ],
    );
}

fn to_json(context: &mut Context<'_>, arguments: &[Value], style: Style) -> Result<Value, Error> {
    let text = encode(&any(arguments, 0), style)?;
    context.charge(text.len())?;
    Ok(text.into())
}

fn quietly(context: &mut Context<'_>, arguments: &[Value], style: Style) -> Result<Value, Error> {
    match to_json(context, arguments, style) {
        Err(error) if !error.is_limit() => Ok("".into()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    #[test]
    fn errors_are_swallowed_but_by_must_and_raw() {
        let check = |template: &str, expected: &str| crate::testing::check(template, &Value::Nil, expected);
        check(
            r#"{{ dict "a" "<" | toJson }}{{ dict "a" "<" | toRawJson }}"#,
            r#"{"a":"\u003c"}{"a":"<"}"#,
        );
        check(
            r#"{{ toJson 1i }}|{{ fromJson "{" | toJson }}|{{ fromJson "[1e999, 2]" }}"#,
            "|null|[<nil> 2]",
        );
        check(
            "{{ toRawJson 1i }}",
            "error calling toRawJson: json: unsupported type: complex128",
        );
        check(
            r#"{{ mustFromJson "{" }}"#,
            "error calling mustFromJson: unexpected end of JSON input",
        );
    }
}

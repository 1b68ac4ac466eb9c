//! `replace`, `repeat`, `plural`.

use go_template::{Context, Error, Functions, Type, Value};
use go_text::rune::decode;
use memchr::memmem;

use crate::arguments::{add, charge, int, made, string, text};

pub(super) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("replace", &[Type::STRING, Type::STRING, Type::STRING], replace),
            ("repeat", &[Type::INT, Type::STRING], repeat),
            (
                "plural",
                &[Type::STRING, Type::STRING, Type::INT],
                |_, arguments| {
                    let index = usize::from(int(arguments, 2) != 1);
                    Ok(string(arguments, index).into())
                },
            ),
        ],
    );
}

/// `strings.ReplaceAll`; without anything to replace the new text is put around each character.
fn replace(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (old, new, text) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
    if old == new {
        return Ok(string(arguments, 2).into());
    }
    if old.is_empty() {
        return surround(context, new, text);
    }
    let mut out = Vec::new();
    let mut start = 0;
    for at in memmem::find_iter(text, old) {
        if start == 0 {
            out.reserve(text.len() + new.len());
        }
        context.charge(at - start + new.len())?;
        out.extend_from_slice(&text[start..at]);
        out.extend_from_slice(new);
        start = at + old.len();
    }
    if start == 0 {
        return Ok(string(arguments, 2).into());
    }
    out.extend_from_slice(&text[start..]);
    made(out)
}

fn surround(context: &mut Context<'_>, new: &[u8], mut text: &[u8]) -> Result<Value, Error> {
    charge(context, text.len() + 1, new.len())?;
    let mut out = new.to_vec();
    while !text.is_empty() {
        let (_, width) = decode(text);
        out.extend_from_slice(&text[..width]);
        out.extend_from_slice(new);
        text = &text[width..];
    }
    made(out)
}

fn repeat(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let text = text(arguments, 1);
    let Ok(count) = usize::try_from(int(arguments, 0)) else {
        return Err(Error::new("strings: negative Repeat count"));
    };
    if text
        .len()
        .checked_mul(count)
        .is_none_or(|length| i64::try_from(length).is_err())
    {
        return Err(Error::new("strings: Repeat output length overflow"));
    }
    if text.is_empty() {
        return Ok("".into());
    }
    charge(context, count, text.len())?;
    made(text.repeat(count))
}

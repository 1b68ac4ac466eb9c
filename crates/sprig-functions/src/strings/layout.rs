//! How text stands on lines: `indent`, `nindent`, `wrap`.

use go_template::{Context, Error, Functions, Type, Value};
use memchr::{memchr, memchr_iter, memrchr};

use crate::arguments::{add, charge, int, made, string, text};

const SPACES_AND_TEXT: &[Type] = &[Type::INT, Type::STRING];

pub(super) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("indent", SPACES_AND_TEXT, |context, arguments| {
                indent(context, arguments, b"")
            }),
            ("nindent", SPACES_AND_TEXT, |context, arguments| {
                indent(context, arguments, b"\n")
            }),
            ("wrap", SPACES_AND_TEXT, |context, arguments| {
                wrap(context, arguments, text(arguments, 1), b"\n", false)
            }),
            (
                "wrapWith",
                &[Type::INT, Type::STRING, Type::STRING],
                |context, arguments| wrap(context, arguments, text(arguments, 2), text(arguments, 1), true),
            ),
        ],
    );
}

/// Puts spaces before each line, even an empty one, with something before all.
fn indent(context: &mut Context<'_>, arguments: &[Value], before: &[u8]) -> Result<Value, Error> {
    let text = text(arguments, 1);
    let Ok(spaces) = usize::try_from(int(arguments, 0)) else {
        return Err(Error::new("strings: negative Repeat count"));
    };
    if spaces == 0 && before.is_empty() {
        return Ok(string(arguments, 1).into());
    }
    let lines = memchr_iter(b'\n', text).count() + 1;
    charge(context, lines, spaces)?;
    context.charge(text.len())?;
    let mut out = Vec::with_capacity(before.len() + text.len() + lines * spaces);
    out.extend_from_slice(before);
    out.resize(out.len() + spaces, b' ');
    let mut start = 0;
    for newline in memchr_iter(b'\n', text) {
        out.extend_from_slice(&text[start..=newline]);
        out.resize(out.len() + spaces, b' ');
        start = newline + 1;
    }
    out.extend_from_slice(&text[start..]);
    made(out)
}

/// `goutils.WrapCustom`: breaks lines at spaces, counting bytes. A word longer than a line is broken only where told.
fn wrap(
    context: &mut Context<'_>,
    arguments: &[Value],
    mut text: &[u8],
    newline: &[u8],
    break_words: bool,
) -> Result<Value, Error> {
    let newline = if newline.is_empty() { b"\n" } else { newline };
    let width = usize::try_from(int(arguments, 0)).unwrap_or(1).max(1);
    let mut out = Vec::with_capacity(text.len());
    while text.len() > width {
        if text[0] == b' ' {
            text = &text[1..];
            continue;
        }
        let (line, rest) = if let Some(space) = memrchr(b' ', &text[..=width]) {
            (&text[..space], &text[space + 1..])
        } else if break_words {
            text.split_at(width)
        } else if let Some(space) = memchr(b' ', &text[width..]) {
            (&text[..width + space], &text[width + space + 1..])
        } else {
            break;
        };
        context.charge(line.len() + newline.len())?;
        out.extend_from_slice(line);
        out.extend_from_slice(newline);
        text = rest;
    }
    out.extend_from_slice(text);
    made(out)
}

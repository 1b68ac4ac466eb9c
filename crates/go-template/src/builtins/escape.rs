//! `html`, `js` and `urlquery`.

use std::fmt::Write as _;

use crate::{Context, Error, Value, format};
use go_text::rune;

pub(super) fn html(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    escaped(context, arguments, |text, out| {
        for byte in text {
            match byte {
                b'\0' => out.extend_from_slice("\u{fffd}".as_bytes()),
                b'"' => out.extend_from_slice(b"&#34;"),
                b'\'' => out.extend_from_slice(b"&#39;"),
                b'&' => out.extend_from_slice(b"&amp;"),
                b'<' => out.extend_from_slice(b"&lt;"),
                b'>' => out.extend_from_slice(b"&gt;"),
                byte => out.push(*byte),
            }
        }
    })
}

pub(super) fn js(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    escaped(context, arguments, |mut text, out| {
        while let (character, width @ 1..) = rune::decode(text) {
            write_js(character, &text[..width], out);
            text = &text[width..];
        }
    })
}

fn write_js(character: char, bytes: &[u8], out: &mut Vec<u8>) {
    match character {
        '\\' => out.extend_from_slice(br"\\"),
        '\'' => out.extend_from_slice(br"\'"),
        '"' => out.extend_from_slice(br#"\""#),
        '\0'..' ' | '<' | '>' | '&' | '=' => write_unicode(character, out),
        ' '..='\x7f' => out.extend_from_slice(bytes),
        character if rune::is_printable(character) => out.extend_from_slice(bytes),
        character => write_unicode(character, out),
    }
}

fn write_unicode(character: char, out: &mut Vec<u8>) {
    let mut text = String::new();
    let _ = write!(text, r"\u{:04X}", u32::from(character));
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn urlquery(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    escaped(context, arguments, |text, out| {
        for byte in text {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*byte),
                b' ' => out.push(b'+'),
                byte => out.extend_from_slice(std::format!("%{byte:02X}").as_bytes()),
            }
        }
    })
}

/// Prints the arguments as an action prints them, and escapes that.
fn escaped(
    context: &mut Context<'_>,
    arguments: &[Value],
    escape: impl Fn(&[u8], &mut Vec<u8>),
) -> Result<Value, Error> {
    let text = match arguments {
        [Value::String(text)] => text.to_vec(),
        arguments => format::sprint_printable(context.work.room(), arguments)?,
    };
    context.charge(text.len().saturating_mul(6))?;
    let mut out = Vec::with_capacity(text.len());
    escape(&text, &mut out);
    Ok(Value::String(out.into()))
}

//! Trims strings: from the ends, or within.

use std::collections::HashSet;

use go_template::{Context, Error, Functions, Str, Type, Value};
use go_text::rune::{self, decode, decode_all, encode};

use crate::arguments::{add, made, string, text};
use crate::unicode::is_space;

const ONE: &[Type] = &[Type::STRING];
const TWO: &[Type] = &[Type::STRING, Type::STRING];

pub(super) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("trim", ONE, |_, arguments| {
                part(arguments, 0, trimmed(text(arguments, 0), is_space))
            }),
            ("trimAll", TWO, trim_all),
            ("trimall", TWO, trim_all),
            ("trimSuffix", TWO, |_, arguments| {
                let text_ = text(arguments, 1);
                part(
                    arguments,
                    1,
                    text_.strip_suffix(text(arguments, 0)).unwrap_or(text_),
                )
            }),
            ("trimPrefix", TWO, |_, arguments| {
                let text_ = text(arguments, 1);
                part(
                    arguments,
                    1,
                    text_.strip_prefix(text(arguments, 0)).unwrap_or(text_),
                )
            }),
            ("nospace", ONE, without_space),
        ],
    );
}

fn trim_all(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let cut: HashSet<char> = decode_all(text(arguments, 0)).collect();
    let kept = trimmed(text(arguments, 1), |character| cut.contains(&character));
    part(arguments, 1, kept)
}

/// Makes a string of a part of an argument, which is shared where it is all of it.
fn part(arguments: &[Value], index: usize, part: &[u8]) -> Result<Value, Error> {
    if part.len() == text(arguments, index).len() {
        return Ok(string(arguments, index).into());
    }
    Ok(Str::from(part).into())
}

fn trimmed(mut text: &[u8], is_cut: impl Fn(char) -> bool) -> &[u8] {
    while let (character, width @ 1..) = decode(text) {
        if !is_cut(character) {
            break;
        }
        text = &text[width..];
    }
    while let (character, width @ 1..) = decode_last(text) {
        if !is_cut(character) {
            break;
        }
        text = &text[..text.len() - width];
    }
    text
}

/// Go's `utf8.DecodeLastRune`.
fn decode_last(text: &[u8]) -> (char, usize) {
    if text.is_empty() {
        return (rune::ERROR, 0);
    }
    for width in (1..=text.len().min(4)).rev() {
        let (character, found) = decode(&text[text.len() - width..]);
        if found == width {
            return (character, width);
        }
    }
    (rune::ERROR, 1)
}

/// `goutils.DeleteWhiteSpace`, which takes each byte for a character: where there is any space, all characters beyond ASCII
/// come out as two, but for those bytes that are spaces of Latin-1.
fn without_space(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let text = text(arguments, 0);
    let is_space = |byte: &u8| is_space(char::from(*byte));
    if !text.iter().any(is_space) {
        return Ok(string(arguments, 0).into());
    }
    let mut out = Vec::with_capacity(text.len());
    for byte in text.iter().filter(|byte| !is_space(byte)) {
        encode(char::from(*byte), &mut out);
    }
    made(out)
}

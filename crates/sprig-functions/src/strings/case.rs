//! Upper, lower and title case, character by character.

use go_template::{Context, Error, Functions, Type, Value};
use go_text::rune::{decode_all, encode, is_digit, is_letter};

use crate::arguments::{add, made, string, text};
use crate::unicode::{is_lower, is_space, is_title, is_upper, to_lower, to_title, to_upper};

const TEXT: &[Type] = &[Type::STRING];

pub(super) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("upper", TEXT, upper),
            ("lower", TEXT, lower),
            ("title", TEXT, title),
            ("untitle", TEXT, untitle),
            ("swapcase", TEXT, swap_case),
        ],
    );
}

fn upper(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let text = text(arguments, 0);
    if text.is_ascii() {
        if !text.iter().any(u8::is_ascii_lowercase) {
            return Ok(string(arguments, 0).into());
        }
        return made(text.to_ascii_uppercase());
    }
    mapped(text, to_upper)
}

fn lower(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let text = text(arguments, 0);
    if text.is_ascii() {
        if !text.iter().any(u8::is_ascii_uppercase) {
            return Ok(string(arguments, 0).into());
        }
        return made(text.to_ascii_lowercase());
    }
    mapped(text, to_lower)
}

/// `strings.Title`: what follows a separator in title case, the rest as it is.
fn title(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut begins = true;
    mapped(text(arguments, 0), |character| {
        let mapped = if begins { to_title(character) } else { character };
        begins = is_separator(character);
        mapped
    })
}

fn is_separator(character: char) -> bool {
    if character.is_ascii() {
        return !(character.is_ascii_alphanumeric() || character == '_');
    }
    !is_letter(character) && !is_digit(character) && is_space(character)
}

/// `goutils.Uncapitalize`: the first character of each word in lower case.
fn untitle(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut begins = true;
    mapped(text(arguments, 0), |character| {
        if is_space(character) {
            begins = true;
        } else if begins {
            begins = false;
            return to_lower(character);
        }
        character
    })
}

/// `goutils.SwapCase`: lower case becomes title case where a word begins.
fn swap_case(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut after_space = true;
    mapped(text(arguments, 0), |character| {
        if is_upper(character) || is_title(character) {
            after_space = false;
            to_lower(character)
        } else if is_lower(character) {
            if std::mem::take(&mut after_space) {
                to_title(character)
            } else {
                to_upper(character)
            }
        } else {
            after_space = is_space(character);
            character
        }
    })
}

/// Maps each character; bytes that are none become replacement characters, as with `strings.Map`.
fn mapped(text: &[u8], map: impl FnMut(char) -> char) -> Result<Value, Error> {
    let mut out = Vec::with_capacity(text.len());
    decode_all(text)
        .map(map)
        .for_each(|character| encode(character, &mut out));
    made(out)
}

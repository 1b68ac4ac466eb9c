//! Words: their initials, abbreviations, and the cases that join them.

mod camel;
mod lower;

use go_template::{Context, Error, Functions, Str, Type, Value};
use go_text::rune::encode;

use crate::arguments::{add, int, made, string, text};
use crate::unicode::is_space;

const TEXT: &[Type] = &[Type::STRING];

pub(super) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("initials", TEXT, initials),
            ("abbrev", &[Type::INT, Type::STRING], |_, arguments| {
                let width = int(arguments, 0);
                if width < 4 {
                    return Ok(string(arguments, 1).into());
                }
                abbreviate(&string(arguments, 1), 0, width)
            }),
            (
                "abbrevboth",
                &[Type::INT, Type::INT, Type::STRING],
                |_, arguments| {
                    let (offset, width) = (int(arguments, 0), int(arguments, 1));
                    if width < 4 || (offset > 0 && width < 7) {
                        return Ok(string(arguments, 2).into());
                    }
                    abbreviate(&string(arguments, 2), offset, width)
                },
            ),
            ("camelcase", TEXT, |_, arguments| {
                made(camel::pascal_case(text(arguments, 0)))
            }),
            ("snakecase", TEXT, |_, arguments| {
                made(lower::lower_case(text(arguments, 0), '_'))
            }),
            ("kebabcase", TEXT, |_, arguments| {
                made(lower::lower_case(text(arguments, 0), '-'))
            }),
        ],
    );
}

/// `goutils.Initials`: the first byte of each word, taken for a character of Latin-1.
fn initials(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut out = Vec::new();
    let mut begins = true;
    for byte in text(arguments, 0) {
        let character = char::from(*byte);
        if is_space(character) {
            begins = true;
        } else if std::mem::take(&mut begins) {
            encode(character, &mut out);
        }
    }
    made(out)
}

/// `goutils.AbbreviateFull`: at most `width` bytes, with dots for what is left out behind them, and before them where the
/// offset is large enough. An error, which sprig drops, gives an empty text.
fn abbreviate(text: &Str, offset: i64, width: i64) -> Result<Value, Error> {
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if length <= width {
        return Ok(text.clone().into());
    }
    let kept = width - 3;
    let offset = offset.min(length);
    let offset = if length.saturating_sub(offset) < kept {
        length - kept
    } else {
        offset
    };
    let at = |position: i64| usize::try_from(position).unwrap_or_default();
    if offset <= 4 {
        return made([&text[..at(kept)], b"..."].concat());
    }
    if width < 7 {
        return Ok("".into());
    }
    if offset + kept < length {
        // The rest is longer than what is kept, so that it ends with dots as well.
        let (from, to) = (at(offset), at(offset + kept - 3));
        return made([b"...", &text[from..to], b"..."].concat());
    }
    made([b"...", &text[at(length - kept)..]].concat())
}

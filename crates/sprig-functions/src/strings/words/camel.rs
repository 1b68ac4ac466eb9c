//! `camelcase`: huandu/xstrings' `ToPascalCase`.

use go_text::rune::{decode_all, encode};

use crate::unicode::{is_space, is_upper, to_lower, to_upper};

/// Joins words in camel case. Connectors before the first word stay, as does one of two that stand together.
pub(super) fn pascal_case(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut characters = decode_all(text).peekable();
    let Some(first) = characters.find(|character| {
        let leads = is_connector(*character);
        if leads {
            encode(*character, &mut out);
        }
        !leads
    }) else {
        // Nothing but connectors: the last one is written once more, since it is still at hand.
        if let Some(last) = decode_all(text).last() {
            encode(last, &mut out);
        }
        return out;
    };
    // Whether the word began with a capital, of which those that follow are lowered.
    let mut was_upper = is_upper(first);
    let mut previous = to_upper(first);
    for character in characters {
        let mut current = character;
        if is_connector(current) && is_connector(previous) {
            encode(previous, &mut out);
            previous = current;
            continue;
        }
        if is_connector(previous) {
            was_upper = is_upper(current);
            current = to_upper(current);
        } else {
            if was_upper {
                if is_upper(current) {
                    current = to_lower(current);
                } else {
                    was_upper = false;
                }
            }
            encode(previous, &mut out);
        }
        previous = current;
    }
    encode(previous, &mut out);
    out
}

/// Returns whether a character stands between words.
pub(super) fn is_connector(character: char) -> bool {
    matches!(character, '-' | '_') || is_space(character)
}

//! Go's `unicode` package, as far as the functions on strings need it: classes and simple changes of case.
//!
//! Rust's own differ: they know a newer Unicode, derived classes (`Ⅷ` is upper case), and changes of case that make
//! several characters of one (`ß`).

mod tables;

/// Returns whether Go's `unicode.IsUpper` holds.
pub(crate) fn is_upper(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_uppercase();
    }
    contains(tables::UPPER, character)
}

/// Returns whether Go's `unicode.IsLower` holds.
pub(crate) fn is_lower(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_lowercase();
    }
    contains(tables::LOWER, character)
}

/// Returns whether Go's `unicode.IsTitle` holds.
pub(crate) fn is_title(character: char) -> bool {
    contains(tables::TITLE, character)
}

/// Returns whether Go's `unicode.IsPunct` holds.
pub(crate) fn is_punctuation(character: char) -> bool {
    contains(tables::PUNCTUATION, character)
}

/// Returns whether Go's `unicode.IsNumber` holds.
pub(crate) fn is_number(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_digit();
    }
    contains(tables::NUMBER, character)
}

/// Returns whether Go's `unicode.IsSpace` holds: the property White_Space, of which Rust knows the same characters.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace()
}

/// Go's `unicode.ToUpper`.
pub(crate) fn to_upper(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    convert(character, Case::Upper)
}

/// Go's `unicode.ToLower`.
pub(crate) fn to_lower(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    convert(character, Case::Lower)
}

/// Go's `unicode.ToTitle`.
pub(crate) fn to_title(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    convert(character, Case::Title)
}

#[derive(Clone, Copy, PartialEq)]
enum Case {
    Upper,
    Lower,
    Title,
}

fn convert(character: char, case: Case) -> char {
    /// More than any difference of two code points: upper and lower case alternate from the first one on.
    const ALTERNATING: i32 = 0x11_0000;
    let code = u32::from(character);
    let after = tables::CASES.partition_point(|(first, ..)| *first <= code);
    let Some(&(first, last, upper, lower, title)) = after.checked_sub(1).map(|at| &tables::CASES[at]) else {
        return character;
    };
    if code > last {
        return character;
    }
    let delta = match case {
        Case::Upper => upper,
        Case::Lower => lower,
        Case::Title => title,
    };
    let converted = if delta == ALTERNATING {
        first + ((code - first) & !1 | u32::from(case == Case::Lower))
    } else {
        code.saturating_add_signed(delta)
    };
    char::from_u32(converted).unwrap_or(character)
}

fn contains(ranges: &[(u32, u32, u32)], character: char) -> bool {
    let code = u32::from(character);
    let after = ranges.partition_point(|(first, ..)| *first <= code);
    after > 0 && {
        let (first, last, stride) = ranges[after - 1];
        code <= last && (code - first) % stride == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_gos_tables() {
        let check = |character: char, upper, lower, title, punctuation, number| {
            let classes = (
                is_upper(character),
                is_lower(character),
                is_title(character),
                is_punctuation(character),
                is_number(character),
            );
            assert_eq!(
                classes,
                (upper, lower, title, punctuation, number),
                "{character:?}"
            );
        };
        check('A', true, false, false, false, false);
        check('a', false, true, false, false, false);
        check('Ā', true, false, false, false, false);
        check('ā', false, true, false, false, false);
        check('ǅ', false, false, true, false, false);
        check('Ⅷ', false, false, false, false, true);
        check('_', false, false, false, true, false);
        check('$', false, false, false, false, false);
        check('½', false, false, false, false, true);
    }

    #[test]
    fn case_changes_one_character_to_one() {
        let check = |character: char, upper: char, lower: char, title: char| {
            let found = (to_upper(character), to_lower(character), to_title(character));
            assert_eq!(found, (upper, lower, title), "{character:?}");
        };
        check('ß', 'ß', 'ß', 'ß');
        check('ẞ', 'ẞ', 'ß', 'ẞ');
        check('é', 'É', 'é', 'É');
        check('ā', 'Ā', 'ā', 'Ā');
        check('Ź', 'Ź', 'ź', 'Ź');
        check('ǆ', 'Ǆ', 'ǆ', 'ǅ');
        check('İ', 'İ', 'i', 'İ');
        check('ſ', 'S', 'ſ', 'S');
        check('日', '日', '日', '日');
    }
}

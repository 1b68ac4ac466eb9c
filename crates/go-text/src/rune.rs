//! Go's characters: how it reads them from bytes that need not be UTF-8, and which class it puts them in.

mod tables;

/// Rune that Go reads where bytes are no UTF-8 (`utf8.RuneError`).
pub const ERROR: char = char::REPLACEMENT_CHARACTER;

/// Reads the first character and its width in bytes. An invalid byte is [`ERROR`] of width 1; the replacement character
/// itself has width 3. At the end the width is 0.
pub fn decode(bytes: &[u8]) -> (char, usize) {
    let Some(&first) = bytes.first() else {
        return (ERROR, 0);
    };
    let width = match first {
        0..0x80 => return (char::from(first), 1),
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return (ERROR, 1),
    };
    let read = bytes
        .get(..width)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|text| text.chars().next());
    read.map_or((ERROR, 1), |character| (character, width))
}

/// Returns the bytes' characters as a `for range` of Go reads them.
pub fn decode_all(mut bytes: &[u8]) -> impl Iterator<Item = char> {
    std::iter::from_fn(move || {
        let (character, width) = decode(bytes);
        bytes = &bytes[width..];
        (width > 0).then_some(character)
    })
}

/// Appends the UTF-8 of a character.
pub fn encode(character: char, out: &mut Vec<u8>) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Go's `unicode.IsLetter`.
pub fn is_letter(character: char) -> bool {
    if character.is_ascii() {
        character.is_ascii_alphabetic()
    } else {
        contains(&tables::LETTERS, character)
    }
}

/// Go's `unicode.IsDigit`.
pub fn is_digit(character: char) -> bool {
    if character.is_ascii() {
        character.is_ascii_digit()
    } else {
        contains(&tables::DIGITS, character)
    }
}

/// Go's `strconv.IsPrint`, which is also `unicode.IsPrint`: of all spaces only the ASCII one.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        matches!(character, ' '..='~')
    } else {
        contains(&tables::PRINTABLE, character)
    }
}

fn contains(ranges: &[(u32, u32)], character: char) -> bool {
    let code = u32::from(character);
    let after = ranges.partition_point(|(first, _)| *first <= code);
    after > 0 && code <= ranges[after - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_are_read_one_by_one() {
        let check = |bytes: &[u8], expected: (char, usize)| assert_eq!(decode(bytes), expected, "{bytes:?}");
        check(b"", (ERROR, 0));
        check(b"ab", ('a', 1));
        check("éa".as_bytes(), ('é', 2));
        check("€".as_bytes(), ('€', 3));
        check("😀".as_bytes(), ('😀', 4));
        check("\u{fffd}".as_bytes(), (ERROR, 3));
        check(b"\x80", (ERROR, 1));
        check(b"\xc0\x80", (ERROR, 1));
        check(b"\xe2\x82", (ERROR, 1));
        check(b"\xed\xa0\x80", (ERROR, 1)); // a surrogate
        check(b"\xf4\x90\x80\x80", (ERROR, 1)); // beyond the last character
        assert_eq!(
            decode_all(b"a\xff\xffb").collect::<String>(),
            "a\u{fffd}\u{fffd}b"
        );
    }

    #[test]
    fn classes_are_those_of_gos_tables() {
        let check = |character: char, letter: bool, digit: bool, printable: bool| {
            let classes = (is_letter(character), is_digit(character), is_printable(character));
            assert_eq!(classes, (letter, digit, printable), "{character:?}");
        };
        check('Z', true, false, true);
        check('9', false, true, true);
        check('\x7f', false, false, false);
        check('_', false, false, true);
        check('é', true, false, true);
        check('\u{a0}', false, false, false); // no-break space
        check('\u{661}', false, true, true); // Arabic digit one
        check('Ⅷ', false, false, true); // a number by category, although alphabetic
        check('\u{301}', false, false, true); // a combining accent
        check('\u{31350}', true, false, true); // new in Unicode 15
        check('\u{2ebf0}', false, false, false); // new in Unicode 15.1
        check(ERROR, false, false, true);
    }
}

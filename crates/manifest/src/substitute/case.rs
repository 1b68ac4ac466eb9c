//! Upper and lower case as Go's `unicode` package maps them: one character to one, in no language.

use super::first_character;

/// Changes the first character.
pub(super) fn first(value: &[u8], change: fn(char) -> char) -> Vec<u8> {
    if value.is_empty() {
        return Vec::new();
    }
    let (character, width) = first_character(value);
    let mut changed = change(character).to_string().into_bytes();
    changed.extend_from_slice(&value[width..]);
    changed
}

/// Changes every character; broken bytes become U+FFFD.
pub(super) fn all(mut value: &[u8], change: fn(char) -> char) -> Vec<u8> {
    let mut changed = String::with_capacity(value.len());
    while !value.is_empty() {
        let (character, width) = first_character(value);
        changed.push(change(character));
        value = &value[width..];
    }
    changed.into_bytes()
}

/// The upper case of a character.
pub(super) fn upper(character: char) -> char {
    single(character.to_uppercase()).unwrap_or_else(|| match character {
        // Of those whose full upper case has several characters, Greek letters with iota have a single one too.
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => later(character, 8),
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => later(character, 9),
        _ => character,
    })
}

/// The lower case of a character.
pub(super) fn lower(character: char) -> char {
    single(character.to_lowercase()).unwrap_or(if character == 'İ' { 'i' } else { character })
}

fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let character = characters.next();
    character.filter(|_| characters.next().is_none())
}

fn later(character: char, by: u32) -> char {
    char::from_u32(u32::from(character) + by).unwrap_or(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Go 1.26 (Unicode 15), which agrees for every character that Unicode 15 has.
    #[test]
    fn characters_map_to_one_character() {
        for (from, to) in [
            ('a', 'A'),
            ('ß', 'ß'),
            ('ᾀ', 'ᾈ'),
            ('ῃ', 'ῌ'),
            ('ŉ', 'ŉ'),
            ('ǆ', 'Ǆ'),
            ('ı', 'I'),
        ] {
            assert_eq!(upper(from), to, "{from}");
        }
        for (from, to) in [
            ('A', 'a'),
            ('İ', 'i'),
            ('ẞ', 'ß'),
            ('Σ', 'σ'),
            ('ᾈ', 'ᾀ'),
            ('本', '本'),
        ] {
            assert_eq!(lower(from), to, "{from}");
        }
    }
}

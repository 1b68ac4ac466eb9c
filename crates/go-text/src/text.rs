//! Bytes as text.

use std::borrow::Cow;

/// Converts bytes to text. Each invalid byte becomes a replacement character, as in Go's JSON; `String::from_utf8_lossy`
/// replaces several bytes by one.
pub fn valid_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::valid_text;

    #[test]
    fn each_byte_that_is_no_text_is_replaced() {
        assert_eq!(valid_text("ué".as_bytes()), "ué");
        // The first two bytes of a three-byte character.
        assert_eq!(valid_text(b"u\xe7\xa7"), "u\u{fffd}\u{fffd}");
    }
}

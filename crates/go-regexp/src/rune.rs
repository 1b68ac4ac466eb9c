//! Characters of bytes that need not be UTF-8, as Go decodes them.

/// Rune that Go reads where bytes are not UTF-8.
pub(crate) const ERROR: u32 = 0xFFFD;

/// The first character and its length: [`ERROR`] of length 1 where the bytes are not UTF-8, of length 0 at the end.
pub(crate) fn decode(bytes: &[u8]) -> (u32, usize) {
    let Some(&first) = bytes.first() else {
        return (ERROR, 0);
    };
    let length = match first {
        0..0x80 => return (u32::from(first), 1),
        0xC2..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0..0xF5 => 4,
        _ => return (ERROR, 1),
    };
    let text = bytes.get(..length).and_then(|bytes| str::from_utf8(bytes).ok());
    match text.and_then(|text| text.chars().next()) {
        Some(c) => (u32::from(c), length),
        None => (ERROR, 1),
    }
}

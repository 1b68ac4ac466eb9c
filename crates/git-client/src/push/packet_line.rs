//! Packet lines: four hexadecimal digits of length, then content (gitprotocol-common(5)).

use std::io::{self, Read};

/// The longest line that a packet can hold, without its length.
pub(super) const MAX_CONTENT: usize = 65_516;
/// Ends a section.
pub(super) const FLUSH: &[u8; 4] = b"0000";

/// Reads the next line; None at the end of a section.
pub(super) fn read(reader: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    let mut digits = [0; 4];
    reader.read_exact(&mut digits)?;
    let nonsense = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not in packet lines");
    let length = std::str::from_utf8(&digits)
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| usize::from_str_radix(digits, 16).ok())
        .ok_or_else(nonsense)?;
    match length {
        0 => Ok(None),
        1..4 => Err(nonsense()),
        _ => {
            let mut content = vec![0; length - digits.len()];
            reader.read_exact(&mut content)?;
            Ok(Some(content))
        }
    }
}

/// Adds a line; content longer than a packet is cut.
pub(super) fn push(lines: &mut Vec<u8>, content: &[u8]) {
    let content = &content[..content.len().min(MAX_CONTENT)];
    lines.extend_from_slice(format!("{:04x}", content.len() + FLUSH.len()).as_bytes());
    lines.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let mut lines = Vec::new();
        push(&mut lines, b"first\n");
        push(&mut lines, b"");
        lines.extend_from_slice(FLUSH);
        assert_eq!(lines, b"000afirst\n00040000");
        let mut rest = lines.as_slice();
        assert_eq!(read(&mut rest).unwrap().as_deref(), Some(&b"first\n"[..]));
        assert_eq!(read(&mut rest).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(read(&mut rest).unwrap(), None);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for (text, kind) in [
            ("", io::ErrorKind::UnexpectedEof),
            ("00", io::ErrorKind::UnexpectedEof),
            ("0009ab", io::ErrorKind::UnexpectedEof),
            ("0001", io::ErrorKind::InvalidData),
            ("+123", io::ErrorKind::InvalidData),
            ("<htm", io::ErrorKind::InvalidData),
        ] {
            assert_eq!(read(&mut text.as_bytes()).unwrap_err().kind(), kind, "{text:?}");
        }
    }
}

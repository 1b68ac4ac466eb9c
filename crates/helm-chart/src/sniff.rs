//! Detects the type of a file by its first bytes: Go's `net/http.DetectContentType`, whose names Helm puts
//! into errors.

/// How many bytes are looked at.
pub(super) const SNIFFED: usize = 512;

/// Names the kind of contents.
pub(super) fn content_type(head: &[u8]) -> &'static str {
    let blanks = head.iter().take_while(|byte| is_blank(**byte)).count();
    let text = &head[blanks..];
    if MARKUP.iter().any(|tag| is_tag(text, tag)) {
        return "text/html; charset=utf-8";
    }
    if text.starts_with(b"<?xml") {
        return "text/xml; charset=utf-8";
    }
    if let Some((_, name)) = EARLY.iter().find(|(pattern, _)| fits(head, pattern)) {
        return name;
    }
    if is_mp4(head) {
        return "video/mp4";
    }
    if let Some((_, name)) = LATE.iter().find(|(pattern, _)| fits(head, pattern)) {
        return name;
    }
    let is_binary = |byte: &u8| matches!(byte, 0..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    if text.iter().any(is_binary) {
        "application/octet-stream"
    } else {
        "text/plain; charset=utf-8"
    }
}

/// Returns whether a gzip stream starts here.
pub(super) fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(b"\x1f\x8b\x08")
}

/// Tags that open a page, in upper case: letters match in both.
const MARKUP: &[&[u8]] = &[
    b"<!DOCTYPE HTML",
    b"<HTML",
    b"<HEAD",
    b"<SCRIPT",
    b"<IFRAME",
    b"<H1",
    b"<DIV",
    b"<FONT",
    b"<TABLE",
    b"<A",
    b"<STYLE",
    b"<TITLE",
    b"<B",
    b"<BODY",
    b"<BR",
    b"<P",
    b"<!--",
];

/// Signatures, of which `?` fits every byte. Those before video/mp4, which has a rule of its own.
const EARLY: &[(&[u8], &str)] = &[
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\xfe\xff??", "text/plain; charset=utf-16be"),
    (b"\xff\xfe??", "text/plain; charset=utf-16le"),
    (b"\xef\xbb\xbf?", "text/plain; charset=utf-8"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"BM", "image/bmp"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"RIFF????WEBPVP", "image/webp"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"FORM????AIFF", "audio/aiff"),
    (b"ID3", "audio/mpeg"),
    (b"OggS\x00", "application/ogg"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"RIFF????AVI ", "video/avi"),
    (b"RIFF????WAVE", "audio/wave"),
];

const LATE: &[(&[u8], &str)] = &[
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (
        b"??????????????????????????????????LP",
        "application/vnd.ms-fontobject",
    ),
    (b"\x00\x01\x00\x00", "font/ttf"),
    (b"OTTO", "font/otf"),
    (b"ttcf", "font/collection"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x1f\x8b\x08", "application/x-gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"Rar!\x1a\x07\x00", "application/x-rar-compressed"),
    (b"Rar!\x1a\x07\x01\x00", "application/x-rar-compressed"),
    (b"\x00asm", "application/wasm"),
];

fn fits(head: &[u8], pattern: &[u8]) -> bool {
    head.len() >= pattern.len()
        && pattern
            .iter()
            .zip(head)
            .all(|(wanted, byte)| *wanted == b'?' || wanted == byte)
}

fn is_tag(text: &[u8], tag: &[u8]) -> bool {
    let same = |(wanted, byte): (&u8, &u8)| {
        if wanted.is_ascii_uppercase() {
            byte & 0xdf == *wanted
        } else {
            byte == wanted
        }
    };
    matches!(text.get(tag.len()), Some(b' ' | b'>')) && tag.iter().zip(text).all(same)
}

fn is_mp4(head: &[u8]) -> bool {
    let Some([a, b, c, d, b'f', b't', b'y', b'p', rest @ ..]) = head.get(..) else {
        return false;
    };
    let size = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
    if size > head.len() || !size.is_multiple_of(4) || rest.len() < 4 {
        return false;
    }
    (8..size)
        .step_by(4)
        .any(|at| at != 12 && head[at..].starts_with(b"mp4"))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_have_the_names_that_go_gives_them() {
        for (head, expected) in [
            (&b"apiVersion: v2\n"[..], "text/plain; charset=utf-8"),
            (b"name: x\n\0\0", "application/octet-stream"),
            (b"\n <html>", "text/html; charset=utf-8"),
            (b"<?xml version", "text/xml; charset=utf-8"),
            (b"PK\x03\x04..", "application/zip"),
            (b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"\0\0\0\x10ftypisom....mp42", "application/octet-stream"),
            (b"\0\0\0\x14ftypisom....mp42", "video/mp4"),
        ] {
            assert_eq!(content_type(head), expected, "{head:?}");
        }
    }
}

//! Strings of TOML, in their four forms, and keys.

use go_text::quote::{quoted, quoted_bytes};
use go_text::rune::encode;

use super::reader::{END, Problem, Reader, is_break};

/// Reads a string, whose first quote is read.
pub(super) fn read(reader: &mut Reader<'_>, mark: char) -> Result<Vec<u8>, Problem> {
    if reader.accept(mark)? {
        if reader.accept(mark)? {
            reader.begin();
            return lines(reader, mark);
        }
        reader.back();
    }
    line(reader, mark)
}

/// Reads a string within a line, as keys are, too.
pub(super) fn line(reader: &mut Reader<'_>, mark: char) -> Result<Vec<u8>, Problem> {
    reader.begin();
    loop {
        match reader.next()? {
            END if reader.is_at_end() => {
                let mark = if mark == '"' { "'\"'" } else { "\"'\"" };
                return reader.problem(format!("unexpected EOF; expected {mark}"));
            }
            character if is_break(character) => {
                return reader.problem_above("strings cannot contain newlines");
            }
            '\\' if mark == '"' => escape(reader)?,
            character if character == mark => break,
            _ => {}
        }
    }
    reader.back();
    let (raw, line) = (reader.token(), reader.line);
    reader.next()?;
    reader.begin();
    if mark == '"' {
        unescape(raw, line)
    } else {
        Ok(raw.to_vec())
    }
}

/// Reads a string of several lines, whose three quotes are read.
fn lines(reader: &mut Reader<'_>, mark: char) -> Result<Vec<u8>, Problem> {
    loop {
        match reader.next()? {
            END if reader.is_at_end() => {
                let mark = if mark == '"' { "'\"\"\"'" } else { "\"'''\"" };
                return reader.problem(format!("unexpected EOF; expected {mark}"));
            }
            '\\' if mark == '"' => escape_or_break(reader)?,
            character if character == mark && ends(reader, mark)? => break,
            _ => {}
        }
    }
    for _ in 0..3 {
        reader.back();
    }
    let (raw, line) = (reader.token(), reader.line);
    for _ in 0..3 {
        reader.next()?;
    }
    reader.begin();
    let raw = raw
        .strip_prefix(b"\n")
        .or_else(|| raw.strip_prefix(b"\r\n"))
        .unwrap_or(raw);
    if mark == '"' {
        unescape(&without_escaped_breaks(raw), line)
    } else {
        Ok(raw.to_vec())
    }
}

/// Checks an escape, or passes over the end of a line that a backslash takes away.
fn escape_or_break(reader: &mut Reader<'_>) -> Result<(), Problem> {
    if is_break(reader.next()?) {
        return Ok(());
    }
    reader.back();
    escape(reader)
}

/// Returns whether two more quotes follow the one that is read, and none behind them: a string may end in two quotes of its own.
fn ends(reader: &mut Reader<'_>, mark: char) -> Result<bool, Problem> {
    if !reader.accept(mark)? {
        return Ok(false);
    }
    if !reader.accept(mark)? {
        reader.back();
        return Ok(false);
    }
    if reader.peek()? != mark {
        return Ok(true);
    }
    let token = reader.token();
    let five = [u8::try_from(mark).unwrap_or_default(); 5];
    let escaped = [b"\\".as_slice(), &five].concat();
    if token.ends_with(&five) && (mark == '\'' || !token.ends_with(&escaped)) {
        return reader.problem(if mark == '"' {
            "unexpected '\"\"\"\"\"\"'"
        } else {
            "unexpected \"''''''\""
        });
    }
    reader.back();
    reader.back();
    Ok(false)
}

/// Checks an escape, whose backslash is read.
fn escape(reader: &mut Reader<'_>) -> Result<(), Problem> {
    let (digits, name, kind) = match reader.next()? {
        'e' | 'b' | 't' | 'n' | 'f' | 'r' | '"' | ' ' | '\t' | '\\' => return Ok(()),
        'x' => (2, "two", 'x'),
        'u' => (4, "four", 'u'),
        'U' => (8, "eight", 'U'),
        character => {
            let message = format!("invalid escape in string '\\{character}'");
            return if reader.is_at_end() {
                reader.problem_above(message)
            } else {
                reader.problem(message)
            };
        }
    };
    for _ in 0..digits {
        if !reader.next()?.is_ascii_hexdigit() {
            let token = quoted_bytes(reader.token());
            return reader.problem(format!(
                "expected {name} hexadecimal digits after '\\{kind}', but got {token} instead"
            ));
        }
    }
    Ok(())
}

/// A backslash at the end of a line takes away all blanks and breaks behind it.
fn without_escaped_breaks(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [first, behind @ ..] = rest {
        if *first != b'\\' {
            text.push(*first);
            rest = behind;
            continue;
        }
        let blanks = behind.iter().take_while(|c| b" \t\r\n".contains(c)).count();
        if behind.first() == Some(&b'\\') {
            text.extend_from_slice(b"\\\\");
            rest = &behind[1..];
        } else if behind[..blanks].contains(&b'\n') {
            rest = &behind[blanks..];
        } else {
            text.push(b'\\');
            rest = behind;
        }
    }
    text
}

/// Resolves escapes that the reader has checked.
fn unescape(raw: &[u8], line: usize) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [first, behind @ ..] = rest {
        let ([b'\\', kind, ..], _) = (rest, first) else {
            text.push(*first);
            rest = behind;
            continue;
        };
        let digits = match kind {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            _ => 0,
        };
        match kind {
            b'b' => text.push(8),
            b't' => text.push(b'\t'),
            b'n' => text.push(b'\n'),
            b'f' => text.push(12),
            b'r' => text.push(b'\r'),
            b'e' => text.push(0x1b),
            b'x' | b'u' | b'U' => {
                let digits = String::from_utf8_lossy(rest.get(2..2 + digits).unwrap_or_default());
                let character = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                let Some(character) = character else {
                    let message = format!("Escaped character '\\u{digits}' is not valid UTF-8.");
                    return Err(Problem { line, message });
                };
                encode(character, &mut text);
            }
            b' ' | b'\t' => {
                let message = format!("invalid escape: '\\{}'", char::from(*kind));
                return Err(Problem { line, message });
            }
            other => text.push(*other),
        }
        rest = rest.get(2 + digits..).unwrap_or_default();
    }
    Ok(text)
}

/// One part of a key, as errors and TOML's own texts have it.
fn key_part(part: &[u8]) -> String {
    let is_bare = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
    if !part.is_empty() && part.iter().all(is_bare) {
        return String::from_utf8_lossy(part).into_owned();
    }
    let mut quoted = Vec::new();
    super::encode::quote_into(part, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

/// A key of several parts.
pub(super) fn key_text(key: &[Vec<u8>]) -> String {
    key.iter()
        .map(|part| key_part(part))
        .collect::<Vec<_>>()
        .join(".")
}

/// A character in a message.
pub(super) fn shown(character: char) -> String {
    go_text::quote::quoted_char(character)
}

/// A text in a message.
pub(super) fn shown_text(text: &str) -> String {
    quoted(text)
}

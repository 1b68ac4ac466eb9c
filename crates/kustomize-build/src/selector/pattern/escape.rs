//! Escapes outside of `\Q…\E`, in a pattern and in a class.

use super::problem::problem;

/// Translates an escape at the start of a text; returns its length.
pub(super) fn translate(text: &str, out: &mut String) -> Result<usize, String> {
    match text.get(1..2) {
        Some("A" | "z") => {
            out.push_str(&text[..2]);
            return Ok(2);
        }
        Some("b") => {
            out.push_str(r"(?-u:\b)");
            return Ok(2);
        }
        Some("B") => {
            // Between two characters, both or none of which are of a word.
            out.push_str(r"(?:(?-u:\b{start-half})(?-u:\b{end-half})|(?-u:\B))");
            return Ok(2);
        }
        Some("C") => return Err(problem("invalid escape sequence", &text[..2])),
        _ => {}
    }
    if let Some(length) = group(text, out)? {
        return Ok(length);
    }
    let (c, length) = character(text)?;
    push_literal(out, c);
    Ok(length)
}

/// Translates a class of characters (`\d`, `\pL`) if one starts here; returns its length.
pub(super) fn group(text: &str, out: &mut String) -> Result<Option<usize>, String> {
    let perl = match text.get(..2) {
        Some(r"\d") => "[0-9]",
        Some(r"\D") => "[^0-9]",
        Some(r"\s") => r"[\t\n\x0C\r ]",
        Some(r"\S") => r"[^\t\n\x0C\r ]",
        Some(r"\w") => "[0-9A-Za-z_]",
        Some(r"\W") => "[^0-9A-Za-z_]",
        Some(r"\p" | r"\P") => return unicode(text, out).map(Some),
        _ => return Ok(None),
    };
    out.push_str(perl);
    Ok(Some(2))
}

/// `\pL`, `\p{Greek}`, `\P{^Greek}`.
fn unicode(text: &str, out: &mut String) -> Result<usize, String> {
    let negated = text.starts_with(r"\P");
    let Some(first) = text[2..].chars().next() else {
        return Err(problem("invalid escape sequence", text));
    };
    let (name, length) = if first == '{' {
        let end = text
            .find('}')
            .ok_or_else(|| problem("invalid character class range", text))?;
        (&text[3..end], end + 1)
    } else {
        (&text[2..2 + first.len_utf8()], 2 + first.len_utf8())
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b' ');
    let sign = if negated { 'P' } else { 'p' };
    let class = format!("\\{sign}{{{name}}}");
    if name.is_empty() || !name.bytes().all(is_word) || regex::Regex::new(&class).is_err() {
        return Err(problem("invalid character class range", &text[..length]));
    }
    out.push_str(&class);
    Ok(length)
}

/// Reads an escape for one character; returns it with the escape's length.
pub(super) fn character(text: &str) -> Result<(char, usize), String> {
    let Some(c) = text[1..].chars().next() else {
        return Err(problem("trailing backslash at end of expression", ""));
    };
    let behind = 1 + c.len_utf8();
    let rest = &text[behind..];
    let is_octal = |b: &u8| (b'0'..=b'7').contains(b);
    let simple = match c {
        'a' => Some('\x07'),
        'f' => Some('\x0C'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\x0B'),
        'x' => return hexadecimal(text),
        '0'..='7' if c == '0' || rest.as_bytes().first().is_some_and(is_octal) => {
            let more = rest.bytes().take(2).take_while(|b| is_octal(b)).count();
            let number = u32::from_str_radix(&text[1..behind + more], 8).unwrap_or_default();
            return Ok((char::from_u32(number).unwrap_or_default(), behind + more));
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c),
        _ => None,
    };
    match simple {
        Some(simple) => Ok((simple, behind)),
        None => Err(problem("invalid escape sequence", &text[..behind])),
    }
}

/// `\x41`, `\x{1F600}`.
fn hexadecimal(text: &str) -> Result<(char, usize), String> {
    let wrong = |length: usize| problem("invalid escape sequence", text.get(..length).unwrap_or(text));
    let mut number = 0;
    let mut digits = 0;
    let braced = text[2..].starts_with('{');
    let start = if braced { 3 } else { 2 };
    for (at, c) in text[start..].char_indices() {
        let end = start + at + c.len_utf8();
        if braced && c == '}' {
            let c = char::from_u32(number).filter(|_| digits > 0);
            return c.map(|c| (c, end)).ok_or_else(|| wrong(end));
        }
        match c.to_digit(16) {
            Some(digit) => number = number * 16 + digit,
            // Go has read both digits when it looks at the first.
            None if !braced && digits == 0 => {
                let next = text[end..].chars().next().map_or(0, char::len_utf8);
                return Err(wrong(end + next));
            }
            None => return Err(wrong(end)),
        }
        digits += 1;
        if number > u32::from(char::MAX) {
            return Err(wrong(end));
        }
        if !braced && digits == 2 {
            return Ok((char::from_u32(number).unwrap_or_default(), end));
        }
    }
    Err(wrong(text.len()))
}

/// Writes a character that stands for itself.
pub(super) fn push_literal(out: &mut String, c: char) {
    if c.is_ascii() && !c.is_ascii_alphanumeric() {
        out.push_str(&format!("\\x{:02X}", u32::from(c)));
    } else {
        out.push(c);
    }
}

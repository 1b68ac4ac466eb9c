//! The replacement texts of `ReplaceAll`, in which `$1`, `${name}` and `$$` mean something.

/// A part of a replacement text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Text(&'a [u8]),
    Number(usize),
    Name(&'a str),
}

/// Takes a replacement text apart.
pub(crate) fn parts(template: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(dollar) = rest.iter().position(|&b| b == b'$') {
        let (before, after) = rest.split_at(dollar);
        parts.push(Part::Text(before));
        let dollar = &after[..1];
        rest = &after[1..];
        if let Some(after) = rest.strip_prefix(b"$") {
            parts.push(Part::Text(dollar));
            rest = after;
        } else if let Some((part, after)) = reference(rest) {
            parts.push(part);
            rest = after;
        } else {
            parts.push(Part::Text(dollar));
        }
    }
    parts.push(Part::Text(rest));
    parts
}

/// Reads `name` or `{name}`. A name of digits without leading zero is a number.
fn reference(text: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let braced = text.strip_prefix(b"{");
    let text = braced.unwrap_or(text);
    let valid = match str::from_utf8(text) {
        Ok(valid) => valid,
        Err(error) => str::from_utf8(&text[..error.valid_up_to()]).ok()?,
    };
    let end = valid.find(|c: char| !is_of_name(c)).unwrap_or(valid.len());
    let (name, mut rest) = (&valid[..end], &text[end..]);
    if braced.is_some() {
        rest = rest.strip_prefix(b"}")?;
    }
    if name.is_empty() {
        return None;
    }
    Some((number(name).map_or(Part::Name(name), Part::Number), rest))
}

/// Go gives up at nine digits; then it is a name, which no group has.
fn number(name: &str) -> Option<usize> {
    let is_plain = name.len() == 1 || !name.starts_with('0');
    let is_short = name.len() <= 9;
    if !(is_plain && is_short && name.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    name.parse().ok()
}

/// Letters, decimal digits and the underscore, of any script.
fn is_of_name(c: char) -> bool {
    match c {
        '\0'..='\x7f' => c.is_ascii_alphanumeric() || c == '_',
        _ => crate::unicode::is_letter_or_digit(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_as_long_as_possible() {
        let cases: [(&str, &[Part<'_>]); 9] = [
            ("a", &[Part::Text(b"a")]),
            ("$1x", &[Part::Text(b""), Part::Name("1x"), Part::Text(b"")]),
            ("${1}x", &[Part::Text(b""), Part::Number(1), Part::Text(b"x")]),
            ("$10", &[Part::Text(b""), Part::Number(10), Part::Text(b"")]),
            ("$01", &[Part::Text(b""), Part::Name("01"), Part::Text(b"")]),
            ("$$1", &[Part::Text(b""), Part::Text(b"$"), Part::Text(b"1")]),
            ("${x", &[Part::Text(b""), Part::Text(b"$"), Part::Text(b"{x")]),
            ("$", &[Part::Text(b""), Part::Text(b"$"), Part::Text(b"")]),
            ("$é-", &[Part::Text(b""), Part::Name("é"), Part::Text(b"-")]),
        ];
        for (template, expected) in cases {
            assert_eq!(parts(template.as_bytes()), expected, "{template}");
        }
    }
}

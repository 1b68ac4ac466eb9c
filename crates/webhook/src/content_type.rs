//! The Content-Type of a call, read as Go's mime package reads it, and forms.

/// The media type in small letters, without parameters. None if it or a parameter is malformed.
pub(crate) fn media_type(header: &[u8]) -> Option<String> {
    let header = std::str::from_utf8(header).ok()?;
    let (type_, mut parameters) = header.split_once(';').unwrap_or((header, ""));
    let type_ = type_.trim().to_ascii_lowercase();
    let is_well_formed = match type_.split_once('/') {
        Some((main, sub)) => is_token(main) && is_token(sub),
        None => is_token(&type_),
    };
    if !is_well_formed {
        return None;
    }
    while !parameters.trim().is_empty() {
        parameters = after_parameter(parameters.trim_start())?;
    }
    Some(type_)
}

/// Returns whether one of several media types is JSON's.
pub(crate) fn is_json(header: &[u8]) -> bool {
    header
        .split(|byte| *byte == b',')
        .map_while(media_type)
        .any(|type_| type_ == "application/json")
}

/// The value of a field of a form. None if the form is malformed; empty if it has no such field.
pub(crate) fn form_field(body: &[u8], field: &str) -> Option<Vec<u8>> {
    let mut found = None;
    for pair in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        if pair.contains(&b';') {
            return None;
        }
        let equals = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = pair.split_at(equals.unwrap_or(pair.len()));
        let (name, value) = (unescaped(name)?, unescaped(value.get(1..).unwrap_or_default())?);
        if found.is_none() && name == field.as_bytes() {
            found = Some(value);
        }
    }
    Some(found.unwrap_or_default())
}

fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = text.iter();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [*bytes.next()?, *bytes.next()?];
                *hex::decode(digits).ok()?.first()?
            }
            other => *other,
        });
    }
    Some(plain)
}

/// Returns the text behind `name=value` and a semicolon.
fn after_parameter(text: &str) -> Option<&str> {
    let (name, value) = text.split_once('=')?;
    if !is_token(name.trim_end()) {
        return None;
    }
    let rest = match value.strip_prefix('"') {
        Some(quoted) => after_quoted(quoted)?,
        None => {
            let end = value.find([';', ' ', '\t']).unwrap_or(value.len());
            let (value, rest) = value.split_at(end);
            is_token(value).then_some(rest)?
        }
    };
    let rest = rest.trim_start();
    if rest.is_empty() {
        return Some(rest);
    }
    rest.strip_prefix(';')
}

fn after_quoted(text: &str) -> Option<&str> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

fn is_token(text: &str) -> bool {
    let is_separator = |byte: u8| b"()<>@,;:\\\"/[]?=".contains(&byte);
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !is_separator(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_read_as_go_reads_them() {
        for (header, expected) in [
            ("application/json", Some("application/json")),
            ("Application/JSON; charset=utf-8", Some("application/json")),
            ("application/json;", Some("application/json")),
            ("application/json; a=\"x\\\"y;z\"; b=c", Some("application/json")),
            ("form-data", Some("form-data")),
            ("", None),
            ("application/json; charset", None),
            ("application/json; =x", None),
            ("application/json; a=\"x", None),
            ("a b/c", None),
            ("a/b/c", None),
        ] {
            assert_eq!(media_type(header.as_bytes()).as_deref(), expected, "{header}");
        }
        assert!(is_json(b"text/plain, application/json; a=b"));
        assert!(!is_json(b"text plain, application/json") && !is_json(b""));
    }

    #[test]
    fn a_form_gives_its_field() {
        let field = |body: &str| {
            form_field(body.as_bytes(), "payload").map(|bytes| String::from_utf8(bytes).unwrap())
        };
        assert_eq!(
            field("a=b&payload=%7B%22a%22%3A+1%7D&payload=2").as_deref(),
            Some("{\"a\": 1}")
        );
        assert_eq!(field("a=b").as_deref(), Some(""));
        for malformed in ["payload=%7", "payload=%zz", "a;b=c&payload=1"] {
            assert_eq!(field(malformed), None, "{malformed}");
        }
    }
}

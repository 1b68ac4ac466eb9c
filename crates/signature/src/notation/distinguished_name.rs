//! Distinguished names as trust policies write them (RFC 4514), with the rules of notation. Pure.

use std::collections::BTreeMap;

/// Types and their values.
pub(super) type Parts = BTreeMap<String, String>;

/// Reads a name such as `C=US, ST=WA, O=example, CN=signer`.
pub(super) fn parse(name: &str) -> Result<Parts, String> {
    if name.contains("=#") {
        return Err(format!(
            "unsupported distinguished name (DN) \"{name}\": notation does not support x509.subject identities containing \
             \"=#\""
        ));
    }
    let malformed = || {
        format!(
            "parsing distinguished name (DN) \"{name}\" failed. A valid DN must contain 'C', 'ST' or 'S', and 'O' RDN \
             attributes at a minimum, and follow RFC 4514 standard"
        )
    };
    let mut pairs = Vec::new();
    for part in split(name).ok_or_else(malformed)? {
        let (kind, value) = part.split_once('=').ok_or_else(malformed)?;
        let kind = kind.trim();
        if kind.is_empty() {
            return Err(malformed());
        }
        pairs.push((kind.to_owned(), unescape(value).ok_or_else(malformed)?));
    }
    collect(name, pairs)
}

/// Checks the parts of a name, such as that of a certificate.
pub(super) fn collect(name: &str, pairs: Vec<(String, String)>) -> Result<Parts, String> {
    let mut parts = Parts::new();
    for (kind, value) in pairs {
        // `S` is another word for `ST`.
        let kind = if kind == "S" { "ST".to_owned() } else { kind };
        if parts.contains_key(&kind) {
            return Err(format!(
                "distinguished name (DN) \"{name}\" has duplicate RDN attribute for \"{kind}\", DN can only have unique RDN \
                 attributes"
            ));
        }
        parts.insert(kind, value);
    }
    for kind in ["C", "ST", "O"] {
        if parts.get(kind).is_none_or(String::is_empty) {
            return Err(format!(
                "distinguished name (DN) \"{name}\" has no mandatory RDN attribute for \"{kind}\", it must contain 'C', 'ST' \
                 or 'S', and 'O' RDN attributes at a minimum"
            ));
        }
    }
    Ok(parts)
}

/// Returns whether the name has all parts of the other.
pub(super) fn includes(name: &Parts, other: &Parts) -> bool {
    other.iter().all(|(kind, value)| name.get(kind) == Some(value))
}

/// Splits at commas and semicolons that are not escaped. A plus sign would join several values, which is refused.
fn split(name: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (position, byte) in name.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'+' => return None,
            b',' | b';' => {
                parts.push(&name[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(&name[start..]);
    (!escaped).then_some(parts)
}

/// A backslash stands before a character that is meant, or before two hexadecimal digits of a byte.
fn unescape(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    // Blanks around a value do not count, unless they are escaped.
    let trimmed = value.trim_start_matches(' ');
    let end = trimmed.trim_end_matches(' ');
    let keeps_blank = end.ends_with('\\') && end.len() < trimmed.len();
    let mut rest = if keeps_blank { &trimmed[..=end.len()] } else { end }.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| hex::decode(digits).ok());
        if let Some(byte) = digits {
            bytes.extend(byte);
            rest = &rest[2..];
        } else {
            let (literal, after) = rest.split_first()?;
            if !b" \"#+,;<=>\\".contains(literal) {
                return None;
            }
            bytes.push(*literal);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str) -> String {
        match parse(name) {
            Ok(parts) => format!("{parts:?}"),
            Err(problem) => problem,
        }
    }

    #[test]
    fn names_are_read() {
        assert_eq!(
            shown(r"C=US, S=WA; O=a\, b\2c c , CN = x\ "),
            r#"{"C": "US", "CN": "x ", "O": "a, b, c", "ST": "WA"}"#
        );
        for (name, problem) in [
            ("", "failed"),
            ("C=US,ST=WA", "no mandatory RDN attribute for \"O\""),
            ("C=US,ST=WA,O=a,O=b", "duplicate RDN attribute for \"O\""),
            ("C=US,ST=WA,S=CA,O=a", "duplicate RDN attribute for \"ST\""),
            ("C=US,ST=WA,O=a+OU=b", "failed"),
            ("C=US,ST=WA,O=#0401", "=#"),
            (r"C=US,ST=WA,O=a\", "failed"),
            (r"C=US,ST=WA,O=\é", "failed"),
            ("C=US,ST=WA,=a", "failed"),
        ] {
            assert!(shown(name).contains(problem), "{name}: {}", shown(name));
        }
    }

    #[test]
    fn a_name_includes_what_has_fewer_parts() {
        let name = parse("C=US,ST=WA,O=a,CN=b").unwrap();
        let includes = |other: &str| includes(&name, &parse(other).unwrap());
        assert!(includes("C=US,ST=WA,O=a") && includes("CN=b,O=a,ST=WA,C=US"));
        assert!(!includes("C=US,ST=WA,O=A") && !includes("C=US,ST=WA,O=a,OU=c"));
    }
}

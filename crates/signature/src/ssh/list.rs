//! Lists of trusted keys: one key a line, in the format of `authorized_keys`, or of `allowed_signers`, where the names of
//! the signers stand in front and are not looked at.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::wire::Reader;

/// Names of the signers, and options.
const MAX_FIELDS_BEFORE_KEY: usize = 2;
const MAX_LIST: usize = 1 << 20;
const MAX_KEYS: usize = 10_000;

/// Why a list cannot be read. A list with a line that is none is not used at all, as in Flux.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no key in the line.
    #[error("line {line}: no key found")]
    NoKey {
        /// Counted from one.
        line: usize,
    },
    /// An option that limits the key cannot be understood.
    #[error("line {line}: the value of '{option}' cannot be read")]
    Option {
        /// Counted from one.
        line: usize,
        /// Its name.
        option: String,
    },
    /// No one has that many keys.
    #[error("the list is too long")]
    TooLong,
}

/// A key of the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) blob: Vec<u8>,
    pub(super) limits: Vec<Limit>,
}

/// Restriction of a line on its key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Limit {
    NotBefore(Timestamp),
    NotAfter(Timestamp),
    OtherNamespace,
    Authority,
}

/// Reads all lines.
pub(super) fn read(list: &[u8]) -> Result<Vec<Entry>, Error> {
    if list.len() > MAX_LIST {
        return Err(Error::TooLong);
    }
    let text = String::from_utf8_lossy(list);
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let entries: Vec<Entry> = lines
        .take(MAX_KEYS + 1)
        .map(|(number, line)| read_line(number + 1, line))
        .collect::<Result<_, _>>()?;
    if entries.len() > MAX_KEYS {
        return Err(Error::TooLong);
    }
    Ok(entries)
}

fn read_line(number: usize, line: &str) -> Result<Entry, Error> {
    let mut rest = line;
    let mut limits = Vec::new();
    for _ in 0..=MAX_FIELDS_BEFORE_KEY {
        let (field, after) = split_field(rest);
        if let Some(blob) = key(field, after) {
            return Ok(Entry { blob, limits });
        }
        for option in split_options(field) {
            limits.extend(limit(number, option)?);
        }
        rest = after;
    }
    Err(Error::NoKey { line: number })
}

/// The key behind its type, when this is one. The key itself says the type too.
fn key(key_type: &str, after: &str) -> Option<Vec<u8>> {
    let (encoded, _comment) = split_field(after);
    let blob = STANDARD.decode(encoded).ok()?;
    (!key_type.is_empty() && Reader::new(&blob).text()? == key_type.as_bytes()).then_some(blob)
}

/// Up to the next blank outside quotes, and what comes after it.
fn split_field(text: &str) -> (&str, &str) {
    let end = position(text, |character| matches!(character, ' ' | '\t'));
    let (field, after) = text.split_at(end);
    (field, after.trim_start_matches([' ', '\t']))
}

fn split_options(mut field: &str) -> Vec<&str> {
    let mut options = Vec::new();
    while !field.is_empty() {
        let end = position(field, |character| character == ',');
        options.push(&field[..end]);
        field = field.get(end + 1..).unwrap_or_default();
    }
    options
}

/// Where the first such character stands outside quotes; else the end.
fn position(text: &str, is_end: impl Fn(char) -> bool) -> usize {
    let (mut in_quotes, mut escaped) = (false, false);
    for (index, character) in text.char_indices() {
        match character {
            '"' if !escaped => in_quotes = !in_quotes,
            _ if !in_quotes && is_end(character) => return index,
            _ => {}
        }
        escaped = character == '\\' && !escaped;
    }
    text.len()
}

fn limit(line: usize, option: &str) -> Result<Option<Limit>, Error> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let value = value.trim_matches('"');
    let time = || {
        parse_time(value).ok_or_else(|| Error::Option {
            line,
            option: name.to_owned(),
        })
    };
    Ok(match name.to_ascii_lowercase().as_str() {
        "valid-after" => Some(Limit::NotBefore(time()?)),
        "valid-before" | "expiry-time" => Some(Limit::NotAfter(time()?)),
        "cert-authority" => Some(Limit::Authority),
        "namespaces" if !is_in_list("git", value) => Some(Limit::OtherNamespace),
        _ => None,
    })
}

/// Returns whether a list of patterns has the name, as ssh-keygen reads it: a pattern behind `!` that matches speaks against all
/// others, wherever it stands, and a list of such patterns alone has nothing.
fn is_in_list(name: &str, patterns: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(name.as_bytes(), pattern.as_bytes()) => return false,
            Some(_) => {}
            None => found |= matches(name.as_bytes(), pattern.as_bytes()),
        }
    }
    found
}

/// `*` stands for any number of characters and `?` for one.
fn matches(name: &[u8], pattern: &[u8]) -> bool {
    // How much of the pattern matches so far, for each length of the name; the name is short.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for &symbol in pattern {
        if symbol == b'*' {
            for length in 0..name.len() {
                reached[length + 1] |= reached[length];
            }
            continue;
        }
        for length in (0..name.len()).rev() {
            reached[length + 1] = reached[length] && (symbol == b'?' || symbol == name[length]);
        }
        reached[0] = false;
    }
    reached[name.len()]
}

/// `YYYYMMDD` with `HHMM` or `HHMMSS` behind it, and `Z`. Local time is UTC here.
fn parse_time(text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let missing = match digits.len() {
        8 => "000000",
        12 => "00",
        14 => "",
        _ => return None,
    };
    let padded = format!("{digits}{missing}");
    let time = DateTime::strptime("%Y%m%d%H%M%S", padded).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    fn limits(line: &str) -> Vec<Limit> {
        let entries = read(line.as_bytes()).unwrap();
        assert_eq!(entries.len(), 1, "{line}");
        let mut entries = entries;
        entries.remove(0).limits
    }

    #[test]
    fn keys_stand_alone_or_behind_names_and_options() {
        for line in [
            KEY.to_owned(),
            format!("{KEY} somebody@example.com"),
            format!("somebody@example.com {KEY}"),
            format!("restrict,command=\"a b, c\" {KEY} x"),
            format!("a@b,c@d namespaces=\"file,git\" {KEY}"),
            format!("  {KEY}\t"),
        ] {
            assert_eq!(limits(&line), [], "{line}");
        }
        assert_eq!(read(b"# only\n\n  # comments\n").unwrap(), []);
        assert_eq!(read(format!("{KEY}\n#\n{KEY}").as_bytes()).unwrap().len(), 2);
    }

    #[test]
    fn limits_are_read() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(
            limits(&format!(
                "a@b valid-after=\"20240102\",valid-before=202501020304Z {KEY}"
            )),
            [
                Limit::NotBefore(time("2024-01-02T00:00:00Z")),
                Limit::NotAfter(time("2025-01-02T03:04:00Z")),
            ]
        );
        assert_eq!(
            limits(&format!("expiry-time=\"20250102030405\" {KEY}")),
            [Limit::NotAfter(time("2025-01-02T03:04:05Z"))]
        );
        assert_eq!(limits(&format!("cert-authority {KEY}")), [Limit::Authority]);
        assert_eq!(
            limits(&format!("a@b namespaces=\"file\" {KEY}")),
            [Limit::OtherNamespace]
        );
    }

    #[test]
    fn namespaces_are_patterns_of_which_some_exclude() {
        let cases = [
            ("git", true),
            ("*", true),
            ("g*", true),
            ("?it", true),
            ("*i*,file", true),
            ("file,git", true),
            ("!git,*", false),
            ("*,!git", false),
            ("*,!g?t", false),
            ("!file,*", true),
            ("!file", false),
            ("gi", false),
            ("gitt", false),
            ("????", false),
            ("**t", true),
            ("", false),
        ];
        for (patterns, is_ours) in cases {
            let found = limits(&format!("a@b namespaces=\"{patterns}\" {KEY}"));
            assert_eq!(found.is_empty(), is_ours, "{patterns}");
        }
    }

    #[test]
    fn a_line_without_a_key_spoils_the_list() {
        let other_type = KEY.replace("ssh-ed25519", "ssh-rsa");
        for line in [
            "nonsense",
            "ssh-ed25519",
            "ssh-ed25519 !!",
            &other_type,
            "a \"b c",
        ] {
            let list = format!("{KEY}\n{line}");
            assert_eq!(read(list.as_bytes()), Err(Error::NoKey { line: 2 }), "{line}");
        }
        let error = read(format!("expiry-time=soon {KEY}").as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1: the value of 'expiry-time' cannot be read"
        );
    }
}

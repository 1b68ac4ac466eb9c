//! Patterns of file names as Go's `path/filepath` matches them on Unix.
//!
//! `*` and `?` stop at a slash, `[a-z]` and `[^a]` are classes, a backslash takes the next character as it is.

use std::fmt;

/// A pattern that is not well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPattern;

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("syntax error in pattern")
    }
}

impl std::error::Error for BadPattern {}

/// Returns whether a name matches a pattern as a whole.
///
/// ```
/// use helm_chart::path_match::path_match;
/// assert_eq!(path_match("templates/*.yaml", "templates/a.yaml"), Ok(true));
/// assert_eq!(path_match("*.yaml", "templates/a.yaml"), Ok(false));
/// ```
///
/// As in Go, what stands behind the place where the match failed is not always looked at, so a broken pattern may be
/// found broken with one name only.
pub fn path_match(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let (mut pattern, mut name) = (pattern.as_bytes(), name.as_bytes());
    while !pattern.is_empty() {
        let (star, chunk, rest) = next_chunk(pattern);
        pattern = rest;
        if star && chunk.is_empty() {
            return Ok(!name.contains(&b'/'));
        }
        let is_last = pattern.is_empty();
        let fits = |tail: &&[u8]| tail.is_empty() || !is_last;
        if let Some(tail) = match_chunk(chunk, name)?.filter(fits) {
            name = tail;
            continue;
        }
        match if star {
            skip_and_match(chunk, name, is_last)?
        } else {
            None
        } {
            Some(tail) => name = tail,
            None => return Ok(false),
        }
    }
    Ok(name.is_empty())
}

/// Lets a star swallow bytes until the chunk behind it matches.
fn skip_and_match<'n>(chunk: &[u8], name: &'n [u8], is_last: bool) -> Result<Option<&'n [u8]>, BadPattern> {
    for (index, byte) in name.iter().enumerate() {
        if *byte == b'/' {
            break;
        }
        if let Some(tail) = match_chunk(chunk, &name[index + 1..])?
            && (tail.is_empty() || !is_last)
        {
            return Ok(Some(tail));
        }
    }
    Ok(None)
}

/// Splits the stars at the front, and what follows up to the next star, off a pattern.
fn next_chunk(pattern: &[u8]) -> (bool, &[u8], &[u8]) {
    let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
    let pattern = &pattern[stars..];
    let mut in_class = false;
    let mut index = 0;
    while index < pattern.len() {
        match pattern[index] {
            b'\\' if index + 1 < pattern.len() => index += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'*' if !in_class => break,
            _ => {}
        }
        index += 1;
    }
    (stars > 0, &pattern[..index], &pattern[index..])
}

/// Matches a chunk without stars at the front of a name; gives back the rest of the name.
fn match_chunk<'n>(mut chunk: &[u8], mut name: &'n [u8]) -> Result<Option<&'n [u8]>, BadPattern> {
    let mut failed = false;
    while let [first, rest @ ..] = chunk {
        failed |= name.is_empty();
        match first {
            b'[' => {
                let mut wanted = '\0';
                if !failed {
                    let (decoded, length) = first_char(name);
                    wanted = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
                    name = &name[length..];
                }
                let (matched, behind) = match_class(rest, wanted)?;
                failed |= !matched;
                chunk = behind;
            }
            b'?' => {
                if !failed {
                    failed = name[0] == b'/';
                    name = &name[first_char(name).1..];
                }
                chunk = rest;
            }
            _ => {
                let literal = if *first == b'\\' { rest } else { chunk };
                let byte = literal.first().ok_or(BadPattern)?;
                if !failed {
                    failed = *byte != name[0];
                    name = &name[1..];
                }
                chunk = &literal[1..];
            }
        }
    }
    Ok((!failed).then_some(name))
}

/// Matches a character with the class whose `[` was taken; gives back what stands behind its `]`.
fn match_class(mut chunk: &[u8], wanted: char) -> Result<(bool, &[u8]), BadPattern> {
    let negated = chunk.first() == Some(&b'^');
    if negated {
        chunk = &chunk[1..];
    }
    let (mut matched, mut ranges) = (false, 0);
    loop {
        if ranges > 0 && chunk.first() == Some(&b']') {
            return Ok((matched != negated, &chunk[1..]));
        }
        let (low, rest) = class_char(chunk)?;
        let (high, rest) = match rest.first() {
            Some(b'-') => class_char(&rest[1..])?,
            _ => (low, rest),
        };
        matched |= low <= wanted && wanted <= high;
        ranges += 1;
        chunk = rest;
    }
}

/// Takes a character of a class, which never ends a pattern.
fn class_char(chunk: &[u8]) -> Result<(char, &[u8]), BadPattern> {
    let chunk = match chunk {
        [] | [b'-' | b']', ..] => return Err(BadPattern),
        [b'\\', rest @ ..] => rest,
        _ => chunk,
    };
    let (decoded, length) = first_char(chunk);
    match (decoded, &chunk[length..]) {
        (None, _) | (_, []) => Err(BadPattern),
        (Some(decoded), rest) => Ok((decoded, rest)),
    }
}

/// Decodes the first character; one byte of what is no UTF-8.
fn first_char(bytes: &[u8]) -> (Option<char>, usize) {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(first) => (Some(first), first.len_utf8()),
        None => (None, head.len().min(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_go_matches_them() {
        // From the table of path/filepath's own tests.
        for (pattern, name, expected) in [
            ("abc", "abc", Ok(true)),
            ("*", "abc", Ok(true)),
            ("*c", "abc", Ok(true)),
            ("a*", "a", Ok(true)),
            ("a*", "ab/c", Ok(false)),
            ("a*/b", "abc/b", Ok(true)),
            ("a*/b", "a/c/b", Ok(false)),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", Ok(true)),
            ("a*b?c*x", "abxbbxdbxebxczzx", Ok(true)),
            ("a*b?c*x", "abxbbxdbxebxczzy", Ok(false)),
            ("ab[c]", "abc", Ok(true)),
            ("ab[b-d]", "abc", Ok(true)),
            ("ab[^b-d]", "abc", Ok(false)),
            ("a\\*b", "a*b", Ok(true)),
            ("a\\*b", "ab", Ok(false)),
            ("a?b", "a☺b", Ok(true)),
            ("a[^a]b", "a☺b", Ok(true)),
            ("a???b", "a☺b", Ok(false)),
            ("[a-ζ]*", "α", Ok(true)),
            ("*[a-ζ]", "A", Ok(false)),
            ("a?b", "a/b", Ok(false)),
            ("[\\]a]", "]", Ok(true)),
            ("[\\-]", "-", Ok(true)),
            ("[]a]", "]", Err(BadPattern)),
            ("[-]", "-", Err(BadPattern)),
            ("[x-]", "x", Err(BadPattern)),
            ("[-x]", "x", Err(BadPattern)),
            ("\\", "a", Err(BadPattern)),
            ("[a-b-c]", "a", Err(BadPattern)),
            ("[", "a", Err(BadPattern)),
            ("[^bc", "a", Err(BadPattern)),
            ("a[", "ab", Err(BadPattern)),
            ("*x", "xxx", Ok(true)),
            ("", "", Ok(true)),
            ("", "a", Ok(false)),
        ] {
            assert_eq!(path_match(pattern, name), expected, "{pattern:?} {name:?}");
        }
    }
}

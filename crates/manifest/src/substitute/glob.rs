//! Patterns in `${name#pattern}` and its relatives: `*`, `?`, `[a-z]`, `[^a-z]` and `\`.
//!
//! Follows the matcher in Flux's library, Go's `path.Match` changed so that `*` takes `/` too where it ends the
//! pattern or not. A pattern that is malformed counts as such only once matching reaches the place, and then the
//! value stays whole.

use super::error::Error;
use super::first_character;

/// How many steps all matching in one template may take: about a second. The library tries every prefix of the value
/// and every place for every `*`: it takes a value of a few KiB in its stride, and never ends for one of 1 MiB.
const MAXIMUM_STEPS: usize = 100_000_000;

/// The steps that are left.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(MAXIMUM_STEPS)
    }
}

/// Why matching stopped.
enum Stop {
    BadPattern,
    TooLong,
}

/// Removes the shortest prefix that matches.
pub(super) fn trim_shortest<'v>(
    value: &'v [u8],
    pattern: &[u8],
    budget: &mut Budget,
) -> Result<&'v [u8], Error> {
    let mut shortest = 0;
    // From the longest to the shortest, all of them: an error in any of them counts.
    for end in (1..=value.len()).rev() {
        match matches(pattern, &value[..end], budget) {
            Ok(true) => shortest = end,
            Ok(false) => {}
            Err(Stop::BadPattern) => return Ok(value),
            Err(Stop::TooLong) => return Err(Error::TooLong),
        }
    }
    Ok(&value[shortest..])
}

/// Removes the longest prefix that matches.
pub(super) fn trim_longest<'v>(
    value: &'v [u8],
    pattern: &[u8],
    budget: &mut Budget,
) -> Result<&'v [u8], Error> {
    for end in (1..=value.len()).rev() {
        match matches(pattern, &value[..end], budget) {
            Ok(true) => return Ok(&value[end..]),
            Ok(false) => {}
            Err(Stop::BadPattern) => return Ok(value),
            Err(Stop::TooLong) => return Err(Error::TooLong),
        }
    }
    Ok(value)
}

impl Budget {
    fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.0 = self.0.checked_sub(steps).ok_or(Stop::TooLong)?;
        Ok(())
    }

    /// Where a text stands first in a value. The empty text stands at the start, if it `is_first`, and after each
    /// character.
    pub(super) fn next_place(
        &mut self,
        value: &[u8],
        text: &[u8],
        is_first: bool,
    ) -> Result<Option<usize>, Error> {
        let Some(&initial) = text.first() else {
            let (_, width) = first_character(value);
            return Ok(if is_first {
                Some(0)
            } else {
                (width > 0).then_some(width)
            });
        };
        for at in 0..(value.len() + 1).saturating_sub(text.len()) {
            let is_candidate = value[at] == initial;
            self.spend(if is_candidate { text.len() } else { 1 })
                .map_err(|_| Error::TooLong)?;
            if is_candidate && value[at..].starts_with(text) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// Returns whether a pattern matches the whole of a text.
fn matches(mut pattern: &[u8], mut text: &[u8], budget: &mut Budget) -> Result<bool, Stop> {
    while !pattern.is_empty() {
        let (has_star, chunk, rest) = next_chunk(pattern);
        pattern = rest;
        if has_star && chunk.is_empty() {
            return Ok(true);
        }
        let is_end = |left: &[u8]| left.is_empty() || !rest.is_empty();
        let mut left = match_chunk(chunk, text, budget)?.filter(|left| is_end(left));
        if has_star {
            for skipped in 1..=text.len() {
                if left.is_some() {
                    break;
                }
                left = match_chunk(chunk, &text[skipped..], budget)?.filter(|left| is_end(left));
            }
        }
        match left {
            Some(left) => text = left,
            None => return Ok(false),
        }
    }
    Ok(text.is_empty())
}

/// Splits off stars and the pattern up to the next star outside brackets.
fn next_chunk(pattern: &[u8]) -> (bool, &[u8], &[u8]) {
    let stars = pattern.iter().take_while(|&&c| c == b'*').count();
    let pattern = &pattern[stars..];
    let (mut at, mut in_brackets) = (0, false);
    while at < pattern.len() {
        match pattern[at] {
            b'\\' if at + 1 < pattern.len() => at += 1,
            b'[' => in_brackets = true,
            b']' => in_brackets = false,
            b'*' if !in_brackets => break,
            _ => {}
        }
        at += 1;
    }
    let (chunk, rest) = pattern.split_at(at);
    (stars > 0, chunk, rest)
}

/// Matches a pattern without stars against the start of a text, and returns what is left of the text.
fn match_chunk<'t>(
    mut chunk: &[u8],
    mut text: &'t [u8],
    budget: &mut Budget,
) -> Result<Option<&'t [u8]>, Stop> {
    budget.spend(1)?;
    while let [sign, after_sign @ ..] = chunk {
        budget.spend(1)?;
        let Some(&byte) = text.first() else {
            return Ok(None);
        };
        match sign {
            b'[' => {
                let (character, width) = first_character(text);
                let (contains, rest) = match_brackets(after_sign, character, budget)?;
                if !contains {
                    return Ok(None);
                }
                (chunk, text) = (rest, &text[width..]);
            }
            b'?' => (chunk, text) = (after_sign, &text[first_character(text).1..]),
            _ => {
                let literal = if *sign == b'\\' { after_sign } else { chunk };
                let (&expected, rest) = literal.split_first().ok_or(Stop::BadPattern)?;
                if expected != byte {
                    return Ok(None);
                }
                (chunk, text) = (rest, &text[1..]);
            }
        }
    }
    Ok(Some(text))
}

/// Returns whether the character is in the set that starts after a `[`, and returns the pattern after its `]`.
fn match_brackets<'p>(
    pattern: &'p [u8],
    character: char,
    budget: &mut Budget,
) -> Result<(bool, &'p [u8]), Stop> {
    let (is_negated, mut pattern) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let (mut contains, mut is_empty) = (false, true);
    loop {
        budget.spend(1)?;
        if let ([b']', rest @ ..], false) = (pattern, is_empty) {
            return Ok((contains != is_negated, rest));
        }
        let (low, rest) = bound(pattern)?;
        let (high, rest) = match rest {
            [b'-', rest @ ..] => bound(rest)?,
            _ => (low, rest),
        };
        contains |= (low..=high).contains(&character);
        (pattern, is_empty) = (rest, false);
    }
}

/// One end of a range, and the pattern after it, which must not be empty.
fn bound(pattern: &[u8]) -> Result<(char, &[u8]), Stop> {
    let pattern = match pattern {
        [] | [b'-' | b']', ..] => return Err(Stop::BadPattern),
        [b'\\', rest @ ..] => rest,
        _ => pattern,
    };
    let (character, width) = first_character(pattern);
    let is_broken = character == char::REPLACEMENT_CHARACTER && width <= 1;
    if is_broken || width == pattern.len() {
        return Err(Stop::BadPattern);
    }
    Ok((character, &pattern[width..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_is_bounded() {
        let value = "a".repeat(1000);
        let value = value.as_bytes();
        for pattern in ["*b", "*b*c*", "[b-z]", "a*b"] {
            let pattern = pattern.as_bytes();
            assert_eq!(
                trim_longest(value, pattern, &mut Budget(1000)),
                Err(Error::TooLong)
            );
            assert_eq!(
                trim_shortest(value, pattern, &mut Budget(1000)),
                Err(Error::TooLong)
            );
        }
        let pattern = [&value[..500], b"b"].concat();
        assert_eq!(
            Budget(1000).next_place(value, &pattern, true),
            Err(Error::TooLong)
        );
        assert_eq!(
            trim_shortest(value, b"*", &mut Budget(1_000_000)),
            Ok(&value[1..])
        );
    }
}

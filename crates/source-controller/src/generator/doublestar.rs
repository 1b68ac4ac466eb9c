//! Glob patterns as bmatcuk/doublestar matches them: `*`, `**`, `?`, classes, `{a,b}`, backslashes.
//!
//! In: a pattern and a path. Out: whether they match. The rules are followed in their corners too (`a/**` matches `a`, a
//! class may match a slash, `**` after an opening brace counts as if it began a part), because users' patterns were
//! tried with them. Alternatives multiply, so matching has a [`Budget`].

use std::cell::Cell;

/// A pattern that is none: an open class or brace, or a backslash at the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Malformed,
    /// It takes more work than is allowed.
    Exhausted,
}

/// Steps that patterns may still take. Shared by everything that one generator does.
#[derive(Debug)]
pub(super) struct Budget(Cell<u64>);

impl Budget {
    pub(super) fn new(steps: u64) -> Self {
        Self(Cell::new(steps))
    }

    pub(super) fn spend(&self, steps: u64) -> Result<(), Failure> {
        let left = self.0.get().checked_sub(steps).ok_or(Failure::Exhausted)?;
        self.0.set(left);
        Ok(())
    }
}

/// Returns whether the path matches. With `validate`, what is left of the pattern when it is known that it does not is looked at
/// too, so that a malformed one is told.
pub(super) fn matches(pattern: &str, path: &str, validate: bool, budget: &Budget) -> Result<bool, Failure> {
    let retry = Retry::default();
    matcher(path.as_bytes(), validate, budget).run(pattern.as_bytes(), 0, 0, retry, 0)
}

/// Returns whether a pattern is well-formed from end to end.
pub(super) fn is_valid(pattern: &str) -> bool {
    validates(pattern.as_bytes())
}

fn matcher<'a>(path: &'a [u8], validate: bool, budget: &'a Budget) -> Matcher<'a> {
    Matcher {
        path,
        validate,
        budget,
    }
}

/// Braces in braces; each level is a level of recursion here.
const MAX_ALTERNATIVES: usize = 64;

/// Where to go on after a mismatch: place in the pattern and in the path, behind the last star of each kind.
#[derive(Debug, Clone, Copy, Default)]
struct Retry {
    star: Option<(usize, usize)>,
    double: Option<(usize, usize)>,
}

struct Matcher<'a> {
    path: &'a [u8],
    validate: bool,
    budget: &'a Budget,
}

/// Result of one step in the pattern.
enum Step {
    Go,
    Mismatch,
    Decided(bool),
}

impl Matcher<'_> {
    fn run(
        &self,
        pattern: &[u8],
        mut at: usize,
        mut from: usize,
        mut retry: Retry,
        depth: usize,
    ) -> Result<bool, Failure> {
        let mut begins_part = true;
        while from < self.path.len() {
            self.budget.spend(1)?;
            let step = match pattern.get(at) {
                None => Step::Mismatch,
                Some(b'*') => {
                    at += 1;
                    if pattern.get(at) == Some(&b'*') {
                        at += 1;
                        if begins_part && at >= pattern.len() {
                            return Ok(true);
                        }
                        if begins_part && pattern[at] == b'/' {
                            at += 1;
                            retry = Retry {
                                star: None,
                                double: Some((at, from)),
                            };
                            continue;
                        }
                    }
                    begins_part = false;
                    retry.star = Some((at, from));
                    Step::Go
                }
                Some(b'?') => {
                    begins_part = false;
                    let (character, length) = rune(&self.path[from..]);
                    if character == u32::from(b'/') {
                        Step::Mismatch
                    } else {
                        at += 1;
                        from += length;
                        Step::Go
                    }
                }
                Some(b'[') => {
                    begins_part = false;
                    self.class(pattern, &mut at, &mut from)?
                }
                Some(b'{') => Step::Decided(self.alternatives(pattern, at, from, retry, depth)?),
                Some(_) => self.literal(pattern, &mut at, &mut from, &mut begins_part)?,
            };
            match step {
                Step::Go => {}
                Step::Decided(decided) => return Ok(decided),
                Step::Mismatch => match self.again(&mut retry) {
                    Some((next_at, next_from, part)) => (at, from, begins_part) = (next_at, next_from, part),
                    None if self.validate && at < pattern.len() && !validates(&pattern[at..]) => {
                        return Err(Failure::Malformed);
                    }
                    None => return Ok(false),
                },
            }
        }
        self.matches_nothing(&pattern[at.min(pattern.len())..], depth)
    }

    /// A character that stands for itself.
    fn literal(
        &self,
        pattern: &[u8],
        at: &mut usize,
        from: &mut usize,
        begins_part: &mut bool,
    ) -> Result<Step, Failure> {
        let escaped = usize::from(pattern[*at] == b'\\');
        if *at + escaped >= pattern.len() {
            return Err(Failure::Malformed);
        }
        let (wanted, pattern_length) = rune(&pattern[*at + escaped..]);
        let (found, length) = rune(&self.path[*from..]);
        if wanted != found {
            return Ok(Step::Mismatch);
        }
        *at += escaped + pattern_length;
        *from += length;
        *begins_part = wanted == u32::from(b'/');
        Ok(Step::Go)
    }

    /// One character more for the last star, or one folder more for the last double star.
    fn again(&self, retry: &mut Retry) -> Option<(usize, usize, bool)> {
        if let Some((at, from)) = retry.star {
            let (character, length) = rune(self.path.get(from..).unwrap_or_default());
            if character != u32::from(b'/') && length > 0 {
                retry.star = Some((at, from + length));
                return Some((at, from + length, false));
            }
        }
        let (at, from) = retry.double?;
        let slash = self.path[from..].iter().position(|byte| *byte == b'/')?;
        // Nothing below the last slash can match more than that.
        let next = from + slash + 1;
        retry.double = Some((at, next));
        Some((at, next, true))
    }

    fn class(&self, pattern: &[u8], at: &mut usize, from: &mut usize) -> Result<Step, Failure> {
        const NONE: u32 = 0x0010_ffff;
        *at += 1;
        let (found, length) = rune(&self.path[*from..]);
        let negated = matches!(pattern.get(*at).ok_or(Failure::Malformed)?, b'!' | b'^');
        *at += usize::from(negated);
        if matches!(pattern.get(*at), None | Some(b']')) {
            return Err(Failure::Malformed);
        }
        let (mut matched, mut last) = (false, NONE);
        while *at < pattern.len() && pattern[*at] != b']' {
            self.budget.spend(1)?;
            let (mut character, mut width) = rune(&pattern[*at..]);
            *at += width;
            let is_range = last < NONE && character == u32::from(b'-');
            if is_range && pattern.get(*at).is_some_and(|byte| *byte != b']') {
                *at += usize::from(pattern[*at] == b'\\');
                (character, width) = rune(pattern.get(*at..).unwrap_or_default());
                *at += width;
                if (last..=character).contains(&found) {
                    matched = true;
                    break;
                }
                last = NONE;
                continue;
            }
            if character == u32::from(b'\\') {
                (character, width) = rune(pattern.get(*at..).unwrap_or_default());
                *at += width;
            }
            if character == found {
                matched = true;
                break;
            }
            last = character;
        }
        let rest = pattern.get(*at..).unwrap_or_default();
        if matched == negated {
            return if rest.is_empty() {
                Err(Failure::Malformed)
            } else {
                Ok(Step::Mismatch)
            };
        }
        *at += unescaped(rest, b']').ok_or(Failure::Malformed)? + 1;
        *from += length;
        Ok(Step::Go)
    }

    /// Each alternative in the place of the braces.
    fn alternatives(
        &self,
        pattern: &[u8],
        open: usize,
        from: usize,
        retry: Retry,
        depth: usize,
    ) -> Result<bool, Failure> {
        let (rest, branches) = self.branches(pattern, open, depth)?;
        for branch in branches {
            let text = [&pattern[..open], branch, rest].concat();
            self.budget.spend(text.len() as u64)?;
            if self.run(&text, open, from, retry, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the pattern matches the empty text at the end of a path.
    fn matches_nothing(&self, pattern: &[u8], depth: usize) -> Result<bool, Failure> {
        if matches!(pattern, b"" | b"*" | b"**" | b"/**" | b"**/" | b"/**/") {
            return Ok(true);
        }
        if pattern[0] == b'{' {
            let (rest, branches) = self.branches(pattern, 0, depth)?;
            for branch in branches {
                let text = [branch, rest].concat();
                self.budget.spend(text.len() as u64)?;
                if self.matches_nothing(&text, depth + 1)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if self.validate && !validates(pattern) {
            return Err(Failure::Malformed);
        }
        Ok(false)
    }

    /// Splits at the braces from `open`: the alternatives between them, and the text behind.
    fn branches<'p>(
        &self,
        pattern: &'p [u8],
        open: usize,
        depth: usize,
    ) -> Result<(&'p [u8], Vec<&'p [u8]>), Failure> {
        if depth >= MAX_ALTERNATIVES {
            return Err(Failure::Exhausted);
        }
        let inner = &pattern[open + 1..];
        let (mut level, mut start, mut branches, mut index) = (1_usize, 0, Vec::new(), 0);
        while index < inner.len() {
            match inner[index] {
                b'\\' => index += 1,
                b'{' => level += 1,
                b',' if level == 1 => {
                    branches.push(&inner[start..index]);
                    start = index + 1;
                }
                b'}' => {
                    level -= 1;
                    if level == 0 {
                        branches.push(&inner[start..index]);
                        return Ok((&inner[index + 1..], branches));
                    }
                }
                _ => {}
            }
            index += 1;
        }
        Err(Failure::Malformed)
    }
}

/// Returns whether all classes and braces are closed, and each backslash stands before something.
fn validates(pattern: &[u8]) -> bool {
    let (mut level, mut at) = (0_usize, 0);
    while at < pattern.len() {
        match pattern[at] {
            b'\\' => {
                at += 1;
                if at >= pattern.len() {
                    return false;
                }
            }
            b'[' => {
                at += 1;
                at += usize::from(matches!(pattern.get(at), Some(b'^' | b'!')));
                let rest = pattern.get(at..).unwrap_or_default();
                if rest.is_empty() || rest[0] == b']' {
                    return false;
                }
                let Some(end) = unescaped(rest, b']') else {
                    return false;
                };
                at += end;
            }
            b'{' => level += 1,
            b'}' if level == 0 => return false,
            b'}' => level -= 1,
            _ => {}
        }
        at += 1;
    }
    level == 0
}

fn unescaped(text: &[u8], wanted: u8) -> Option<usize> {
    let mut index = 0;
    while index < text.len() {
        if text[index] == b'\\' {
            index += 1;
        } else if text[index] == wanted {
            return Some(index);
        }
        index += 1;
    }
    None
}

/// The first character and its length in bytes. Positions are always between characters of a text, or after a backslash.
fn rune(text: &[u8]) -> (u32, usize) {
    let Some(first) = text.first() else {
        return (0xfffd, 0);
    };
    let length = match first {
        0..=0x7f => return (u32::from(*first), 1),
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => return (0xfffd, 1),
    };
    let character = text
        .get(..length)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|text| text.chars().next());
    character.map_or((0xfffd, 1), |character| (u32::from(character), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of doublestar 4.10.0's Match (pattern, path, answer; None for a malformed pattern).
    const RECORDED: &str = include_str!("doublestar/recorded.txt");

    #[test]
    fn patterns_match_as_doublestar_matches_them() {
        let mut lines = 0;
        for line in RECORDED.lines() {
            let mut parts = line.split('\t');
            let mut next = || parts.next().unwrap();
            let (pattern, path, expected) = (next(), next(), next());
            let found = match matches(pattern, path, true, &Budget::new(1 << 20)) {
                Ok(true) => "true",
                Ok(false) => "false",
                Err(Failure::Malformed) => "malformed",
                Err(Failure::Exhausted) => "exhausted",
            };
            assert_eq!(found, expected, "{pattern:?} {path:?}");
            lines += 1;
        }
        assert!(lines > 1000);
    }

    #[test]
    fn alternatives_that_multiply_are_given_up() {
        let pattern = "{a,a}".repeat(60) + "b";
        let path = "a".repeat(60);
        assert_eq!(
            matches(&pattern, &path, false, &Budget::new(1 << 20)),
            Err(Failure::Exhausted)
        );
        let nested = "{".repeat(5000) + &"}".repeat(5000);
        assert_eq!(
            matches(&nested, "a", false, &Budget::new(1 << 30)),
            Err(Failure::Exhausted)
        );
    }
}

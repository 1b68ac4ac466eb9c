//! Regular expressions as Go's `regexp` reads them, written for the `regex` crate.
//!
//! Both descend from RE2, so most of a pattern goes over as it is. What differs is put right here: Go's `\d`, `\w`,
//! `\s` and `\b` know ASCII only, a brace that is no repetition is a brace, octal escapes and `\Q…\E` exist, and a
//! wrong pattern is refused in Go's words. Matching itself is not done here.

mod class;
mod escape;
mod problem;

use problem::problem;

/// Go's limit for one repetition, and for the product of nested ones.
const MAX_REPEAT: u32 = 1000;

/// How deep groups may be nested; Go allows about a thousand nodes, a user's pattern has few.
const MAX_DEPTH: usize = 200;

/// Translates a pattern.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        text: pattern,
        at: 0,
        out: String::with_capacity(pattern.len() * 2),
        groups: vec![Group::default()],
        last_repeat: None,
    };
    translator.run()?;
    Ok(translator.out)
}

/// Open group: how often its parts are repeated.
#[derive(Default)]
struct Group {
    /// The largest product of repetitions among its parts.
    repeats: u32,
    /// That of the last part; None at the start, where there is nothing to repeat.
    last: Option<u32>,
}

struct Translator<'a> {
    text: &'a str,
    at: usize,
    out: String,
    groups: Vec<Group>,
    /// Where the repetition starts that ends here: two in a row are an error.
    last_repeat: Option<usize>,
}

impl<'a> Translator<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(first) = self.rest().chars().next() {
            let before = self.last_repeat.take();
            match first {
                '*' | '+' | '?' => self.repeat(1, None, before)?,
                '{' => match repetition(self.rest()) {
                    Some(found) => self.repeat_counted(found, before)?,
                    None => self.literal('{', 1),
                },
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.out.push('|');
                    self.at += 1;
                    self.group().last = None;
                }
                '^' | '$' | '.' => {
                    self.out.push(first);
                    self.at += 1;
                    self.part(1);
                }
                '[' => {
                    let length = class::translate(self.rest(), &mut self.out)?;
                    self.at += length;
                    self.part(1);
                }
                '\\' => self.escape()?,
                c => self.literal(c, c.len_utf8()),
            }
        }
        if self.groups.len() > 1 {
            return Err(problem("missing closing )", self.text));
        }
        Ok(())
    }

    fn group(&mut self) -> &mut Group {
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn part(&mut self, repeats: u32) {
        let group = self.group();
        group.repeats = group.repeats.max(repeats);
        group.last = Some(repeats);
    }

    fn literal(&mut self, c: char, length: usize) {
        escape::push_literal(&mut self.out, c);
        self.at += length;
        self.part(1);
    }

    fn open(&mut self) -> Result<(), String> {
        let rest = self.rest();
        if self.groups.len() > MAX_DEPTH {
            return Err(problem("expression nests too deeply", self.text));
        }
        if !rest.starts_with("(?") {
            self.out.push('(');
            self.at += 1;
            self.groups.push(Group::default());
            return Ok(());
        }
        let (length, opens) = flags(rest)?;
        let flags = &rest[..length];
        // Names of groups do not matter for a match, and the two libraries allow different ones.
        self.out
            .push_str(if flags.ends_with('>') { "(?:" } else { flags });
        self.at += length;
        if opens {
            self.groups.push(Group::default());
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if self.groups.len() < 2 {
            return Err(problem("unexpected )", self.text));
        }
        let repeats = self.groups.pop().map_or(1, |group| group.repeats.max(1));
        self.out.push(')');
        self.at += 1;
        self.part(repeats);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let rest = self.rest();
        if let Some(quoted) = rest.strip_prefix(r"\Q") {
            let end = quoted.find(r"\E").unwrap_or(quoted.len());
            for c in quoted[..end].chars() {
                self.literal(c, 0);
            }
            self.at += (end + 4).min(rest.len());
            return Ok(());
        }
        let length = escape::translate(rest, &mut self.out)?;
        self.at += length;
        self.part(1);
        Ok(())
    }

    fn repeat_counted(&mut self, found: Repetition, before: Option<usize>) -> Result<(), String> {
        let Repetition {
            length,
            minimum,
            maximum,
        } = found;
        let (Some(minimum), Some(maximum)) = (minimum, maximum) else {
            return Err(problem("invalid repeat count", &self.rest()[..length]));
        };
        let too_many = minimum > MAX_REPEAT || maximum.is_some_and(|max| max > MAX_REPEAT || max < minimum);
        if too_many {
            return Err(problem("invalid repeat count", &self.rest()[..length]));
        }
        self.repeat(length, Some((minimum, maximum)), before)
    }

    fn repeat(
        &mut self,
        length: usize,
        counts: Option<(u32, Option<u32>)>,
        before: Option<usize>,
    ) -> Result<(), String> {
        let start = self.at;
        let lazy = usize::from(self.rest()[length..].starts_with('?'));
        let end = start + length + lazy;
        if let Some(before) = before {
            return Err(problem(
                "invalid nested repetition operator",
                &self.text[before..end],
            ));
        }
        let Some(last) = self.group().last else {
            let operator = &self.text[start..end];
            return Err(problem("missing argument to repetition operator", operator));
        };
        let factor = counts.map_or(1, |(minimum, maximum)| maximum.unwrap_or(minimum));
        let repeats = last.max(1).saturating_mul(factor);
        let counts_several = counts.is_some_and(|(min, max)| min >= 2 || max.is_some_and(|max| max >= 2));
        if counts_several && repeats > MAX_REPEAT {
            return Err(problem("invalid repeat count", &self.text[start..end]));
        }
        self.out.push_str(&self.text[start..end]);
        self.at = end;
        self.last_repeat = Some(start);
        self.part(repeats);
        Ok(())
    }
}

/// `{2}`, `{2,}` or `{2,3}`. A count is None when it is far too large.
struct Repetition {
    length: usize,
    minimum: Option<u32>,
    maximum: Option<Option<u32>>,
}

/// Reads a repetition; None for a brace that starts none.
fn repetition(text: &str) -> Option<Repetition> {
    let (minimum, rest) = count(text.strip_prefix('{')?)?;
    let (maximum, rest) = match rest.strip_prefix(',') {
        None => (minimum.map(Some), rest),
        Some(rest) if rest.starts_with('}') => (Some(None), rest),
        Some(rest) => {
            let (maximum, rest) = count(rest)?;
            (maximum.map(Some), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    Some(Repetition {
        length: text.len() - rest.len(),
        minimum,
        maximum,
    })
}

/// Reads a number without leading zeros.
fn count(text: &str) -> Option<(Option<u32>, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || (digits > 1 && text.starts_with('0')) {
        return None;
    }
    Some((text[..digits].parse().ok(), &text[digits..]))
}

/// Reads `(?i)`, `(?i:`, `(?:`, `(?P<name>` or `(?<name>`; tells how long it is and whether it opens a group.
fn flags(text: &str) -> Result<(usize, bool), String> {
    let name_start = match () {
        () if text.len() > 4 && text.starts_with("(?P<") => Some(4),
        () if text.len() > 3 && text.starts_with("(?<") => Some(3),
        () => None,
    };
    if let Some(start) = name_start {
        let end = text
            .find('>')
            .ok_or_else(|| problem("invalid named capture", text))?;
        let name = &text[start..end];
        if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            return Err(problem("invalid named capture", &text[..=end]));
        }
        return Ok((end + 1, true));
    }
    let mut negated = false;
    let mut seen = false;
    for (at, c) in text.char_indices().skip(2) {
        let end = at + c.len_utf8();
        match c {
            'i' | 'm' | 's' | 'U' => seen = true,
            '-' if !negated => (negated, seen) = (true, false),
            ':' | ')' if !negated || seen => return Ok((end, c == ':')),
            _ => return Err(problem("invalid or unsupported Perl syntax", &text[..end])),
        }
    }
    Err(problem("invalid or unsupported Perl syntax", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_written_for_the_other_library() {
        for (pattern, text, matches) in [
            (r"^\d+$", "١", false),
            (r"^\d+$", "12", true),
            (r"^\w$", "ä", false),
            (r"^a{,2}$", "a{,2}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{$", "a{", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\x41\101\x{42}$", "AAB", true),
            (r"^[\d\-x-z]+$", "1-y", true),
            (r"^[^\w]$", "-", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^[a&&b~~c-]$", "&", true),
            (r"^(?i)web$", "WEB", true),
            (r"^(?P<1>a)(?<n>b)$", "ab", true),
            (r"^\p{Greek}$", "α", true),
            (r"^\p{^Greek}$", "α", false),
            (r"^\pL$", "α", true),
            (r"^a]}$", "a]}", true),
        ] {
            let translated = translate(pattern).unwrap();
            let regex = regex::Regex::new(&translated).unwrap();
            assert_eq!(regex.is_match(text), matches, "{pattern} as {translated}");
        }
    }

    #[test]
    fn wrong_patterns_are_refused_in_gos_words() {
        for (pattern, message) in [
            ("(", "missing closing ): `(`"),
            (")", "unexpected ): `)`"),
            ("[a", "missing closing ]: `[a`"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("[[:x:]]", "invalid character class range: `[:x:]`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a+?*", "invalid nested repetition operator: `+?*`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            (r"\", "trailing backslash at end of expression: ``"),
            (r"\y", r"invalid escape sequence: `\y`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            ("(?x)", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?P<>a)", "invalid named capture: `(?P<>`"),
        ] {
            assert_eq!(
                translate(pattern),
                Err(format!("error parsing regexp: {message}")),
                "{pattern}"
            );
        }
    }
}

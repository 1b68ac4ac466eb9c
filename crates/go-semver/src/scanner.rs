//! Reads versions, wildcards and operators from the front of a text, for versions and for ranges.
//!
//! What it takes is what the regular expressions of Masterminds/semver take: as much as possible, and nothing of a
//! suffix that is not complete.

/// A written version of which numbers may be missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written<'a> {
    /// All of it.
    pub(crate) text: &'a str,
    /// Without the dots; the first is always there.
    pub(crate) numbers: [Option<&'a str>; 3],
    /// Without the hyphen.
    pub(crate) prerelease: Option<&'a str>,
    /// Without the plus sign.
    pub(crate) metadata: Option<&'a str>,
}

/// Reads from the front of `rest`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner<'a> {
    pub(crate) rest: &'a str,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(rest: &'a str) -> Self {
        Self { rest }
    }

    /// A version whose numbers are made of the given characters; on None nothing is taken.
    pub(crate) fn version(&mut self, of_number: fn(u8) -> bool) -> Option<Written<'a>> {
        let start = self.rest;
        self.take("v");
        let mut numbers = [self.run(of_number), None, None];
        if numbers[0].is_none() {
            self.rest = start;
            return None;
        }
        for number in &mut numbers[1..] {
            let before = self.rest;
            *number = if self.take(".") { self.run(of_number) } else { None };
            if number.is_none() {
                self.rest = before;
                break;
            }
        }
        let prerelease = self.suffix("-");
        let metadata = self.suffix("+");
        Some(Written {
            text: &start[..start.len() - self.rest.len()],
            numbers,
            prerelease,
            metadata,
        })
    }

    /// A `-pre.release` or `+meta.data` suffix; takes nothing when no identifier follows the mark.
    fn suffix(&mut self, mark: &str) -> Option<&'a str> {
        let is_identifier = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        let mut ahead = *self;
        if !ahead.take(mark) {
            return None;
        }
        let text = ahead.rest;
        ahead.run(is_identifier)?;
        loop {
            *self = ahead;
            if !(ahead.take(".") && ahead.run(is_identifier).is_some()) {
                return Some(&text[..text.len() - self.rest.len()]);
            }
        }
    }

    /// Takes the text when it comes next.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes white space. Answers whether there was some.
    pub(crate) fn spaces(&mut self) -> bool {
        self.run(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c'))
            .is_some()
    }

    /// Takes all ASCII characters that are wanted; None when the next is not.
    fn run(&mut self, wanted: fn(u8) -> bool) -> Option<&'a str> {
        let end = self.rest.bytes().position(|b| !b.is_ascii() || !wanted(b));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!taken.is_empty()).then_some(taken)
    }
}

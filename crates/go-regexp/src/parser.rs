//! Reads a pattern in Go's syntax (that of regexp.Compile, `syntax.Perl`) into a tree.
//!
//! The order of steps is that of Go's stack parser, since it decides which of several errors is told. What stands
//! between brackets is read by `class`, escapes by `escape`, groups with a question mark by `group`.

mod class;
mod escape;
mod group;
mod stack;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, Look};

use crate::error::{Error, Problem};
use crate::node::{Kind, Node};
use crate::rune;
use stack::Stack;

/// The most often that something may be repeated by numbers in braces.
const MAX_REPEAT: u32 = 1000;

/// A pattern that was read.
pub(crate) struct Parsed {
    pub(crate) node: Node,
    /// The names of the capturing groups, from the first; empty for those without.
    pub(crate) names: Vec<Vec<u8>>,
}

pub(crate) fn parse(pattern: &[u8]) -> Result<Parsed, Error> {
    let mut parser = Parser {
        pattern,
        flags: Flags::default(),
        stack: Stack::default(),
        names: Vec::new(),
    };
    let mut rest = pattern;
    let mut last_repeat = None;
    while !rest.is_empty() {
        let before = rest;
        let repeated;
        (rest, repeated) = parser.item(rest, last_repeat)?;
        last_repeat = repeated.then_some(before);
    }
    let node = parser.finish()?;
    Ok(Parsed {
        node,
        names: parser.names,
    })
}

/// The switches of `(?imsU)`.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    fold_case: bool,
    multi_line: bool,
    dot_matches_newline: bool,
    non_greedy: bool,
}

struct Parser<'a> {
    pattern: &'a [u8],
    flags: Flags,
    stack: Stack,
    names: Vec<Vec<u8>>,
}

type Rest<'a> = Result<&'a [u8], Error>;

impl<'a> Parser<'a> {
    /// Reads what comes first. Answers what follows, and whether it was a repetition.
    fn item(&mut self, text: &'a [u8], last_repeat: Option<&[u8]>) -> Result<(&'a [u8], bool), Error> {
        let (first, after) = text.split_first().expect("the caller stops at the end");
        let rest = match first {
            b'*' => return Ok((self.repeat(0, None, false, text, after, last_repeat)?, true)),
            b'+' => return Ok((self.repeat(1, None, false, text, after, last_repeat)?, true)),
            b'?' => return Ok((self.repeat(0, Some(1), false, text, after, last_repeat)?, true)),
            b'{' => match parse_repeat(text) {
                Some(counts) => return Ok((self.counted(counts, text, last_repeat)?, true)),
                None => self.push_literal(u32::from(b'{')).map(|()| after)?,
            },
            b'(' if after.first() == Some(&b'?') => self.special_group(text)?,
            b'(' => {
                self.open_capture(Vec::new());
                after
            }
            b'|' => self.vertical_bar().map(|()| after)?,
            b')' => self.close_group().map(|()| after)?,
            b'^' if self.flags.multi_line => self.push(Kind::Look(Look::StartLF)).map(|()| after)?,
            b'^' => self.push(Kind::Look(Look::Start)).map(|()| after)?,
            b'$' if self.flags.multi_line => self.push(Kind::Look(Look::EndLF)).map(|()| after)?,
            b'$' => self.push(Kind::Look(Look::End)).map(|()| after)?,
            b'.' => self.push(Kind::Class(self.dot())).map(|()| after)?,
            b'[' => self.class(text)?,
            b'\\' => self.escaped(text)?,
            _ => {
                let (c, rest) = next_rune(text)?;
                self.push_literal(c).map(|()| rest)?
            }
        };
        Ok((rest, false))
    }

    fn dot(&self) -> ClassUnicode {
        let newline = ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]);
        let mut class = newline.clone();
        class.negate();
        if self.flags.dot_matches_newline {
            class.union(&newline);
        }
        class
    }

    /// Replaces what comes before by its repetition. `before` starts at the operator and `after` behind it.
    fn repeat(
        &mut self,
        min: u32,
        max: Option<u32>,
        counted: bool,
        before: &'a [u8],
        after: &'a [u8],
        last_repeat: Option<&[u8]>,
    ) -> Rest<'a> {
        let lazy = after.strip_prefix(b"?");
        let after = lazy.unwrap_or(after);
        let greedy = lazy.is_some() == self.flags.non_greedy;
        let up_to_after = |text: &[u8]| text[..text.len() - after.len()].to_vec();
        if let Some(last) = last_repeat {
            return Err(Error::new(Problem::InvalidRepeatOp, &up_to_after(last)));
        }
        let refuse = |problem| Err(Error::new(problem, &up_to_after(before)));
        let Some(sub) = self.stack.pop_node() else {
            return refuse(Problem::MissingRepeatArgument);
        };
        let sub = Box::new(sub);
        let node = Node::new(Kind::Repeat(crate::node::Repeat {
            min,
            max,
            greedy,
            counted,
            sub,
        }));
        let times = max.unwrap_or(min);
        let valid = !counted || (min < 2 && times < 2) || node.repeats_at_most(MAX_REPEAT);
        self.limited(|stack| stack.push_repeat(node, times))?;
        if !valid {
            return refuse(Problem::InvalidRepeatSize);
        }
        Ok(after)
    }

    fn counted(&mut self, counts: Counts<'a>, text: &'a [u8], last_repeat: Option<&[u8]>) -> Rest<'a> {
        let Counts { min, max, after } = counts;
        let fits = |count: Option<u32>| count.is_some_and(|count| count <= MAX_REPEAT);
        let ordered = match (min, max) {
            (Some(min), Some(Some(max))) => min <= max,
            _ => true,
        };
        let (Some(low), true) = (min, fits(min) && max.is_none_or(fits) && ordered) else {
            let written = &text[..text.len() - after.len()];
            return Err(Error::new(Problem::InvalidRepeatSize, written));
        };
        self.repeat(low, max.flatten(), true, text, after, last_repeat)
    }

    fn push_literal(&mut self, c: u32) -> Result<(), Error> {
        self.push(Kind::Literal {
            characters: vec![c],
            fold_case: self.flags.fold_case,
        })
    }

    fn push(&mut self, kind: Kind) -> Result<(), Error> {
        self.limited(|stack| stack.push(Node::new(kind)))
    }

    /// Does something to the stack. What goes beyond a limit is told of the whole pattern.
    fn limited(&mut self, act: impl FnOnce(&mut Stack) -> Result<(), Problem>) -> Result<(), Error> {
        act(&mut self.stack).map_err(|problem| Error::new(problem, self.pattern))
    }

    fn vertical_bar(&mut self) -> Result<(), Error> {
        self.limited(Stack::end_branch)
    }

    fn open_capture(&mut self, name: Vec<u8>) {
        self.names.push(name);
        let index = u32::try_from(self.names.len()).expect("memory ends before");
        self.stack.open(Some(index), self.flags);
    }

    fn close_group(&mut self) -> Result<(), Error> {
        let mut flags = None;
        self.limited(|stack| {
            flags = stack.close()?;
            Ok(())
        })?;
        self.flags = flags.ok_or_else(|| Error::new(Problem::UnexpectedParen, self.pattern))?;
        Ok(())
    }

    fn finish(&mut self) -> Result<Node, Error> {
        let mut node = None;
        self.limited(|stack| {
            node = stack.finish()?;
            Ok(())
        })?;
        node.ok_or_else(|| Error::new(Problem::MissingParen, self.pattern))
    }
}

/// The numbers of `{2,5}`; an inner None is one that is far too large.
struct Counts<'a> {
    min: Option<u32>,
    /// None without upper bound.
    max: Option<Option<u32>>,
    after: &'a [u8],
}

/// Reads `{2}`, `{2,}` or `{2,5}`; what is none of these is plain text.
fn parse_repeat(text: &[u8]) -> Option<Counts<'_>> {
    let (min, rest) = parse_count(text.strip_prefix(b"{")?)?;
    let (max, rest) = match rest.strip_prefix(b",") {
        None => (Some(min), rest),
        Some(rest) if rest.first() == Some(&b'}') => (None, rest),
        Some(rest) => parse_count(rest).map(|(max, rest)| (Some(max), rest))?,
    };
    let after = rest.strip_prefix(b"}")?;
    Some(Counts { min, max, after })
}

/// Reads a number without leading zeroes; the inner None is one that is far too large.
fn parse_count(text: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let length = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(length);
    if digits.is_empty() || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    Some((number, rest))
}

/// The first character, and what follows.
fn next_rune(text: &[u8]) -> Result<(u32, &[u8]), Error> {
    match rune::decode(text) {
        (rune::ERROR, 1) => Err(Error::new(Problem::InvalidUtf8, text)),
        (c, length) => Ok((c, &text[length..])),
    }
}

fn check_utf8(text: &[u8]) -> Result<(), Error> {
    match str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::new(Problem::InvalidUtf8, &text[error.valid_up_to()..])),
    }
}

#[cfg(test)]
mod tests;

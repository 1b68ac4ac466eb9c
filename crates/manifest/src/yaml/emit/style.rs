//! The style in which a text is written: go-yaml's wish, and what libyaml allows for it.

use super::Context;
use crate::yaml::scalar::{Scalar, resolve_plain_v2};

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    Plain,
    Single,
    Double,
    Literal,
}

/// Chooses a style: go-yaml's wish, then what libyaml allows for the text.
pub(super) fn style_of(text: &str, analysis: &Analysis, context: Context) -> Chosen {
    let key = context == Context::SimpleKey;
    let wish = if text.contains('\n') {
        Chosen::Literal
    } else if resolve_plain_v2(text) == Scalar::Str && !is_base_60(text) {
        Chosen::Plain
    } else {
        Chosen::Double
    };
    let chosen = match wish {
        _ if key && analysis.multiline => Chosen::Double,
        Chosen::Literal if !analysis.block_allowed || key => Chosen::Double,
        Chosen::Plain if !analysis.plain_allowed => Chosen::Single,
        other => other,
    };
    if chosen == Chosen::Single && !analysis.single_allowed {
        Chosen::Double
    } else {
        chosen
    }
}

/// Tells quickly that a text is written as it is: most names and paths are.
pub(super) fn is_surely_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_simple = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-');
    // Words that mean something else start with a letter too, and have at most five of them.
    const LONGEST_WORD: usize = "false".len();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(is_simple)
        && (bytes.len() > LONGEST_WORD || resolve_plain_v2(text) == Scalar::Str)
}

/// YAML 1.1's base 60 numbers (`12:30:45`), which go-yaml does not read but quotes.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let Some(first) = parts.next() else { return false };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !digits(first) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else {
        return false;
    };
    let sixtieth = |s: &str| match s.as_bytes() {
        [d] => d.is_ascii_digit(),
        [b'0'..=b'5', d] => d.is_ascii_digit(),
        _ => false,
    };
    let (whole, fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|s| sixtieth(s)) && sixtieth(whole) && digits(fraction)
}

/// Analysis of a text by libyaml's `analyze_scalar`.
pub(super) struct Analysis {
    multiline: bool,
    plain_allowed: bool,
    single_allowed: bool,
    block_allowed: bool,
}

impl Analysis {
    pub(super) fn from_text(text: &str) -> Self {
        if text.is_empty() {
            return Self {
                multiline: false,
                plain_allowed: true,
                single_allowed: true,
                block_allowed: false,
            };
        }
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut line_breaks, mut break_space, mut space_break) = (false, false, false, false);
        let (mut previous_space, mut previous_break, mut after_whitespace) = (false, false, true);
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let before_whitespace = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if first =>
                {
                    true
                }
                '?' | '-' if first => before_whitespace,
                ':' => before_whitespace,
                '#' => after_whitespace,
                _ => false,
            };
            special |= !is_printable(c);
            line_breaks |= is_break(c);
            break_space |= c == ' ' && previous_break;
            space_break |= is_break(c) && previous_space;
            previous_space = c == ' ';
            previous_break = is_break(c);
            after_whitespace = matches!(c, ' ' | '\t') || is_break(c);
            first = false;
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let at_edges = edge(text.chars().next()) || edge(text.chars().next_back());
        Self {
            multiline: line_breaks,
            plain_allowed: !(at_edges || break_space || space_break || special || line_breaks || indicators),
            single_allowed: !(break_space || space_break || special),
            block_allowed: !(text.ends_with(' ') || space_break || special),
        }
    }
}

/// libyaml's printable characters as go-yaml lists them: no tab, no byte order mark, nothing beyond the first plane.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

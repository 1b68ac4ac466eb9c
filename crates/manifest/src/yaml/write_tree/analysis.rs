//! Analysis of a scalar before it is written: libyaml's `analyze_scalar`, as in go-yaml v3.

/// Which styles a text may be written in.
pub(super) struct Analysis {
    pub(super) multiline: bool,
    pub(super) flow_plain_allowed: bool,
    pub(super) block_plain_allowed: bool,
    pub(super) single_allowed: bool,
    pub(super) block_allowed: bool,
}

impl Analysis {
    pub(super) fn from_text(text: &str) -> Self {
        if text.is_empty() {
            return Self {
                multiline: false,
                flow_plain_allowed: false,
                block_plain_allowed: true,
                single_allowed: true,
                block_allowed: false,
            };
        }
        let marker = text.starts_with("---") || text.starts_with("...");
        let (mut flow_indicators, mut block_indicators) = (marker, marker);
        let (mut tabs, mut special, mut line_breaks) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let (mut previous_space, mut previous_break, mut after_whitespace) = (false, false, true);
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let before_whitespace = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            let (in_flow, in_block) = indicator(c, first, after_whitespace, before_whitespace);
            flow_indicators |= in_flow;
            block_indicators |= in_block;
            tabs |= c == '\t';
            special |= c != '\t' && !is_printable(c);
            line_breaks |= is_break(c);
            break_space |= c == ' ' && previous_break;
            space_break |= is_break(c) && previous_space;
            previous_space = c == ' ';
            previous_break = is_break(c);
            after_whitespace = matches!(c, ' ' | '\t' | '\0') || is_break(c);
            first = false;
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let at_edges = edge(text.chars().next()) || edge(text.chars().next_back());
        let plain = !(at_edges || break_space || space_break || tabs || special || line_breaks);
        Self {
            multiline: line_breaks,
            flow_plain_allowed: plain && !flow_indicators,
            block_plain_allowed: plain && !block_indicators,
            single_allowed: !(break_space || space_break || tabs || special),
            block_allowed: !(text.ends_with(' ') || space_break || special),
        }
    }
}

/// Returns whether a character would be an indicator in flow and in block context.
fn indicator(c: char, first: bool, after_whitespace: bool, before_whitespace: bool) -> (bool, bool) {
    match c {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
            if first =>
        {
            (true, true)
        }
        '?' if first => (true, before_whitespace),
        '-' if first => (before_whitespace, before_whitespace),
        ':' => (true, before_whitespace),
        ',' | '?' | '[' | ']' | '{' | '}' => (true, false),
        '#' => (after_whitespace, after_whitespace),
        _ => (false, false),
    }
}

/// libyaml's printable characters as go-yaml lists them: no tab, no byte order mark, nothing beyond the first plane.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

//! Scalars in their styles.

use super::analysis::{Analysis, is_break, is_printable};
use super::{Place, Writer, implicit_tag, tag_of_scalar};
use crate::yaml::node::{Node, Style, Tag};

impl Writer<'_> {
    pub(super) fn scalar(&mut self, node: &Node, place: Place) {
        let text = node.value.as_str();
        let style = self.style_of(node, place);
        self.properties(node, tag_of_scalar(node));
        let outer = self.indent;
        self.increase_indent(place, true, false);
        match style {
            Style::Plain => self.plain(text),
            Style::SingleQuoted => self.single_quoted(text),
            Style::DoubleQuoted => self.double_quoted(text),
            Style::Literal => self.literal(text),
            Style::Folded => self.folded(text),
        }
        self.indent = outer;
    }

    /// Chooses a style: the node's wish, then what libyaml allows for the text.
    fn style_of(&self, node: &Node, place: Place) -> Style {
        let text = node.value.as_str();
        let analysis = Analysis::from_text(text);
        let key = place == Place::SimpleKey;
        let in_flow = self.flow_level > 0;
        let reads_otherwise = node.tag == Tag::Str && !node.tagged && implicit_tag(text) != Tag::Str;
        let mut style = match node.style {
            Style::Plain if text.contains('\n') => Style::Literal,
            Style::Plain if reads_otherwise => Style::DoubleQuoted,
            style => style,
        };
        if key && analysis.multiline {
            style = Style::DoubleQuoted;
        }
        let plain_allowed = if in_flow {
            analysis.flow_plain_allowed
        } else {
            analysis.block_plain_allowed && !(text.is_empty() && key)
        };
        if style == Style::Plain && !plain_allowed {
            style = Style::SingleQuoted;
        }
        let is_block = matches!(style, Style::Literal | Style::Folded);
        if (style == Style::SingleQuoted && !analysis.single_allowed)
            || (is_block && (!analysis.block_allowed || in_flow || key))
        {
            style = Style::DoubleQuoted;
        }
        style
    }

    fn plain(&mut self, text: &str) {
        if text.is_empty() {
            self.indention = false;
            return;
        }
        if !self.whitespace {
            self.put(' ');
        }
        self.text(text);
    }

    fn single_quoted(&mut self, text: &str) {
        self.indicator("'", true, false, false);
        let mut breaks = false;
        for c in text.chars() {
            if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                breaks = true;
                continue;
            }
            if c != ' ' && breaks {
                self.write_indent();
            }
            if c == '\'' {
                self.put('\'');
            }
            self.put(c);
            if c != ' ' {
                self.indention = false;
                breaks = false;
            }
        }
        self.indicator("'", false, false, false);
    }

    fn double_quoted(&mut self, text: &str) {
        self.indicator("\"", true, false, false);
        // libyaml asks for the byte order mark at the start of the text, whatever character it is at.
        let escape_all = text.starts_with('\u{feff}');
        for c in text.chars() {
            if escape_all || !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                for c in escaped(c).chars() {
                    self.put(c);
                }
            } else {
                self.put(c);
            }
        }
        self.indicator("\"", false, false, false);
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        self.block_hints(text);
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }

    fn folded(&mut self, text: &str) {
        self.indicator(">", true, false, false);
        self.block_hints(text);
        // go-yaml looks at the start of the text, not at the line behind the break.
        let starts_with_text = text
            .trim_start_matches(is_break)
            .starts_with(|c: char| !matches!(c, ' ' | '\t' | '\0'));
        let (mut breaks, mut leading_spaces) = (true, true);
        for c in text.chars() {
            if is_break(c) {
                if !breaks && !leading_spaces && c == '\n' && starts_with_text {
                    self.put_break();
                }
                self.write_break(c);
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                    leading_spaces = matches!(c, ' ' | '\t');
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }

    /// Says how a block scalar is indented and how it ends, and ends the line.
    fn block_hints(&mut self, text: &str) {
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            let hint = self.best_indent.to_string();
            self.indicator(&hint, false, false, false);
        }
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next()) {
            (false, _) => self.indicator("-", false, false, false),
            (true, None) => self.indicator("+", false, false, false),
            (true, Some(c)) if is_break(c) => self.indicator("+", false, false, false),
            _ => {}
        }
        self.write_line_comment();
        self.put_break();
        self.whitespace = true;
    }
}

fn escaped(c: char) -> String {
    match c {
        '\0' => "\\0".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\u{1b}' => "\\e".to_owned(),
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{a0}' => "\\_".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        c if u32::from(c) <= 0xff => format!("\\x{:02X}", u32::from(c)),
        c if u32::from(c) <= 0xffff => format!("\\u{:04X}", u32::from(c)),
        c => format!("\\U{:08X}", u32::from(c)),
    }
}

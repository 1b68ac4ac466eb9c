//! Folds block scalars as kyaml does when it writes a tree and reads it again, which kustomize does with
//! every object.
//!
//! go-yaml v3's emitter looks at the start of the text where it should look at the next line, and so puts a break too
//! many before lines that are indented more. Users' overlays with folded scalars come out of kustomize that way.

/// Why a block scalar cannot be read back.
const TAB_AT_START: &str = "found a tab character where an indentation space is expected";

/// Returns whether libyaml's emitter takes block style for a text, rather than double quotes.
pub(super) fn is_written_as_block(text: &str) -> bool {
    let is_special = |c: char| !matches!(c, '\n' | '\t' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}');
    !text.is_empty() && !text.ends_with(' ') && !text.contains(" \n") && !text.contains(is_special)
}

/// Returns what is wrong with writing a text as a block: libyaml gives no indentation hint for a tab.
pub(super) fn problem_of_block(text: &str) -> Option<&'static str> {
    (text.starts_with('\t') && is_written_as_block(text)).then_some(TAB_AT_START)
}

/// Returns the text of a folded scalar after it was written and read.
pub(super) fn written_and_read(text: &str) -> String {
    if is_written_as_block(text) {
        read(&written(text), text)
    } else {
        text.to_owned()
    }
}

fn starts_with_blank(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// Writes the lines as the emitter does, without indentation.
fn written(text: &str) -> String {
    let content = text.trim_start_matches('\n');
    let doubles_breaks = !content.is_empty() && !starts_with_blank(content);
    let mut out = String::with_capacity(text.len() + 8);
    let (mut after_break, mut in_indented_line) = (true, true);
    for (at, c) in text.char_indices() {
        if c == '\n' {
            if !after_break && !in_indented_line && doubles_breaks {
                out.push('\n');
            }
            out.push('\n');
            after_break = true;
        } else {
            if after_break {
                in_indented_line = starts_with_blank(&text[at..]);
            }
            out.push(c);
            after_break = false;
        }
    }
    out
}

/// Folds lines as the scanner does; `original` tells which chomping indicator was written.
fn read(written: &str, original: &str) -> String {
    let lines = written.strip_suffix('\n').unwrap_or(written).split('\n');
    let (mut text, mut line_break, mut empty_lines) = (String::new(), "", String::new());
    let mut was_indented = false;
    for line in lines {
        if line.is_empty() {
            empty_lines.push('\n');
            continue;
        }
        let is_indented = starts_with_blank(line);
        if line_break.is_empty() || was_indented || is_indented {
            text.push_str(line_break);
        } else if empty_lines.is_empty() {
            text.push(' ');
        }
        text.push_str(&empty_lines);
        empty_lines.clear();
        text.push_str(line);
        was_indented = is_indented;
        line_break = "\n";
    }
    if original.ends_with('\n') {
        text.push_str(line_break);
    }
    if original == "\n" || original.ends_with("\n\n") {
        text.push_str(&empty_lines);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from go-yaml v3.0.5.
    #[test]
    fn folded_scalars_change_as_in_go() {
        for (before, after) in [
            ("a b", "a b"),
            ("a\nb\n", "a\nb\n"),
            ("a\n b", "a\n\n b"),
            ("'b\n\t\"e'\t", "'b\n\n\t\"e'\t"),
            (" a\nb", " a\nb"),
            ("\nb", "\nb"),
            ("a \nb", "a \nb"),
        ] {
            assert_eq!(written_and_read(before), after, "{before:?}");
        }
    }

    #[test]
    fn a_block_that_starts_with_a_tab_cannot_be_read_back() {
        assert!(problem_of_block("\ta\nb").is_some());
        assert!(problem_of_block("\ta \nb").is_none());
        assert!(problem_of_block("a\n\tb").is_none());
    }
}

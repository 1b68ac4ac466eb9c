//! Texts of others in Markdown: nothing in them is formatting, and no one is mentioned by them.

/// A line of others. In characters.
const MAX_LINE: usize = 600;

/// A text of others as code, in a line.
pub fn code(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() || c == '`' { ' ' } else { c })
        .collect();
    match line.trim() {
        "" => "` `".to_owned(),
        line => format!("`{}`", cut(line, MAX_LINE)),
    }
}

/// The first characters of a text, with a sign if there are more.
pub fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_ends_where_its_line_ends() {
        assert_eq!(code("a`b\n@all"), "`a b @all`");
        assert_eq!(code("\n"), "` `");
        assert_eq!(code(&"x".repeat(1000)).chars().count(), MAX_LINE + 3);
    }
}

//! Text of foreign origin, made fit for one line of a status message.

/// Joins the words of a text with single spaces and cuts it to `limit` characters, the last one an ellipsis.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        for letter in word.chars().filter(|letter| !letter.is_control()) {
            if length + 1 >= limit {
                line.push('…');
                return line;
            }
            line.push(letter);
            length += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn lines_are_joined_and_long_text_is_cut() {
        assert_eq!(one_line("a\n  b\tc ", 20), "a b c");
        assert_eq!(one_line("ünïcode text", 5), "ünïc…");
        assert_eq!(one_line("", 5), "");
        assert_eq!(one_line("red \u{1b}[31m", 20), "red [31m");
    }
}

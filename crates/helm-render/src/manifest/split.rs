//! Splits a rendered file where a line starts with `---`, by text alone.
//!
//! Charts rely on what is no YAML: `---apiVersion: v1` starts a document. Helm 3 also eats the white space around a
//! separator, Helm 4 leaves what stands before it. Both are `releaseutil.SplitManifests`.

use helm_chart::Helm;

const SEPARATOR: &[u8] = b"---";

/// Splits a text into its documents, without blank ones.
pub fn split(text: &[u8], helm: Helm) -> Vec<&[u8]> {
    match helm {
        Helm::V4 => split_at_lines(text),
        Helm::V3 => split_with_space(text),
    }
}

/// Splits as the regular expression `(?m)^---[ \t]*` does.
fn split_at_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut rest = trim_start(text);
    let mut documents = Vec::new();
    let mut at_line_start = true;
    let mut from = 0;
    loop {
        let found = if at_line_start && rest[from..].starts_with(SEPARATOR) {
            Some(from)
        } else {
            find_line(&rest[from..]).map(|at| from + at)
        };
        let document = trim_start(&rest[..found.unwrap_or(rest.len())]);
        if !document.is_empty() {
            documents.push(document);
        }
        let Some(at) = found else { return documents };
        rest = &rest[at + SEPARATOR.len()..];
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        from = blanks.count();
        // What follows the separator stands in its line.
        at_line_start = false;
        rest = &rest[from..];
        from = 0;
    }
}

/// Splits as the regular expression `(?:^|\s*\n)---\s*` does, and trims what comes out.
fn split_with_space(text: &[u8]) -> Vec<&[u8]> {
    let mut rest = trim(text);
    let mut documents = Vec::new();
    let mut found = rest.starts_with(SEPARATOR).then_some(0);
    loop {
        found = found.or_else(|| find_line(rest));
        let Some(at) = found else { break };
        push_trimmed(&mut documents, &rest[..at]);
        rest = rest[at + SEPARATOR.len()..].trim_ascii_start();
        found = None;
    }
    push_trimmed(&mut documents, rest);
    documents
}

fn push_trimmed<'a>(documents: &mut Vec<&'a [u8]>, document: &'a [u8]) {
    let document = trim(document);
    if !document.is_empty() {
        documents.push(document);
    }
}

/// Finds a separator at the start of a line that is not the first.
fn find_line(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let line = from + text[from..].iter().position(|byte| *byte == b'\n')? + 1;
        if text[line..].starts_with(SEPARATOR) {
            return Some(line);
        }
        from = line;
    }
}

/// Go's `strings.TrimLeftFunc(text, unicode.IsSpace)`.
fn trim_start(text: &[u8]) -> &[u8] {
    match std::str::from_utf8(text) {
        Ok(text) => text.trim_start().as_bytes(),
        Err(_) => text.trim_ascii_start(),
    }
}

/// Go's `strings.TrimSpace`.
fn trim(text: &[u8]) -> &[u8] {
    match std::str::from_utf8(text) {
        Ok(text) => text.trim().as_bytes(),
        Err(_) => text.trim_ascii(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, v3: &[&str], v4: &[&str]) {
        let shown = |helm| {
            let documents = split(text.as_bytes(), helm);
            let shown = documents
                .iter()
                .map(|document| String::from_utf8_lossy(document).into_owned());
            shown.collect::<Vec<_>>()
        };
        assert_eq!(shown(Helm::V3), v3);
        assert_eq!(shown(Helm::V4), v4);
    }

    #[test]
    fn documents_are_split_where_a_line_starts_with_dashes() {
        check("a: 1\n---\nb: 2\n", &["a: 1", "b: 2"], &["a: 1\n", "b: 2\n"]);
        check(
            "---\na: 1\n\n\n--- # c\nb",
            &["a: 1", "# c\nb"],
            &["a: 1\n\n\n", "# c\nb"],
        );
        check("---a: 1\n----\nb", &["a: 1", "-\nb"], &["a: 1\n", "-\nb"]);
        check(" \n ---\na\n  ---\nb", &["a\n  ---\nb"], &["a\n  ---\nb"]);
        check("a ---\n b", &["a ---\n b"], &["a ---\n b"]);
        check("a\r\n---\r\nb\r\n", &["a", "b"], &["a\r\n", "b\r\n"]);
    }

    #[test]
    fn blank_documents_are_left_out() {
        check("", &[], &[]);
        check(" \n\u{a0}\n", &[], &[]);
        // Helm 3 eats the line break that would make the second line a separator.
        check("---\n---\n\n---\n a\n---", &["---", "a"], &["a\n"]);
        check("--- ---\n---", &["---"], &["---\n"]);
    }
}

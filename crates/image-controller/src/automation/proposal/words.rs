//! What a pull request says when no template says it. Pure.

use std::collections::BTreeMap;

use yaml_setters::Change;

use crate::automation::message::Parts;

/// Rows of the table; more are counted.
const MAX_ROWS: usize = 100;
/// Characters of one cell.
const MAX_CELL: usize = 200;
/// Characters of a title.
const MAX_TITLE: usize = 200;
/// Bytes of a description: GitHub takes 65,536 characters.
const MAX_BODY: usize = 60_000;

/// Changes by file.
pub(super) type Files = BTreeMap<String, Vec<Change>>;

/// The title: the new values, or how many there are.
pub(super) fn title(files: &Files) -> String {
    let mut values: Vec<&str> = Vec::new();
    for change in files.values().flatten() {
        if !values.contains(&change.new.as_str()) {
            values.push(&change.new);
        }
    }
    match values.as_slice() {
        [one] => line(&format!("Update to {one}"), MAX_TITLE),
        [one, other] => line(&format!("Update to {one} and {other}"), MAX_TITLE),
        more => format!("Update {} image values", more.len()),
    }
}

/// The description without a template.
pub(super) fn body(parts: &Parts, automation: &str) -> String {
    let Parts {
        table,
        images,
        objects,
    } = parts;
    let by = format!("\nProposed by ImageUpdateAutomation {}.\n", code(automation));
    [table, images, objects, &by].map(String::as_str).concat()
}

/// What changes, from what to what, and where.
pub(super) fn table(files: &Files) -> String {
    let mut text = String::from("| from | to | object | file |\n|---|---|---|---|\n");
    let rows = files
        .iter()
        .flat_map(|(file, changes)| changes.iter().map(move |change| (file, change)));
    let count = rows.clone().count();
    for (file, change) in rows.take(MAX_ROWS) {
        let object = &change.object;
        let object = match object.namespace.as_str() {
            "" => format!("{}/{}", object.kind, object.name),
            namespace => format!("{}/{} in {namespace}", object.kind, object.name),
        };
        let place = format!("{file}:{}", change.line);
        let cells = [&change.old, &change.new, &object, &place].map(|cell| code(cell));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if count > MAX_ROWS {
        text.push_str(&format!("\nAnd {} more.\n", count - MAX_ROWS));
    }
    text
}

/// The first line of a text, without control characters.
pub(super) fn first_line(text: &str) -> String {
    line(text.trim().lines().next().unwrap_or_default(), MAX_TITLE)
}

/// A description of bounded length.
pub(super) fn bounded(mut text: String) -> String {
    if text.len() > MAX_BODY {
        text.truncate(text.floor_char_boundary(MAX_BODY));
        text.push('…');
    }
    text
}

fn line(text: &str, longest: usize) -> String {
    let mut plain = text.chars().filter(|c| !c.is_control());
    let mut line: String = plain.by_ref().take(longest).collect();
    if plain.next().is_some() {
        line.push('…');
    }
    line.trim().to_owned()
}

/// Text that is shown as it is, inside a table: no mark-up, no mention, no other cell.
pub(super) fn code(text: &str) -> String {
    let text = line(text, MAX_CELL).replace(['`', '|'], "?");
    if text.is_empty() {
        return "–".to_owned();
    }
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use yaml_setters::ObjectIdentifier;

    fn files(changes: &[(&str, &str, &str)]) -> Files {
        let mut files = Files::new();
        for (file, old, new) in changes {
            let object = ObjectIdentifier {
                kind: "Deployment".to_owned(),
                name: "web".to_owned(),
                ..ObjectIdentifier::default()
            };
            files.entry((*file).to_owned()).or_default().push(Change {
                object,
                old: (*old).to_owned(),
                new: (*new).to_owned(),
                setter: "apps:web".to_owned(),
                line: 7,
            });
        }
        files
    }

    #[test]
    fn a_title_names_the_new_values() {
        assert_eq!(
            title(&files(&[("a", "w:1", "w:2"), ("b", "w:1", "w:2")])),
            "Update to w:2"
        );
        assert_eq!(
            title(&files(&[("a", "w:1", "w:2"), ("b", "x:1", "x:3")])),
            "Update to w:2 and x:3"
        );
        let many = files(&[("a", "1", "2"), ("b", "1", "3"), ("c", "1", "4")]);
        assert_eq!(title(&many), "Update 3 image values");
    }

    #[test]
    fn a_file_name_is_no_mark_up() {
        let hostile = "a`|\n@everyone ![](http://x)`.yaml";
        let text = table(&files(&[(hostile, "w:1", "w:2")]));
        let row = text.lines().nth(2).unwrap();
        assert_eq!(
            row,
            "| `w:1` | `w:2` | `Deployment/web` | `a??@everyone ![](http://x)?.yaml:7` |"
        );
        let hostile: Vec<_> = (0..500).map(|_| ("f", "1", "2")).collect();
        assert!(table(&files(&hostile)).contains("And 400 more."));
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(first_line("\n a \u{7}b\nc"), "a b");
        assert_eq!(first_line(&"x".repeat(300)).chars().count(), 201);
    }
}

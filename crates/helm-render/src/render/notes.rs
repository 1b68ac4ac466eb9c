//! NOTES.txt: rendered like a template, shown to people, and no manifest.

use crate::manifest::Files;

const SUFFIX: &str = "NOTES.txt";

/// Takes all notes out of rendered files, and returns those of the chart; on demand those of its dependencies as well, in
/// the order of their paths (Helm leaves it to chance).
pub(super) fn take(files: &mut Files, chart: &str, with_dependencies: bool) -> String {
    let own = format!("{chart}/templates/{SUFFIX}");
    let mut notes = Vec::new();
    files.retain(|path, content| {
        if !path.ends_with(SUFFIX) {
            return true;
        }
        if with_dependencies || **path == *own {
            if !notes.is_empty() {
                notes.push(b'\n');
            }
            notes.extend_from_slice(content);
        }
        false
    });
    String::from_utf8_lossy(&notes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_charts_own_notes_are_shown() {
        let files: Files = [
            ("c/charts/s/templates/NOTES.txt", "sub"),
            ("c/templates/NOTES.txt", "own"),
            ("c/templates/a.yaml", "a: 1"),
        ]
        .into_iter()
        .map(|(path, text)| (path.into(), text.into()))
        .collect();
        let mut left = files.clone();
        assert_eq!(take(&mut left, "c", false), "own");
        assert_eq!(left.len(), 1);
        assert_eq!(take(&mut files.clone(), "c", true), "sub\nown");
    }
}

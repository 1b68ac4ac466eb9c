//! `--show-only`: chooses documents by the template that they came from.

use helm_chart::path_match::path_match;
use helm_render::manifest::split;

use super::flags::Settings;

/// Chooses the documents whose templates match, in the order of the patterns; or the pattern that matches none.
pub(super) fn choose<'a>(text: &str, settings: &'a Settings) -> (String, Option<&'a str>) {
    let documents = split(text.as_bytes(), settings.helm);
    let documents: Vec<_> = documents.into_iter().map(String::from_utf8_lossy).collect();
    let mut shown = String::new();
    for pattern in &settings.show_only {
        let mut is_missing = true;
        for document in &documents {
            let is_chosen = template(document).is_some_and(|name| path_match(pattern, name) == Ok(true));
            if is_chosen {
                shown.push_str("---\n");
                shown.push_str(document);
                shown.push('\n');
                is_missing = false;
            }
        }
        if is_missing {
            return (shown, Some(pattern));
        }
    }
    (shown, None)
}

/// Finds the first `# Source: chart/templates/file.yaml` of a document, and takes the chart off.
fn template(document: &str) -> Option<&str> {
    const MARK: &str = "# Source: ";
    let places = document.match_indices(MARK);
    places
        .filter_map(|(at, _)| of_source(&document[at + MARK.len()..]))
        .next()
}

/// Captures of the expression `[^/]+/(.+)`.
fn of_source(text: &str) -> Option<&str> {
    let (chart, rest) = text.split_once('/')?;
    let name = rest.split('\n').next()?;
    (!chart.is_empty() && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_known_by_their_sources() {
        assert_eq!(
            template("# Source: c/templates/a.yaml\na: 1"),
            Some("templates/a.yaml")
        );
        assert_eq!(template("a: 1"), None);
    }
}

//! What readers of Markdown make of it: GitHub, and mdBook for the book of `docs/`.

/// What a link says after `#` to lead to this heading. GitHub and mdBook agree on it.
pub(crate) fn anchor(heading: &str) -> String {
    let part = |character: char| match character {
        '_' | '-' => Some(character),
        _ if character.is_alphanumeric() => Some(character.to_ascii_lowercase()),
        _ if character.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.trim().chars().filter_map(part).collect()
}

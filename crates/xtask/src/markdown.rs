//! Markdown as its readers interpret it: GitHub, and mdBook for the book of `docs/`.

#[cfg(test)]
mod links;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod proofs;

/// Returns the anchor of a heading, which links have after `#`. GitHub and mdBook agree on it.
pub(crate) fn anchor(heading: &str) -> String {
    let part = |character: char| match character {
        '_' | '-' => Some(character),
        _ if character.is_alphanumeric() => Some(character.to_ascii_lowercase()),
        _ if character.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.trim().chars().filter_map(part).collect()
}

#[cfg(test)]
fn repository_root() -> std::path::PathBuf {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

//! Paths as Go's `path` package cuts and cleans them: plain text with slashes.

/// Returns the shortest path that means the same, without looking at any file (`path.Clean`).
pub(super) fn clean(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (is_rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Returns the last element of a clean path.
pub(super) fn base(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, base)| base)
}

/// Returns what stands behind the last dot of the last element, with the dot (`path.Ext`).
pub(super) fn extension(path: &str) -> &str {
    let base = base(path);
    base.rfind('.').map_or("", |dot| &base[dot..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_go_cleans_them() {
        for (path, expected) in [
            ("", "."),
            ("a/../..", ".."),
            ("../../x", "../../x"),
            ("a//b/./c/..", "a/b"),
            ("/../a", "/a"),
            ("/", "/"),
            ("..x/y", "..x/y"),
        ] {
            assert_eq!(clean(path), expected, "{path:?}");
        }
    }
}

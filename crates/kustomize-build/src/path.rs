//! Paths inside a tree: slash-separated, relative to its root, normalised. The root is the empty path.

/// Joins and normalises; None when the result would leave the root, or for an absolute path.
pub(crate) fn join(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

/// Joins and normalises for a message, also what leaves the root: `../x`.
pub(crate) fn join_for_message(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = if path.starts_with('/') {
        Vec::new()
    } else {
        split(folder).collect()
    };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') {
        format!("/{joined}")
    } else {
        shown(&joined).to_owned()
    }
}

fn split(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// Shows a path in a message: the root as `.`.
pub(crate) fn shown(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// Shows a path below the name of the tree's root, an absolute path or a URL; relative, when the root has no name.
pub(crate) fn shown_below(root: &str, path: &str) -> String {
    if root.is_empty() || path.starts_with('/') {
        return shown(path).to_owned();
    }
    if root.starts_with('/') {
        return join_for_message(root, &format!("{root}/{path}"));
    }
    match path {
        "" | "." if root.contains("://") => root.to_owned(),
        _ if root.contains("://") => format!("{root}/{path}"),
        _ => join_for_message(root, path),
    }
}

/// Returns whether `path` is `folder` or below it.
pub(crate) fn is_in_or_below(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path == folder
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the folder of a path; the root for a path of one part.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the last part of a path, as Go's `path.Base`.
pub(crate) fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_and_never_leave_the_root() {
        for (folder, path, joined) in [
            ("", "a/./b//c", Some("a/b/c")),
            ("a/b", "../c", Some("a/c")),
            ("a", "..", Some("")),
            ("a", "../..", None),
            ("", "/etc", None),
        ] {
            assert_eq!(join(folder, path).as_deref(), joined, "{folder} {path}");
        }
        assert_eq!(join_for_message("a", "../../x"), "../x");
        assert_eq!(join_for_message("a", ".."), ".");
    }

    #[test]
    fn paths_are_shown_below_the_name_of_the_root() {
        for (root, path, shown) in [
            ("", "", "."),
            ("", "a/b", "a/b"),
            ("/", "", "/"),
            ("/", "a/b", "/a/b"),
            ("/x", "", "/x"),
            ("/x", ".", "/x"),
            ("/x", "a", "/x/a"),
            ("/x", "../y", "/y"),
            ("/x", "/y", "/y"),
            ("https://github.com/a/b", "", "https://github.com/a/b"),
            ("https://github.com/a/b", "c/d", "https://github.com/a/b/c/d"),
        ] {
            assert_eq!(shown_below(root, path), shown, "{root} {path}");
        }
    }

    #[test]
    fn containment_is_by_whole_parts() {
        assert!(is_in_or_below("a/b", "a"));
        assert!(is_in_or_below("a", ""));
        assert!(!is_in_or_below("ab", "a"));
    }
}

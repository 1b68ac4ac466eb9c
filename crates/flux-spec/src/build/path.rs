//! Slash-separated paths below the root of an artifact; the root is empty.

/// Joins two paths, either of which may be empty.
pub fn join(folder: &str, name: &str) -> String {
    match (folder.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => folder.to_owned(),
        _ => format!("{folder}/{name}"),
    }
}

/// Resolves `.` and `..`; None if the path leaves the root.
pub fn normalise(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Resolves `.` and `..` where the root is its own parent, as Flux does with `spec.path` (filepath-securejoin).
pub fn clamp(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_and_the_root_is_the_end() {
        for (path, normalised, clamped) in [
            ("", Some(""), ""),
            ("./a//b/.", Some("a/b"), "a/b"),
            ("/a/../b", Some("b"), "b"),
            ("a/../../b", None, "b"),
            ("..", None, ""),
        ] {
            assert_eq!(normalise(path).as_deref(), normalised, "{path}");
            assert_eq!(clamp(path), clamped, "{path}");
        }
    }
}

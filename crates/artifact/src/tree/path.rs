//! Which paths can stand in a tree.
//!
//! Every path that enters the crate, from an archive, a Git tree, a request or a consumer, comes through
//! [`clean_path`], so nothing behind it meets `..`, an absolute path or an empty component.

const LONGEST_PATH: usize = 4096;
/// Code that recurses into folders relies on it. Linux would allow 2048, no one's sources come near.
const MOST_COMPONENTS: usize = 128;
/// Longest name that file systems accept; longer ones could not be unpacked.
const LONGEST_NAME: usize = 255;

/// Why a path is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It starts with a slash.
    #[error("failed to accept path {0:?}: it is absolute")]
    Absolute(String),
    /// It has a `..` component, even one that would stay inside.
    #[error("failed to accept path {0:?}: it leaves its folder")]
    Parent(String),
    /// A component has a NUL or a line feed, or is too long for a file system.
    #[error("failed to accept path {0:?}: a part of it is not a file name")]
    Name(String),
    /// The path is too long or too deep. It is shown shortened.
    #[error("failed to accept path {0:?}…: it is longer than 4096 bytes or deeper than 128 folders")]
    Length(String),
}

/// The canonical form of a relative path: no empty or `.` components, and no slash at its end. The root is the
/// empty string.
///
/// # Errors
/// For absolute paths, paths with `..`, and names that cannot stand in a tree.
pub fn clean_path(path: &str) -> Result<String, PathError> {
    if path.len() > LONGEST_PATH {
        return Err(PathError::Length(path.chars().take(80).collect()));
    }
    if path.starts_with('/') {
        return Err(PathError::Absolute(path.to_owned()));
    }
    let mut clean = String::with_capacity(path.len());
    for (depth, name) in path
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .enumerate()
    {
        if depth == MOST_COMPONENTS {
            return Err(PathError::Length(path.chars().take(80).collect()));
        }
        if name == ".." {
            return Err(PathError::Parent(path.to_owned()));
        }
        if !is_name(name) {
            return Err(PathError::Name(path.to_owned()));
        }
        if !clean.is_empty() {
            clean.push('/');
        }
        clean.push_str(name);
    }
    Ok(clean)
}

/// Returns whether the text can be the name of an entry. A line feed cannot: it would end the entry's line in the
/// folder's canonical text.
pub(super) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && name.len() <= LONGEST_NAME && !name.contains(['/', '\0', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_or_refused() {
        let clean = [
            ("", ""),
            (".", ""),
            ("./", ""),
            ("a", "a"),
            ("./a//b/./c/", "a/b/c"),
            ("...", "..."),
            ("a/..b", "a/..b"),
            (r"a\b", r"a\b"),
            ("ä/ö", "ä/ö"),
            ("Icon\r", "Icon\r"),
        ];
        for (path, expected) in clean {
            assert_eq!(clean_path(path).as_deref(), Ok(expected), "{path}");
        }
        for path in ["..", "../a", "a/../b", "a/.."] {
            assert_eq!(
                clean_path(path),
                Err(PathError::Parent(path.to_owned())),
                "{path}"
            );
        }
        for path in ["/", "/a", "//a"] {
            assert_eq!(
                clean_path(path),
                Err(PathError::Absolute(path.to_owned())),
                "{path}"
            );
        }
        let long_name = "n".repeat(256);
        for path in ["a\nb", "a\0", "x/a\0b", long_name.as_str()] {
            assert_eq!(clean_path(path), Err(PathError::Name(path.to_owned())), "{path}");
        }
        assert!(matches!(clean_path(&"a/".repeat(129)), Err(PathError::Length(_))));
        assert!(matches!(
            clean_path(&"./".repeat(3000)),
            Err(PathError::Length(_))
        ));
        assert_eq!(clean_path(&"a/".repeat(128)).unwrap().len(), 255);
    }
}

//! Names of objects as paths of files. A name is anything that someone chose; a path stays inside of the artifact.

use artifact::tree::clean_path;

/// Why an object cannot be a file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// A part of it is `.` or `..`, which no URL can carry.
    #[error("'.' and '..' cannot be parts of its name; rename it or exclude it with spec.ignore")]
    Dots,
    /// The path is none.
    #[error("{0}; rename it or exclude it with spec.ignore")]
    Path(String),
}

/// The path that ignore rules are asked about: as Flux joins paths, nothing leads out of the artifact.
pub(super) fn inside(key: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in key.split('/') {
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

/// The path of the file that the object becomes.
pub(super) fn path(key: &str) -> Result<String, Error> {
    if key.split('/').any(|part| matches!(part, "." | "..")) {
        return Err(Error::Dots);
    }
    match clean_path(key.trim_start_matches('/')) {
        Ok(path) if path.is_empty() => Err(Error::Path("its name has no letters".to_owned())),
        Ok(path) => Ok(path),
        Err(error) => Err(Error::Path(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths_inside_of_the_artifact() {
        let cases = [
            ("a/b.yaml", "a/b.yaml", Ok("a/b.yaml")),
            ("/etc/passwd", "etc/passwd", Ok("etc/passwd")),
            ("a//b", "a/b", Ok("a/b")),
            ("../../etc/passwd", "etc/passwd", Err(Error::Dots)),
            ("a/../../b", "b", Err(Error::Dots)),
            ("./a", "a", Err(Error::Dots)),
            ("..", "", Err(Error::Dots)),
            ("a/..b", "a/..b", Ok("a/..b")),
            ("\\..\\a", "\\..\\a", Ok("\\..\\a")),
        ];
        for (key, within, expected) in cases {
            assert_eq!(inside(key), within, "{key}");
            assert_eq!(path(key), expected.map(str::to_owned), "{key}");
        }
        for key in ["a\nb", "a\0b", "///", &"x".repeat(5000)] {
            assert!(matches!(path(key), Err(Error::Path(_))), "{key}");
        }
    }
}

//! Which tags take part, and which part of them is ordered.

use go_regexp::Regexp;

use crate::Error;

/// Longer patterns are not read, in bytes.
const MAX_PATTERN: usize = 4096;

/// A pattern, and what is extracted from tags that match.
#[derive(Debug)]
pub struct Filter {
    pattern: Regexp,
    /// Empty: the whole tag.
    extract: String,
}

impl Filter {
    /// Reads a pattern in Go's syntax, and a template such as `$ts`.
    ///
    /// # Errors
    /// When the pattern is no regular expression.
    pub fn new(pattern: &str, extract: &str) -> Result<Self, Error> {
        let refused = |problem: String| Error::Pattern {
            pattern: pattern.to_owned(),
            problem,
        };
        if pattern.len() > MAX_PATTERN || extract.len() > MAX_PATTERN {
            return Err(refused(format!("it is longer than {MAX_PATTERN} bytes")));
        }
        let compiled = Regexp::compile(pattern.as_bytes()).map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            pattern: compiled,
            extract: extract.to_owned(),
        })
    }

    /// The value of a tag that matches.
    pub(crate) fn apply(&self, tag: &str) -> Option<String> {
        if self.extract.is_empty() {
            return self.pattern.is_match(tag.as_bytes()).then(|| tag.to_owned());
        }
        let extracted = self
            .pattern
            .expand_match(tag.as_bytes(), self.extract.as_bytes())?;
        Some(String::from_utf8_lossy(&extracted).into_owned())
    }
}

//! Regular expressions of schemas, which are Go's.

use go_regexp::Regexp;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    compiled: Regexp,
}

impl Pattern {
    /// Compiles; the error is Go's.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let compiled = Regexp::compile(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Self {
            text: text.to_owned(),
            compiled,
        })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.compiled.is_match(text.as_bytes())
    }

    /// Returns the compiled text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

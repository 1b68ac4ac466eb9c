//! Why a template was refused or failed, in Go's words.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// An error of parsing, of execution, or of a function.
///
/// [`fmt::Display`] gives Go's whole text, which already holds the text of the cause; [`Error::cause`] is what
/// `errors.Unwrap` gives, by which Helm lists every place on the way.
///
/// The text of an error usually ends in that of its cause, a thousand times over where templates include each other
/// endlessly. It is kept once: each error has its own words, and the whole is put together when someone asks.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    /// The text, without that of the cause where it ends in it.
    words: String,
    cause: Option<Error>,
    ends_in_cause: bool,
    /// The length of the whole text.
    length: usize,
    /// The whole text from an offset on, shared by all errors of a chain.
    text: OnceLock<(Arc<str>, usize)>,
}

/// Origin of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The template's text is wrong.
    Parse,
    /// Execution failed at a place in a template: Go's `template.ExecError`.
    Exec,
    /// A function refused, without saying where.
    Function,
    /// A bound was reached: depth, output, steps, or the caller's cancellation.
    Limit,
}

/// How long a text may become by wrapping: far more than a thousand levels of `include` say.
const MAX_LENGTH: usize = 4 << 20;

impl Error {
    /// Makes an error of a function, with Go's text.
    pub fn new(message: impl Into<String>) -> Self {
        Self::from_parts(ErrorKind::Function, message)
    }

    /// Makes an error of a kind.
    pub fn from_parts(kind: ErrorKind, message: impl Into<String>) -> Self {
        let words = message.into();
        Self(Arc::new(Inner {
            kind,
            length: words.len(),
            words,
            cause: None,
            ends_in_cause: false,
            text: OnceLock::new(),
        }))
    }

    /// Makes an error whose text is `words` and then that of its cause, which is what `%w` at the end of a format gives.
    ///
    /// A text of some megabytes grows no more: the cause itself is returned then, as if no one had stood in between.
    pub fn wrap(kind: ErrorKind, words: impl Into<String>, cause: Error) -> Self {
        let words = words.into();
        let length = words.len() + cause.0.length;
        if length > MAX_LENGTH {
            return cause;
        }
        Self(Arc::new(Inner {
            kind,
            words,
            cause: Some(cause),
            ends_in_cause: true,
            length,
            text: OnceLock::new(),
        }))
    }

    /// Adds what `%w` wraps; the text must hold the cause's already. Where it ends in it, [`Error::wrap`] costs less.
    #[must_use]
    pub fn with_cause(self, cause: Error) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        if let Some(own) = cause.length_before(&inner.words) {
            inner.words.truncate(own);
            return Self::wrap(inner.kind, std::mem::take(&mut inner.words), cause);
        }
        inner.cause = Some(cause);
        inner.ends_in_cause = false;
        Self(Arc::new(inner))
    }

    /// Returns who made it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the whole text.
    pub fn message(&self) -> &str {
        if !self.0.ends_in_cause {
            return &self.0.words;
        }
        let (text, start) = self.0.text.get_or_init(|| (self.put_together(), 0));
        &text[*start..]
    }

    /// Returns the error that this one wraps.
    pub fn cause(&self) -> Option<&Error> {
        self.0.cause.as_ref()
    }

    /// Returns whether a bound was reached anywhere in the chain.
    pub fn is_limit(&self) -> bool {
        self.chain().any(|error| error.kind() == ErrorKind::Limit)
    }

    fn chain(&self) -> impl Iterator<Item = &Error> {
        std::iter::successors(Some(self), |error| error.cause())
    }

    /// Returns the errors whose words follow each other in the text.
    fn parts(&self) -> impl Iterator<Item = &Error> {
        std::iter::successors(Some(self), |error| {
            error.cause().filter(|_| error.0.ends_in_cause)
        })
    }

    /// Returns how much of `text` stands before the text of this error, where it ends in that.
    fn length_before(&self, text: &str) -> Option<usize> {
        let own = text.len().checked_sub(self.0.length)?;
        let mut rest = &text.as_bytes()[own..];
        for part in self.parts() {
            rest = rest.strip_prefix(part.0.words.as_bytes())?;
        }
        Some(own)
    }

    /// Puts the text together, and lets the causes have their share of it.
    fn put_together(&self) -> Arc<str> {
        let mut text = String::with_capacity(self.0.length);
        text.extend(self.parts().map(|error| &*error.0.words));
        let text: Arc<str> = text.into();
        let mut start = 0;
        for (error, cause) in self.parts().zip(self.parts().skip(1)) {
            start += error.0.words.len();
            cause.0.text.get_or_init(|| (Arc::clone(&text), start));
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().try_for_each(|error| f.write_str(&error.0.words))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<ErrorKind> = self.chain().take(8).map(Self::kind).collect();
        f.debug_tuple("Error")
            .field(&kinds)
            .field(&self.message())
            .finish()
    }
}

impl std::error::Error for Error {}

impl Drop for Inner {
    /// Drops the chain link by link, since it may be as long as templates nest.
    fn drop(&mut self) {
        let mut next = self.cause.take();
        while let Some(error) = next {
            next = Arc::into_inner(error.0).and_then(|mut inner| inner.cause.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_of(depth: usize, words: &str) -> Error {
        let innermost = Error::from_parts(ErrorKind::Limit, "end");
        (0..depth).fold(innermost, |cause, _| Error::wrap(ErrorKind::Exec, words, cause))
    }

    #[test]
    fn a_text_goes_on_with_that_of_its_cause() {
        let cause = Error::new("c");
        let middle = Error::wrap(ErrorKind::Exec, "b: ", cause);
        let error = Error::new(format!("a: {middle}")).with_cause(middle);
        assert_eq!(error.to_string(), "a: b: c");
        let texts: Vec<&str> = error.chain().map(Error::message).collect();
        assert_eq!(texts, ["a: b: c", "b: c", "c"]);
        let kinds: Vec<ErrorKind> = error.chain().map(Error::kind).collect();
        assert_eq!(kinds, [ErrorKind::Function, ErrorKind::Exec, ErrorKind::Function]);
    }

    #[test]
    fn a_text_need_not_end_in_that_of_its_cause() {
        let error = Error::new("a (b)").with_cause(Error::new("b"));
        let error = Error::wrap(ErrorKind::Exec, "c: ", error);
        assert_eq!(error.to_string(), "c: a (b)");
        assert_eq!(error.message(), "c: a (b)");
        let texts: Vec<&str> = error.chain().map(Error::message).collect();
        assert_eq!(texts, ["c: a (b)", "a (b)", "b"]);
    }

    #[test]
    fn the_texts_of_a_chain_are_kept_once() {
        let error = chain_of(10_000, "error calling include: ");
        let whole = error.message();
        assert_eq!(whole.len(), 230_003);
        let all = whole.as_bytes().as_ptr_range();
        let wrapped = error.chain().take(10_000);
        assert!(
            wrapped
                .map(Error::message)
                .all(|text| all.contains(&text.as_ptr()))
        );
        assert!(error.is_limit());
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let error = chain_of(200_000, "a");
        assert_eq!(error.to_string().len(), 200_003);
        assert_eq!(format!("{error:?}").len() / 200_000, 1);
        drop(error.clone());
        drop(error);
    }

    #[test]
    fn texts_stop_growing() {
        let error = chain_of(1_000, &"x".repeat(10_000));
        assert!(error.message().len() <= MAX_LENGTH);
        assert!(error.message().ends_with("xend"));
        assert!(error.is_limit());
    }
}

//! Regular expressions in the syntax of Go's regexp package (RE2), with Go's matches and Go's errors.
//!
//! A pattern is read by a parser of its own, because Go's syntax, limits and errors are not those of the crate `regex`;
//! what it means is then handed to that crate's engine, which prefers the leftmost-first match as Go does, in linear
//! time. Patterns and texts are bytes: Go's strings need not be UTF-8. The crate keeps no cache and knows no templates.
//!
//! ```
//! use go_regexp::Regexp;
//!
//! let date = Regexp::compile(br"(?P<year>\d{4})-(\d\d)")?;
//! assert_eq!(date.replace_all(b"on 2024-02", b"$2/${year}"), b"on 02/2024");
//! let error = Regexp::compile(b"[a").unwrap_err();
//! assert_eq!(error.to_string(), "error parsing regexp: missing closing ]: `[a`");
//! # Ok::<(), go_regexp::Error>(())
//! ```

mod error;
mod node;
mod parser;
mod regexp;
mod rune;
mod template;
mod text;
mod translate;
mod unicode;

pub use error::{Error, Problem};
pub use regexp::{Regexp, quote_meta};

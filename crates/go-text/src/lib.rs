//! Go's text habits, for everything that must read and write as programs in Go do.
//!
//! Strings in Go are bytes that are mostly UTF-8: [`rune`] reads characters from them, [`valid_text`] makes text of them, [`Str`] shares them.
//! [`quote`] is `strconv.Quote` and what undoes it; [`float`], [`number`] and [`numeral`] print and parse numbers as `strconv` does;
//! [`json`] reads JSON with the errors of `encoding/json`. Nothing here knows templates, charts or YAML.

pub mod float;
pub mod json;
pub mod number;
pub mod numeral;
pub mod quote;
pub mod rune;
mod str;
mod text;

pub use str::Str;
pub use text::valid_text;

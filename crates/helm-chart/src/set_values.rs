//! Values that a command line sets: `--set`, `--set-string`, `--set-file`, `--set-json` and `--set-literal`.
//!
//! Each function puts what one flag says into a map of chart values, as Helm's strvals package does. Whole numbers
//! become i64 where Helm has an int64; JSON's numbers are floats. Value files and the order in which all flags are
//! merged are in [`merge`].

mod error;
mod literal;
pub mod merge;
mod parser;
mod path;
mod read_local;
mod typed;

use serde_json::{Map, Value};

use crate::chart::Helm;
use parser::{Parser, Reading};
pub use read_local::read_local;

pub use error::{Error, MAX_INDEX, MAX_NESTED_NAME_LEVEL};

/// Sets values of their natural types (`--set`).
pub fn parse_into(values: &mut Map<String, Value>, text: &str, helm: Helm) -> Result<(), Error> {
    Parser::new(text, Reading::Typed, helm).parse(values)
}

/// Sets texts (`--set-string`).
pub fn string(values: &mut Map<String, Value>, text: &str, helm: Helm) -> Result<(), Error> {
    Parser::new(text, Reading::Text, helm).parse(values)
}

/// Sets the contents of files (`--set-file`); `read` gives a file's content or the error that Helm would show.
pub fn file(
    values: &mut Map<String, Value>,
    text: &str,
    helm: Helm,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<(), Error> {
    Parser::new(text, Reading::File(read), helm).parse(values)
}

/// Sets JSON values (`--set-json name=JSON`). The form with a whole object is told apart in [`merge`].
pub fn json(values: &mut Map<String, Value>, text: &str, helm: Helm) -> Result<(), Error> {
    Parser::new(text, Reading::Json, helm).parse(values)
}

/// Sets one text, in which nothing but the name's dots, brackets and `=` has a meaning (`--set-literal`).
pub fn literal(values: &mut Map<String, Value>, text: &str, helm: Helm) -> Result<(), Error> {
    literal::Parser::new(text, helm).parse(values)
}

#[cfg(test)]
mod tests;

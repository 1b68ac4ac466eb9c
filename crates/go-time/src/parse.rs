//! Reads a time by a layout.
//!
//! The order of checks is Go's, since it decides which error is told.

mod fields;
mod scan;

use crate::layout::{Chunk, next_chunk};
use crate::location::Location;
use crate::quote::quote;
use crate::time::Time;
use fields::{Fields, Problem};

impl Time {
    /// Reads a time. Without zone in the text it is universal time (time.Parse).
    pub fn parse(layout: &[u8], value: &[u8]) -> Result<Self, ParseError> {
        parse(layout, value, &Location::UTC, &Location::local())
    }

    /// Reads a time. Without zone in the text it is that of the place, of which also names and offsets of zones are
    /// taken to be (time.ParseInLocation).
    pub fn parse_in(layout: &[u8], value: &[u8], location: &Location) -> Result<Self, ParseError> {
        parse(layout, value, location, location)
    }
}

/// A text that does not fit its layout, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parsing time {value}{message}")]
pub struct ParseError {
    value: String,
    message: String,
}

fn parse(layout: &[u8], value: &[u8], default: &Location, local: &Location) -> Result<Time, ParseError> {
    let error = |message: String| ParseError {
        value: quote(value),
        message,
    };
    let mismatch = |element: &[u8], rest: &[u8]| {
        let (layout, element, rest) = (quote(layout), quote(element), quote(rest));
        error(format!(" as {layout}: cannot parse {rest} as {element}"))
    };
    let mut fields = Fields::default();
    let (mut rest, mut rest_of_layout) = (value, layout);
    loop {
        let Chunk {
            before,
            element,
            text,
            rest: next,
        } = next_chunk(rest_of_layout);
        rest = scan::skip(rest, before).map_err(|rest| mismatch(before, rest))?;
        let Some(element) = element else {
            break;
        };
        rest_of_layout = next;
        rest = match fields.read(element, rest, rest_of_layout) {
            Ok(after) => after,
            Err(Problem::Mismatch) => return Err(mismatch(text, rest)),
            Err(Problem::OutOfRange(what)) => return Err(error(format!(": {what} out of range"))),
        };
    }
    if !rest.is_empty() {
        return Err(error(format!(": extra text: {}", quote(rest))));
    }
    let date = fields.date().map_err(|problem| error(format!(": {problem}")))?;
    Ok(fields.at(date, default, local))
}

#[cfg(test)]
mod tests;

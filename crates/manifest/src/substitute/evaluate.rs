//! From the parts of a template and the values to the expanded text.
//!
//! Works on bytes, as Go's strings do: lengths and positions count them, and a substring may cut a character.

use super::error::{Error, MAXIMUM_BYTES, Mode};
use super::glob::{Budget, trim_longest, trim_shortest};
use super::parse::{Function, Part};
use super::{case, first_character};

/// Expands a template.
pub(super) fn evaluate<'v>(
    template: &[Part<'_>],
    variables: &dyn Fn(&str) -> Option<&'v [u8]>,
    mode: Mode,
) -> Result<Vec<u8>, Error> {
    let mut evaluation = Evaluation {
        variables,
        mode,
        bytes: 0,
        budget: Budget::default(),
    };
    let mut output = Vec::new();
    for part in template {
        evaluation.part(part, &mut output)?;
    }
    Ok(output)
}

struct Evaluation<'a, 'v> {
    variables: &'a dyn Fn(&str) -> Option<&'v [u8]>,
    mode: Mode,
    /// How many were made until now.
    bytes: usize,
    budget: Budget,
}

impl Evaluation<'_, '_> {
    fn part(&mut self, part: &Part<'_>, output: &mut Vec<u8>) -> Result<(), Error> {
        match part {
            Part::Function(function) => self.function(function, output),
            Part::Text(text) => {
                self.take(text.len())?;
                output.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
    }

    /// Arguments come first, so that what is wrong in one is reported even where it is not needed.
    fn function(&mut self, function: &Function<'_>, output: &mut Vec<u8>) -> Result<(), Error> {
        let mut arguments = Vec::with_capacity(function.arguments.len());
        for argument in &function.arguments {
            let mut value = Vec::new();
            self.part(argument, &mut value)?;
            arguments.push(value);
        }
        let value = match (self.variables)(function.name) {
            Some(value) => value,
            None if self.mode == Mode::Lenient || gives_default(function.operator) => b"",
            None => return Err(Error::NotSet(function.name.to_owned())),
        };
        let result = self.apply(function.operator, value, &arguments)?;
        output.extend_from_slice(&result);
        Ok(())
    }

    fn apply(&mut self, operator: &str, value: &[u8], arguments: &[Vec<u8>]) -> Result<Vec<u8>, Error> {
        // No function but the replacement makes more than twice what goes in (a letter of two bytes whose other case
        // has three, or a broken byte that becomes U+FFFD).
        self.take(value.len().max(arguments.iter().map(Vec::len).sum()))?;
        let budget = &mut self.budget;
        match (operator, arguments) {
            (",", _) => Ok(case::first(value, case::lower)),
            (",,", _) => Ok(case::all(value, case::lower)),
            ("^", _) => Ok(case::first(value, case::upper)),
            ("^^", _) => Ok(case::all(value, case::upper)),
            ("#", []) => Ok(value.len().to_string().into_bytes()),
            ("#", [pattern, ..]) => Ok(trim_shortest(value, pattern, budget)?.to_vec()),
            ("##", [pattern, ..]) => Ok(trim_longest(value, pattern, budget)?.to_vec()),
            ("%", [pattern, ..]) => {
                let (value, pattern) = (reversed(value), reversed(pattern));
                Ok(reversed(trim_shortest(&value, &pattern, budget)?))
            }
            ("%%", [pattern, ..]) => {
                let (value, pattern) = (reversed(value), reversed(pattern));
                Ok(reversed(trim_longest(&value, &pattern, budget)?))
            }
            (":", [start, rest @ ..]) => substring(value, start, rest.first()),
            ("/", [old, rest @ ..]) => self.replace(value, old, rest.first(), 1),
            ("//", [old, rest @ ..]) => self.replace(value, old, rest.first(), usize::MAX),
            ("/#", [old, new]) if value.starts_with(old) => Ok([new, &value[old.len()..]].concat()),
            ("/%", [old, new]) if value.ends_with(old) => {
                Ok([&value[..value.len() - old.len()], new].concat())
            }
            ("/#" | "/%", _) => Ok(value.to_vec()),
            _ if value.is_empty() => Ok(arguments.concat()),
            _ => Ok(value.to_vec()),
        }
    }

    /// Replaces the first `most` places where the old text stands; an empty one stands around every character.
    fn replace(
        &mut self,
        value: &[u8],
        old: &[u8],
        new: Option<&Vec<u8>>,
        most: usize,
    ) -> Result<Vec<u8>, Error> {
        let new = new.map_or(&[][..], Vec::as_slice);
        let (mut output, mut at) = (Vec::new(), 0);
        for count in 0..most {
            let Some(found) = self.budget.next_place(&value[at..], old, count == 0)? else {
                break;
            };
            self.take(new.len())?;
            output.extend_from_slice(&value[at..at + found]);
            output.extend_from_slice(new);
            at += found + old.len();
        }
        output.extend_from_slice(&value[at..]);
        Ok(output)
    }

    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAXIMUM_BYTES {
            Err(Error::TooLarge)
        } else {
            Ok(())
        }
    }
}

/// Returns whether a function has an answer for a variable without a value.
fn gives_default(operator: &str) -> bool {
    matches!(operator, "=" | ":=" | ":-" | ":+" | ":?")
}

/// A text whose position or length is no number stays whole, as in bash. Negative ones count from the end, and an end
/// before the start leaves nothing.
fn substring(value: &[u8], start: &[u8], length: Option<&Vec<u8>>) -> Result<Vec<u8>, Error> {
    let size = i64::try_from(value.len()).map_err(|_| Error::TooLarge)?;
    let Some(start) = integer(start) else {
        return Ok(value.to_vec());
    };
    let start = if start < 0 { (size + start).max(0) } else { start };
    let end = match length.map(|length| integer(length)) {
        None => size,
        Some(None) => return Ok(value.to_vec()),
        Some(Some(length)) if length < 0 => size.saturating_add(length),
        Some(Some(length)) => match start.checked_add(length) {
            Some(end) => end.min(size),
            None => return Err(Error::Substring { start, length }),
        },
    };
    let bytes = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let bytes = bytes.and_then(|(start, end)| value.get(start..end));
    Ok(bytes.unwrap_or_default().to_vec())
}

fn integer(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The characters backwards; broken bytes become U+FFFD on the way.
fn reversed(mut bytes: &[u8]) -> Vec<u8> {
    let mut characters = Vec::new();
    while !bytes.is_empty() {
        let (character, width) = first_character(bytes);
        characters.push(character);
        bytes = &bytes[width..];
    }
    characters.iter().rev().collect::<String>().into_bytes()
}

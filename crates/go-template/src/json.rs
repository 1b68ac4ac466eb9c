//! JSON as `encoding/json` writes and reads it, to and from [`Value`]s.
//!
//! Below `toJson`, `fromJson` and their kin, and below Helm's YAML functions, which go through JSON in Go as well. Knows
//! neither templates nor YAML.

mod decode;
mod encode;

pub use decode::{Decoded, decode, decode_as};
pub use encode::{Style, encode};

use crate::{Context, Error, Value};

/// Charges a render for the values of a JSON or TOML text before it is parsed. The number of commas, brackets, equals signs
/// and lines outside of strings is an upper bound.
pub fn charge_values(context: &mut Context<'_>, text: &[u8]) -> Result<(), Error> {
    let (mut values, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' | b'=' | b'\n' if !in_string => values += 1,
            _ => {}
        }
    }
    context.charge(values.saturating_mul(size_of::<Value>()))
}

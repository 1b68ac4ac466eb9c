//! JSON as `encoding/json` writes and reads it, to and from [`Value`]s.
//!
//! Below `toJson`, `fromJson` and their kin, and below Helm's YAML functions, which go through JSON in Go as well. Knows
//! neither templates nor YAML.

mod decode;
mod encode;

pub use decode::{Decoded, decode, decode_as};
pub use encode::{Style, encode};

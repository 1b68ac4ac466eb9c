//! TOML as BurntSushi/toml reads and writes it, on the values of templates: what Helm's `toToml` and `fromToml` do.
//!
//! Errors are in that library's words. Times are what sprig's functions take for times.

mod decode;
mod document;
mod encode;
mod number;
mod reader;
mod string;

pub use decode::decode;
pub use encode::encode;

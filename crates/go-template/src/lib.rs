//! Go's text/template, with the distinctions of Go's types that templates can see.
//!
//! The first stage of a chart's way to manifests, below sprig's functions and Helm's. No I/O, no clock, no cluster.
//! Parsed templates are immutable and shared between threads; [`Value`]s belong to one render.

pub mod ast;
mod context;
mod error;
pub mod float;
mod function;
pub mod json;
mod lexer;
pub mod numeral;
mod parser;
pub mod quote;
pub mod rune;
mod types;
mod value;

pub use context::Context;
pub use error::{Error, ErrorKind};
pub use function::{Call, Function, Functions, PlainCall};
pub use parser::parse;
pub use types::{Kind, Type, TypeInfo};
pub use value::{List, Map, Object, Str, Value};

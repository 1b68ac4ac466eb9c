//! Go's text/template, with the distinctions of Go's types that templates can see.
//!
//! The first stage of a chart's way to manifests, below sprig's functions and Helm's. No I/O, no clock, no cluster.
//! Parsed templates are immutable and shared between threads; [`Value`]s belong to one render.
//!
//! ```
//! use go_template::{Function, Functions, List, Options, Templates, Type, Value};
//!
//! let mut functions = Functions::default();
//! functions.add(
//!     "shout",
//!     Function::new(&[Type::STRING], |_, arguments| {
//!         let text = arguments[0].as_string().expect("the parameter is a string");
//!         Ok(Value::from(text.to_text().to_uppercase()))
//!     }),
//! );
//! let mut templates = Templates::new("root");
//! templates.parse("hello", "{{range .names}}{{shout .}} {{printf \"%03d\" (len .)}}; {{end}}", &functions)?;
//!
//! let names = List::from(vec![Value::from("ann"), Value::from("bo")]);
//! let data = Value::Map([("names", names)].into_iter().collect());
//! let out = templates.execute("hello", &data, &functions, &Options::default())?;
//! assert_eq!(out, b"ANN 003; BO 002; ");
//!
//! let error = templates.execute("hello", &Value::from("x"), &functions, &Options::default());
//! assert_eq!(
//!     error.unwrap_err().message(),
//!     "template: hello:1:8: executing \"hello\" at <.names>: can't evaluate field names in type string",
//! );
//! # Ok::<(), go_template::Error>(())
//! ```

pub mod ast;
mod builtins;
mod context;
mod error;
mod exec;
pub mod format;
mod function;
pub mod json;
mod lexer;
mod limits;
mod parser;
mod stack;
mod templates;
mod types;
mod value;

pub use context::{Context, Render};
pub use error::{Error, ErrorKind};
pub use function::{Call, Function, Functions, PlainCall};
pub use lexer::Delimiters;
pub use limits::{Limits, MissingKey, Options, Turn};
pub use parser::parse;
pub use stack::on_stack;
pub use templates::{Templates, parse_with};
pub use types::{Kind, Type, TypeInfo};
pub use value::{List, Map, Object, Str, Value};

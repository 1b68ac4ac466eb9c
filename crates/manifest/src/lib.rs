//! Kubernetes objects as data: identity, order, and YAML as Go's libraries read and write it.
//!
//! First stage of everything that builds or applies: text goes in, [`Object`]s that know the file and line that they
//! came from go out. Nothing here does I/O or knows a cluster.

mod id;
pub mod json;
pub mod labels;
mod object;
pub mod order;
pub mod pattern;
mod read;
mod selector;
pub mod substitute;
pub mod yaml;

pub use id::{GroupVersionKind, ObjectId, ParseObjectIdError, is_object_name};
pub use object::{Object, Origin};
pub use read::read_objects;
pub use selector::ObjectSelector;

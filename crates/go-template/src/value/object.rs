//! Everything with fields or methods of its own: structs, pointers to them, named numbers.

use std::any::Any;
use std::fmt;

use crate::{Type, Value};

use super::Str;

/// A Go value that is no basic type, slice or map.
///
/// Its Go methods belong to its type ([`crate::TypeInfo::method`]). All functions here but [`Object::type_`] and [`Object::as_any`] have an answer for a struct without fields and methods.
pub trait Object: Any + fmt::Debug {
    /// Returns its type; the kind tells a struct from a pointer or a named number.
    fn type_(&self) -> Type;

    /// Returns the exported field of the name.
    fn field(&self, name: &str) -> Option<Value> {
        self.fields()
            .into_iter()
            .find(|(field, _)| *field == name)
            .map(|(_, value)| value)
    }

    /// Returns the fields in the order of their declaration, as `%v` and the encoders of `encoding/json` need them.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Returns what its `Error` or `String` method gives, where it has one: what `%v` and `{{ }}` print.
    fn text(&self) -> Option<Str> {
        None
    }

    /// Returns what the `String` method of its pointer gives, for a struct that templates find in a place with an address:
    /// `{{ }}` prints it, `%v` of a copy does not.
    fn addressed_text(&self) -> Option<Str> {
        None
    }

    /// Returns the basic value below a named type, such as the nanoseconds of a `time.Duration`.
    fn underlying(&self) -> Option<Value> {
        None
    }

    /// Returns the entries of a map whose keys are no strings, in the order in which Go ranges over them.
    fn entries(&self) -> Option<Vec<(Value, Value)>> {
        None
    }

    /// Returns what `encoding/json` sees in its place, where that is not the fields by their Go names.
    fn json(&self) -> Option<Value> {
        None
    }

    /// Returns whether Go's `==` finds both equal; an object that cannot be compared equals none.
    fn equals(&self, other: &dyn Object) -> bool {
        let _ = other;
        false
    }

    /// Returns whether it is a nil pointer, which has no fields to read.
    fn is_nil(&self) -> bool {
        false
    }

    /// Returns itself, to be downcast.
    fn as_any(&self) -> &dyn Any;
}

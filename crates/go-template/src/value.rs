//! Values that keep the distinctions of Go which templates can see.
//!
//! A value is what `reflect.Value` is to Go's engine: it knows its type. Strings are bytes ([`Str`]), maps are shared and
//! change in place ([`Map`]), slices have element types ([`List`]), everything else with fields or methods is an
//! [`Object`]. Values live in one render on one thread; what is shared between renders (charts, parsed templates) is not
//! made of them.

mod list;
mod map;
mod object;
mod teardown;

use std::rc::Rc;

pub use go_text::Str;
pub use list::List;
pub use map::Map;
pub use object::Object;

use crate::{Function, Kind, Type};

/// A value of a template.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// No value: Go's zero `reflect.Value`, what a pipeline makes of a nil. Prints as `<no value>`.
    #[default]
    Invalid,
    /// A nil of type `interface {}`, such as a null in a map. Prints as `<nil>` where a function formats it.
    Nil,
    /// `bool`.
    Bool(bool),
    /// A signed integer and which one; always within the range of its kind.
    Int(i64, Kind),
    /// An unsigned integer and which one; always within the range of its kind.
    Uint(u64, Kind),
    /// `float64`.
    Float(f64),
    /// `complex128`, which only constants make.
    Complex(f64, f64),
    /// `string`.
    String(Str),
    /// A slice of any type but bytes.
    List(List),
    /// `[]uint8`.
    Bytes(Str),
    /// A map with string keys.
    Map(Map),
    /// A struct, a pointer, or a named type that is none of the above.
    Object(Rc<dyn Object>),
    /// A function that data holds, for `call`.
    Func(Function),
}

impl Value {
    /// Makes an `int`.
    pub fn int(number: i64) -> Self {
        Self::Int(number, Kind::Int)
    }

    /// Makes an `int64`.
    pub fn int64(number: i64) -> Self {
        Self::Int(number, Kind::Int64)
    }

    /// Makes an object.
    pub fn object(object: impl Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// Returns the type; None for no value. A nil is an `interface {}`.
    pub fn type_(&self) -> Option<Type> {
        Some(match self {
            Self::Invalid => return None,
            Self::Nil => Type::ANY,
            Self::Bool(_) => Type::BOOL,
            Self::Int(_, kind) => match kind {
                Kind::Int8 => Type::INT8,
                Kind::Int16 => Type::INT16,
                Kind::Int32 => Type::INT32,
                Kind::Int64 => Type::INT64,
                _ => Type::INT,
            },
            Self::Uint(_, kind) => match kind {
                Kind::Uint8 => Type::UINT8,
                Kind::Uint16 => Type::UINT16,
                Kind::Uint32 => Type::UINT32,
                Kind::Uint64 => Type::UINT64,
                _ => Type::UINT,
            },
            Self::Float(_) => Type::FLOAT64,
            Self::Complex(..) => Type::COMPLEX128,
            Self::String(_) => Type::STRING,
            Self::List(list) => list.type_(),
            Self::Bytes(_) => Type::BYTES,
            Self::Map(map) => map.type_(),
            Self::Object(object) => object.type_(),
            Self::Func(_) => Type::FUNC,
        })
    }

    /// Returns the kind; None for no value.
    pub fn kind(&self) -> Option<Kind> {
        self.type_().map(Type::kind)
    }

    /// Returns the name of the type as `%T` prints it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Invalid | Self::Nil => "<nil>",
            value => value.type_().map_or("<nil>", Type::name),
        }
    }

    /// Returns whether it is nil in Go: nothing, a nil interface, or a nil slice or map.
    pub fn is_nil(&self) -> bool {
        match self {
            Self::Invalid | Self::Nil => true,
            Self::List(list) => list.is_nil(),
            Self::Map(map) => map.is_nil(),
            _ => false,
        }
    }

    /// Returns whether it is nothing or a nil interface: what a Go function gets as `nil`.
    pub fn is_untyped_nil(&self) -> bool {
        matches!(self, Self::Invalid | Self::Nil)
    }

    /// Returns the string.
    pub fn as_string(&self) -> Option<&Str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the map.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the slice; bytes are none here.
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the object where it is of the Rust type.
    pub fn as_object<T: Object>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<Str> for Value {
    fn from(value: Str) -> Self {
        Self::String(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<List> for Value {
    fn from(value: List) -> Self {
        Self::List(value)
    }
}

impl From<Map> for Value {
    fn from(value: Map) -> Self {
        Self::Map(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_changed_for_all_who_hold_it() {
        let map = Map::new();
        let same = map.clone();
        assert!(map.insert("a", Value::int(1)));
        assert!(matches!(same.get("a"), Some(Value::Int(1, Kind::Int))));
        assert!(!Map::nil(Type::MAP_ANY).insert("a", true));
    }

    #[test]
    fn a_value_of_any_depth_is_dropped() {
        let mut value = Value::Nil;
        for depth in 0..1_000_000 {
            value = if depth % 2 == 0 {
                Value::List(vec![value].into())
            } else {
                Value::Map([("a", value)].into_iter().collect())
            };
        }
        drop(value);
    }

    #[test]
    fn types_accept_what_go_assigns() {
        static VALUES: crate::TypeInfo = crate::TypeInfo {
            named: true,
            ..crate::TypeInfo::new("common.Values", Kind::Map, Type::ANY)
        };
        let values = Type::new(&VALUES);
        assert!(values.is_assignable_to(Type::MAP_ANY));
        assert!(Type::MAP_ANY.is_assignable_to(values));
        assert!(!Type::LIST_STRING.is_assignable_to(Type::LIST_ANY));
        assert!(!Type::INT.is_assignable_to(Type::INT64));
    }
}

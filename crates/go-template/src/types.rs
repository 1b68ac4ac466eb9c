//! Go's types, as far as templates can see them.
//!
//! A template sees types in messages (`expected string; got int`), in `%T` and `typeOf`, in what a function's parameters
//! accept, and in methods. [`Type`] is a reference to a static description, so that it costs a pointer in every value;
//! crates with named types of their own (`semver.Version`, `engine.files`) declare further descriptions.

use std::fmt;

use crate::Function;

/// Go's `reflect.Kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are Go's
pub enum Kind {
    Interface,
    Bool,
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float32,
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Struct,
    Pointer,
    Func,
}

impl Kind {
    /// Returns whether values of the kind are signed integers.
    pub fn is_signed(self) -> bool {
        matches!(
            self,
            Self::Int | Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64
        )
    }

    /// Returns whether values of the kind are unsigned integers.
    pub fn is_unsigned(self) -> bool {
        matches!(
            self,
            Self::Uint | Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64
        )
    }

    /// Returns whether values of the kind are integers.
    pub fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    /// Returns whether Go has a nil of the kind.
    pub fn has_nil(self) -> bool {
        matches!(
            self,
            Self::Interface | Self::Slice | Self::Map | Self::Pointer | Self::Func
        )
    }

    /// Returns the name that `reflect.Kind` prints, as `kindOf` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Pointer => "ptr",
            Self::Func => "func",
        }
    }
}

/// Description of a type. Declared as a `static`; used through [`Type`].
#[derive(Debug)]
pub struct TypeInfo {
    /// The name as `reflect.Type.String` prints it, such as `map[string]interface {}` or `common.Values`.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The type of the elements of a slice or map.
    pub element: Option<Type>,
    /// True if the type was declared with a name; unnamed types accept values of named ones with the same elements.
    pub named: bool,
    /// Finds a method by its name. It gets the receiver as its first argument.
    pub method: Option<fn(&str) -> Option<Function>>,
}

impl TypeInfo {
    /// Describes an unnamed or predeclared type without methods.
    pub const fn plain(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            element: None,
            named: false,
            method: None,
        }
    }

    /// Describes an unnamed slice or map (of strings to elements).
    pub const fn new(name: &'static str, kind: Kind, element: Type) -> Self {
        Self {
            name,
            kind,
            element: Some(element),
            named: false,
            method: None,
        }
    }
}

/// A Go type: a reference to its description. Two types are equal when their names are.
#[derive(Clone, Copy)]
pub struct Type(&'static TypeInfo);

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident = $info:expr;)*) => {
        impl Type {
            $($(#[$doc])* pub const $name: Type = {
                static INFO: TypeInfo = $info;
                Type(&INFO)
            };)*
        }
    };
}

types! {
    /// `interface {}`.
    ANY = TypeInfo::plain("interface {}", Kind::Interface);
    /// `error`, as a parameter or result; what holds one is an object.
    ERROR = TypeInfo::plain("error", Kind::Interface);
    /// `reflect.Value`, the parameter type of built-in functions: accepts all, even no value.
    REFLECT_VALUE = TypeInfo::plain("reflect.Value", Kind::Struct);
    /// `bool`.
    BOOL = TypeInfo::plain("bool", Kind::Bool);
    /// `int`, 64 bits wide.
    INT = TypeInfo::plain("int", Kind::Int);
    /// `int8`.
    INT8 = TypeInfo::plain("int8", Kind::Int8);
    /// `int16`.
    INT16 = TypeInfo::plain("int16", Kind::Int16);
    /// `int32`, which is also `rune`.
    INT32 = TypeInfo::plain("int32", Kind::Int32);
    /// `int64`.
    INT64 = TypeInfo::plain("int64", Kind::Int64);
    /// `uint`, 64 bits wide.
    UINT = TypeInfo::plain("uint", Kind::Uint);
    /// `uint8`, which is also `byte`.
    UINT8 = TypeInfo::plain("uint8", Kind::Uint8);
    /// `uint16`.
    UINT16 = TypeInfo::plain("uint16", Kind::Uint16);
    /// `uint32`.
    UINT32 = TypeInfo::plain("uint32", Kind::Uint32);
    /// `uint64`.
    UINT64 = TypeInfo::plain("uint64", Kind::Uint64);
    /// `float32`.
    FLOAT32 = TypeInfo::plain("float32", Kind::Float32);
    /// `float64`.
    FLOAT64 = TypeInfo::plain("float64", Kind::Float64);
    /// `complex128`.
    COMPLEX128 = TypeInfo::plain("complex128", Kind::Complex128);
    /// `string`.
    STRING = TypeInfo::plain("string", Kind::String);
    /// `[]interface {}`.
    LIST_ANY = TypeInfo::new("[]interface {}", Kind::Slice, Type::ANY);
    /// `[]string`.
    LIST_STRING = TypeInfo::new("[]string", Kind::Slice, Type::STRING);
    /// `[]int`.
    LIST_INT = TypeInfo::new("[]int", Kind::Slice, Type::INT);
    /// `[]uint8`: bytes.
    BYTES = TypeInfo::new("[]uint8", Kind::Slice, Type::UINT8);
    /// `[][]interface {}`.
    LIST_LIST_ANY = TypeInfo::new("[][]interface {}", Kind::Slice, Type::LIST_ANY);
    /// `map[string]interface {}`.
    MAP_ANY = TypeInfo::new("map[string]interface {}", Kind::Map, Type::ANY);
    /// `map[string]string`.
    MAP_STRING = TypeInfo::new("map[string]string", Kind::Map, Type::STRING);
    /// `[]map[string]interface {}`.
    LIST_MAP_ANY = TypeInfo::new("[]map[string]interface {}", Kind::Slice, Type::MAP_ANY);
    /// Any function.
    FUNC = TypeInfo::plain("func", Kind::Func);
}

impl Type {
    /// Refers to a description, mostly one that another crate declares.
    pub const fn new(info: &'static TypeInfo) -> Self {
        Self(info)
    }

    /// Returns the name as Go prints it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the kind.
    pub fn kind(self) -> Kind {
        self.0.kind
    }

    /// Returns the type of the elements of a slice or map.
    pub fn element(self) -> Option<Type> {
        self.0.element
    }

    /// Returns whether the type was declared with a name.
    pub fn is_named(self) -> bool {
        self.0.named
    }

    /// Finds a method of the type; it gets the receiver as its first argument.
    pub fn method(self, name: &str) -> Option<Function> {
        self.0.method.and_then(|find| find(name))
    }

    /// Returns whether a value of this type may be passed for `parameter`, as `reflect.Type.AssignableTo` does.
    pub fn is_assignable_to(self, parameter: Type) -> bool {
        self == parameter
            || parameter == Type::ANY
            || (!(self.is_named() && parameter.is_named())
                && self.element().is_some()
                && self.kind() == parameter.kind()
                && self.element() == parameter.element())
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0) || self.0.name == other.0.name
    }
}

impl Eq for Type {}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

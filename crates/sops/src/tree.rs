//! Tree of an encrypted file, in the order of the file: the same for all formats.
//!
//! Texts are bytes: SOPS encrypts what is no UTF-8, too.

use crate::time::Time;

/// A mapping. Keys may be there more than once, as in JSON.
pub(crate) type Branch = Vec<Item>;

/// An entry of a mapping, or a comment among them.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) key: Key,
    /// [`Value::Null`] beside a comment.
    pub(crate) value: Value,
}

/// A key of a mapping.
#[derive(Clone)]
pub(crate) enum Key {
    Text(Vec<u8>),
    Comment(Comment),
    /// Key of a type that SOPS does not support: a number, a mapping. Names the type.
    Other(&'static str),
}

/// A value.
#[derive(Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Vec<u8>),
    /// Of files that the first versions of SOPS encrypted: not a text.
    Bytes(Vec<u8>),
    Time(Time),
    /// In a list, where comments have no keys.
    Comment(Comment),
    List(Vec<Value>),
    Map(Branch),
    /// Content that SOPS does not read. Names the type.
    Other(&'static str),
}

/// A comment without its `#`.
#[derive(Clone)]
pub(crate) struct Comment {
    pub(crate) text: Vec<u8>,
    /// True if it stands behind a value.
    pub(crate) inline: bool,
}

impl Item {
    pub(crate) fn new(key: impl Into<Vec<u8>>, value: Value) -> Self {
        Self {
            key: Key::Text(key.into()),
            value,
        }
    }

    pub(crate) fn comment(text: impl Into<Vec<u8>>) -> Self {
        Self {
            key: Key::Comment(Comment {
                text: text.into(),
                inline: false,
            }),
            value: Value::Null,
        }
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        matches!(&self.key, Key::Text(key) if key == name.as_bytes())
    }
}

impl Value {
    /// Go's name of its type, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::Time(_) => "time.Time",
            Self::Comment(_) => "sops.Comment",
            Self::List(_) => "[]interface {}",
            Self::Map(_) => "sops.TreeBranch",
            Self::Other(kind) => kind,
        }
    }
}

//! JSON into structs with the strictness and the words of encoding/json.

use std::collections::BTreeMap;

use manifest::yaml::number;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Where a value stands.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The root's type and the way from there, as messages name it: `Kustomization.images.0.newTag`.
    path: String,
    /// True if a number or boolean is taken for a text, as sigs.k8s.io/yaml does where it knows the type.
    texts_from_scalars: bool,
    /// True if a field that no one knows is an error.
    is_strict: bool,
}

impl Place {
    /// A document that is turned to JSON before anyone knows its type.
    pub(crate) fn json(type_name: &str) -> Self {
        Self {
            path: type_name.to_owned(),
            texts_from_scalars: false,
            is_strict: true,
        }
    }

    /// A document that sigs.k8s.io/yaml reads strictly into a type.
    pub(crate) fn strict_yaml(type_name: &str) -> Self {
        Self {
            texts_from_scalars: true,
            ..Self::json(type_name)
        }
    }

    /// A document that sigs.k8s.io/yaml reads into a type, whatever else it holds.
    pub(crate) fn yaml(type_name: &str) -> Self {
        Self {
            is_strict: false,
            ..Self::strict_yaml(type_name)
        }
    }

    /// The same place in a struct whose types sigs.k8s.io/yaml does not find.
    pub(crate) fn without_texts_from_scalars(self) -> Self {
        Self {
            texts_from_scalars: false,
            ..self
        }
    }

    fn below(&self, key: &str) -> Self {
        // A JSON pointer, with dots.
        let key = key.replace('~', "~0").replace('/', "~1");
        Self {
            path: format!("{}.{key}", self.path),
            ..self.clone()
        }
    }
}

/// Puts the words in front that sigs.k8s.io/yaml has for all errors of encoding/json.
pub(crate) fn in_yaml(error: Error) -> Error {
    error
        .context("while decoding JSON")
        .context("error unmarshaling JSON")
}

/// A type that can be read from JSON.
pub(crate) trait Decode: Sized {
    /// Go's name of the type, for messages.
    fn go_type() -> String;

    fn decode(value: &Value, place: &Place) -> Result<Self>;
}

/// The message for a value of the wrong type.
fn mismatch(value: &Value, place: &Place, wanted: &str) -> Error {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    mismatched(found, place, wanted)
}

fn mismatched(found: &str, place: &Place, wanted: &str) -> Error {
    let into = match place.path.rsplit_once('.') {
        None => "Go value".to_owned(),
        // Go takes what looks like an index for an element, and all else for a field.
        Some((_, last)) if !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()) => place.path.clone(),
        Some(_) => format!("Go struct field {}", place.path),
    };
    Error::invalid(format!(
        "json: cannot unmarshal {found} into {into} of type {wanted}"
    ))
}

impl Decode for Value {
    fn go_type() -> String {
        "interface {}".to_owned()
    }

    fn decode(value: &Value, _: &Place) -> Result<Self> {
        Ok(value.clone())
    }
}

impl Decode for Map<String, Value> {
    fn go_type() -> String {
        "map[string]interface {}".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let fields = value.as_object().cloned();
        fields.ok_or_else(|| mismatch(value, place, &Self::go_type()))
    }
}

impl Decode for String {
    fn go_type() -> String {
        "string".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        text(value, place, "string")
    }
}

/// Reads a text, of a type that may have a name of its own in Go.
pub(super) fn text(value: &Value, place: &Place, go_type: &str) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(truth) if place.texts_from_scalars => Ok(truth.to_string()),
        Value::Number(number) if place.texts_from_scalars => Ok(match number.as_f64() {
            Some(float) if number.is_f64() => number::format_g(float),
            _ => number.to_string(),
        }),
        other => Err(mismatch(other, place, go_type)),
    }
}

impl Decode for bool {
    fn go_type() -> String {
        "bool".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        value.as_bool().ok_or_else(|| mismatch(value, place, "bool"))
    }
}

impl Decode for i64 {
    fn go_type() -> String {
        "int64".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        match value {
            Value::Number(n) => n
                .as_i64()
                .ok_or_else(|| mismatched(&format!("number {n}"), place, "int64")),
            other => Err(mismatch(other, place, "int64")),
        }
    }
}

impl<T: Decode> Decode for Option<T> {
    fn go_type() -> String {
        T::go_type()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        T::decode(value, place).map(Some)
    }
}

impl<T: Decode + Default> Decode for Vec<T> {
    fn go_type() -> String {
        format!("[]{}", T::go_type())
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let elements = value
            .as_array()
            .ok_or_else(|| mismatch(value, place, &Self::go_type()))?;
        let decode = |(index, element): (usize, &Value)| match element {
            Value::Null => Ok(T::default()),
            element => T::decode(element, &place.below(&index.to_string())),
        };
        elements.iter().enumerate().map(decode).collect()
    }
}

impl Decode for BTreeMap<String, String> {
    fn go_type() -> String {
        "map[string]string".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let fields = value
            .as_object()
            .ok_or_else(|| mismatch(value, place, &Self::go_type()))?;
        let decode = |(key, value): (&String, &Value)| match value {
            Value::Null => Ok((key.clone(), String::new())),
            value => Ok((key.clone(), String::decode(value, &place.below(key))?)),
        };
        fields.iter().map(decode).collect()
    }
}

/// The fields of a JSON object, taken one by one.
///
/// Go goes on after a value of the wrong type or an unknown field, and reports the first of them in the order of the
/// document, which is sorted: [`Fields::finish`] does.
pub(crate) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    place: &'a Place,
    known: Vec<&'a str>,
    failed: Option<(&'a str, Error)>,
    taken: usize,
    embedded: bool,
}

impl<'a> Fields<'a> {
    /// Opens an object.
    pub(crate) fn new<T: Decode>(value: &'a Value, place: &'a Place) -> Result<Self> {
        let fields = value
            .as_object()
            .ok_or_else(|| mismatch(value, place, &T::go_type()))?;
        Ok(Self {
            fields,
            place,
            known: Vec::new(),
            failed: None,
            taken: 0,
            embedded: false,
        })
    }

    /// Takes the fields of a struct that Go embeds: sigs.k8s.io/yaml does not find their types, and so makes no texts of
    /// numbers.
    pub(crate) fn embedded(&mut self, take: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.embedded, true);
        take(self);
        self.embedded = before;
    }

    /// Reads a field into its place, if it is there and not null.
    pub(crate) fn take<T: Decode>(&mut self, name: &str, place: &mut T) {
        self.take_as(name, None, place);
    }

    /// Reads a field whose type has a name of its own in Go.
    pub(crate) fn take_named<T: Decode>(&mut self, name: &str, go_type: &str, place: &mut T) {
        self.take_as(name, Some(go_type), place);
    }

    fn take_as<T: Decode>(&mut self, name: &str, go_type: Option<&str>, place: &mut T) {
        let Some((key, value)) = self.find(name) else {
            return;
        };
        let mut below = self.place.below(key);
        below.texts_from_scalars &= !self.embedded;
        match T::decode(value, &below) {
            Ok(value) => *place = value,
            Err(error) => {
                let plain = mismatch(value, &below, &T::go_type()).to_string();
                let error = match go_type {
                    Some(name) if error.to_string() == plain => mismatch(value, &below, name),
                    _ => error,
                };
                self.fail(key, error);
            }
        }
    }

    fn fail(&mut self, key: &'a str, error: Error) {
        if self.failed.as_ref().is_none_or(|(first, _)| key < *first) {
            self.failed = Some((key, error));
        }
    }

    /// Returns whether a field is there and not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        let is_named = |key: &String| key.eq_ignore_ascii_case(name);
        self.fields
            .iter()
            .any(|(key, value)| is_named(key) && !value.is_null())
    }

    /// Returns how many fields were there so far, null ones left out.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Fails when a field was wrong, or when the object of a strict document has one that no one took.
    pub(crate) fn finish(mut self) -> Result<()> {
        let unknown = self
            .fields
            .keys()
            .filter(|key| !self.known.contains(&key.as_str()));
        if let Some(unknown) = unknown.min().filter(|_| self.place.is_strict) {
            self.fail(
                unknown,
                Error::invalid(format!("json: unknown field {unknown:?}")),
            );
        }
        self.finish_loosely()
    }

    /// Fails when a field was wrong.
    pub(crate) fn finish_loosely(self) -> Result<()> {
        self.failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn find(&mut self, name: &str) -> Option<(&'a str, &'a Value)> {
        let mut found: Option<(&'a str, &'a Value)> = None;
        for (key, value) in self.fields {
            // encoding/json prefers the exact name, and otherwise takes any case.
            if key == name || (key.eq_ignore_ascii_case(name) && found.is_none()) {
                self.known.push(key);
                found = Some((key, value));
            }
        }
        let found = found.filter(|(_, value)| !value.is_null());
        self.taken += usize::from(found.is_some());
        found
    }
}

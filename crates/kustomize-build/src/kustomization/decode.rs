//! JSON into structs with the strictness and the words of encoding/json.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// A type that can be read from JSON; `path` names the place in messages (`Kustomization.images.0.newTag`).
pub(crate) trait Decode: Sized {
    fn decode(value: &Value, path: &str) -> Result<Self>;
}

/// The message for a value of the wrong type.
fn mismatch(value: &Value, path: &str, wanted: &str) -> Error {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if path.contains('.') {
        return Error::invalid(format!(
            "json: cannot unmarshal {found} into Go struct field {path} of type {wanted}"
        ));
    }
    Error::invalid(format!(
        "json: cannot unmarshal {found} into Go value of type {wanted}"
    ))
}

impl Decode for Value {
    fn decode(value: &Value, _: &str) -> Result<Self> {
        Ok(value.clone())
    }
}

impl Decode for String {
    fn decode(value: &Value, path: &str) -> Result<Self> {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| mismatch(value, path, "string"))
    }
}

impl Decode for bool {
    fn decode(value: &Value, path: &str) -> Result<Self> {
        value.as_bool().ok_or_else(|| mismatch(value, path, "bool"))
    }
}

impl Decode for i64 {
    fn decode(value: &Value, path: &str) -> Result<Self> {
        match value {
            Value::Number(n) => n.as_i64().ok_or_else(|| {
                let found =
                    format!("json: cannot unmarshal number {n} into Go struct field {path} of type int64");
                Error::invalid(found)
            }),
            other => Err(mismatch(other, path, "int64")),
        }
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(value: &Value, path: &str) -> Result<Self> {
        T::decode(value, path).map(Some)
    }
}

impl<T: Decode + Default> Decode for Vec<T> {
    fn decode(value: &Value, path: &str) -> Result<Self> {
        let elements = value.as_array().ok_or_else(|| mismatch(value, path, "[]"))?;
        let decode = |(index, element): (usize, &Value)| match element {
            Value::Null => Ok(T::default()),
            element => T::decode(element, &format!("{path}.{index}")),
        };
        elements.iter().enumerate().map(decode).collect()
    }
}

impl Decode for BTreeMap<String, String> {
    fn decode(value: &Value, path: &str) -> Result<Self> {
        let fields = value
            .as_object()
            .ok_or_else(|| mismatch(value, path, "map[string]string"))?;
        let decode = |(key, value): (&String, &Value)| match value {
            Value::Null => Ok((key.clone(), String::new())),
            value => Ok((key.clone(), String::decode(value, &format!("{path}.{key}"))?)),
        };
        fields.iter().map(decode).collect()
    }
}

/// The fields of a JSON object, taken one by one.
pub(crate) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    path: &'a str,
    known: Vec<&'a str>,
    taken: usize,
}

impl<'a> Fields<'a> {
    /// Opens an object; `type_name` is Go's name of the type, for the message when it is none.
    pub(crate) fn of(value: &'a Value, path: &'a str, type_name: &str) -> Result<Self> {
        let fields = value
            .as_object()
            .ok_or_else(|| mismatch(value, path, type_name))?;
        Ok(Self {
            fields,
            path,
            known: Vec::new(),
            taken: 0,
        })
    }

    /// Reads a field into its place, if it is there and not null.
    pub(crate) fn take<T: Decode>(&mut self, name: &str, place: &mut T) -> Result<()> {
        if let Some(value) = self.find(name) {
            let path = format!("{}.{name}", self.path);
            *place = T::decode(value, &path)?;
        }
        Ok(())
    }

    /// Reads a field over the same object: what Go embeds.
    pub(crate) fn ignore(&mut self, name: &str) -> Result<()> {
        self.find(name);
        Ok(())
    }

    /// Tells whether a field is there and not null.
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

    /// Fails when the object has a field that nobody took.
    pub(crate) fn finish(self) -> Result<()> {
        match self.fields.keys().find(|key| !self.known.contains(&key.as_str())) {
            Some(unknown) => Err(Error::invalid(format!("json: unknown field {unknown:?}"))),
            None => Ok(()),
        }
    }

    fn find(&mut self, name: &str) -> Option<&'a Value> {
        let mut found = None;
        for (key, value) in self.fields {
            // encoding/json prefers the exact name, and otherwise takes any case.
            if key == name || (key.eq_ignore_ascii_case(name) && found.is_none()) {
                self.known.push(key);
                found = Some(value);
            }
        }
        let value = found.filter(|value| !value.is_null());
        self.taken += usize::from(value.is_some());
        value
    }
}

//! The operations of a JSON patch, with the library's messages.

use super::document::Json;
use crate::error::{Error, Result};

/// One step of a patch. What is wrong with it is an error when it is its turn, not before.
pub(super) struct Operation {
    /// `op`; None when it is no string.
    name: Option<String>,
    path: Text,
    from: Text,
    value: Option<Json>,
}

/// A field that must be a string.
enum Text {
    Missing,
    Wrong(Error),
    Is(String),
}

impl Text {
    fn read(field: Option<&Json>) -> Self {
        match field {
            None | Some(Json::Null) => Self::Missing,
            Some(value) => value
                .as_string()
                .map_or_else(|| Self::Wrong(value.mistaken_for("string")), Self::Is),
        }
    }
}

impl Operation {
    /// Reads an operation.
    pub(super) fn read(json: Json) -> Result<Self> {
        let mut fields = match json {
            Json::Object(fields) => fields,
            Json::Null => Default::default(),
            other => return Err(other.mistaken_for("jsonpatch.Operation")),
        };
        Ok(Self {
            name: fields.get("op").and_then(Json::as_string),
            path: Text::read(fields.get("path")),
            from: Text::read(fields.get("from")),
            value: fields.remove("value"),
        })
    }

    /// Carries the operation out.
    pub(super) fn apply(&self, document: &mut Json, copied: &mut dyn FnMut(usize)) -> Result<()> {
        match self.name.as_deref().unwrap_or("unknown") {
            "add" => self.add(document),
            "remove" => self.remove(document),
            "replace" => self.replace(document),
            "move" => self.move_value(document),
            "copy" => self.copy(document, copied),
            "test" => self.test(document),
            other => Err(Error::patch(format!("Unexpected kind: {other}"))),
        }
    }

    /// Reads the path; the library says less of what is wrong in some operations.
    fn path(&self, name: &str, briefly: bool) -> Result<&str> {
        let error = match &self.path {
            Text::Is(path) => return Ok(path),
            _ if briefly => Error::patch("missing value"),
            Text::Wrong(error) => error.clone(),
            Text::Missing => Error::patch("operation missing path field: missing value"),
        };
        Err(error.context(format!("{name} operation failed to decode path")))
    }

    fn from(&self, name: &str) -> Result<&str> {
        let error = match &self.from {
            Text::Is(from) => return Ok(from),
            Text::Wrong(error) => error.clone(),
            Text::Missing => Error::patch("operation, missing from field: missing value"),
        };
        Err(error.context(format!("{name} operation failed to decode from")))
    }

    fn value(&self) -> Json {
        self.value.clone().unwrap_or(Json::Null)
    }

    fn add(&self, document: &mut Json) -> Result<()> {
        let path = self.path("add", true)?;
        let (container, key) = document
            .container(path)
            .ok_or_else(|| missing("add", &format!("path: \"{path}\"")))?;
        container
            .add(key, self.value())
            .map_err(|error| error.context(format!("error in add for path: '{path}'")))
    }

    fn remove(&self, document: &mut Json) -> Result<()> {
        let path = self.path("remove", true)?;
        let (container, key) = document
            .container(path)
            .ok_or_else(|| missing("remove", &format!("path: \"{path}\"")))?;
        container
            .take(&key)
            .map(drop)
            .map_err(|error| error.context(format!("error in remove for path: '{path}'")))
    }

    fn replace(&self, document: &mut Json) -> Result<()> {
        let path = self.path("replace", false)?;
        if path.is_empty() {
            return self.replace_all(document);
        }
        let (container, key) = document
            .container(path)
            .ok_or_else(|| missing("replace", &format!("path: {path}")))?;
        container
            .get(&key)
            .map_err(|_| missing("replace", &format!("key: {path}")))?;
        container.set(key, self.value())
    }

    fn replace_all(&self, document: &mut Json) -> Result<()> {
        match &self.value {
            Some(value @ (Json::Array(_) | Json::Object(_))) => {
                *document = value.clone();
                Ok(())
            }
            // The library formats an error that is not there.
            _ => Err(Error::patch(
                "replace operation value must be object or array: %!w(<nil>)",
            )),
        }
    }

    fn move_value(&self, document: &mut Json) -> Result<()> {
        let from = self.from("move")?;
        let (container, key) = document
            .container(from)
            .ok_or_else(|| missing("move", &format!("from path: {from}")))?;
        let failed = |error: Error| error.context(format!("error in move for path: '{key}'"));
        let value = container.take(&key).map_err(failed)?;
        let path = self.path("move", false)?;
        let (container, key) = document
            .container(path)
            .ok_or_else(|| missing("move", &format!("destination path: {path}")))?;
        container
            .add(key, value)
            .map_err(|error| error.context(format!("error in move for path: '{path}'")))
    }

    fn copy(&self, document: &mut Json, copied: &mut dyn FnMut(usize)) -> Result<()> {
        let from = self.from("copy")?;
        let (container, key) = document
            .container(from)
            .ok_or_else(|| missing("copy", &format!("from path: {from}")))?;
        let value = container
            .get(&key)
            .map_err(|error| error.context(format!("error in copy for from: '{from}'")))?;
        copied(value.size());
        let value = value.clone();
        let path = self.path("copy", true)?;
        let (container, key) = document
            .container(path)
            .ok_or_else(|| missing("copy", &format!("destination path: {path}")))?;
        container
            .add(key, value)
            .map_err(|error| error.context("error while adding value during copy"))
    }

    fn test(&self, document: &mut Json) -> Result<()> {
        let path = self.path("test", false)?;
        let found = if path.is_empty() {
            &*document
        } else {
            let (container, key) = document.container(path).ok_or_else(|| {
                Error::patch(format!(
                    "test operation does not apply: is missing path: {path}: missing value"
                ))
            })?;
            container
                .get(&key)
                .map_err(|error| error.context(format!("error in test for path: '{path}'")))?
        };
        if *found == self.value() {
            return Ok(());
        }
        Err(Error::patch(format!("testing value {path} failed: test failed")))
    }
}

fn missing(name: &str, what: &str) -> Error {
    Error::patch(format!(
        "{name} operation does not apply: doc is missing {what}: missing value"
    ))
}

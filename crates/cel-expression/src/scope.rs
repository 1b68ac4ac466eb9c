//! The variables of an evaluation: JSON, and what other expressions gave.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::Value;
use cel::objects::{Key, Map};

use crate::error::Error;
use crate::{Expression, value};

/// Variables by name. Expressions that share one share the values too.
#[derive(Debug, Clone, Default)]
pub struct Scope(BTreeMap<String, Value>);

impl Scope {
    /// The fields of an object of Kubernetes: whole numbers are int.
    pub fn of_object(object: &serde_json::Value) -> Self {
        let fields = object.as_object().into_iter().flatten();
        Self(
            fields
                .map(|(name, field)| (name.clone(), value::from_json(field)))
                .collect(),
        )
    }

    /// Adds JSON as Go's encoding/json decodes it for Flux: all numbers are double.
    pub fn decoded(mut self, name: &str, json: &serde_json::Value) -> Self {
        self.0.insert(name.to_owned(), value::decoded(json));
        self
    }

    /// Adds a map without entries, for [`define`](Self::define).
    pub fn empty_map(mut self, name: &str) -> Self {
        let map = Map { map: Arc::default() };
        self.0.insert(name.to_owned(), Value::Map(map));
        self
    }

    /// Evaluates an expression in this scope and keeps its value, whatever type it has, as an entry of a map.
    pub fn define(&mut self, map: &str, entry: &str, expression: &Expression) -> Result<(), Error> {
        let value = expression.resolve(self)?;
        if let Some(Value::Map(map)) = self.0.get_mut(map) {
            Arc::make_mut(&mut map.map).insert(Key::String(Arc::new(entry.to_owned())), value);
        }
        Ok(())
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

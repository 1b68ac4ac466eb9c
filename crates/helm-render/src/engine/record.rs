//! Go structs that only hold data: fields in order, and their names in JSON.

use go_template::{Object, Str, Type, Value};

/// A struct, or a pointer to one.
#[derive(Debug)]
pub(super) struct Record {
    type_: Type,
    fields: Vec<Field>,
    /// Result of its `String` method, where that belongs to the pointer.
    addressed_text: Option<Str>,
}

/// A field of a [`Record`].
#[derive(Debug)]
pub(super) struct Field {
    name: &'static str,
    json: Json,
    value: Value,
}

/// How `encoding/json` shows a field.
#[derive(Clone, Copy, Debug)]
enum Json {
    Named(&'static str),
    NamedUnlessEmpty(&'static str),
    /// Fields of an embedded struct, which appear as if they were the outer one's.
    Embedded,
    /// Not exported: neither JSON nor templates see it.
    Hidden,
}

impl Field {
    /// Makes a field that JSON shows always.
    pub(super) fn new(name: &'static str, json: &'static str, value: impl Into<Value>) -> Self {
        Self {
            name,
            json: Json::Named(json),
            value: value.into(),
        }
    }

    /// Makes a field with `omitempty`.
    pub(super) fn unless_empty(name: &'static str, json: &'static str, value: impl Into<Value>) -> Self {
        Self {
            name,
            json: Json::NamedUnlessEmpty(json),
            value: value.into(),
        }
    }

    /// Makes an embedded struct, which must be a [`Record`].
    pub(super) fn embedded(name: &'static str, value: Value) -> Self {
        Self {
            name,
            json: Json::Embedded,
            value,
        }
    }

    /// Makes a field that only `%v` shows.
    pub(super) fn hidden(name: &'static str, value: impl Into<Value>) -> Self {
        Self {
            name,
            json: Json::Hidden,
            value: value.into(),
        }
    }
}

impl Record {
    pub(super) fn new(type_: Type, fields: Vec<Field>) -> Self {
        Self {
            type_,
            fields,
            addressed_text: None,
        }
    }

    /// Gives it a `String` method that belongs to its pointer.
    pub(super) fn with_addressed_text(mut self, text: impl Into<Str>) -> Self {
        self.addressed_text = Some(text.into());
        self
    }

    fn json_fields(&self, out: &mut Vec<(&'static str, Value)>) {
        for field in &self.fields {
            match field.json {
                Json::Named(name) => out.push((name, field.value.clone())),
                Json::NamedUnlessEmpty(name) if !is_empty(&field.value) => {
                    out.push((name, field.value.clone()));
                }
                Json::Embedded => {
                    if let Some(record) = field.value.as_object::<Self>() {
                        record.json_fields(out);
                    }
                }
                Json::NamedUnlessEmpty(_) | Json::Hidden => {}
            }
        }
    }
}

/// True for values that `omitempty` leaves out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Invalid | Value::Nil | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Int(number, _) => *number == 0,
        _ => false,
    }
}

impl Object for Record {
    fn type_(&self) -> Type {
        self.type_
    }

    fn field(&self, name: &str) -> Option<Value> {
        let promoted = |field: &Field| match field.json {
            Json::Embedded => field.value.as_object::<Self>()?.field(name),
            _ => None,
        };
        let visible = |field: &&Field| !matches!(field.json, Json::Hidden);
        let own = self
            .fields
            .iter()
            .filter(visible)
            .find(|field| field.name == name);
        own.map(|field| field.value.clone())
            .or_else(|| self.fields.iter().find_map(promoted))
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let fields = self.fields.iter();
        fields.map(|field| (field.name, field.value.clone())).collect()
    }

    fn addressed_text(&self) -> Option<Str> {
        self.addressed_text.clone()
    }

    fn json(&self) -> Option<Value> {
        let mut fields = Vec::new();
        self.json_fields(&mut fields);
        Some(Value::object(JsonFields(fields)))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Fields by the names that JSON gives them, in order.
#[derive(Debug)]
struct JsonFields(Vec<(&'static str, Value)>);

impl Object for JsonFields {
    fn type_(&self) -> Type {
        Type::MAP_ANY
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.0.clone()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

//! From values to TOML text: what is no table first, then tables, each sorted by its keys; two spaces for each level.

use go_template::{Context, Error, Kind, Str, Value};
use manifest::yaml::number;

/// Writes a value as TOML. The inner error is one that templates may see as text.
pub fn encode(context: &mut Context<'_>, value: &Value) -> Result<Result<Vec<u8>, String>, Error> {
    if matches!(value, Value::Invalid | Value::Nil) {
        // What Go's reflection says of the nil that it is asked about.
        return Err(Error::new("reflect: call of reflect.Value.Type on zero Value"));
    }
    let mut encoder = Encoder {
        context,
        out: Vec::new(),
        charged: 0,
    };
    let written = encoder.value(&mut Vec::new(), value);
    match written.and_then(|()| encoder.charge()) {
        Ok(()) => Ok(Ok(encoder.out)),
        Err(Stop::Refused(problem)) => Ok(Err(problem)),
        Err(Stop::Bound(error)) => Err(error),
    }
}

/// Why encoding ends early.
enum Stop {
    Refused(String),
    Bound(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Bound(error)
    }
}

fn refuse<T>(problem: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Refused(problem.into()))
}

/// TOML's type of a value, where that decides how it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Nothing,
    Plain,
    Table,
    Tables,
}

impl Shape {
    fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Tables)
    }
}

struct Encoder<'c, 'a> {
    context: &'c mut Context<'a>,
    out: Vec<u8>,
    /// How much of `out` the render has been charged for.
    charged: usize,
}

impl Encoder<'_, '_> {
    /// Charges for what was written since the last time: a table that holds another twice, and so on, has no end as text.
    fn charge(&mut self) -> Result<(), Stop> {
        self.context.charge(self.out.len() - self.charged)?;
        self.charged = self.out.len();
        Ok(())
    }

    /// Writes a value under a key; the document itself has an empty one.
    fn value(&mut self, key: &mut Vec<Str>, value: &Value) -> Result<(), Stop> {
        self.context.descend()?;
        self.context.step()?;
        self.charge()?;
        if key.is_empty() && matches!(value, Value::Complex(..) | Value::Func(_)) {
            let kind = value.kind().map_or("nil", Kind::name);
            return refuse(format!("unsupported type for key '': {kind}"));
        }
        match self.shape(value)? {
            Shape::Nothing => Ok(()),
            Shape::Table => self.table(key, value),
            Shape::Tables => self.tables(key, value),
            Shape::Plain => {
                self.key_and_value(key, value)?;
                if !key.is_empty() {
                    self.newline();
                }
                Ok(())
            }
        }
    }

    fn tables(&mut self, key: &mut Vec<Str>, value: &Value) -> Result<(), Stop> {
        if key.is_empty() {
            return refuse("toml: top-level values must be Go maps or structs");
        }
        for item in items(value) {
            if self.shape(&item)? == Shape::Nothing {
                continue;
            }
            self.newline();
            self.header(key, "[[", "]]");
            self.fields(key, &item, false)?;
        }
        Ok(())
    }

    fn table(&mut self, key: &mut Vec<Str>, value: &Value) -> Result<(), Stop> {
        if key.len() == 1 {
            self.newline();
        }
        if !key.is_empty() {
            self.header(key, "[", "]");
        }
        self.fields(key, value, false)
    }

    fn header(&mut self, key: &[Str], open: &str, close: &str) {
        self.indent(key);
        self.text(open);
        for (index, part) in key.iter().enumerate() {
            if index > 0 {
                self.text(".");
            }
            self.key_part(part);
        }
        self.text(close);
        self.newline();
    }

    /// Writes the fields of a table, within braces or a line each.
    fn fields(&mut self, key: &mut Vec<Str>, table: &Value, inline: bool) -> Result<(), Stop> {
        let mut plain = Vec::new();
        let mut tables = Vec::new();
        for (name, value) in entries(table) {
            let shape = self.shape(&value)?;
            let place = if shape.is_table() { &mut tables } else { &mut plain };
            place.push((name, value, shape));
        }
        if inline {
            self.text("{");
        }
        let more = !tables.is_empty();
        for (group, more) in [(plain, more), (tables, false)] {
            let count = group.len();
            for (index, (name, value, shape)) in group.into_iter().enumerate() {
                if shape == Shape::Nothing {
                    continue;
                }
                if !inline {
                    key.push(name);
                    self.value(key, &value)?;
                    key.pop();
                    continue;
                }
                self.key_and_value(&[name], &value)?;
                if more || index + 1 < count {
                    self.text(", ");
                }
            }
        }
        if inline {
            self.text("}");
        }
        Ok(())
    }

    fn key_and_value(&mut self, key: &[Str], value: &Value) -> Result<(), Stop> {
        if let Some(name) = key.last() {
            self.indent(key);
            self.key_part(name);
            self.text(" = ");
        }
        self.element(value)
    }

    fn element(&mut self, value: &Value) -> Result<(), Stop> {
        self.context.descend()?;
        self.context.step()?;
        self.charge()?;
        match value {
            Value::Bool(truth) => self.text(&truth.to_string()),
            Value::Int(number, _) => self.text(&number.to_string()),
            Value::Uint(number, _) => self.text(&number.to_string()),
            Value::Float(number) => self.text(&float(*number)),
            Value::String(text) => self.quoted(text),
            Value::Bytes(_) | Value::List(_) => {
                self.text("[");
                for (index, item) in items(value).into_iter().enumerate() {
                    if index > 0 {
                        self.text(", ");
                    }
                    self.element(&item)?;
                }
                self.text("]");
            }
            Value::Map(_) => self.fields(&mut Vec::new(), value, true)?,
            Value::Object(object) => match (object.type_().name(), object.json(), object.text()) {
                ("time.Time", Some(Value::String(time)), _) => self.out.extend_from_slice(&time),
                ("time.Duration", _, Some(duration)) => self.quoted(&duration),
                _ => match object.underlying() {
                    Some(value) => self.element(&value)?,
                    None => self.fields(&mut Vec::new(), value, true)?,
                },
            },
            Value::Invalid | Value::Nil | Value::Complex(..) | Value::Func(_) => {
                return refuse(format!("unexpected type: {}", value.type_name()));
            }
        }
        Ok(())
    }

    /// Tells what a value is written as, and refuses what TOML does not have.
    fn shape(&mut self, value: &Value) -> Result<Shape, Stop> {
        self.context.step()?;
        Ok(match value {
            Value::Invalid | Value::Nil => Shape::Nothing,
            Value::Map(map) if map.is_nil() => Shape::Nothing,
            Value::Map(_) => Shape::Table,
            Value::List(list) if list.is_nil() => Shape::Nothing,
            Value::List(list) => {
                self.context.descend()?;
                let mut tables = !list.is_empty();
                for item in list.iter() {
                    match self.shape(item)? {
                        Shape::Nothing => return refuse("toml: cannot encode array with nil element"),
                        Shape::Table => {}
                        Shape::Plain | Shape::Tables => tables = false,
                    }
                }
                if tables { Shape::Tables } else { Shape::Plain }
            }
            Value::Object(object) if object.is_nil() => Shape::Nothing,
            Value::Object(object) => match object.type_().kind() {
                Kind::Struct | Kind::Pointer if object.type_().name() != "time.Time" => Shape::Table,
                _ => Shape::Plain,
            },
            Value::Complex(..) | Value::Func(_) => {
                return refuse(format!(
                    "unsupported type: {}",
                    value.kind().map_or("nil", Kind::name)
                ));
            }
            _ => Shape::Plain,
        })
    }

    fn key_part(&mut self, part: &Str) {
        let is_bare = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
        if !part.is_empty() && part.iter().all(is_bare) {
            self.out.extend_from_slice(part);
        } else {
            self.quoted(part);
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        quote_into(text, &mut self.out);
    }

    fn indent(&mut self, key: &[Str]) {
        for _ in 1..key.len() {
            self.text("  ");
        }
    }

    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Ends a line, but writes no empty one at the beginning.
    fn newline(&mut self) {
        if !self.out.is_empty() {
            self.out.push(b'\n');
        }
    }
}

/// Writes a text in quotes.
pub(super) fn quote_into(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\x08' => out.extend(b"\\b"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\x0c' => out.extend(b"\\f"),
            b'\r' => out.extend(b"\\r"),
            0..0x20 | 0x7f => out.extend(format!("\\u{byte:04x}").into_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// The elements of a list; those of bytes are numbers.
fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::List(list) => list.iter().cloned().collect(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| Value::int64(i64::from(*byte))).collect(),
        _ => Vec::new(),
    }
}

/// The fields of a table: a map's sorted, a struct's as declared.
fn entries(table: &Value) -> Vec<(Str, Value)> {
    match table {
        Value::Map(map) => map.entries(),
        Value::Object(object) => {
            let fields = object.fields().into_iter();
            fields.map(|(name, value)| (Str::from(name), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// A float as `%g` writes it; TOML wants a point or an exponent.
fn float(number: f64) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let mut text = number::format_g(number);
    if !text.contains(['.', 'e']) {
        text.push_str(".0");
    }
    text
}

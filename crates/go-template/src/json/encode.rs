//! Values to JSON, as `json.Marshal`, `json.MarshalIndent` and `json.Encoder` write them.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{Error, ErrorKind, List, Map, Object, Str, Type, Value};
use go_text::json::push_string;
use go_text::number::format_json;

/// From this level on Go looks for cycles (`startDetectCyclesAfter`).
const CYCLES_AFTER: usize = 1000;

/// From this level on a cycle is looked for here: it is known by then what Go would find later.
const FIRST_CHECKED: usize = 64;

/// How deep values may be: Go's stack would bear more, ours does not, and no manifest is like that.
const MAX_DEPTH: usize = 400;

/// How long JSON may become. A value that holds the same list twice, and that another one twice, and so on, is small and
/// has a JSON form without end.
const MAX_BYTES: usize = 64 << 20;

/// How JSON is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// True if `<`, `>` and `&` are written as escapes, as `json.Marshal` does.
    pub escape_html: bool,
    /// One level of indentation, as of `json.MarshalIndent`; None writes everything on one line.
    pub indent: Option<&'static str>,
}

impl Style {
    /// As `json.Marshal` writes: on one line, safe within HTML.
    pub const MARSHAL: Self = Self {
        escape_html: true,
        indent: None,
    };

    /// As `json.MarshalIndent` writes with two spaces.
    pub const PRETTY: Self = Self {
        escape_html: true,
        indent: Some("  "),
    };

    /// As an encoder with `SetEscapeHTML(false)` writes, without its newline at the end.
    pub const RAW: Self = Self {
        escape_html: false,
        indent: None,
    };
}

/// Writes a value as JSON. Refuses what Go refuses, in its words: functions, complex numbers, NaN, infinities, cycles.
pub fn encode(value: &Value, style: Style) -> Result<String, Error> {
    let mut encoder = Encoder {
        out: String::new(),
        style,
        depth: 0,
        path: Vec::with_capacity(16),
    };
    encoder.value(value)?;
    Ok(encoder.out)
}

struct Encoder {
    out: String,
    style: Style,
    depth: usize,
    /// The addresses and types of the lists, maps and structs that are open.
    path: Vec<(usize, Type)>,
}

impl Encoder {
    fn value(&mut self, value: &Value) -> Result<(), Error> {
        if self.out.len() > MAX_BYTES {
            let message = format!("json: the value has more than {MAX_BYTES} bytes");
            return Err(Error::from_parts(ErrorKind::Limit, message));
        }
        match value {
            Value::Invalid | Value::Nil => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Int(number, _) => self.number(*number),
            Value::Uint(number, _) => self.number(*number),
            Value::Float(number) => return self.float(*number),
            Value::Complex(..) | Value::Func(_) => {
                return Err(Error::new(format!(
                    "json: unsupported type: {}",
                    value.type_name()
                )));
            }
            Value::String(text) => self.string(text),
            Value::List(list) => return self.list(list),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Map(map) => return self.map(map),
            Value::Object(object) => return self.object(&**object),
        }
        Ok(())
    }

    fn number(&mut self, number: impl std::fmt::Display) {
        write!(self.out, "{number}").expect("a string takes all text");
    }

    /// As ES6 prints numbers: an exponent for the very small and very large ones only.
    fn float(&mut self, number: f64) -> Result<(), Error> {
        if !number.is_finite() {
            let name = match number {
                f64::INFINITY => "+Inf",
                f64::NEG_INFINITY => "-Inf",
                _ => "NaN",
            };
            return Err(Error::new(format!("json: unsupported value: {name}")));
        }
        self.out.push_str(&format_json(number));
        Ok(())
    }

    fn list(&mut self, list: &List) -> Result<(), Error> {
        if list.is_nil() {
            self.out.push_str("null");
            return Ok(());
        }
        self.open('[', list.as_ptr().addr(), list.type_())?;
        for (index, item) in list.iter().enumerate() {
            self.separate(index);
            self.value(item)?;
        }
        self.close(']', list.is_empty());
        Ok(())
    }

    fn map(&mut self, map: &Map) -> Result<(), Error> {
        let Some(entries) = map.borrow() else {
            self.out.push_str("null");
            return Ok(());
        };
        self.open('{', map.address(), map.type_())?;
        for (index, (key, value)) in entries.iter().enumerate() {
            self.separate(index);
            self.key(key);
            self.value(value)?;
        }
        self.close('}', entries.is_empty());
        Ok(())
    }

    fn object(&mut self, object: &dyn Object) -> Result<(), Error> {
        if let Some(value) = object.json().or_else(|| object.underlying()) {
            self.descend()?;
            self.value(&value)?;
            self.depth -= 1;
            return Ok(());
        }
        let fields = object.fields();
        self.open('{', std::ptr::from_ref(object).addr(), object.type_())?;
        for (index, (name, value)) in fields.iter().enumerate() {
            self.separate(index);
            self.key(name.as_bytes());
            self.value(value)?;
        }
        self.close('}', fields.is_empty());
        Ok(())
    }

    fn key(&mut self, key: &[u8]) {
        self.string(key);
        self.out.push(':');
        if self.style.indent.is_some() {
            self.out.push(' ');
        }
    }

    fn descend(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::from_parts(
                ErrorKind::Limit,
                format!("json: the value is more than {MAX_DEPTH} levels deep"),
            ));
        }
        Ok(())
    }

    fn open(&mut self, bracket: char, address: usize, type_: Type) -> Result<(), Error> {
        if self.path.len() >= FIRST_CHECKED {
            self.check_cycle(address)?;
        }
        self.descend()?;
        self.path.push((address, type_));
        self.out.push(bracket);
        Ok(())
    }

    /// Refuses what is open already. Go goes round for longer, and names the type that comes first after so many levels.
    fn check_cycle(&self, address: usize) -> Result<(), Error> {
        let Some(start) = self.path.iter().position(|(open, _)| *open == address) else {
            return Ok(());
        };
        let round = self.path.len() - start;
        let (_, type_) = self.path[start + (CYCLES_AFTER - start) % round];
        Err(Error::new(format!(
            "json: unsupported value: encountered a cycle via {type_}"
        )))
    }

    fn close(&mut self, bracket: char, empty: bool) {
        self.path.pop();
        self.depth -= 1;
        if !empty {
            self.newline();
        }
        self.out.push(bracket);
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.newline();
    }

    fn newline(&mut self) {
        if let Some(indent) = self.style.indent {
            self.out.push('\n');
            for _ in 0..self.depth {
                self.out.push_str(indent);
            }
        }
    }

    fn bytes(&mut self, bytes: &Str) {
        self.out.push('"');
        STANDARD.encode_string(bytes, &mut self.out);
        self.out.push('"');
    }

    fn string(&mut self, text: &[u8]) {
        push_string(text, self.style.escape_html, &mut self.out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: impl Into<Value>, expected: &str) {
        let value = value.into();
        let text = encode(&value, Style::MARSHAL).unwrap_or_else(|error| error.to_string());
        assert_eq!(text, expected, "{value:?}");
    }

    #[test]
    fn floats_have_an_exponent_only_outside_of_1e_6_to_1e21() {
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.5, "1.5");
        check(1e20, "100000000000000000000");
        check(1e21, "1e+21");
        check(-1.25e30, "-1.25e+30");
        check(0.000001, "0.000001");
        check(0.0000001, "1e-7");
        check(f64::NAN, "json: unsupported value: NaN");
        check(f64::NEG_INFINITY, "json: unsupported value: -Inf");
    }

    #[test]
    fn strings_escape_what_go_escapes() {
        check(
            "a\"b\\\n\t\r\u{8}\u{c}\u{1}\u{7f}",
            "\"a\\\"b\\\\\\n\\t\\r\\b\\f\\u0001\u{7f}\"",
        );
        check("<é&\u{2028}>", "\"\\u003cé\\u0026\\u2028\\u003e\"");
        check(Str::from(&b"a\xe2\x82b"[..]), "\"a\\ufffd\\ufffdb\"");
        let raw = encode(&"<&>\u{2029}â".into(), Style::RAW).expect("a string has a JSON form");
        assert_eq!(raw, "\"<&>\\u2029â\"");
    }

    #[test]
    fn nil_slices_and_maps_are_null_and_bytes_are_base64() {
        check(List::nil(Type::LIST_STRING), "null");
        check(Map::nil(Type::MAP_ANY), "null");
        check(List::of_strings(["b", "a"]), r#"["b","a"]"#);
        check(Value::Bytes(Str::from("hi!?")), r#""aGkhPw==""#);
        check(Value::Complex(1.0, 0.0), "json: unsupported type: complex128");
    }

    #[test]
    fn empty_values_stay_on_one_line_when_indented() {
        let map = Map::from_iter([
            ("b", Value::List(vec![Value::int(1), Map::new().into()].into())),
            ("a", Value::List(List::from(Vec::new()))),
        ]);
        let text = encode(&map.into(), Style::PRETTY).expect("all of it has a JSON form");
        assert_eq!(text, "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {}\n  ]\n}");
    }

    #[test]
    fn a_cycle_is_refused_as_go_refuses_it() {
        let map = Map::new();
        assert!(map.insert("self", Value::List(vec![map.clone().into()].into())));
        check(
            map.clone(),
            "json: unsupported value: encountered a cycle via map[string]interface {}",
        );
        map.clear();
    }

    #[test]
    fn a_deep_value_reaches_a_bound() {
        let mut value = Value::Nil;
        for _ in 0..5000 {
            value = Value::List(vec![value].into());
        }
        let error = encode(&value, Style::MARSHAL).expect_err("it is too deep");
        assert!(error.is_limit());
    }

    #[test]
    fn a_value_that_grows_when_written_reaches_a_bound() {
        let mut value = Value::from("x".repeat(1 << 20));
        for _ in 0..60 {
            value = Value::List(vec![value.clone(), value].into());
        }
        let error = encode(&value, Style::MARSHAL).expect_err("it is too long");
        assert!(error.is_limit());
    }
}

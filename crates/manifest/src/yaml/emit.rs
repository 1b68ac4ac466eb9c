//! From JSON to YAML text, as sigs.k8s.io/yaml's `JSONToYAML` writes it.
//!
//! kustomize prints its result that way, and Helm's `toYaml` as well, so every byte counts: hashes are made of it. The
//! rules are those of libyaml's emitter as go-yaml v2 runs it: block style, two spaces, sequences not indented below
//! their key, width 80, plain where the text reads back as the same string.

mod key_order;
mod style;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::number;
use key_order::compare_keys;
use style::{Analysis, Chosen, is_break, is_printable, is_surely_plain, style_of};

/// JSON that cannot be written, because go-yaml's reader, through which it goes, refuses one of its characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("yaml: control characters are not allowed")]
pub struct WriteError;

/// Writes a JSON value as a YAML document, ending in a newline.
///
/// ```
/// let text = manifest::yaml::write(&serde_json::json!({"b": ["on", 1], "a": "x\ny\n"})).unwrap();
/// assert_eq!(text, "a: |\n  x\n  y\nb:\n- \"on\"\n- 1\n");
/// ```
pub fn write(value: &Value) -> Result<String, WriteError> {
    written(|emitter| emitter.node(value, Context::Root))
}

/// Writes a JSON object as [`write()`] does.
pub fn write_mapping(fields: &Map<String, Value>) -> Result<String, WriteError> {
    written(|emitter| emitter.mapping_or_empty(fields))
}

/// Writes a JSON object as go-yaml does for who hands it the values themselves, without a trip through JSON text, and with
/// the keys in the order of their bytes. Flux's digests of chart values are made of this (fluxcd/pkg `chartutil`).
///
/// ```
/// let fields = serde_json::json!({"a10": 1, "a9": {"Z": 1, "b": 2.5}});
/// assert_eq!(manifest::yaml::write_values(fields.as_object().unwrap()), "a10: 1\na9:\n  Z: 1\n  b: 2.5\n");
/// ```
pub fn write_values(fields: &Map<String, Value>) -> String {
    let mut emitter = Emitter::new(Origin::Values);
    let nothing_is_refused = emitter.document(|emitter| emitter.mapping_or_empty(fields));
    debug_assert!(nothing_is_refused.is_ok(), "only text of JSON is read back");
    emitter.out
}

/// Returns whether a value can be written, without writing it.
pub fn check(value: &Value) -> Result<(), WriteError> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) => read_back(text).map(drop),
        Value::Array(elements) => elements.iter().try_for_each(check),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            read_back(key)?;
            check(value)
        }),
    }
}

fn written(write: impl FnOnce(&mut Emitter) -> Result<(), WriteError>) -> Result<String, WriteError> {
    let mut emitter = Emitter::new(Origin::Json);
    emitter.document(write)?;
    Ok(emitter.out)
}

/// Where the values come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// JSON text, which go-yaml's reader reads before its writer writes.
    Json,
    /// Memory.
    Values,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    Sequence,
    MappingValue,
    SimpleKey,
}

const INDENT: i32 = 2;
const WIDTH: usize = 80;
/// A key up to this length is written without `?`.
const SIMPLE_KEY_LENGTH: usize = 128;

struct Emitter {
    origin: Origin,
    out: String,
    column: usize,
    indent: i32,
    whitespace: bool,
    indention: bool,
}

impl Emitter {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            out: String::new(),
            column: 0,
            indent: -1,
            whitespace: true,
            indention: true,
        }
    }

    fn document(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        write(self)?;
        self.indent = -1;
        self.write_indent();
        Ok(())
    }

    fn mapping_or_empty(&mut self, fields: &Map<String, Value>) -> Result<(), WriteError> {
        if fields.is_empty() {
            self.empty("{", "}");
            return Ok(());
        }
        self.mapping(fields)
    }

    fn node(&mut self, value: &Value, context: Context) -> Result<(), WriteError> {
        match value {
            Value::Null => self.plain("null", context),
            Value::Bool(b) => self.plain(if *b { "true" } else { "false" }, context),
            Value::Number(n) => self.plain(&number_text(n), context),
            Value::String(s) => self.string(s, context)?,
            Value::Array(elements) if elements.is_empty() => self.empty("[", "]"),
            Value::Object(fields) if fields.is_empty() => self.empty("{", "}"),
            Value::Array(elements) => self.sequence(elements, context)?,
            Value::Object(fields) => self.mapping(fields)?,
        }
        Ok(())
    }

    fn sequence(&mut self, elements: &[Value], context: Context) -> Result<(), WriteError> {
        let outer = self.indent;
        let indentless = context == Context::MappingValue && !self.indention;
        self.increase_indent(indentless);
        for element in elements {
            self.write_indent();
            self.indicator("-", true, false, true);
            self.node(element, Context::Sequence)?;
        }
        self.indent = outer;
        Ok(())
    }

    fn mapping(&mut self, fields: &Map<String, Value>) -> Result<(), WriteError> {
        let outer = self.indent;
        self.increase_indent(false);
        let mut sorted: Vec<(Cow<'_, str>, &Value)> = fields
            .iter()
            .map(|(key, value)| Ok((self.text(key)?, value)))
            .collect::<Result<_, _>>()?;
        match self.origin {
            Origin::Json => sorted.sort_by(|a, b| compare_keys(&a.0, &b.0)),
            Origin::Values => sorted.sort_by(|a, b| a.0.cmp(&b.0)),
        }
        for (key, value) in sorted {
            self.write_indent();
            if key.len() <= SIMPLE_KEY_LENGTH && !key.contains(is_break) {
                self.string(&key, Context::SimpleKey)?;
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, true);
                self.string(&key, Context::MappingValue)?;
                self.write_indent();
                self.indicator(":", true, false, true);
            }
            self.node(value, Context::MappingValue)?;
        }
        self.indent = outer;
        Ok(())
    }

    fn empty(&mut self, open: &str, close: &str) {
        self.indicator(open, true, true, false);
        self.indicator(close, false, false, false);
    }

    fn string(&mut self, text: &str, context: Context) -> Result<(), WriteError> {
        if is_surely_plain(text) {
            self.surely_plain(text);
            return Ok(());
        }
        let text = self.text(text)?;
        let analysis = Analysis::from_text(&text);
        let outer = self.indent;
        self.indent = if outer < 0 { INDENT } else { outer + INDENT };
        match style_of(&text, &analysis, context) {
            Chosen::Plain => self.plain(&text, context),
            Chosen::Single => self.single_quoted(&text, context),
            Chosen::Double => self.double_quoted(&text, context),
            Chosen::Literal => self.literal(&text),
        }
        self.indent = outer;
        Ok(())
    }

    fn text<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, WriteError> {
        match self.origin {
            Origin::Json => read_back(text),
            Origin::Values => Ok(Cow::Borrowed(text)),
        }
    }

    /// Writes text that [`is_surely_plain`], as [`Self::plain`] would.
    fn surely_plain(&mut self, text: &str) {
        if !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(text);
        self.column += text.len();
        self.whitespace = false;
        self.indention = false;
    }

    fn plain(&mut self, text: &str, context: Context) {
        if !self.whitespace {
            self.put(' ');
        }
        let allow_breaks = context != Context::SimpleKey;
        let mut spaces = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' {
                if allow_breaks && !spaces && self.column > WIDTH && chars.peek() != Some(&' ') {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                self.indention = false;
                spaces = false;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, context: Context) {
        self.indicator("'", true, false, false);
        let allow_breaks = context != Context::SimpleKey;
        let (mut spaces, mut breaks) = (false, false);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c == ' ' {
                let inside = at > 0 && at < text.len() - 1;
                let alone = chars.peek().is_none_or(|(_, next)| *next != ' ');
                if allow_breaks && !spaces && self.column > WIDTH && inside && alone {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn double_quoted(&mut self, text: &str, context: Context) {
        self.indicator("\"", true, false, false);
        let allow_breaks = context != Context::SimpleKey;
        // libyaml asks for the byte order mark at the start of the text, whatever character it is at.
        let escape_all = text.starts_with('\u{feff}');
        let mut spaces = false;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if escape_all || !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                self.put_escaped(c);
                spaces = false;
            } else if c == ' ' {
                if allow_breaks && !spaces && self.column > WIDTH && at > 0 && at < text.len() - 1 {
                    self.write_indent();
                    if chars.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn put_escaped(&mut self, c: char) {
        let escape = match c {
            '\0' => "\\0".to_owned(),
            '\u{7}' => "\\a".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{b}' => "\\v".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\u{1b}' => "\\e".to_owned(),
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\u{85}' => "\\N".to_owned(),
            '\u{a0}' => "\\_".to_owned(),
            '\u{2028}' => "\\L".to_owned(),
            '\u{2029}' => "\\P".to_owned(),
            c if u32::from(c) <= 0xff => format!("\\x{:02X}", u32::from(c)),
            c if u32::from(c) <= 0xffff => format!("\\u{:04X}", u32::from(c)),
            c => format!("\\U{:08X}", u32::from(c)),
        };
        for c in escape.chars() {
            self.put(c);
        }
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        if text.starts_with([' ', '\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            self.indicator("2", false, false, false);
        }
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next()) {
            (false, _) => self.indicator("-", false, false, false),
            (true, None) => self.indicator("+", false, false, false),
            (true, Some(c)) if is_break(c) => self.indicator("+", false, false, false),
            _ => {}
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut rest = text;
        loop {
            let end = rest.find(is_break).unwrap_or(rest.len());
            if end > 0 {
                self.write_indent();
                self.out.push_str(&rest[..end]);
                self.column += rest[..end].chars().count();
                self.indention = false;
            }
            rest = &rest[end..];
            let Some(c) = rest.chars().next() else { return };
            self.write_break(c);
            self.indention = true;
            rest = &rest[c.len_utf8()..];
        }
    }

    fn increase_indent(&mut self, indentless: bool) {
        if self.indent < 0 {
            self.indent = 0;
        } else if !indentless {
            self.indent += INDENT;
        }
    }

    fn write_indent(&mut self) {
        let indent = usize::try_from(self.indent).unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, need_whitespace: bool, is_whitespace: bool, is_indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(text);
        self.column += text.len();
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        if c == '\n' {
            self.put_break();
        } else {
            self.out.push(c);
            self.column = 0;
        }
    }
}

fn number_text(n: &serde_json::Number) -> String {
    if let Some(n) = n.as_i64() {
        return n.to_string();
    }
    if let Some(n) = n.as_u64() {
        return n.to_string();
    }
    let float = n.as_f64().unwrap_or_default();
    match number::float_to_json(float) {
        Some(Value::Number(n)) if n.is_i64() || n.is_u64() => n.to_string(),
        _ => number::format_g(float),
    }
}

/// Reads a string of encoding/json as go-yaml does: NEL is not escaped there, so it is a line break.
fn read_back(text: &str) -> Result<Cow<'_, str>, WriteError> {
    if text.is_ascii() && !text.contains('\u{7f}') {
        return Ok(Cow::Borrowed(text));
    }
    let refused = |c: char| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(refused) {
        return Err(WriteError);
    }
    if !text.contains('\u{85}') {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(fold_next_lines(text)))
}

/// Folds the line breaks of a double-quoted scalar: blanks around go, one break is a space, further ones stay.
fn fold_next_lines(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{85}') {
        folded.push_str(rest[..at].trim_end_matches(' '));
        let run = rest[at..].trim_start_matches(['\u{85}', ' ']);
        let breaks = rest[at..rest.len() - run.len()].matches('\u{85}').count();
        if breaks == 1 {
            folded.push(' ');
        } else {
            folded.extend(std::iter::repeat_n('\n', breaks - 1));
        }
        rest = run;
    }
    folded.push_str(rest);
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: &Value, text: &str) {
        assert_eq!(write(value).as_deref(), Ok(text), "{value}");
    }

    #[test]
    fn collections_are_blocks_and_sequences_stand_below_their_key() {
        check(
            &json!({"a": [1, {"b": []}, [[]]], "e": {}, "z": null}),
            "a:\n- 1\n- b: []\n- - []\ne: {}\nz: null\n",
        );
        check(&json!([{"a": 1, "b": 2}]), "- a: 1\n  b: 2\n");
        check(&json!("x"), "x\n");
    }

    #[test]
    fn strings_are_quoted_where_they_would_read_as_something_else() {
        for (string, text) in [
            ("on", "\"on\""),
            ("", "\"\""),
            ("1.0", "\"1.0\""),
            ("12:30:45", "\"12:30:45\""),
            ("2001-01-01", "\"2001-01-01\""),
            ("=", "="),
            ("- a", "'- a'"),
            ("a: b", "'a: b'"),
            ("{{ .x }}", "'{{ .x }}'"),
            ("it's", "it's"),
            ("'q'", "'''q'''"),
            ("tab\there", "\"tab\\there\""),
            ("😀", "\"\\U0001F600\""),
            ("é", "é"),
            ("a\r\nb", "\"a\\r\\nb\""),
        ] {
            check(&json!({ "s": string }), &format!("s: {text}\n"));
        }
    }

    #[test]
    fn blocks_say_how_they_end_and_how_they_start() {
        check(&json!({"s": "a\nb"}), "s: |-\n  a\n  b\n");
        check(&json!({"s": "a\n\nb\n\n"}), "s: |+\n  a\n\n  b\n\n");
        check(&json!({"s": "\na\n"}), "s: |2\n\n  a\n");
        check(&json!({"s": "a \nb"}), "s: \"a \\nb\"\n");
    }

    #[test]
    fn keys_are_in_natural_order() {
        check(
            &json!({"a10": 1, "a2": 1, "b": 1, "_c": 1, "A": 1, "on": 1}),
            "_c: 1\nA: 1\na2: 1\na10: 1\nb: 1\n\"on\": 1\n",
        );
    }

    #[test]
    fn what_can_be_written_is_known_without_writing() {
        for value in [
            json!({"a": ["x", {"b\u{81}": 1}]}),
            json!(["\u{ffff}"]),
            json!({"a": "\u{85}", "b": null, "c": []}),
            json!({}),
        ] {
            assert_eq!(super::check(&value), write(&value).map(drop), "{value}");
            if let Value::Object(fields) = &value {
                assert_eq!(write_mapping(fields), write(&value));
            }
        }
    }

    #[test]
    fn characters_that_go_yaml_does_not_read_are_refused() {
        assert_eq!(write(&json!("\u{7f}")), Err(WriteError));
        check(&json!("a\u{85}b"), "a b\n");
    }
}

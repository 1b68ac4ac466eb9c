//! JSON as Go's `json.MarshalIndent` writes it, with two blanks for each level.

use std::io::{self, Write};
use std::ops::Range;

use go_text::json::push_string;
use serde_json::Value;

use crate::decode::{Filled, Slot};
use crate::fields::Kind;

/// Writes values at some depth.
pub(crate) struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }

    pub(crate) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Bytes as they are.
    pub(crate) fn copy(&mut self, from: &mut impl io::Read) -> io::Result<u64> {
        io::copy(from, &mut self.out)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// A line break, and blanks up to the depth.
    pub(crate) fn line(&mut self, depth: usize) -> io::Result<()> {
        self.out.write_all(b"\n")?;
        (0..depth).try_for_each(|_| self.out.write_all(b"  "))
    }

    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(string(text).as_bytes())
    }

    /// A struct: the fields that are not empty, and those that are written in any case.
    pub(crate) fn filled(&mut self, filled: &Filled, depth: usize) -> io::Result<()> {
        self.raw("{")?;
        let mut first = true;
        self.fields(filled, 0..filled.slots.len(), &mut first, depth + 1)?;
        if !first {
            self.line(depth)?;
        }
        self.raw("}")
    }

    /// Some fields of a struct; `first` says whether none stands before them.
    pub(crate) fn fields(
        &mut self,
        filled: &Filled,
        range: Range<usize>,
        first: &mut bool,
        depth: usize,
    ) -> io::Result<()> {
        for (field, slot) in filled.of.fields[range.clone()].iter().zip(&filled.slots[range]) {
            if !field.keep_empty && slot.as_ref().is_none_or(is_empty) {
                continue;
            }
            self.raw(if *first { "" } else { "," })?;
            *first = false;
            self.line(depth)?;
            self.text(field.name)?;
            self.raw(": ")?;
            match (slot, field.kind) {
                (Some(slot), _) => self.slot(slot, depth)?,
                (None, Kind::Text) => self.raw("\"\"")?,
                (None, Kind::Time) => self.text(filled.time(field.name))?,
                (None, _) => self.raw("null")?,
            }
        }
        Ok(())
    }

    pub(crate) fn slot(&mut self, slot: &Slot, depth: usize) -> io::Result<()> {
        match slot {
            Slot::Text(text) | Slot::Time(text) => self.text(text),
            Slot::Flag(flag) => self.raw(if *flag { "true" } else { "false" }),
            Slot::Any(value) => self.value(value, depth),
            Slot::Texts(texts) => self.list(texts, depth, |writer, text, _| writer.text(text)),
            Slot::TextMap(map) => self.map(map.iter(), depth, |writer, text: &String, _| writer.text(text)),
            Slot::Structs(structs) => self.list(structs, depth, |writer, inner, depth| match inner {
                Some(inner) => writer.filled(inner, depth),
                None => writer.raw("null"),
            }),
        }
    }

    fn value(&mut self, value: &Value, depth: usize) -> io::Result<()> {
        match value {
            Value::Null => self.raw("null"),
            Value::Bool(flag) => self.raw(if *flag { "true" } else { "false" }),
            Value::Number(number) => self.raw(&number.to_string()),
            Value::String(text) => self.text(text),
            Value::Array(elements) => self.list(elements, depth, Self::value),
            Value::Object(entries) => self.map(entries.iter(), depth, Self::value),
        }
    }

    fn list<T>(
        &mut self,
        elements: &[T],
        depth: usize,
        mut write: impl FnMut(&mut Self, &T, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        self.raw("[")?;
        for (index, element) in elements.iter().enumerate() {
            self.raw(if index > 0 { "," } else { "" })?;
            self.line(depth + 1)?;
            write(self, element, depth + 1)?;
        }
        if !elements.is_empty() {
            self.line(depth)?;
        }
        self.raw("]")
    }

    fn map<'a, T: 'a>(
        &mut self,
        entries: impl ExactSizeIterator<Item = (&'a String, &'a T)>,
        depth: usize,
        mut write: impl FnMut(&mut Self, &T, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let is_empty = entries.len() == 0;
        self.raw("{")?;
        for (index, (key, value)) in entries.enumerate() {
            self.raw(if index > 0 { "," } else { "" })?;
            self.line(depth + 1)?;
            self.text(key)?;
            self.raw(": ")?;
            write(self, value, depth + 1)?;
        }
        if !is_empty {
            self.line(depth)?;
        }
        self.raw("}")
    }
}

fn is_empty(slot: &Slot) -> bool {
    match slot {
        Slot::Text(text) | Slot::Time(text) => text.is_empty(),
        Slot::Flag(flag) => !flag,
        Slot::Texts(texts) => texts.is_empty(),
        Slot::TextMap(map) => map.is_empty(),
        Slot::Structs(structs) => structs.is_empty(),
        Slot::Any(Value::Array(elements)) => elements.is_empty(),
        Slot::Any(Value::Object(entries)) => entries.is_empty(),
        Slot::Any(_) => false,
    }
}

/// Returns a string with its quotation marks.
pub(crate) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_string(text.as_bytes(), true, &mut quoted);
    quoted
}

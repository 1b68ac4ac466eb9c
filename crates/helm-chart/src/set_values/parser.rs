//! The parser of `--set`, `--set-string`, `--set-file` and `--set-json`: `name=value,name=value`.

use go_text::json;
use go_text::quote::quoted;
use serde_json::{Map, Value};

use super::error::Error;
use super::path::{self, Source, Stop};
use super::typed::typed;
use crate::chart::Helm;

/// Interpretation of a value's text.
pub(super) enum Reading<'a> {
    Typed,
    Text,
    File(&'a mut dyn FnMut(&str) -> Result<String, String>),
    Json,
}

pub(super) struct Parser<'a> {
    source: Source<'a>,
    reading: Reading<'a>,
    wrapped_end: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, reading: Reading<'a>, helm: Helm) -> Self {
        Self {
            source: Source::new(text, true),
            reading,
            wrapped_end: helm == Helm::V4,
        }
    }

    pub(super) fn parse(mut self, values: &mut Map<String, Value>) -> Result<(), Error> {
        loop {
            if let Err(stop) = self.key(values, 0) {
                return stop.into_result();
            }
        }
    }

    fn key(&mut self, data: &mut Map<String, Value>, level: usize) -> Result<(), Stop> {
        let (name, sign) = self.source.until(&['=', '[', ',', '.']);
        match sign {
            None if name.is_empty() => Err(Stop::End),
            None => Stop::failed(format!("key {} has no value", quoted(&name))),
            Some('[') => {
                let index = self.source.index(self.wrapped_end)?;
                path::in_list(data, name, |list| self.list_item(list, index, level, 1))
            }
            Some('.') => {
                let level = path::deeper(level)?;
                path::in_map(data, name, |inner| self.key(inner, level))
            }
            Some('=') => self.value_of_key(data, name),
            Some(_) => Stop::failed(format!("key {} has no value (cannot end with ,)", quoted(&name))),
        }
    }

    fn value_of_key(&mut self, data: &mut Map<String, Value>, name: String) -> Result<(), Stop> {
        if matches!(self.reading, Reading::Json) {
            let value = self.json()?;
            path::set(data, name, value);
            return Ok(());
        }
        if self.source.peek().is_none() {
            path::set(data, name, Value::String(String::new()));
            return Err(Stop::End);
        }
        let value = self.value()?;
        path::set(data, name, value);
        Ok(())
    }

    fn list_item(
        &mut self,
        list: &mut Vec<Value>,
        index: i64,
        level: usize,
        depth: usize,
    ) -> Result<(), Stop> {
        let index = path::checked(index)?;
        let (text, sign) = self.source.until(&['[', '.', '=']);
        path::nothing_behind_index(&text)?;
        match sign {
            None => Err(Stop::End),
            Some('=') => {
                let value = match self.reading {
                    Reading::Json => self.json()?,
                    _ if self.source.peek().is_none() => Value::String(String::new()),
                    _ => self.value()?,
                };
                path::set_index(list, index, value)
            }
            Some('[') => {
                let next = self.source.index(self.wrapped_end)?;
                let depth = path::one_more_index(depth)?;
                path::in_list_at(list, index, |inner| self.list_item(inner, next, level, depth))
            }
            Some(_) => path::in_map_at(list, index, |inner| self.key(inner, level)),
        }
    }

    /// Reads `{a,b}` or everything up to a comma.
    fn value(&mut self) -> Result<Value, Stop> {
        if self.source.next_if(|c| *c == '{').is_some() {
            return self.list();
        }
        let (text, _) = self.source.until(&[',']);
        self.read(text)
    }

    fn list(&mut self) -> Result<Value, Stop> {
        let mut list = Vec::new();
        loop {
            let (text, sign) = self.source.until(&[',', '}']);
            let Some(sign) = sign else {
                return Stop::failed("list must terminate with '}'");
            };
            if sign == '}' {
                self.source.next_if(|c| *c == ',');
            }
            list.push(self.read(text)?);
            if sign == '}' {
                return Ok(Value::Array(list));
            }
        }
    }

    fn read(&mut self, text: String) -> Result<Value, Stop> {
        match &mut self.reading {
            Reading::Typed => Ok(typed(text)),
            Reading::Text | Reading::Json => Ok(Value::String(text)),
            Reading::File(read) => read(&text).map(Value::String).map_err(Stop::Failed),
        }
    }

    /// Reads one JSON value, the blanks behind it and a comma; nothing is null.
    fn json(&mut self) -> Result<Value, Stop> {
        if self.blank_until_comma() {
            return Ok(Value::Null);
        }
        let rest = self.source.rest();
        let (value, end) = json::decode_first(rest.as_bytes()).map_err(Stop::Failed)?;
        for _ in rest[..end].chars() {
            self.source.next();
        }
        let value = value.into_value().map_err(Stop::Failed)?;
        self.blank_until_comma();
        Ok(value)
    }

    /// Skips blanks and one comma; whether the text or the value ended there.
    fn blank_until_comma(&mut self) -> bool {
        while self.source.next_if(|c| c.is_whitespace()).is_some() {}
        self.source.peek().is_none() || self.source.next_if(|c| *c == ',').is_some()
    }
}

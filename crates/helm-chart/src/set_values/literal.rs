//! The parser of `--set-literal`: one name, `=`, and everything behind it is the value.

use go_text::quote::quoted;
use serde_json::{Map, Value};

use super::error::Error;
use super::path::{self, Source, Stop};
use crate::chart::Helm;

pub(super) struct Parser<'a> {
    source: Source<'a>,
    wrapped_end: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, helm: Helm) -> Self {
        Self {
            source: Source::new(text, false),
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
        let (name, sign) = self.source.until(&['=', '[', '.']);
        match sign {
            None if name.is_empty() => Err(Stop::End),
            None => Stop::failed(format!("key {} has no value", quoted(&name))),
            Some('=') => {
                let value = self.value();
                path::set(data, name, value);
                Ok(())
            }
            Some('.') => {
                let level = path::deeper(level)?;
                path::in_map(data, name, |inner| self.key(inner, level))
            }
            Some(_) => {
                let index = self.source.index(self.wrapped_end)?;
                path::in_list(data, name, |list| self.list_item(list, index, level, 1))
            }
        }
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
                let value = self.value();
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

    fn value(&mut self) -> Value {
        Value::String(self.source.until(&[]).0)
    }
}

//! The tables of a TOML document while it is read: which exist, which only because others are in them.

use std::collections::{BTreeMap, HashMap, HashSet};

use go_template::{List, Map, Str, Type, Value};

use super::string::key_text;

/// A key, part by part.
pub(super) type Key = Vec<Vec<u8>>;

/// A table.
pub(super) type Table = BTreeMap<Vec<u8>, Item>;

/// Value of a key.
#[derive(Debug)]
pub(super) enum Item {
    Table(Table),
    Tables(Vec<Table>),
    Value(Value),
}

/// All tables, and where the next key goes.
#[derive(Debug, Default)]
pub(super) struct Document {
    root: Table,
    pub(super) context: Key,
    /// Tables that were only named as parts of others' names.
    implicit: HashSet<String>,
    /// Whether the value of a key is an array.
    arrays: HashMap<String, bool>,
}

impl Document {
    pub(super) fn into_value(self) -> Value {
        table_value(self.root)
    }

    /// Opens the table of a key, or one more of its array of tables.
    pub(super) fn open(&mut self, key: &[Vec<u8>], array: bool) -> Result<(), String> {
        let Some((last, parents)) = key.split_last() else {
            return Ok(());
        };
        let mut table = &mut self.root;
        for (index, part) in parents.iter().enumerate() {
            let here = &key[..=index];
            if !table.contains_key(part) {
                self.implicit.insert(key_text(here));
                table.insert(part.clone(), Item::Table(Table::new()));
            }
            table = inner(table, part)
                .ok_or_else(|| format!("Key '{}' was already created as a hash.", key_text(here)))?;
        }
        self.context = parents.to_vec();
        if array {
            let tables = table
                .entry(last.clone())
                .or_insert_with(|| Item::Tables(Vec::new()));
            let Item::Tables(tables) = tables else {
                let key = key_text(key);
                return Err(format!(
                    "Key '{key}' was already created and cannot be used as an array."
                ));
            };
            tables.push(Table::new());
        } else {
            self.set(last, Item::Table(Table::new()))?;
        }
        self.context.push(last.clone());
        Ok(())
    }

    /// Opens a table that need not exist, and may be opened by its name later.
    pub(super) fn open_implicitly(&mut self, part: &[u8]) -> Result<(), String> {
        let mut key = self.context.clone();
        key.push(part.to_vec());
        self.note_implicit(&key);
        self.open(&key, false)
    }

    pub(super) fn note_implicit(&mut self, key: &[Vec<u8>]) {
        self.implicit.insert(key_text(key));
    }

    /// Sets a key of the table that is open.
    pub(super) fn set(&mut self, name: &[u8], item: Item) -> Result<(), String> {
        let mut table = &mut self.root;
        for (index, part) in self.context.iter().enumerate() {
            let here = &self.context[..=index];
            table = inner(table, part)
                .ok_or_else(|| format!("Key '{}' has already been defined.", key_text(here)))?;
        }
        let mut key = self.context.clone();
        key.push(name.to_vec());
        let key = key_text(&key);
        if table.contains_key(name) {
            let was_implicit = self.implicit.remove(&key);
            if !was_implicit {
                return Err(format!("Key '{key}' has already been defined."));
            }
            if self.arrays.get(&key) != Some(&true) {
                // A table that was named as a part only; what is in it stays.
                return Ok(());
            }
        }
        table.insert(name.to_vec(), item);
        Ok(())
    }

    /// Notes whether a key of the open table, or with an empty name the table itself, is an array.
    pub(super) fn note_type(&mut self, name: &[u8], array: bool) {
        let mut key = self.context.clone();
        if !name.is_empty() || key.is_empty() {
            key.push(name.to_vec());
        }
        self.arrays.insert(key_text(&key), array);
    }
}

/// The table that a part of a key leads to: of an array of tables the last.
fn inner<'t>(table: &'t mut Table, part: &[u8]) -> Option<&'t mut Table> {
    match table.get_mut(part)? {
        Item::Table(table) => Some(table),
        Item::Tables(tables) => tables.last_mut(),
        Item::Value(_) => None,
    }
}

pub(super) fn item_value(item: Item) -> Value {
    match item {
        Item::Table(table) => table_value(table),
        Item::Tables(tables) => {
            List::new(Type::LIST_MAP_ANY, tables.into_iter().map(table_value).collect()).into()
        }
        Item::Value(value) => value,
    }
}

fn table_value(table: Table) -> Value {
    let entries = table.into_iter();
    let map: Map = entries
        .map(|(name, item)| (Str::from(name), item_value(item)))
        .collect();
    map.into()
}

//! A tree of files, its text, and how it gets smaller.
//!
//! Files are kept as values until they are written, so that a failing tree shrinks by whole files, documents, fields
//! and elements and stays YAML.

use std::collections::BTreeMap;
use std::fmt::Write;

use kustomize_build::MemoryFs;
use proptest::prelude::any;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value};

use crate::generate;

/// Marks a string that is written as it is, without quotes.
pub const RAW: char = '\u{1}';

/// Content of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum File {
    Yaml(Vec<Value>),
    Text(String),
}

/// The files of a case, and the folder of them that is built.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    pub seed: u64,
    pub folder: String,
    pub files: BTreeMap<String, File>,
}

impl Tree {
    pub fn contents(&self) -> impl Iterator<Item = (&str, String)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.text()))
    }

    pub fn file_system(&self) -> MemoryFs {
        let mut files = MemoryFs::default();
        for (path, content) in self.contents() {
            files.insert(path, content);
        }
        files
    }

    /// Shows all files, for a person.
    pub fn show(&self) -> String {
        let mut text = format!("seed {:#x}, folder {:?}\n", self.seed, self.folder);
        for (path, content) in self.contents() {
            let _ = writeln!(text, "==> {path}\n{}", content.trim_end_matches('\n'));
        }
        text
    }
}

impl File {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Yaml(documents) => documents.iter().map(document).collect::<Vec<_>>().join("---\n"),
        }
    }
}

fn document(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

fn block(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                let _ = write!(out, "{pad}{}:", scalar(key));
                nested(value, indent, out);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                let _ = write!(out, "{pad}-");
                if matches!(element, Value::Object(fields) if !fields.is_empty()) {
                    let mut inner = String::new();
                    block(element, indent + 2, &mut inner);
                    let _ = write!(out, " {}", inner.trim_start());
                } else {
                    nested(element, indent + 2, out);
                }
            }
        }
        other => {
            let _ = writeln!(out, "{pad}{}", inline(other));
        }
    }
}

fn nested(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            block(value, indent + 2, out);
        }
        Value::Array(elements) if !elements.is_empty() => {
            out.push('\n');
            block(value, indent, out);
        }
        other => {
            let _ = writeln!(out, " {}", inline(other));
        }
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

fn scalar(text: &str) -> String {
    if let Some(raw) = text.strip_prefix(RAW) {
        return raw.to_owned();
    }
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || "./$".contains(first))
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "./-_$()@=".contains(c) || c == ':')
        && !text.ends_with(':')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if plain {
        return text.to_owned();
    }
    // What JSON may hold and YAML may not.
    let quoted = Value::from(text).to_string();
    quoted.replace('\u{7f}', "\\u007f").replace('\u{feff}', "\\ufeff")
}

/// The strategy: trees as [`generate`] makes them, that shrink as [`Shrinking`] says.
#[derive(Debug)]
pub struct Trees;

impl Strategy for Trees {
    type Tree = Shrinking;
    type Value = Tree;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let seed = any::<u64>().new_tree(runner)?.current();
        Ok(Shrinking::new(generate::tree(seed)))
    }
}

/// A tree that gets smaller: each step leaves out one file, document, field, element or line.
#[derive(Debug)]
pub struct Shrinking {
    current: Tree,
    previous: Option<Tree>,
    /// The next part to leave out, in the order of [`without`].
    position: usize,
    /// True if anything was left out since the last start from the first part.
    progress: bool,
}

impl Shrinking {
    pub fn new(tree: Tree) -> Self {
        Self {
            current: tree,
            previous: None,
            position: 0,
            progress: false,
        }
    }

    fn next(&mut self) -> bool {
        loop {
            if let Some(smaller) = without(&self.current, self.position) {
                self.previous = Some(std::mem::replace(&mut self.current, smaller));
                return true;
            }
            if !self.progress {
                return false;
            }
            (self.position, self.progress) = (0, false);
        }
    }
}

impl ValueTree for Shrinking {
    type Value = Tree;

    fn current(&self) -> Tree {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.progress |= self.previous.take().is_some();
        self.next()
    }

    fn complicate(&mut self) -> bool {
        let Some(previous) = self.previous.take() else {
            return false;
        };
        self.current = previous;
        self.position += 1;
        self.next()
    }
}

/// Gives the tree without its part at a position, or nothing when there are not so many parts.
fn without(tree: &Tree, position: usize) -> Option<Tree> {
    let mut left = position;
    let mut smaller = tree.clone();
    for path in tree.files.keys() {
        if left == 0 {
            smaller.files.remove(path);
            return Some(smaller);
        }
        left -= 1;
    }
    for file in smaller.files.values_mut() {
        let done = match file {
            File::Yaml(documents) => remove_element(documents, &mut left),
            File::Text(text) => remove_line(text, &mut left),
        };
        if done {
            return Some(smaller);
        }
    }
    None
}

fn remove_line(text: &mut String, left: &mut usize) -> bool {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if *left >= lines.len() {
        *left -= lines.len();
        return false;
    }
    lines.remove(*left);
    *text = lines.concat();
    true
}

fn remove_element(elements: &mut Vec<Value>, left: &mut usize) -> bool {
    if *left < elements.len() {
        elements.remove(*left);
        return true;
    }
    *left -= elements.len();
    elements.iter_mut().any(|element| remove_part(element, left))
}

fn remove_field(fields: &mut Map<String, Value>, left: &mut usize) -> bool {
    if *left < fields.len() {
        let key = fields.keys().nth(*left).cloned().unwrap_or_default();
        fields.remove(&key);
        return true;
    }
    *left -= fields.len();
    fields.values_mut().any(|field| remove_part(field, left))
}

fn remove_part(value: &mut Value, left: &mut usize) -> bool {
    match value {
        Value::Array(elements) => remove_element(elements, left),
        Value::Object(fields) => remove_field(fields, left),
        _ => false,
    }
}

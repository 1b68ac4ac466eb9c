//! From TOML text to values, with the errors of BurntSushi/toml.

use go_template::{List, Value};
use go_text::rune::is_letter;

use super::document::{Document, Item, Key, Table, item_value};
use super::number;
use super::reader::{END, Problem, Reader, is_blank, is_blank_or_break, is_break};
use super::string::{self, key_text, shown, shown_text};

/// Arrays and tables within each other; Go has no bound.
const MAX_DEPTH: usize = 200;

/// Reads a document, or says what is wrong in it.
pub fn decode(text: &[u8]) -> Result<Value, String> {
    let text = [b"\xff\xfe".as_slice(), b"\xfe\xff", b"\xef\xbb\xbf"]
        .iter()
        .find_map(|mark| text.strip_prefix(*mark))
        .unwrap_or(text);
    if text[..text.len().min(6)].contains(&0) {
        let message = "files cannot contain NULL bytes; probably using UTF-16; TOML files must be UTF-8";
        return Err(format!("toml: line 1: {message}"));
    }
    let mut parser = Parser {
        reader: Reader::new(text),
        document: Document::default(),
        name: Vec::new(),
        key_line: 0,
    };
    match parser.document() {
        Ok(()) => Ok(parser.document.into_value()),
        Err(problem) => Err(parser.message(&problem)),
    }
}

struct Parser<'a> {
    reader: Reader<'a>,
    document: Document,
    /// The last part of the key whose value is read.
    name: Vec<u8>,
    /// The line of the key that was read last.
    key_line: usize,
}

impl Parser<'_> {
    fn message(&self, problem: &Problem) -> String {
        let context = key_text(&self.document.context);
        let name = String::from_utf8_lossy(&self.name);
        let last = match (self.name.is_empty(), self.document.context.is_empty()) {
            (true, _) => context,
            (false, true) => name.into_owned(),
            (false, false) => format!("{context}.{name}"),
        };
        let Problem { line, message } = problem;
        if last.is_empty() {
            format!("toml: line {line}: {message}")
        } else {
            format!("toml: line {line} (last key {}): {message}", shown_text(&last))
        }
    }

    fn document(&mut self) -> Result<(), Problem> {
        loop {
            self.reader.skip(is_blank_or_break)?;
            match self.reader.next()? {
                END if self.reader.is_at_end() => return Ok(()),
                '#' => {
                    self.reader.skip_comment()?;
                    continue;
                }
                '[' => self.table()?,
                _ => {
                    self.reader.back();
                    self.key_and_value(None, 0)?;
                }
            }
            self.end_of_line()?;
        }
    }

    /// Reads the rest of a line behind a table's name or a value.
    fn end_of_line(&mut self) -> Result<(), Problem> {
        self.reader.skip(is_blank)?;
        match self.reader.next()? {
            '#' => self.reader.skip_comment(),
            END if self.reader.is_at_end() => {
                self.reader.back();
                Ok(())
            }
            character if is_break(character) => Ok(()),
            character => self.reader.problem(format!(
                "expected a top-level item to end with a newline, comment, or EOF, but got {} instead",
                shown(character)
            )),
        }
    }

    /// `[name]` or `[[name]]`, whose first bracket is read.
    fn table(&mut self) -> Result<(), Problem> {
        let array = self.reader.accept('[')?;
        let mut key = Key::new();
        loop {
            self.reader.skip(is_blank)?;
            let part = match self.reader.peek()? {
                ']' | END => {
                    return self
                        .reader
                        .problem("unexpected end of table name (table names cannot be empty)");
                }
                '.' => {
                    return self
                        .reader
                        .problem("unexpected table separator (table names cannot be empty)");
                }
                first => self.key_part(first)?,
            };
            self.note_key_line(&key);
            key.push(part);
            self.reader.skip(is_blank)?;
            match self.reader.next()? {
                '.' => {}
                ']' => break,
                character => {
                    return self.reader.problem(format!(
                        "expected '.' or ']' to end table name, but got {} instead",
                        shown(character)
                    ));
                }
            }
        }
        if array {
            let character = self.reader.next()?;
            if character != ']' {
                return self.reader.problem(format!(
                    "expected end of table array name delimiter ']', but got {} instead",
                    shown(character)
                ));
            }
        }
        let opened = self.document.open(&key, array);
        self.at_key(opened)?;
        self.document.note_type(b"", false);
        Ok(())
    }

    fn key_part(&mut self, first: char) -> Result<Vec<u8>, Problem> {
        self.reader.begin();
        if matches!(first, '"' | '\'') {
            self.reader.next()?;
            return string::line(&mut self.reader, first);
        }
        while matches!(self.reader.next()?, 'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-') {}
        self.reader.back();
        Ok(self.reader.token().to_vec())
    }

    fn note_key_line(&mut self, key: &Key) {
        if key.is_empty() {
            self.key_line = self.reader.line;
        }
    }

    /// `key = value`; within braces the value goes into `inline`, too.
    fn key_and_value(&mut self, inline: Option<&mut Table>, depth: usize) -> Result<(), Problem> {
        let outer = self.document.context.clone();
        let mut parents = self.key()?;
        self.name = parents.pop().unwrap_or_default();
        for part in &parents {
            let opened = self.document.open_implicitly(part);
            self.at_key(opened)?;
        }
        let (item, array) = self.value(false, depth)?;
        let name = self.name.clone();
        let is_inline = inline.is_some();
        match inline {
            None => {
                let set = self.document.set(&name, item);
                self.at_key(set)?;
            }
            Some(table) => {
                let copy = match &item {
                    Item::Value(value) => Item::Value(value.clone()),
                    _ => Item::Table(Table::new()),
                };
                let set = self.document.set(&name, copy);
                self.at_key(set)?;
                self.put_inline(table, &parents, &name, item)?;
            }
        }
        self.document.note_type(&name, array);
        self.document.context = outer;
        if !is_inline {
            // Within braces errors go on to name the key, as in Go.
            self.name.clear();
        }
        Ok(())
    }

    fn put_inline(
        &self,
        table: &mut Table,
        parents: &[Vec<u8>],
        name: &[u8],
        item: Item,
    ) -> Result<(), Problem> {
        let mut table = table;
        for part in parents {
            let inner = table
                .entry(part.clone())
                .or_insert_with(|| Item::Table(Table::new()));
            table = match inner {
                Item::Table(table) => table,
                _ => {
                    let context = shown_text(&key_text(&self.document.context));
                    return self.at_key(Err(format!("{context} is not a table")));
                }
            };
        }
        table.insert(name.to_vec(), item);
        Ok(())
    }

    /// All parts of a key, up to and with its `=`.
    fn key(&mut self) -> Result<Key, Problem> {
        self.reader.skip(is_blank)?;
        match self.reader.peek()? {
            '=' | END => return self.reader.problem("unexpected '=': key name appears blank"),
            '.' => {
                return self
                    .reader
                    .problem("unexpected '.': keys cannot start with a '.'");
            }
            _ => {}
        }
        let mut key = Key::new();
        loop {
            self.reader.skip(is_blank)?;
            let part = match self.reader.peek()? {
                '=' | END => return self.reader.problem("unexpected '='"),
                '.' => return self.reader.problem("unexpected '.'"),
                first => self.key_part(first)?,
            };
            self.note_key_line(&key);
            key.push(part);
            self.reader.skip(is_blank)?;
            match self.reader.next()? {
                '.' => {}
                '=' => return Ok(key),
                END if self.reader.is_at_end() => {
                    return self.reader.problem("unexpected EOF; expected key separator '='");
                }
                character => {
                    let message = format!("expected '.' or '=', but got {} instead", shown(character));
                    return if character == '\n' {
                        self.reader.problem_above(message)
                    } else {
                        self.reader.problem(message)
                    };
                }
            }
        }
    }

    /// A value, and whether it is an array.
    fn value(&mut self, in_array: bool, depth: usize) -> Result<(Item, bool), Problem> {
        if depth > MAX_DEPTH {
            return self.reader.problem("arrays and tables are nested too deeply");
        }
        self.reader.skip(is_blank)?;
        let character = self.reader.next()?;
        let value = match character {
            '[' => return Ok((Item::Value(self.array(depth)?), true)),
            '{' => return Ok((Item::Table(self.inline_table(in_array, depth)?), false)),
            '"' | '\'' => Value::String(string::read(&mut self.reader, character)?.into()),
            '0'..='9' => {
                self.reader.back();
                number::number_or_date(&mut self.reader)?
            }
            '-' | '+' => number::signed(&mut self.reader)?,
            '.' => return self.reader.problem("floats must start with a digit, not '.'"),
            'i' | 'n' if self.is_special_float()? => number::float(&self.reader)?,
            _ if is_letter(character) => {
                self.reader.back();
                self.boolean()?
            }
            END if self.reader.is_at_end() => return self.reader.problem("unexpected EOF; expected value"),
            _ => {
                let message = format!("expected value but found {} instead", shown(character));
                return if character == '\n' {
                    self.reader.problem_above(message)
                } else {
                    self.reader.problem(message)
                };
            }
        };
        Ok((Item::Value(value), false))
    }

    /// `inf` and `nan`, and what else Go's reader lets through here.
    fn is_special_float(&mut self) -> Result<bool, Problem> {
        let reader = &mut self.reader;
        Ok((reader.accept('n')? && reader.accept('f')?) || (reader.accept('a')? && reader.accept('n')?))
    }

    fn boolean(&mut self) -> Result<Value, Problem> {
        let mut word = String::new();
        loop {
            let character = self.reader.next()?;
            if !is_letter(character) {
                self.reader.back();
                break;
            }
            word.push(character);
        }
        match word.as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => self
                .reader
                .problem(format!("expected value but found {} instead", shown_text(&word))),
        }
    }

    /// An array, whose first bracket is read.
    fn array(&mut self, depth: usize) -> Result<Value, Problem> {
        let name = self.name.clone();
        self.document.note_type(&name, true);
        let mut items = Vec::new();
        loop {
            self.skip_to_element()?;
            match self.reader.next()? {
                ',' => return self.reader.problem("unexpected comma"),
                ']' => break,
                _ => self.reader.back(),
            }
            items.push(item_value(self.value(true, depth + 1)?.0));
            self.skip_to_element()?;
            match self.reader.next()? {
                ',' => {}
                ']' => break,
                character => {
                    return self.reader.problem(format!(
                        "expected a comma (',') or array terminator (']'), but got {}",
                        self.shown_or_end(character)
                    ));
                }
            }
        }
        Ok(List::from(items).into())
    }

    /// Skips blanks, breaks and comments.
    fn skip_to_element(&mut self) -> Result<(), Problem> {
        loop {
            self.reader.skip(is_blank_or_break)?;
            if !self.reader.accept('#')? {
                return Ok(());
            }
            self.reader.skip_comment()?;
        }
    }

    fn shown_or_end(&self, character: char) -> String {
        if self.reader.is_at_end() {
            "end of file".to_owned()
        } else {
            format!("'{character}'")
        }
    }

    /// A table within braces, the first of which is read.
    fn inline_table(&mut self, in_array: bool, depth: usize) -> Result<Table, Problem> {
        let mut table = Table::new();
        let (outer_context, outer_name) = (self.document.context.clone(), std::mem::take(&mut self.name));
        let mut key = outer_context.clone();
        key.push(outer_name.clone());
        self.document.context.clone_from(&key);
        self.document.note_implicit(&key);
        let opened = self.document.open(&key, in_array);
        self.at_key(opened)?;
        loop {
            self.skip_to_element()?;
            match self.reader.next()? {
                ',' => return self.reader.problem("unexpected comma"),
                '}' => break,
                _ => self.reader.back(),
            }
            self.key_and_value(Some(&mut table), depth + 1)?;
            if self.is_inline_end()? {
                break;
            }
        }
        self.document.context = outer_context;
        self.name = outer_name;
        Ok(table)
    }

    /// Reads the comma or brace behind a value; a brace may follow a comma.
    fn is_inline_end(&mut self) -> Result<bool, Problem> {
        loop {
            self.skip_to_element()?;
            match self.reader.next()? {
                ',' => {
                    self.reader.skip(is_blank)?;
                    if self.reader.peek()? != '}' {
                        return Ok(false);
                    }
                }
                '}' => return Ok(true),
                character => {
                    return self.reader.problem(format!(
                        "expected a comma or an inline table terminator '}}', but got {} instead",
                        self.shown_or_end(character)
                    ));
                }
            }
        }
    }

    /// Places an error about tables in the line of the last key.
    fn at_key<T>(&self, result: Result<T, String>) -> Result<T, Problem> {
        result.map_err(|message| Problem {
            line: self.key_line,
            message,
        })
    }
}

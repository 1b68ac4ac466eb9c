//! Reads sections. Of keys with one name in a section the last value counts, at the place of the first.

use super::names::{DEFAULT, DELIMITERS};
use crate::store::text::Problem;
use crate::tree::{Branch, Item, Value};

const COMMENT: [char; 2] = ['#', ';'];

pub(crate) fn read(data: &[u8]) -> Result<Branch, Problem> {
    let text = std::str::from_utf8(data).map_err(|_| "it is no UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser {
        lines: text.split_inclusive('\n'),
        line: 0,
        comment: String::new(),
        sections: vec![Section::named(DEFAULT)],
        number: 1,
    };
    parser
        .parse()
        .map_err(|problem| format!("Could not unmarshal input data: line {}: {problem}", parser.line))?;
    Ok(parser.sections.into_iter().map(Section::item).collect())
}

struct Parser<'a> {
    lines: std::str::SplitInclusive<'a, char>,
    line: usize,
    /// The comments that belong to what comes next.
    comment: String,
    sections: Vec<Section>,
    /// The next key that is called `-` gets this number.
    number: usize,
}

struct Section {
    name: String,
    comment: String,
    keys: Vec<Key>,
    places: std::collections::HashMap<String, usize>,
}

struct Key {
    name: String,
    value: String,
    comment: String,
}

impl<'a> Parser<'a> {
    fn next_line(&mut self) -> Option<&'a str> {
        self.line += 1;
        self.lines.next()
    }

    fn parse(&mut self) -> Result<(), Problem> {
        while let Some(line) = self.next_line() {
            let line = line.trim_start();
            if line.is_empty() {
                continue;
            }
            if line.starts_with(COMMENT) {
                self.comment.push_str(line);
            } else if let Some(rest) = line.strip_prefix('[') {
                self.section(rest)?;
            } else {
                self.key(line)?;
            }
        }
        Ok(())
    }

    fn take_comment(&mut self) -> String {
        std::mem::take(&mut self.comment).trim().to_owned()
    }

    fn section(&mut self, rest: &str) -> Result<(), Problem> {
        let (name, behind) = rest.rsplit_once(']').ok_or("unclosed section")?;
        if name.is_empty() {
            return Err("empty section name".to_owned());
        }
        self.comment.push_str(comment_in(behind));
        let mut section = Section::named(name);
        section.comment = self.take_comment();
        self.sections.push(section);
        self.number = 1;
        Ok(())
    }

    fn key(&mut self, line: &str) -> Result<(), Problem> {
        let (mut name, rest) = key_name(line)?;
        if name == "-" {
            name = format!("#{}", self.number);
            self.number += 1;
        }
        if name.is_empty() {
            return Err("error creating new key: empty key name".to_owned());
        }
        let value = self.value(rest)?;
        let comment = self.take_comment();
        if let Some(section) = self.sections.last_mut() {
            section.put(Key { name, value, comment });
        }
        Ok(())
    }

    fn value(&mut self, rest: &str) -> Result<String, Problem> {
        let text = rest.trim_start();
        if text.is_empty() {
            return Ok(String::new());
        }
        let quote = match text {
            _ if text.len() > 3 && text.starts_with("\"\"\"") => "\"\"\"",
            _ if text.starts_with('`') => "`",
            _ => "",
        };
        if !quote.is_empty() {
            let inner = &text[quote.len()..];
            return match inner.rfind(quote) {
                Some(end) => Ok(inner[..end].to_owned()),
                None => self.lines_until(quote, inner),
            };
        }
        let text = text.trim();
        if let Some(text) = text.strip_suffix('\\') {
            return Ok(self.continued(text));
        }
        let text = match text.find(COMMENT) {
            Some(at) => {
                self.comment.push_str(&text[at..]);
                text[..at].trim()
            }
            None => text,
        };
        Ok(without_quotes(text).to_owned())
    }

    /// A value over several lines, to the line with the quote that ends it.
    fn lines_until(&mut self, quote: &str, begin: &str) -> Result<String, Problem> {
        let mut value = begin.to_owned();
        while let Some(line) = self.next_line() {
            match line.rfind(quote) {
                Some(at) if !line[at + quote.len()..].trim().ends_with('\\') => {
                    value.push_str(&line[..at]);
                    self.comment.push_str(comment_in(&line[at..]).trim());
                    return Ok(value);
                }
                _ => value.push_str(line),
            }
        }
        Err("missing closing key quote".to_owned())
    }

    /// A value whose lines end in backslashes, to the first that does not.
    fn continued(&mut self, begin: &str) -> String {
        let mut value = begin.to_owned();
        while let Some(line) = self.next_line() {
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            value.push_str(line);
            if !value.ends_with('\\') {
                break;
            }
            value.pop();
        }
        value
    }
}

fn key_name(line: &str) -> Result<(String, &str), Problem> {
    let quote = match line {
        _ if line.len() > 6 && line.starts_with("\"\"\"") => "\"\"\"",
        _ if line.starts_with('"') => "\"",
        _ if line.starts_with('`') => "`",
        _ => "",
    };
    const NO_DELIMITER: &str = "key-value delimiter not found";
    if quote.is_empty() {
        let (name, rest) = line.split_once(DELIMITERS).ok_or(NO_DELIMITER)?;
        if name.is_empty() {
            return Err("empty key name".to_owned());
        }
        return Ok((name.trim().to_owned(), rest));
    }
    let inner = &line[quote.len()..];
    let (name, behind) = inner.split_once(quote).ok_or("missing closing key quote")?;
    let (_, rest) = behind.split_once(DELIMITERS).ok_or(NO_DELIMITER)?;
    Ok((name.trim().to_owned(), rest))
}

fn comment_in(text: &str) -> &str {
    text.find(COMMENT).map_or("", |at| &text[at..])
}

/// Takes quotes off that stand around the whole text and nowhere in it.
fn without_quotes(text: &str) -> &str {
    for quote in ['\'', '"'] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner;
        }
    }
    text
}

impl Section {
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            comment: String::new(),
            keys: Vec::new(),
            places: std::collections::HashMap::new(),
        }
    }

    fn put(&mut self, key: Key) {
        let next = self.keys.len();
        let place = *self.places.entry(key.name.clone()).or_insert(next);
        match self.keys.get_mut(place) {
            Some(old) => *old = key,
            None => self.keys.push(key),
        }
    }

    /// A mapping, in which the comment of the section is first, and that of a key behind it.
    fn item(self) -> Item {
        let mut items = Branch::new();
        if !self.comment.is_empty() {
            items.push(Item::comment(without_sign(&self.comment)));
        }
        for key in self.keys {
            items.push(Item::new(key.name, Value::Text(key.value.into_bytes())));
            if !key.comment.is_empty() {
                items.push(Item::comment(without_sign(&key.comment)));
            }
        }
        Item::new(self.name, Value::Map(items))
    }
}

fn without_sign(comment: &str) -> &str {
    match comment.chars().next() {
        Some(';') => comment.trim_start_matches([';', ' ']),
        Some('#') => comment.trim_start_matches(['#', ' ']),
        _ => comment,
    }
}

//! Writes sections, with the equals signs of each below each other.

use std::collections::HashMap;

use super::names::{DEFAULT, DELIMITERS};
use crate::store::text::{Problem, key_text, simple_text};
use crate::tree::{Branch, Item, Key, Value};

struct Entry {
    name: String,
    value: Vec<u8>,
    comment: Vec<u8>,
}

pub(crate) fn write(branches: &[Branch]) -> Result<Vec<u8>, Problem> {
    let items = branches.iter().flatten();
    let sections: Vec<&Item> = items
        .filter(|item| !matches!(item.key, Key::Comment(_)))
        .collect();
    let mut out = Vec::new();
    for (number, item) in sections.iter().enumerate() {
        section(item, number == 0, &mut out)?;
        if number + 1 < sections.len() && !is_left_out(item, number == 0) {
            out.push(b'\n');
        }
    }
    Ok(out)
}

/// The section without a header is not written when it has no keys.
fn is_left_out(item: &Item, is_first: bool) -> bool {
    let is_default = key_text(&item.key).to_uppercase() == DEFAULT;
    let Value::Map(items) = &item.value else {
        return false;
    };
    is_first && is_default && items.iter().all(|item| matches!(item.key, Key::Comment(_)))
}

fn section(item: &Item, is_first: bool, out: &mut Vec<u8>) -> Result<(), Problem> {
    let problem = |text: &str| Err(format!("Error marshaling to INI: {text}"));
    let Value::Map(items) = &item.value else {
        return problem("Error encoding section: Section values should always be TreeBranches");
    };
    let name = key_text(&item.key);
    if name.is_empty() {
        return problem("Error encoding section : empty section name");
    }
    let (comment, items) = match items.split_first() {
        Some((
            Item {
                key: Key::Comment(comment),
                ..
            },
            rest,
        )) => (&comment.text[..], rest),
        _ => (&b""[..], &items[..]),
    };
    comment_lines(comment, false, out)?;
    if is_left_out(item, is_first) {
        return Ok(());
    }
    if !is_first || name.to_uppercase() != DEFAULT {
        out.extend(format!("[{name}]\n").as_bytes());
    }
    let entries = entries(items)?;
    let width = entries
        .iter()
        .map(|entry| quoted_name(&entry.name).len())
        .max()
        .unwrap_or(0);
    for entry in &entries {
        comment_lines(&entry.comment, true, out)?;
        let name = quoted_name(&entry.name);
        out.extend(name.as_bytes());
        out.extend(std::iter::repeat_n(b' ', width - name.len()));
        out.extend(b" = ");
        out.extend(quoted_value(&entry.value));
        out.push(b'\n');
    }
    Ok(())
}

fn entries(items: &[Item]) -> Result<Vec<Entry>, Problem> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut last = None;
    for item in items {
        if let Key::Comment(comment) = &item.key {
            if let Some(entry) = last.and_then(|at: usize| entries.get_mut(at)) {
                entry.comment.clone_from(&comment.text);
            }
            continue;
        }
        let name = key_text(&item.key);
        if name.is_empty() {
            return Err(
                "Error marshaling to INI: Error encoding key: error creating new key: empty key name"
                    .to_owned(),
            );
        }
        let value = simple_text(&item.value)
            .ok_or_else(|| format!("Error marshaling to INI: the value of key {name} is none of INI"))?;
        let place = places.get(&name).copied();
        match place.and_then(|at| entries.get_mut(at)) {
            Some(entry) => entry.value = value,
            None => {
                places.insert(name.clone(), entries.len());
                entries.push(Entry {
                    name,
                    value,
                    comment: Vec::new(),
                });
            }
        }
        last = place.or(entries.len().checked_sub(1));
    }
    Ok(entries)
}

/// Each line begins with `; `, or with the sign that it has and one space.
fn comment_lines(comment: &[u8], of_key: bool, out: &mut Vec<u8>) -> Result<(), Problem> {
    if comment.is_empty() {
        return Ok(());
    }
    for line in comment.split(|byte| *byte == b'\n') {
        match line.first() {
            None => return Err("a comment has an empty line".to_owned()),
            Some(sign @ (b'#' | b';')) => {
                out.extend([*sign, b' ']);
                out.extend(trimmed(&line[1..]));
            }
            Some(_) => {
                out.extend(b"; ");
                out.extend(if of_key { trimmed(line) } else { line });
            }
        }
        out.push(b'\n');
    }
    Ok(())
}

fn quoted_name(name: &str) -> String {
    if name.contains('"') || name.contains(DELIMITERS) {
        format!("`{name}`")
    } else if name.contains('`') {
        format!("\"\"\"{name}\"\"\"")
    } else {
        name.to_owned()
    }
}

fn quoted_value(value: &[u8]) -> Vec<u8> {
    let has = |bytes: &[u8]| value.iter().any(|byte| bytes.contains(byte));
    let quote: &[u8] = if has(b"\n`") {
        b"\"\"\""
    } else if has(b"#;") {
        b"`"
    } else if trimmed(value).len() != value.len() {
        b"\""
    } else {
        b""
    };
    [quote, value, quote].concat()
}

/// Without the white space of Unicode around it.
fn trimmed(text: &[u8]) -> &[u8] {
    match std::str::from_utf8(text) {
        Ok(text) => text.trim().as_bytes(),
        Err(_) => text.trim_ascii(),
    }
}

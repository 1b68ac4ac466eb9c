//! Lines of `NAME=value`, and comments.

use super::text::{Problem, escaped, key_text, simple_text, unescaped};
use crate::tree::{Branch, Item, Key, Value};

pub(super) fn read(data: &[u8]) -> Result<Branch, Problem> {
    let lines = data.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty());
    lines.map(|(number, line)| item(line, number + 1)).collect()
}

fn item(line: &[u8], number: usize) -> Result<Item, Problem> {
    if let Some(comment) = line.strip_prefix(b"#") {
        return Ok(Item::comment(comment));
    }
    let equals = line.iter().position(|byte| *byte == b'=');
    let equals = equals.ok_or_else(|| format!("invalid dotenv input line: line {number} has no '='"))?;
    let value = unescaped(&line[equals + 1..]);
    Ok(Item::new(&line[..equals], Value::Text(value)))
}

pub(super) fn write(branch: &Branch) -> Result<Vec<u8>, Problem> {
    let mut out = Vec::new();
    for item in branch {
        match &item.key {
            Key::Comment(comment) => {
                out.push(b'#');
                out.extend(&comment.text);
            }
            Key::Text(name) => {
                out.extend(name);
                out.push(b'=');
                out.extend(line_of(item)?);
            }
            Key::Other(_) => return Err(format!("cannot use key {} in dotenv file", key_text(&item.key))),
        }
        out.push(b'\n');
    }
    Ok(out)
}

fn line_of(item: &Item) -> Result<Vec<u8>, Problem> {
    let text = simple_text(&item.value).ok_or_else(|| {
        let key = key_text(&item.key);
        format!("cannot use complex value in dotenv file; offending key {key}")
    })?;
    Ok(escaped(&text))
}

//! From the text of a file to a tree, and back: one module for each format.

mod dotenv;
mod ini;
mod json;
mod yaml;

use crate::format::Format;
use crate::metadata::{self, Metadata};
use crate::tree::{Branch, Key, Value};

/// Why a text is no tree, or a tree no text. Quotes no values.
pub(crate) type Problem = String;

/// Reads an encrypted file: its documents without their metadata, and the metadata.
pub(crate) fn load(data: &[u8], format: Format) -> Result<(Vec<Branch>, Metadata), Problem> {
    let mut branches = match format {
        // Encrypted binary data are in JSON.
        Format::Binary | Format::Json => vec![json::read(data)?],
        Format::Yaml => yaml::read(data)?,
        Format::Dotenv => vec![dotenv::read(data)?],
        Format::Ini => vec![ini::read(data)?],
    };
    let found = match (format, &mut branches[..]) {
        (Format::Dotenv, [branch, ..]) => metadata::take_prefixed(branch)?,
        (Format::Ini, branches) => metadata::unflatten(with_newlines(metadata::take(branches)?))?,
        (_, branches) => metadata::take(branches)?,
    };
    Ok((branches, Metadata::read(found)?))
}

/// Writes a decrypted file.
pub(crate) fn emit(branches: &[Branch], format: Format) -> Result<Vec<u8>, Problem> {
    let first = || branches.first().ok_or_else(|| "there is no document".to_owned());
    match format {
        Format::Binary => binary(branches),
        Format::Json => json::write(first()?),
        Format::Yaml => yaml::write(branches),
        Format::Dotenv => dotenv::write(first()?),
        Format::Ini => ini::write(branches),
    }
}

/// INI files have newlines of metadata escaped.
fn with_newlines(mut metadata: Branch) -> Branch {
    for item in &mut metadata {
        if let Value::Text(text) = &mut item.value {
            *text = unescaped(text);
        }
    }
    metadata
}

/// Replaces `\n`, two characters, by the one that it stands for.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        if *byte == b'\\' && behind.first() == Some(&b'n') {
            out.push(b'\n');
            rest = &behind[1..];
        } else {
            out.push(*byte);
            rest = behind;
        }
    }
    out
}

fn binary(branches: &[Branch]) -> Result<Vec<u8>, Problem> {
    let problem = |text: &str| Err(format!("error emitting binary store: {text}"));
    let [branch] = branches else {
        return problem("there must be exactly one tree branch");
    };
    match branch
        .iter()
        .find(|item| item.is_named("data"))
        .map(|item| &item.value)
    {
        Some(Value::Text(data)) => Ok(data.clone()),
        Some(_) => problem("'data' key in tree does not have a string value"),
        None => problem("no binary data found in tree"),
    }
}

/// A value in formats that have texts only; None for one that has values itself.
fn simple_text(value: &Value) -> Option<Vec<u8>> {
    Some(match value {
        // Go's word for nothing.
        Value::Null => b"<nil>".to_vec(),
        Value::Bool(flag) => flag.to_string().into_bytes(),
        Value::Int(integer) => integer.to_string().into_bytes(),
        Value::Float(float) => crate::number::shortest(*float).into_bytes(),
        Value::Text(text) => text.clone(),
        Value::Time(time) => time.as_seconds().into_bytes(),
        Value::Bytes(_) | Value::Comment(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            return None;
        }
    })
}

/// A key, for messages: keys are no secret.
fn told(key: &Key) -> String {
    match key {
        Key::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Key::Comment(_) => "#".to_owned(),
        Key::Other(kind) => format!("<{kind}>"),
    }
}

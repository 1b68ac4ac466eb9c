//! From the text of a file to a tree, and back: one module for each format.

mod dotenv;
mod ini;
mod json;
mod text;
mod yaml;

use crate::format::Format;
use crate::metadata::{self, Metadata};
use crate::tree::{Branch, Item, Key, Value};
use text::{Problem, escaped, unescaped};

/// Reads an encrypted file: its documents without their metadata, and the metadata.
pub(crate) fn load(data: &[u8], format: Format) -> Result<(Vec<Branch>, Metadata), Problem> {
    let (branches, found) = load_raw(data, format)?;
    Ok((branches, Metadata::read(found)?))
}

/// Reads a file that is not encrypted.
pub(crate) fn load_plain(data: &[u8], format: Format) -> Result<Vec<Branch>, Problem> {
    Ok(match format {
        Format::Binary => vec![vec![Item::new("data", Value::Text(data.to_owned()))]],
        Format::Json => vec![json::read(data)?],
        Format::Yaml => yaml::read(data)?,
        Format::Dotenv => vec![dotenv::read(data)?],
        Format::Ini => vec![ini::read(data)?],
    })
}

/// Reads an encrypted file, and its metadata as they stand there.
pub(crate) fn load_raw(data: &[u8], format: Format) -> Result<(Vec<Branch>, Branch), Problem> {
    let mut branches = match format {
        // Encrypted binary data are in JSON.
        Format::Binary => vec![json::read(data)?],
        format => load_plain(data, format)?,
    };
    let found = match (format, &mut branches[..]) {
        (Format::Dotenv, [branch, ..]) => metadata::take_prefixed(branch)?,
        (Format::Ini, branches) => metadata::unflatten(with_newlines(metadata::take(branches)?))?,
        (_, branches) => metadata::take(branches)?,
    };
    Ok((branches, found))
}

/// Writes an encrypted file with its metadata.
pub(crate) fn emit_encrypted(
    mut branches: Vec<Branch>,
    metadata: Branch,
    format: Format,
) -> Result<Vec<u8>, Problem> {
    match format {
        Format::Dotenv => {
            let branch = branches
                .first_mut()
                .ok_or_else(|| "there is no document".to_owned())?;
            for mut item in metadata::flatten(metadata) {
                if let Key::Text(name) = &mut item.key {
                    name.splice(..0, metadata::PREFIX.bytes());
                }
                branch.push(item);
            }
            dotenv::write(branch)
        }
        Format::Ini => {
            let mut flat = metadata::flatten(metadata);
            for item in &mut flat {
                if let Value::Text(text) = &mut item.value {
                    *text = escaped(text);
                }
            }
            branches
                .first_mut()
                .ok_or_else(|| "there is no document".to_owned())?
                .push(Item::new(metadata::KEY, Value::Map(flat)));
            ini::write(&branches)
        }
        Format::Yaml => {
            let count = branches.len();
            // Each document has them; that of the first one counts.
            let copies = std::iter::repeat_n(metadata, count);
            for (branch, metadata) in branches.iter_mut().zip(copies) {
                branch.push(Item::new(metadata::KEY, Value::Map(metadata)));
            }
            yaml::write(&branches)
        }
        Format::Binary | Format::Json => {
            let branch = branches
                .first_mut()
                .ok_or_else(|| "there is no document".to_owned())?;
            branch.push(Item::new(metadata::KEY, Value::Map(metadata)));
            json::write(branch)
        }
    }
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

//! From the text of a file to a tree, and back: one module for each format.

mod dotenv;
mod ini;
mod json;
mod text;
mod yaml;

use crate::format::Format;
use crate::metadata::{self, Metadata};
use crate::tree::{Branch, Value};
use text::{Problem, unescaped};

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

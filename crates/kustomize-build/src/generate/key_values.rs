//! Keys and values from environment files, literals and files, in that order.

use crate::error::{Error, Result};
use crate::kustomization::GeneratorArgs;
use crate::load::Loader;
use crate::path;

type Pair = (String, Vec<u8>);

/// Reads all sources of a generator.
pub(super) fn load(loader: &Loader<'_>, args: &GeneratorArgs) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for file in &args.envs {
        let more = loader.load(file).and_then(|content| from_env_file(&content));
        pairs.extend(
            more.map_err(|error| error.context(format!("env source files: [{}]", args.envs.join(" "))))?,
        );
    }
    for literal in &args.literals {
        let pair = from_literal(literal);
        pairs.push(
            pair.map_err(|error| error.context(format!("literal sources [{}]", args.literals.join(" "))))?,
        );
    }
    for source in &args.files {
        let pair = from_file(loader, source);
        pairs.push(pair.map_err(|error| error.context(format!("file sources: [{}]", args.files.join(" "))))?);
    }
    Ok(pairs)
}

/// Takes `key=value`, without the quotes around the value.
fn from_literal(source: &str) -> Result<Pair> {
    let wrong = || Error::invalid(format!("invalid literal source {source}, expected key=value"));
    let (key, value) = source
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(wrong)?;
    Ok((key.to_owned(), without_quotes(value).as_bytes().to_vec()))
}

fn without_quotes(text: &str) -> &str {
    let unquoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    if text.len() < 2 {
        text
    } else {
        unquoted('"').or_else(|| unquoted('\'')).unwrap_or(text)
    }
}

/// Reads `path` or `key=path`.
fn from_file(loader: &Loader<'_>, source: &str) -> Result<Pair> {
    let parts: Vec<&str> = source.split('=').collect();
    let (key, file) = match parts[..] {
        [file] => (path::base_name(file), file),
        ["", file] => {
            let message = format!("missing key name for file path {file:?} in source {source:?}");
            return Err(Error::invalid(message));
        }
        [key, ""] => {
            let message = format!("missing file path for key name {key:?} in source {source:?}");
            return Err(Error::invalid(message));
        }
        [key, file] => (key, file),
        _ => {
            return Err(Error::invalid(format!(
                "source {source:?} key name or file path contains '='"
            )));
        }
    };
    Ok((key.to_owned(), loader.load(file)?))
}

/// Reads lines of `KEY=value`; blank lines and lines that start with `#` say nothing.
fn from_env_file(content: &[u8]) -> Result<Vec<Pair>> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let mut pairs = Vec::new();
    for (number, line) in content.split(|b| *b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line)
            .map_err(|_| Error::invalid(format!("line {} has invalid utf8 bytes", number + 1)))?;
        let text = text.trim_start();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        if !key.is_empty() {
            pairs.push((key.to_owned(), value.as_bytes().to_vec()));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_lose_one_pair_of_quotes() {
        for (source, value) in [
            ("a=b", "b"),
            ("a='b c'", "b c"),
            ("a=\"b\"", "b"),
            ("a='b\"", "'b\""),
            ("a=", ""),
        ] {
            assert_eq!(
                from_literal(source).unwrap(),
                ("a".to_owned(), value.as_bytes().to_vec()),
                "{source}"
            );
        }
        assert!(from_literal("=b").is_err());
        assert!(from_literal("b").is_err());
    }

    #[test]
    fn environment_files_have_comments_and_a_byte_order_mark() {
        let pairs = from_env_file(b"\xef\xbb\xbfA=1\r\n\n  # no\n B=x=y \nC").unwrap();
        let text: Vec<String> = pairs
            .iter()
            .map(|(k, v)| format!("{k}:{}", String::from_utf8_lossy(v)))
            .collect();
        assert_eq!(text, ["A:1", "B:x=y ", "C:"]);
    }
}

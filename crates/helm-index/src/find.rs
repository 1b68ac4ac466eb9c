//! One chart's versions out of an index that [`crate::normalize`] wrote. Reads line by line: what it wrote has each key in a
//! line of its own, and texts have no line breaks.

use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;

use crate::error::Error;
use crate::go_json;

/// Fields of a chart version that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartVersion {
    /// Name of the chart.
    pub name: String,
    /// The version, as written.
    pub version: String,
    /// The version of what the chart installs.
    pub app_version: String,
    /// True if it should not be used any more.
    pub deprecated: bool,
    /// Where it can be downloaded; may be relative to the repository. Flux takes the first.
    #[serde(deserialize_with = "or_default")]
    pub urls: Vec<String>,
    /// When it was made (RFC 3339).
    pub created: String,
    /// SHA-256 of the archive in hexadecimal digits, perhaps with `sha256:` in front; may be empty.
    pub digest: String,
}

/// The versions of a chart, newest first; None when the index has no such chart.
///
/// # Errors
/// When the index cannot be read, or is none that [`crate::normalize`] wrote.
pub fn find(index: impl Read, chart: &str) -> Result<Option<Vec<ChartVersion>>, Error> {
    let mut lines = Lines {
        reader: BufReader::with_capacity(64 << 10, index),
        line: Vec::new(),
    };
    if !lines.skip_to(|line| line.starts_with(b"  \"entries\": {"))? {
        return Ok(None);
    }
    let key = format!("    {}: ", go_json::string(chart)).into_bytes();
    if !lines.skip_to(|line| line.starts_with(&key) || line.starts_with(b"  }"))?
        || !lines.line.starts_with(&key)
    {
        return Ok(None);
    }
    let mut versions = Vec::new();
    if lines.line[key.len()..] != *b"[" {
        return Ok(Some(versions)); // `[]` or `null`
    }
    while lines.next()? && lines.line.starts_with(b"      {") {
        versions.push(lines.version()?);
    }
    Ok(Some(versions))
}

struct Lines<R> {
    reader: R,
    /// The line that was read last, without its end.
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads a line; false at the end.
    fn next(&mut self) -> Result<bool, Error> {
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line)?;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        Ok(read > 0)
    }

    fn skip_to(&mut self, is_wanted: impl Fn(&[u8]) -> bool) -> Result<bool, Error> {
        while self.next()? {
            if is_wanted(&self.line) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The entry whose first line was read.
    fn version(&mut self) -> Result<ChartVersion, Error> {
        let mut text = std::mem::take(&mut self.line);
        while self.next()? {
            let is_last = self.line.starts_with(b"      }");
            text.extend_from_slice(if is_last { b"}" } else { &self.line });
            if is_last {
                break;
            }
        }
        serde_json::from_slice(&text).map_err(|error| Error::Io(error.into()))
    }
}

fn or_default<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

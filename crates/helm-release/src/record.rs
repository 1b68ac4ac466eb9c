//! The Secret that a release is stored in.
//!
//! Helm's form (driver `secrets`, type `helm.sh/release.v1`): JSON, gzipped, in base64, under the key `release`; and labels
//! by which a history is listed without reading any record.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use manifest::json::ValueCounter;
use serde::de;

use crate::release::Release;
use go_text::json;

/// The type of the Secret.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// The key of its data that holds the release.
pub const KEY: &str = "release";
/// The label and its value that all records have.
pub const OWNER: (&str, &str) = ("owner", "helm");

/// Bytes that an API server accepts as the data of a Secret (`MaxSecretSize`).
pub const MAX_SIZE: usize = 1 << 20;
/// No release is larger when it is unpacked: a tenant may write a Secret that grows without end. What a Secret holds is
/// eight to fifteen times of it when Helm made it.
const MAX_UNPACKED: u64 = 64 << 20;
/// Nor has one more values: empty ones take a hundred times the memory of their text.
const MAX_VALUES: u64 = 1_000_000;

/// Labels that Helm itself sets; all others are the user's.
const SYSTEM_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];

/// Labels of a Secret.
pub type Labels = BTreeMap<String, String>;

/// Why a record is not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data is no base64.
    #[error("failed to decode the release: its data is not base64")]
    Base64,
    /// The data is no gzip, or breaks off.
    #[error("failed to unpack the release")]
    Unpack(#[source] std::io::Error),
    /// It is too large.
    #[error("failed to unpack the release: it has more than {MAX_UNPACKED} bytes or {MAX_VALUES} values")]
    TooLargeToRead,
    /// It is not a release.
    #[error("failed to parse the release")]
    Parse(#[source] serde_json::Error),
    /// It cannot be written.
    #[error("failed to encode the release")]
    Encode(#[source] serde_json::Error),
    /// A Secret cannot hold it.
    #[error(
        "failed to store release '{name}' (revision {version}): its record has {size} bytes, and a Secret holds {MAX_SIZE}; \
         make the chart smaller (files that are no templates are part of it: see .helmignore), or its values"
    )]
    TooLarge {
        /// Of the release.
        name: String,
        /// Its revision.
        version: i64,
        /// Bytes of the record.
        size: usize,
    },
}

/// A release as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The release.
    pub release: Release,
    /// The user's labels on the Secret.
    pub labels: Labels,
}

/// When a record was written, which is a label of its own for the first time and for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// For the first time.
    Created(Timestamp),
    /// Again.
    Modified(Timestamp),
}

/// The name of the Secret of a revision.
#[must_use]
pub fn name(release: &str, version: i64) -> String {
    format!("sh.helm.release.v1.{release}.v{version}")
}

impl Record {
    /// Reads a Secret.
    ///
    /// # Errors
    /// When its data is not a release.
    pub fn read(data: &[u8], labels: Labels) -> Result<Self, Error> {
        let mut labels = labels;
        labels.retain(|label, _| !SYSTEM_LABELS.contains(&label.as_str()));
        Ok(Self {
            release: decode(data)?,
            labels,
        })
    }

    /// The labels of the Secret.
    #[must_use]
    pub fn labels(&self, written: Written) -> Labels {
        let release = &self.release;
        let (label, at) = match written {
            Written::Created(at) => ("createdAt", at),
            Written::Modified(at) => ("modifiedAt", at),
        };
        let mut labels = self.labels.clone();
        labels.extend([
            (label.to_owned(), at.as_second().to_string()),
            (OWNER.0.to_owned(), OWNER.1.to_owned()),
            ("name".to_owned(), release.name.clone()),
            ("status".to_owned(), release.info.status.to_string()),
            ("version".to_owned(), release.version.to_string()),
        ]);
        labels
    }

    /// The name of the Secret.
    #[must_use]
    pub fn name(&self) -> String {
        name(&self.release.name, self.release.version)
    }
}

/// Reads the data of a Secret.
///
/// # Errors
/// When it is not a release.
pub fn decode(data: &[u8]) -> Result<Release, Error> {
    // Go's decoder passes over line ends.
    let data: Vec<u8> = data
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let bytes = STANDARD.decode(data).map_err(|_| Error::Base64)?;
    // Releases of the first Helm 3 were not packed.
    if !bytes.starts_with(&[0x1f, 0x8b, 0x08]) {
        return parse(&bytes);
    }
    let mut json = Vec::new();
    let unpacked = MultiGzDecoder::new(bytes.as_slice());
    let size = unpacked
        .take(MAX_UNPACKED + 1)
        .read_to_end(&mut json)
        .map_err(Error::Unpack)?;
    if size as u64 > MAX_UNPACKED {
        return Err(Error::TooLargeToRead);
    }
    parse(&json)
}

fn parse(json: &[u8]) -> Result<Release, Error> {
    // A list would be taken for the fields in their order.
    if !json.trim_ascii_start().starts_with(b"{") {
        return Err(Error::Parse(de::Error::custom("it is no object")));
    }
    if ValueCounter::default().feed(json) > MAX_VALUES {
        return Err(Error::TooLargeToRead);
    }
    serde_json::from_slice(json).map_err(Error::Parse)
}

/// Makes the data of a Secret.
///
/// # Errors
/// When a Secret cannot hold it, so that it is known before anything is applied.
pub fn encode(release: &Release) -> Result<Vec<u8>, Error> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    json::write(&mut packed, release).map_err(Error::Encode)?;
    let packed = packed
        .flush()
        .and_then(|()| packed.finish())
        .map_err(|error| Error::Encode(serde_json::Error::io(error)))?;
    let data = STANDARD.encode(packed).into_bytes();
    if data.len() > MAX_SIZE {
        return Err(Error::TooLarge {
            name: release.name.clone(),
            version: release.version,
            size: data.len(),
        });
    }
    Ok(data)
}

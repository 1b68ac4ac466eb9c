//! Parts of a body that every service reads alike.

use aws_lc_rs::digest::{SHA256, digest};
use serde::de::DeserializeOwned;

/// The first JSON value of a body; as Go's decoder, it does not look at what comes behind.
pub(crate) fn first_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let mut values = serde_json::Deserializer::from_slice(body).into_iter();
    match values.next() {
        Some(value) => value.map_err(|error| place(&error)),
        None => Err("EOF".to_owned()),
    }
}

/// Describes an error in JSON, and its place, without quoting.
pub(crate) fn place(error: &serde_json::Error) -> String {
    let what = if error.is_data() {
        "unexpected type"
    } else {
        "malformed JSON"
    };
    format!("{what} at line {} column {}", error.line(), error.column())
}

/// Fingerprint of the content.
pub(crate) fn fingerprint(content: &[u8]) -> Vec<u8> {
    digest(&SHA256, content).as_ref().to_vec()
}

//! Metadata of an encrypted file.

mod flatten;
mod read;
mod write;

use go_regexp::Regexp;

use crate::key::EncryptedKey;
use crate::time::Time;
use crate::tree::Branch;

pub(crate) use flatten::{flatten, unflatten};
pub(crate) use write::{empty, put, put_age, remove_all_keys};

/// The top-level key under which metadata stand.
pub(crate) const KEY: &str = "sops";
/// The field with groups of keys.
pub(crate) const KEY_GROUPS: &str = "key_groups";
/// Prefix of all metadata in formats without nesting.
pub(crate) const PREFIX: &str = "sops_";

/// Metadata of a file's encryption.
pub struct Metadata {
    /// Keys that the data key is encrypted with. Each group needs one of its keys.
    pub key_groups: Vec<Vec<EncryptedKey>>,
    /// How many groups are needed, when there are several.
    pub shamir_threshold: usize,
    /// The encrypted authentication code.
    pub(crate) mac: String,
    pub(crate) last_modified: Time,
    pub(crate) mac_only_encrypted: bool,
    pub(crate) rule: Rule,
}

/// Which values of a file are encrypted.
pub(crate) enum Rule {
    UnencryptedSuffix(String),
    EncryptedSuffix(String),
    UnencryptedRegex(Pattern),
    EncryptedRegex(Pattern),
    UnencryptedCommentRegex(Pattern),
    EncryptedCommentRegex(Pattern),
}

/// A regular expression of Go. One that is wrong never matches, as in SOPS.
pub(crate) struct Pattern(Option<Regexp>);

impl Pattern {
    fn new(pattern: &str) -> Self {
        Self(Regexp::compile(pattern.as_bytes()).ok())
    }

    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }
}

/// Takes the metadata out of the documents of a file: the top-level key `sops` of each; that of the first counts.
pub(crate) fn take(branches: &mut [Branch]) -> Result<Branch, String> {
    let mut found = None;
    for (number, branch) in branches.iter_mut().enumerate() {
        let (metadata, rest): (Branch, Branch) = branch.drain(..).partition(|item| item.is_named(KEY));
        *branch = rest;
        for item in metadata.into_iter().filter(|_| number == 0) {
            let crate::tree::Value::Map(map) = item.value else {
                return Err(format!("Found {KEY} entry that is not a mapping"));
            };
            if found.replace(map).is_some() {
                return Err(format!("Found duplicate {KEY} entry"));
            }
        }
    }
    found.ok_or_else(not_found)
}

/// Takes the metadata out of a file whose format has no nesting.
pub(crate) fn take_prefixed(branch: &mut Branch) -> Result<Branch, String> {
    use crate::tree::Key;
    let mut metadata = Branch::new();
    let mut rest = Branch::new();
    for mut item in branch.drain(..) {
        match &mut item.key {
            Key::Text(key) if key.starts_with(PREFIX.as_bytes()) => {
                key.drain(..PREFIX.len());
                metadata.push(item);
            }
            _ => rest.push(item),
        }
    }
    *branch = rest;
    if metadata.is_empty() {
        return Err(not_found());
    }
    unflatten(metadata)
}

fn not_found() -> String {
    "sops metadata not found".to_owned()
}

impl Metadata {
    /// Reads what [`take`] or [`take_prefixed`] found.
    pub(crate) fn read(branch: Branch) -> Result<Self, String> {
        read::metadata(branch)
    }
}

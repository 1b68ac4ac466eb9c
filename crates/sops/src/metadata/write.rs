//! Changes of metadata, as SOPS writes them. What is not changed stays, and where it is.

use crate::tree::{Branch, Item, Value};

/// SOPS's version whose format this is.
const VERSION: &str = "3.13.2";

/// The order in which SOPS writes what we put.
const ORDER: [&str; 15] = [
    "shamir_threshold",
    "key_groups",
    "kms",
    "gcp_kms",
    "hckms",
    "azure_kv",
    "hc_vault",
    "age",
    "lastmodified",
    "mac",
    "pgp",
    "unencrypted_suffix",
    "encrypted_regex",
    "mac_only_encrypted",
    "version",
];

/// Metadata of a file that is new, with the rule for its values.
pub(crate) fn empty(encrypted_regex: Option<&str>) -> Branch {
    let mut branch = Branch::new();
    match encrypted_regex {
        Some(pattern) => put(&mut branch, "encrypted_regex", pattern),
        None => put(
            &mut branch,
            "unencrypted_suffix",
            super::read::DEFAULT_UNENCRYPTED_SUFFIX,
        ),
    }
    put(&mut branch, "version", VERSION);
    branch
}

/// Sets a text.
pub(crate) fn put(branch: &mut Branch, name: &str, text: &str) {
    put_value(branch, name, Value::Text(text.as_bytes().to_vec()));
}

/// Removes the keys of all kinds.
pub(crate) fn remove_all_keys(branch: &mut Branch) {
    let is_key = |item: &Item| super::read::KINDS.iter().any(|(kind, _)| item.is_named(kind));
    branch.retain(|item| !is_key(item));
}

/// Sets the keys of age: for each recipient the data key that is encrypted for it.
pub(crate) fn put_age(branch: &mut Branch, keys: Vec<(String, String)>) {
    if keys.is_empty() {
        branch.retain(|item| !item.is_named("age"));
        return;
    }
    let keys = keys.into_iter().map(|(recipient, encrypted)| {
        Value::Map(vec![
            Item::new("enc", Value::Text(encrypted.into_bytes())),
            Item::new("recipient", Value::Text(recipient.into_bytes())),
        ])
    });
    put_value(branch, "age", Value::List(keys.collect()));
}

fn put_value(branch: &mut Branch, name: &str, value: Value) {
    if let Some(item) = branch.iter_mut().find(|item| item.is_named(name)) {
        item.value = value;
        return;
    }
    let rank = |name: &str| ORDER.iter().position(|known| *known == name);
    let own = rank(name);
    let behind = branch.iter().position(|item| {
        let mut others = ORDER.iter().enumerate().filter(|(_, known)| item.is_named(known));
        others.next().is_some_and(|(other, _)| Some(other) > own)
    });
    branch.insert(behind.unwrap_or(branch.len()), Item::new(name, value));
}

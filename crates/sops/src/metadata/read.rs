//! From a tree to metadata, as leniently as SOPS: numbers and booleans may be texts, a list of one may be without list.

use std::collections::BTreeMap;

use super::{Metadata, Pattern, Rule};
use crate::key::{EncryptedKey, MasterKey};
use crate::time::Time;
use crate::tree::{Branch, Key, Value};
use go_text::numeral::parse_bool;

pub(super) const DEFAULT_UNENCRYPTED_SUFFIX: &str = "_unencrypted";
const NO_KEYS: &str = "No keys found in file";
/// Groups are numbered by one byte.
const MAX_GROUPS: usize = 255;
/// More keys than any file has; each may mean a request to a server.
const MAX_KEYS: usize = 1000;

pub(super) type MakeKey = fn(&Branch) -> Result<MasterKey, String>;

/// The kinds of keys, in the order in which SOPS puts them into a group.
pub(super) const KINDS: [(&str, MakeKey); 7] = [
    ("kms", aws_kms),
    ("gcp_kms", |fields| {
        Ok(MasterKey::GcpKms {
            resource_id: text(fields, "resource_id")?,
        })
    }),
    ("hckms", |fields| {
        Ok(MasterKey::HuaweiKms {
            key_id: text(fields, "key_id")?,
        })
    }),
    ("azure_kv", |fields| {
        Ok(MasterKey::AzureKeyVault {
            vault_url: text(fields, "vault_url")?,
            name: text(fields, "name")?,
            version: text(fields, "version")?,
        })
    }),
    ("hc_vault", |fields| {
        Ok(MasterKey::Vault {
            address: text(fields, "vault_address")?,
            engine_path: text(fields, "engine_path")?,
            key_name: text(fields, "key_name")?,
        })
    }),
    ("pgp", |fields| {
        Ok(MasterKey::OpenPgp {
            fingerprint: text(fields, "fp")?,
        })
    }),
    ("age", |fields| {
        Ok(MasterKey::Age {
            recipient: text(fields, "recipient")?,
        })
    }),
];

pub(super) fn metadata(branch: Branch) -> Result<Metadata, String> {
    let last_modified = text(&branch, "lastmodified")?;
    let last_modified = Time::parse(&last_modified)
        .ok_or_else(|| "cannot parse the metadata's lastmodified as RFC 3339".to_owned())?;
    Ok(Metadata {
        key_groups: key_groups(&branch)?,
        shamir_threshold: threshold(&branch)?,
        mac: text(&branch, "mac")?,
        last_modified,
        mac_only_encrypted: flag(&branch, "mac_only_encrypted")?,
        rule: rule(&branch)?,
    })
}

fn rule(branch: &Branch) -> Result<Rule, String> {
    type MakeRule = fn(String) -> Rule;
    let rules: [(&str, MakeRule); 6] = [
        ("unencrypted_suffix", Rule::UnencryptedSuffix),
        ("encrypted_suffix", Rule::EncryptedSuffix),
        ("unencrypted_regex", |text| {
            Rule::UnencryptedRegex(Pattern::new(&text))
        }),
        ("encrypted_regex", |text| {
            Rule::EncryptedRegex(Pattern::new(&text))
        }),
        ("unencrypted_comment_regex", |text| {
            Rule::UnencryptedCommentRegex(Pattern::new(&text))
        }),
        ("encrypted_comment_regex", |text| {
            Rule::EncryptedCommentRegex(Pattern::new(&text))
        }),
    ];
    let mut chosen = None;
    for (name, make) in rules {
        let value = text(branch, name)?;
        if !value.is_empty() && chosen.replace(make(value)).is_some() {
            return Err(
                "Cannot use more than one of encrypted_suffix, unencrypted_suffix, encrypted_regex, \
                 unencrypted_regex, encrypted_comment_regex, or unencrypted_comment_regex in the same file"
                    .to_owned(),
            );
        }
    }
    Ok(chosen.unwrap_or_else(|| Rule::UnencryptedSuffix(DEFAULT_UNENCRYPTED_SUFFIX.to_owned())))
}

/// One group at the top level, or a list of groups.
fn key_groups(branch: &Branch) -> Result<Vec<Vec<EncryptedKey>>, String> {
    let own = group(branch)?;
    let groups = if own.is_empty() {
        let groups = maps(branch, "key_groups")?;
        groups.into_iter().map(group).collect::<Result<Vec<_>, _>>()?
    } else {
        vec![own]
    };
    if groups.is_empty() {
        return Err(NO_KEYS.to_owned());
    }
    if groups.len() > MAX_GROUPS || groups.iter().map(Vec::len).sum::<usize>() > MAX_KEYS {
        return Err(format!("more than {MAX_GROUPS} key groups or {MAX_KEYS} keys"));
    }
    Ok(groups)
}

fn group(branch: &Branch) -> Result<Vec<EncryptedKey>, String> {
    let mut keys = Vec::new();
    for (name, make) in KINDS {
        for fields in maps(branch, name)? {
            keys.push(EncryptedKey {
                master: make(fields)?,
                encrypted: text(fields, "enc")?,
            });
        }
    }
    Ok(keys)
}

fn aws_kms(fields: &Branch) -> Result<MasterKey, String> {
    let mut context = BTreeMap::new();
    if let Some(Value::Map(pairs)) = field(fields, "context") {
        for item in pairs {
            if let Key::Text(key) = &item.key {
                let name = String::from_utf8_lossy(key).into_owned();
                if !matches!(item.value, Value::Null) {
                    let value = text(pairs, &name)?;
                    context.insert(name, value);
                }
            }
        }
    }
    Ok(MasterKey::AwsKms {
        arn: text(fields, "arn")?,
        role: Some(text(fields, "role")?).filter(|role| !role.is_empty()),
        context,
        profile: Some(text(fields, "aws_profile")?).filter(|profile| !profile.is_empty()),
    })
}

fn threshold(branch: &Branch) -> Result<usize, String> {
    let wrong = || "the metadata's shamir_threshold is no number of key groups".to_owned();
    match field(branch, "shamir_threshold") {
        None | Some(Value::Null) => Ok(0),
        Some(Value::Int(number)) => usize::try_from(*number).map_err(|_| wrong()),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is in range"
        )]
        Some(Value::Float(number)) if (0.0..=255.0).contains(number) => Ok(*number as usize),
        Some(Value::Text(text)) if text.is_empty() => Ok(0),
        Some(Value::Text(text)) => {
            let text = std::str::from_utf8(text).map_err(|_| wrong())?;
            text.parse().map_err(|_| wrong())
        }
        Some(_) => Err(wrong()),
    }
}

fn flag(branch: &Branch, name: &str) -> Result<bool, String> {
    let wrong = || format!("the metadata's {name} is no boolean");
    match field(branch, name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::Int(number)) => Ok(*number != 0),
        Some(Value::Text(text)) if text.is_empty() => Ok(false),
        Some(Value::Text(text)) => {
            let text = std::str::from_utf8(text).ok();
            text.and_then(parse_bool).ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

/// A text; empty when it is not there.
fn text(branch: &Branch, name: &str) -> Result<String, String> {
    match field(branch, name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::Text(text)) => {
            String::from_utf8(text.clone()).map_err(|_| format!("the metadata's {name} is no UTF-8"))
        }
        Some(Value::Int(number)) => Ok(number.to_string()),
        Some(Value::Float(number)) => Ok(number.to_string()),
        Some(Value::Bool(flag)) => Ok(u8::from(*flag).to_string()),
        // SOPS wants quotes around times; without them nothing else can be meant.
        Some(Value::Time(time)) => Ok(time.as_nanoseconds().to_owned()),
        Some(other) => Err(format!(
            "the metadata's {name}: expected type 'string', got unconvertible type '{}'",
            other.kind()
        )),
    }
}

/// A list of mappings; empty when it is not there.
fn maps<'a>(branch: &'a Branch, name: &str) -> Result<Vec<&'a Branch>, String> {
    let wrong = || format!("the metadata's {name} is no list of mappings");
    match field(branch, name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Map(map)) if map.is_empty() => Ok(Vec::new()),
        Some(Value::Map(map)) => Ok(vec![map]),
        Some(Value::List(list)) => {
            let elements = list.iter().filter(|value| !matches!(value, Value::Comment(_)));
            let maps = elements.map(|value| match value {
                Value::Map(map) => Ok(map),
                _ => Err(wrong()),
            });
            maps.collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// The last field of a name: they overwrite each other in SOPS.
fn field<'a>(branch: &'a Branch, name: &str) -> Option<&'a Value> {
    let mut found = branch.iter().rev().filter(|item| item.is_named(name));
    found.next().map(|item| &item.value)
}

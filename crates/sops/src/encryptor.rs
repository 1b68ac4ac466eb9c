//! The way from a plain file to an encrypted one, and from an encrypted one to one for other recipients.
//!
//! Only recipients of age are encrypted for: key services would need the right to encrypt, and OpenPGP the keys of others.

use aws_lc_rs::rand;
use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::age::Recipient;
use crate::cipher::Cipher;
use crate::decryptor::{Decryptor, check, size_is_allowed};
use crate::error::Error;
use crate::format::Format;
use crate::key::MasterKey;
use crate::metadata::{self, Metadata};
use crate::rules::Keys;
use crate::tree::{Branch, Value};
use crate::{data_key, store, walk};

const DATA_KEY: usize = 32;

/// A file that has got other recipients, or a new data key.
#[derive(Debug)]
pub struct Rotated {
    /// The file.
    pub content: Vec<u8>,
    /// All recipients that it has now. Who was one before is only what the file says: nothing proves it.
    pub recipients: Vec<String>,
    /// Recipients who can open it now and could not before.
    pub added: Vec<String>,
    /// Recipients, and keys of other kinds, that could open it and can no longer.
    pub removed: Vec<String>,
    /// True if all values are encrypted with a new data key.
    pub is_renewed: bool,
}

/// Encrypts a file for these recipients: the values below keys that match the regular expression, or all.
///
/// # Errors
/// When it is no file of this format, is encrypted already, or there is no recipient.
pub fn encrypt(
    plain: &[u8],
    format: Format,
    recipients: &[Recipient],
    encrypted_regex: Option<&str>,
    now: Timestamp,
) -> Result<Vec<u8>, Error> {
    size_is_allowed(plain)?;
    let mut branches =
        store::load_plain(plain, format).map_err(|problem| Error::LoadPlain { format, problem })?;
    let has_metadata = |branch: &Branch| branch.iter().any(|item| item.is_named(metadata::KEY));
    if branches.iter().any(has_metadata) {
        return Err(Error::Encrypted);
    }
    let mut raw = metadata::empty(encrypted_regex);
    seal(&mut branches, &mut raw, recipients, now)?;
    store::emit_encrypted(branches, raw, format).map_err(|problem| Error::Write { format, problem })
}

impl Metadata {
    /// Reads the metadata of an encrypted file, without decrypting anything.
    ///
    /// # Errors
    /// When it is no encrypted file of this format.
    pub fn of(data: &[u8], format: Format) -> Result<Self, Error> {
        let loaded = store::load(data, format);
        let (_, metadata) = loaded.map_err(|problem| Error::Load { format, problem })?;
        Ok(metadata)
    }
}

impl Decryptor {
    /// Gives a file these keys, and no others. Who is removed has known the data key, so that a new one takes its place, as it
    /// does if `renew` says so. None if there is nothing to do.
    ///
    /// # Errors
    /// When the file cannot be decrypted, was changed after it was encrypted, or needs a data key that is encrypted for another
    /// key than one of age.
    pub async fn rotate(
        &self,
        data: &[u8],
        format: Format,
        wanted: &Keys,
        renew: bool,
        now: Timestamp,
    ) -> Result<Option<Rotated>, Error> {
        size_is_allowed(data)?;
        let load = |problem| Error::Load { format, problem };
        let (mut branches, mut raw) = store::load_raw(data, format).map_err(load)?;
        let metadata = Metadata::read(raw.clone()).map_err(load)?;
        let [group] = &metadata.key_groups[..] else {
            return Err(Error::KeyGroups);
        };
        // Of one group alone as well: keys beside a list of groups take its place.
        if wanted.has_groups || raw.iter().any(|item| item.is_named(metadata::KEY_GROUPS)) {
            return Err(Error::KeyGroups);
        }
        let recipients = &wanted.recipients[..];
        let (mut before, mut foreign) = (Vec::new(), Vec::new());
        for key in group {
            match &key.master {
                MasterKey::Age { recipient } => before.push((recipient.clone(), key.encrypted.clone())),
                other => foreign.push(other.to_string()),
            }
        }
        if let Some(missing) = wanted.others.iter().find(|key| !foreign.contains(key)) {
            return Err(Error::ForeignKey(missing.clone()));
        }
        let names: Vec<String> = recipients.iter().map(ToString::to_string).collect();
        let knew = |recipient: &String| before.iter().any(|(known, _)| known == recipient);
        let added: Vec<String> = names.iter().filter(|one| !knew(one)).cloned().collect();
        let known = before.iter().map(|(recipient, _)| recipient).chain(&foreign);
        let is_wanted = |key: &&String| names.contains(key) || wanted.others.contains(key);
        let removed: Vec<String> = known.filter(|key| !is_wanted(key)).cloned().collect();
        let is_renewed = renew || !removed.is_empty();
        if added.is_empty() && !is_renewed {
            return Ok(None);
        }
        if let Some(key) = wanted.others.first().filter(|_| is_renewed) {
            return Err(Error::ForeignKey(key.clone()));
        }
        let key = data_key::find(&metadata, self.keys()).await?;
        let cipher = Cipher::new(&key).map_err(Error::Decrypt)?;
        // What someone else has changed is not made authentic again.
        let mut plain = branches.clone();
        let mac = walk::decrypt(&mut plain, &metadata, &cipher).map_err(Error::Decrypt)?;
        check(&mac, &metadata, &cipher)?;
        if is_renewed {
            branches = plain;
            metadata::remove_all_keys(&mut raw);
            seal(&mut branches, &mut raw, recipients, now)?;
        } else {
            let mut keys = before.clone();
            for recipient in recipients.iter().filter(|one| added.contains(&one.to_string())) {
                keys.push((recipient.to_string(), recipient.seal(&key)?));
            }
            metadata::put_age(&mut raw, keys);
        }
        let content = store::emit_encrypted(branches, raw, format);
        Ok(Some(Rotated {
            content: content.map_err(|problem| Error::Write { format, problem })?,
            recipients: names,
            added,
            removed,
            is_renewed,
        }))
    }
}

/// Encrypts a tree with a new data key, by the rule in its metadata, and puts into these all that belongs to it.
fn seal(
    branches: &mut [Branch],
    raw: &mut Branch,
    recipients: &[Recipient],
    now: Timestamp,
) -> Result<(), Error> {
    if recipients.is_empty() {
        return Err(Error::NoRecipient);
    }
    let mut key = Zeroizing::new([0; DATA_KEY]);
    rand::fill(&mut key[..]).map_err(|_| Error::Encrypt("there are no random numbers".to_owned()))?;
    let mut keys = Vec::new();
    for recipient in recipients {
        keys.push((recipient.to_string(), recipient.seal(&key[..])?));
    }
    metadata::put_age(raw, keys);
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    metadata::put(raw, "lastmodified", &time);
    let read = Metadata::read(raw.clone()).map_err(Error::Encrypt)?;
    let cipher = Cipher::new(&key[..]).map_err(Error::Encrypt)?;
    let mac = walk::encrypt(branches, &read, &cipher).map_err(Error::Encrypt)?;
    let mac = cipher.encrypt(&Value::Text(mac.into_bytes()), time.as_bytes());
    let mac = mac.map_err(Error::Encrypt)?;
    metadata::put(raw, "mac", &String::from_utf8_lossy(&mac));
    Ok(())
}

//! The way from an encrypted file to a decrypted one.

use crate::cipher::Cipher;
use crate::error::Error;
use crate::format::Format;
use crate::key::Keys;
use crate::metadata::Metadata;
use crate::tree::{Branch, Value};
use crate::{data_key, store, walk};

/// The largest file that Flux decrypts.
pub const MAX_FILE_BYTES: usize = 5 << 20;

/// Whether a change of a file after its encryption counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// The authentication code over the whole file must match, as for the `sops` command.
    Checked,
    /// Only what is encrypted is authenticated, each value with its place. This is what Flux does: kustomize has
    /// changed most objects before they are decrypted.
    Ignored,
}

/// Decrypts files with the keys that it was given.
#[derive(Debug)]
pub struct Decryptor {
    keys: Keys,
    integrity: Integrity,
}

impl Decryptor {
    /// Makes one with these keys.
    #[must_use]
    pub fn new(keys: Keys, integrity: Integrity) -> Self {
        Self { keys, integrity }
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Decrypts a file into the format that it has.
    pub async fn decrypt(&self, data: &[u8], format: Format) -> Result<Vec<u8>, Error> {
        self.convert(data, format, format).await
    }

    /// Decrypts a file into another format.
    pub async fn convert(&self, data: &[u8], input: Format, output: Format) -> Result<Vec<u8>, Error> {
        size_is_allowed(data)?;
        let load = |problem| Error::Load {
            format: input,
            problem,
        };
        let (mut branches, metadata) = store::load(data, input).map_err(load)?;
        let key = data_key::find(&metadata, &self.keys).await?;
        let cipher = Cipher::new(&key).map_err(Error::Decrypt)?;
        let mac = walk::decrypt(&mut branches, &metadata, &cipher).map_err(Error::Decrypt)?;
        if self.integrity == Integrity::Checked {
            check(&mac, &metadata, &cipher)?;
        }
        emit(&branches, input, output)
    }
}

pub(crate) fn size_is_allowed(data: &[u8]) -> Result<(), Error> {
    if data.len() > MAX_FILE_BYTES {
        return Err(Error::TooLarge {
            size: data.len(),
            limit: MAX_FILE_BYTES,
        });
    }
    Ok(())
}

/// Compares what was hashed with what the file says.
pub(crate) fn check(mac: &str, metadata: &Metadata, cipher: &Cipher) -> Result<(), Error> {
    let place = metadata.last_modified.as_seconds();
    match cipher.decrypt(metadata.mac.as_bytes(), place.as_bytes()) {
        Ok(Value::Text(expected)) if expected == mac.as_bytes() => Ok(()),
        Ok(_) => Err(Error::Integrity),
        Err(problem) => Err(Error::Mac(problem)),
    }
}

fn emit(branches: &[Branch], input: Format, output: Format) -> Result<Vec<u8>, Error> {
    store::emit(branches, output).map_err(|problem| Error::Emit {
        input,
        output,
        problem,
    })
}

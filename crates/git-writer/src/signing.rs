//! The key that signs commits.

use api::image::{SigningKey, SigningKeyType};
use git_ssh::identity::Identity;
use jiff::Timestamp;
use remote_access::Reader;
use remote_access::error::ReadError;
use signature::openpgp::sign::Signer as OpenPgp;

/// Why a commit cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Secret.
    #[error("could not find signing key secret")]
    Read(#[from] ReadError),
    /// A key of the Secret.
    #[error("signing key secret '{secret}' does not contain a '{key}' key")]
    Missing {
        /// Name of the Secret.
        secret: String,
        /// Which key.
        key: &'static str,
    },
    /// The OpenPGP key.
    #[error("could not use the signing key of secret '{secret}'")]
    OpenPgp {
        /// Name of the Secret.
        secret: String,
        /// Why not.
        #[source]
        source: signature::openpgp::sign::Error,
    },
    /// The ssh key.
    #[error("could not use the signing key of secret '{secret}'")]
    Ssh {
        /// Name of the Secret.
        secret: String,
        /// Why not.
        #[source]
        source: git_ssh::identity::ParseError,
    },
    /// The ssh key cannot sign.
    #[error(transparent)]
    Sign(#[from] git_ssh::identity::SignError),
}

/// Secret of a key that signs, as it was read.
#[derive(Clone)]
pub struct Key {
    secret: String,
    type_: SigningKeyType,
    key: Vec<u8>,
    passphrase: Option<String>,
}

impl Key {
    /// Reads the key, in the namespace of the object that names it.
    ///
    /// # Errors
    /// When there is no such Secret, or no key in it.
    pub async fn read(spec: &SigningKey, reader: &Reader) -> Result<Self, Error> {
        let secret = spec.secret_ref.name.clone();
        let data = reader.secret(&secret).await?;
        let type_ = spec.type_.unwrap_or_default();
        let (key, passphrase) = match type_ {
            SigningKeyType::Gpg => ("git.asc", "passphrase"),
            SigningKeyType::Ssh => ("identity", "password"),
        };
        let text = data
            .get(passphrase)
            .map(|text| String::from_utf8_lossy(text).into_owned());
        let Some(material) = data.get(key).filter(|material| !material.is_empty()) else {
            return Err(Error::Missing { secret, key });
        };
        Ok(Self {
            secret,
            type_,
            key: material.clone(),
            passphrase: text.filter(|text| !text.is_empty()),
        })
    }

    /// Signs the bytes of a commit. Undoing a passphrase takes a moment: it blocks.
    ///
    /// # Errors
    /// When the key cannot be used.
    pub fn sign(&self, payload: &[u8]) -> Result<String, Error> {
        let passphrase = self.passphrase.as_deref();
        match self.type_ {
            SigningKeyType::Gpg => {
                let failed = |source| Error::OpenPgp {
                    secret: self.secret.clone(),
                    source,
                };
                let signer = OpenPgp::read(&self.key, passphrase, Timestamp::now()).map_err(failed)?;
                signer.sign(payload).map_err(failed)
            }
            SigningKeyType::Ssh => {
                let identity = Identity::parse(&self.key, passphrase);
                let identity = identity.map_err(|source| Error::Ssh {
                    secret: self.secret.clone(),
                    source,
                })?;
                Ok(identity.sign("git", payload)?)
            }
        }
    }
}

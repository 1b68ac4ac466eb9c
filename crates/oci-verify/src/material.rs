//! Keys and policies that a verification uses.

use jiff::Timestamp;
use transport::auth::SecretData;

use super::error::Error;
use remote_access::Reader;
use remote_access::error::ReadError;

/// Result of a verification that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Someone trusted signed it.
    Verified {
        /// When a transparency log or time stamp service recorded the signature; None if only the signer says so.
        recorded_at: Option<Timestamp>,
    },
    /// No one asked: the trust policy of notation lets it pass unverified. It is not to be called verified.
    Ignored,
}

/// Contents of the Secrets of `spec.verify`.
#[derive(Clone, Default)]
pub struct Material {
    /// Of `secretRef`: public keys, or certificates and a trust policy.
    pub secret: Option<NamedSecret>,
    /// Of `trustedRootSecretRef`: a Sigstore installation of one's own.
    pub trusted_root: Option<NamedSecret>,
}

/// A Secret as it was read.
#[derive(Clone)]
pub struct NamedSecret {
    /// Namespace and name, for messages.
    pub name: String,
    /// What it holds.
    pub data: SecretData,
}

impl NamedSecret {
    pub(crate) fn get(&self, key: &'static str) -> Result<&[u8], Error> {
        let value = self.data.get(key).map(Vec::as_slice);
        value.ok_or_else(|| Error::MissingKey {
            key,
            secret: self.name.clone(),
        })
    }
}

pub(crate) async fn read_secret(reader: &Reader, name: &str) -> Result<NamedSecret, ReadError> {
    Ok(NamedSecret {
        name: format!("{}/{name}", reader.namespace()),
        data: reader.secret(name).await?,
    })
}

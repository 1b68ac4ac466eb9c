//! Master keys, and those who decrypt with them.

use std::collections::BTreeMap;
use std::fmt;

use cloud_identity::Future;
use zeroize::Zeroizing;

/// A key that data keys are encrypted with: its name, not the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MasterKey {
    /// An age recipient.
    Age {
        /// `age1…`, `age1pq1…`, or a public key of SSH.
        recipient: String,
    },
    /// A key of OpenPGP.
    OpenPgp {
        /// Its fingerprint, in hex.
        fingerprint: String,
    },
    /// A key of AWS KMS.
    AwsKms {
        /// Its ARN.
        arn: String,
        /// The role that may use it.
        role: Option<String>,
        /// Encryption context that must be sent with the ciphertext.
        context: BTreeMap<String, String>,
        /// A profile of whoever encrypted.
        profile: Option<String>,
    },
    /// A key of Google Cloud KMS.
    GcpKms {
        /// `projects/…/locations/…/keyRings/…/cryptoKeys/…`
        resource_id: String,
    },
    /// A key in Azure Key Vault.
    AzureKeyVault {
        /// The vault.
        vault_url: String,
        /// The key's name.
        name: String,
        /// Its version.
        version: String,
    },
    /// A key of the transit engine of HashiCorp Vault or OpenBao.
    Vault {
        /// The server.
        address: String,
        /// Where the engine is mounted.
        engine_path: String,
        /// The key's name.
        key_name: String,
    },
    /// A key of Huawei Cloud KMS. No one here decrypts with it.
    HuaweiKms {
        /// Region and key.
        key_id: String,
    },
}

/// A data key, or a part of one, that one master key opens.
#[derive(Clone)]
pub struct EncryptedKey {
    /// With what it is encrypted.
    pub master: MasterKey,
    /// The ciphertext, in the form that its kind of key has.
    pub encrypted: String,
}

/// Why a master key did not open a data key. Holds no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub String);

/// Someone who decrypts data keys with master keys of some kind.
pub trait KeyService: Send + Sync {
    /// Returns whether keys of this kind can be tried at all.
    fn handles(&self, master: &MasterKey) -> bool;

    /// Decrypts a data key, or a part of one.
    fn decrypt<'a>(&'a self, key: &'a EncryptedKey) -> Future<'a, Result<Zeroizing<Vec<u8>>, KeyError>>;
}

/// All key services that a Kustomization has.
#[derive(Default)]
pub struct Keys {
    services: Vec<Box<dyn KeyService>>,
    why_no_cloud: Option<String>,
}

impl Keys {
    /// Adds one. Of several for the same kind of key, all are asked in turn.
    pub fn add(&mut self, service: impl KeyService + 'static) {
        self.services.push(Box::new(service));
    }

    /// Says why no one asks the clouds that no service was added for.
    pub(crate) fn add_last_resort(&mut self, problem: String) {
        self.why_no_cloud = Some(problem);
    }

    /// Returns whether any service decrypts with keys of this kind.
    #[must_use]
    pub fn handle(&self, master: &MasterKey) -> bool {
        self.services.iter().any(|service| service.handles(master))
    }

    pub(crate) async fn decrypt(&self, key: &EncryptedKey) -> Result<Zeroizing<Vec<u8>>, Vec<KeyError>> {
        let mut errors = Vec::new();
        for service in self
            .services
            .iter()
            .filter(|service| service.handles(&key.master))
        {
            match service.decrypt(key).await {
                Ok(part) => return Ok(part),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            let missing = key.master.missing().to_owned();
            let cloud = self.why_no_cloud.clone().filter(|_| key.master.is_of_cloud());
            errors.push(KeyError(cloud.unwrap_or(missing)));
        }
        Err(errors)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Keys({})", self.services.len())
    }
}

impl fmt::Debug for EncryptedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EncryptedKey({})", self.master)
    }
}

impl MasterKey {
    /// Returns the advice for a file that no one can decrypt with keys of this kind.
    fn missing(&self) -> &'static str {
        match self {
            Self::Age { .. } => {
                "failed to load age identities: the decryption Secret has no entry that ends in '.agekey'"
            }
            Self::OpenPgp { .. } => {
                "could not decrypt data key with PGP key: the decryption Secret has no entry that ends in '.asc'"
            }
            Self::AwsKms { .. } => "no credentials for AWS KMS are configured",
            Self::GcpKms { .. } => "no credentials for GCP KMS are configured",
            Self::AzureKeyVault { .. } => "no credentials for Azure Key Vault are configured",
            Self::Vault { .. } => {
                "no token for Vault is configured: the decryption Secret has no entry 'sops.vault-token'"
            }
            Self::HuaweiKms { .. } => "keys of Huawei Cloud KMS (hckms) are not supported",
        }
    }

    /// Returns whether an identity at a cloud provider opens it.
    fn is_of_cloud(&self) -> bool {
        matches!(
            self,
            Self::AwsKms { .. } | Self::GcpKms { .. } | Self::AzureKeyVault { .. }
        )
    }

    /// The order in which the keys of a group are tried: those that need no network first.
    pub(crate) fn priority(&self) -> u8 {
        match self {
            Self::Age { .. } => 0,
            Self::OpenPgp { .. } => 1,
            _ => 2,
        }
    }
}

/// As SOPS names them.
impl fmt::Display for MasterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age { recipient } => formatter.write_str(recipient),
            Self::OpenPgp { fingerprint } => formatter.write_str(fingerprint),
            Self::AwsKms {
                arn,
                role,
                context,
                profile,
            } => {
                formatter.write_str(arn)?;
                if let Some(role) = role {
                    write!(formatter, "+{role}")?;
                }
                let pairs: Vec<String> = context
                    .iter()
                    .map(|(name, value)| format!("{name}:{value}"))
                    .collect();
                match profile {
                    Some(profile) => write!(formatter, "|{}|{profile}", pairs.join(",")),
                    None if pairs.is_empty() => Ok(()),
                    None => write!(formatter, "|{}", pairs.join(",")),
                }
            }
            Self::GcpKms { resource_id } => formatter.write_str(resource_id),
            Self::AzureKeyVault {
                vault_url,
                name,
                version,
            } => write!(formatter, "{vault_url}/keys/{name}/{version}"),
            Self::Vault {
                address,
                engine_path,
                key_name,
            } => write!(formatter, "{address}/v1/{engine_path}/keys/{key_name}"),
            Self::HuaweiKms { key_id } => formatter.write_str(key_id),
        }
    }
}

//! Whose signatures of cosign are accepted: the owners of keys, or identities at a Sigstore installation.

use api::source::ArtifactVerification;
use artifact::digest::Digest;
use oci_client::registry::Repository;
use signature::cosign::{Authority, Identity, PublicKey, TrustedRoot};

use super::SigstoreRoot;
use super::error::{Cause, Error, no_match};
use super::material::{Material, NamedSecret};

/// Key of a trusted root in its Secret.
const TRUSTED_ROOT: &str = "trusted_root.json";
/// Ending of the keys that hold public keys.
const PUBLIC_KEY: &str = ".pub";

/// Whose signatures are accepted.
pub(crate) enum Trust {
    Keys(Vec<PublicKey>),
    Keyless {
        root: Box<TrustedRoot>,
        identities: Vec<Identity>,
    },
}

impl Trust {
    pub(crate) async fn read(
        repository: &Repository,
        digest: Digest,
        specification: &ArtifactVerification,
        material: &Material,
        sigstore: &SigstoreRoot,
    ) -> Result<Self, Error> {
        let own_root = material.trusted_root.as_ref();
        let own_root = own_root.map(|secret| secret.get(TRUSTED_ROOT)).transpose()?;
        if let Some(secret) = &material.secret {
            let keys = public_keys(secret)?;
            if keys.is_empty() {
                let secret = secret.name.clone();
                return Err(no_match(repository, digest, Cause::NoKeys { secret }));
            }
            return Ok(Self::Keys(keys));
        }
        let identities = specification.match_oidc_identity.iter();
        let identities = identities.map(|wanted| Identity::new(&wanted.issuer, &wanted.subject));
        let identities = identities.collect::<Result<_, _>>().map_err(Error::Trust)?;
        let root = match own_root {
            Some(json) => TrustedRoot::from_json(json).map_err(Error::Trust)?,
            None => sigstore.load().await?,
        };
        let root = Box::new(root);
        Ok(Self::Keyless { root, identities })
    }

    /// One good signature of one of them is enough.
    pub(crate) fn authorities(&self) -> Vec<Authority<'_>> {
        match self {
            Self::Keys(keys) => keys.iter().map(Authority::Key).collect(),
            Self::Keyless { root, identities } => vec![Authority::Keyless { root, identities }],
        }
    }
}

/// All keys must be readable: one that is not may be the one that someone relies upon.
fn public_keys(secret: &NamedSecret) -> Result<Vec<PublicKey>, Error> {
    let mut keys: Vec<_> = secret
        .data
        .iter()
        .filter(|(key, _)| key.ends_with(PUBLIC_KEY))
        .collect();
    keys.sort();
    keys.into_iter()
        .map(|(key, pem)| {
            PublicKey::from_pem(pem).map_err(|source| Error::ParseKey {
                key: key.clone(),
                secret: secret.name.clone(),
                source,
            })
        })
        .collect()
}

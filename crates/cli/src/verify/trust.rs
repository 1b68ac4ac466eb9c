//! Whose signatures of images are accepted: by the command line, or else by the VerificationPolicies of the cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use api::delivery::VerificationPolicy;
use api::source::{ArtifactVerification, OIDCIdentityMatch, SignatureProvider};
use artifact::Digest;
use clap::Args;
use delivery_graph::kind;
use error_chain::chain;
use oci_client::image_name::ImageName;
use oci_verify::{Material, NamedSecret, SigstoreRoot};
use signature::cosign::PublicKey;
use tokio::time::Instant;
use verification_policy::images::Verifier;
use verification_policy::scope::{self, Way};

use crate::cluster::{Cluster, Failure};
use crate::push::{login, registry};

/// How long a registry may take for one image.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whose signatures are accepted.
#[derive(Debug, Args)]
pub(super) struct SignerFlags {
    /// File with the public key that must have signed, in PEM; several files where one of the keys must
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,

    /// Who must have signed an image without a key: regular expression for the subject of the certificate
    #[arg(
        long,
        value_name = "REGEXP",
        requires = "certificate_oidc_issuer_regexp",
        conflicts_with = "key"
    )]
    certificate_identity_regexp: Option<String>,

    /// Regular expression for the issuer of that identity
    #[arg(long, value_name = "REGEXP", requires = "certificate_identity_regexp")]
    certificate_oidc_issuer_regexp: Option<String>,

    /// File with the public key of the controllers, in PEM: each delivery must have a statement that is signed with it; several files
    /// where one of the keys must have signed
    #[arg(long, value_name = "FILE")]
    delivery_key: Vec<PathBuf>,
}

/// Reads the public keys that a flag names.
fn read(flag: &str, files: &[PathBuf]) -> Result<Vec<(Vec<u8>, PublicKey)>, Failure> {
    let keys = files.iter().map(|path| {
        let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("{flag} {}: {why}", path.display()));
        let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
        let key = PublicKey::from_pem(&pem).map_err(|error| wrong(&error))?;
        Ok((pem, key))
    });
    keys.collect()
}

impl SignerFlags {
    /// The keys of the controllers that deliver.
    pub(super) fn delivery_keys(&self) -> Result<Vec<PublicKey>, Failure> {
        let keys = read("--delivery-key", &self.delivery_key)?.into_iter();
        Ok(keys.map(|(_, key)| key).collect())
    }

    /// The keys.
    pub(super) fn keys(&self) -> Result<Vec<PublicKey>, Failure> {
        let keys = read("--key", &self.key)?.into_iter();
        Ok(keys.map(|(_, key)| key).collect())
    }

    /// What the command line demands of images; None if it says nothing.
    pub(super) fn demand(&self) -> Result<Option<Demand>, Failure> {
        let keys = read("--key", &self.key)?.into_iter().enumerate();
        let data: BTreeMap<_, _> = keys.map(|(n, (pem, _))| (format!("{n}.pub"), pem)).collect();
        let identity = self.certificate_identity_regexp.as_ref();
        let identity = identity.zip(self.certificate_oidc_issuer_regexp.as_ref());
        let identities = identity.map(|(subject, issuer)| OIDCIdentityMatch {
            issuer: issuer.clone(),
            subject: subject.clone(),
        });
        if data.is_empty() && identities.is_none() {
            return Ok(None);
        }
        let secret = NamedSecret {
            name: "--key".to_owned(),
            data,
        };
        Ok(Some(Demand {
            specification: ArtifactVerification {
                provider: SignatureProvider::Cosign,
                match_oidc_identity: identities.into_iter().collect(),
                ..ArtifactVerification::default()
            },
            material: Material {
                secret: Some(secret).filter(|secret| !secret.data.is_empty()),
                trusted_root: None,
            },
        }))
    }
}

/// What the command line demands.
pub(super) struct Demand {
    specification: ArtifactVerification,
    material: Material,
}

/// What is known of the signature of an image.
pub(super) enum Signed {
    /// By whom, or as which policies want it.
    Good(String),
    /// Why not.
    Broken(String),
    /// Why that is not known.
    Unknown(String),
}

/// Judges images.
pub(super) struct Trust<'c> {
    cluster: &'c Cluster,
    demand: Option<Demand>,
    root: SigstoreRoot,
    verifier: Verifier,
}

impl<'c> Trust<'c> {
    pub(super) fn new(cluster: &'c Cluster, demand: Option<Demand>, root: SigstoreRoot) -> Self {
        Self {
            verifier: Verifier::new(cluster.client(), root.clone()),
            cluster,
            demand,
            root,
        }
    }

    /// Judges an image that an object names, and that goes this way.
    pub(super) async fn judge(&self, image: &ImageName, digest: Digest, way: Way<'_>) -> Signed {
        match &self.demand {
            Some(demand) => match self.by_command_line(image, digest, demand).await {
                Ok(()) => Signed::Good("signed as the command line demands".to_owned()),
                Err(why) => Signed::Broken(why),
            },
            None => self.by_policies(image, digest, way).await,
        }
    }

    async fn by_command_line(
        &self,
        image: &ImageName,
        digest: Digest,
        demand: &Demand,
    ) -> Result<(), String> {
        let repository = repository(image)?;
        let Demand {
            specification,
            material,
        } = demand;
        let verified = oci_verify::verify(&repository, digest, specification, material, &self.root).await;
        verified.map(drop).map_err(|error| chain(&error))
    }

    async fn by_policies(&self, image: &ImageName, digest: Digest, way: Way<'_>) -> Signed {
        let policies = match self.policies(image, way).await {
            Ok(policies) => policies,
            Err(why) => return Signed::Unknown(why),
        };
        let (mut met, end) = (Vec::new(), Instant::now() + PATIENCE);
        for policy in &policies {
            let id = scope::id(policy);
            match self
                .verifier
                .meets(way.from, image, policy, &mut Some(digest), end)
                .await
            {
                Ok(()) => met.push(id),
                Err(why) => return Signed::Broken(format!("VerificationPolicy {id}: {why}")),
            }
        }
        match met.is_empty() {
            true => {
                Signed::Unknown("no --key, and no VerificationPolicy that demands a signature".to_owned())
            }
            false => Signed::Good(format!("as VerificationPolicy {} demands", met.join(", "))),
        }
    }

    /// The policies that demand a signature or an attestation of it. Those of any namespace count as if it were that of the
    /// controllers, which is not known here.
    async fn policies(&self, image: &ImageName, way: Way<'_>) -> Result<Vec<VerificationPolicy>, String> {
        let kind = kind::exact("VerificationPolicy").ok_or("VerificationPolicy is no known kind")?;
        let listed = self.cluster.list(kind, None, None).await;
        let listed = listed.map_err(|error| format!("no --key, and {error}"))?;
        let policies = listed.into_iter().flatten();
        let policies = policies.filter_map(|one| serde_json::from_value::<VerificationPolicy>(one).ok());
        let repository = image.repository();
        Ok(policies
            .filter(|policy| {
                let demands = policy.spec.verify.is_some() || !policy.spec.attestations.is_empty();
                let own = scope::namespace(policy).to_owned();
                demands && scope::covers(policy, way, &own) && scope::is_about(policy, &repository)
            })
            .collect())
    }

    /// The digest that a tag has now.
    pub(super) async fn digest(&self, image: &ImageName) -> Result<Digest, String> {
        let repository = repository(image)?;
        let digest = oci_client::digest_of_tag(&repository, image.tag()).await;
        digest.map_err(|error| chain(&error))
    }
}

/// The registry, as this person signs in there.
fn repository(image: &ImageName) -> Result<oci_client::registry::Repository, String> {
    let credentials = login::credentials(&image.name, None).map_err(|error| error.to_string())?;
    let repository = registry::repository(image.name.clone(), credentials, false)?;
    Ok(oci_client::registry::Repository {
        deadline: Instant::now() + PATIENCE,
        ..repository
    })
}

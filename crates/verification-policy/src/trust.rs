//! What the Secrets of a policy hold, and what its expressions mean.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::delivery::{RequiredAttestation, VerificationPolicy};
use api::source::{ArtifactVerification, GitRepositoryVerification};
use artifact::digest::Digest;
use error_chain::chain;
use jiff::Timestamp;
use kube::Client;
use oci_client::registry::Repository;
use oci_verify::{AttestationDemand, Attested, Material, SigstoreRoot, Statement};
use remote_access::Reader;
use remote_access::identity::Identities;
use tokio::time::Instant;
use transport::auth::{self, SecretData};
use transport::http::Settings;

use crate::scope;

/// Many deliveries at once ask for the same policy. A key that is taken away counts no longer after this time.
const FRESH_FOR: Duration = Duration::from_secs(10);

/// Whom a policy trusts.
pub struct Trust {
    /// Credentials for registries.
    pub(crate) pull_secrets: Vec<SecretData>,
    /// How registries are reached.
    pub(crate) settings: Settings,
    /// The signature that is demanded.
    pub(crate) signature: Option<(ArtifactVerification, Material)>,
    /// The attestations that are demanded.
    pub(crate) attestations: Vec<Demand>,
    /// Who must have signed commits.
    pub(crate) commits: Option<(GitRepositoryVerification, SecretData)>,
    /// Tells this trust from another one of the same policy.
    pub(crate) digest: u64,
}

/// An attestation that is demanded.
pub(crate) struct Demand {
    predicate_type: String,
    verification: ArtifactVerification,
    material: Material,
    statement: Statement,
    max_age: Option<Duration>,
}

impl Demand {
    fn judge_of(&self) -> impl Fn(&Attested) -> Result<(), String> + Sync + '_ {
        |attested| self.judge(attested)
    }

    /// Judges what an attestation says, and when it was made.
    fn judge(&self, attested: &Attested) -> Result<(), String> {
        self.statement.judge(&attested.predicate)?;
        let Some(max_age) = self.max_age else {
            return Ok(());
        };
        let recorded_at = attested.verified.recorded_at;
        let recorded_at = recorded_at.ok_or("no transparency log says when it was made")?;
        let age = Timestamp::now().duration_since(recorded_at);
        match age > jiff::SignedDuration::try_from(max_age).unwrap_or(jiff::SignedDuration::MAX) {
            true => Err(format!("it was recorded at {recorded_at}, which is too long ago")),
            false => Ok(()),
        }
    }
}

impl Trust {
    /// Returns who must have signed commits, by which keys.
    ///
    /// # Errors
    /// When the policy does not say that, so that no commit can meet it.
    pub fn commits(&self) -> Result<&(GitRepositoryVerification, SecretData), String> {
        let missing = "it says nothing of the signatures of commits: spec.sources.git does, and spec.sources.kinds says \
                       to which sources it applies";
        self.commits.as_ref().ok_or_else(|| missing.to_owned())
    }

    /// Returns whether something is demanded of what lies in registries.
    pub(crate) fn is_about_registries(&self) -> bool {
        self.signature.is_some() || !self.attestations.is_empty()
    }

    /// Verifies the signature and the attestations that are demanded of what lies in a registry.
    ///
    /// # Errors
    /// With what is missing, or when the policy demands nothing of it, so that it cannot be met.
    pub async fn verify(
        &self,
        repository: &Repository,
        digest: Digest,
        sigstore: &SigstoreRoot,
    ) -> Result<(), String> {
        if !self.is_about_registries() {
            let missing = "it says nothing of the signatures of artifacts in registries: spec.verify does, and \
                           spec.sources.kinds says to which sources it applies";
            return Err(missing.to_owned());
        }
        if let Some((wanted, material)) = &self.signature {
            let verified = oci_verify::verify(repository, digest, wanted, material, sigstore).await;
            verified.map_err(|error| chain(&error))?;
        }
        let judges: Vec<_> = self.attestations.iter().map(Demand::judge_of).collect();
        let demands = self.attestations.iter().zip(&judges);
        let demands: Vec<_> = demands
            .map(|(demand, is_met)| AttestationDemand {
                predicate_type: &demand.predicate_type,
                specification: &demand.verification,
                material: &demand.material,
                is_met,
            })
            .collect();
        if !demands.is_empty() {
            let attested = oci_verify::verify_attestations(repository, digest, &demands, sigstore).await;
            attested.map_err(|error| chain(&error))?;
        }
        Ok(())
    }
}

/// What was read last of each policy.
pub(crate) struct Trusts {
    client: Client,
    known: Mutex<HashMap<Key, (Instant, Known)>>,
}

/// Which policy, and which generation of it.
type Key = (String, i64);
type Known = Result<Arc<Trust>, String>;

impl Trusts {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// Reads what a policy trusts. Causes of failures are shown only in the policy's namespace, where its Secrets can be read.
    pub(crate) async fn of(&self, from: &str, policy: &VerificationPolicy) -> Known {
        self.known_or_read(policy).await.map_err(|problem| {
            let id = scope::id(policy);
            tracing::warn!(policy = id, problem, "a VerificationPolicy cannot be applied");
            match scope::namespace(policy) == from {
                true => format!("the policy cannot be applied: {problem}"),
                false => "the policy cannot be applied; its Secrets or expressions are at fault, and the log of the \
                          controller says which"
                    .to_owned(),
            }
        })
    }

    async fn known_or_read(&self, policy: &VerificationPolicy) -> Known {
        let metadata = &policy.metadata;
        let key = (
            metadata.uid.clone().unwrap_or_default(),
            metadata.generation.unwrap_or_default(),
        );
        if let Some(known) = self.known(&key) {
            return known;
        }
        let read = self.read(policy).await.map(Arc::new);
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (since, _)| since.elapsed() < FRESH_FOR);
        all.insert(key, (Instant::now(), read.clone()));
        read
    }

    fn known(&self, key: &Key) -> Option<Known> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, known) = all.get(key)?;
        (since.elapsed() < FRESH_FOR).then(|| known.clone())
    }

    async fn read(&self, policy: &VerificationPolicy) -> Result<Trust, String> {
        let spec = &policy.spec;
        // No identity at a provider: keys and credentials are in Secrets.
        let none = Identities::new(0, Duration::ZERO, false, "");
        let reader = Reader::new(self.client.clone(), none, scope::namespace(policy));
        let mut hasher = DefaultHasher::new();
        let mut pull_secrets = Vec::new();
        if let Some(reference) = &spec.secret_ref {
            let secret = reader.secret(&reference.name).await;
            pull_secrets.push(secret.map_err(|error| chain(&error))?);
        }
        let settings = match &spec.cert_secret_ref {
            Some(reference) => {
                let secret = reader.secret(&reference.name).await;
                let secret = secret.map_err(|error| chain(&error))?;
                secret.hash(&mut hasher);
                auth::tls(&secret).map_err(|error| chain(&error))?
            }
            None => Settings::default(),
        };
        pull_secrets.hash(&mut hasher);
        let mut signature = None;
        if let Some(wanted) = &spec.verify {
            signature = Some((wanted.clone(), material(wanted, &reader, &mut hasher).await?));
        }
        let mut attestations = Vec::new();
        for wanted in &spec.attestations {
            attestations.push(demand(wanted, spec.verify.as_ref(), &reader, &mut hasher).await?);
        }
        let git = spec.sources.as_ref().and_then(|sources| sources.git.as_ref());
        let commits = match git {
            Some(wanted) => {
                let secret = reader.secret(&wanted.secret_ref.name).await;
                Some((wanted.clone(), secret.map_err(|error| chain(&error))?))
            }
            None => None,
        };
        Ok(Trust {
            pull_secrets,
            settings,
            signature,
            attestations,
            commits,
            digest: hasher.finish(),
        })
    }
}

async fn demand(
    wanted: &RequiredAttestation,
    by_default: Option<&ArtifactVerification>,
    reader: &Reader,
    hasher: &mut DefaultHasher,
) -> Result<Demand, String> {
    let predicate_type = wanted.predicate_type.clone();
    let verification = wanted.verify.as_ref().or(by_default);
    let verification = verification.ok_or("an attestation has no verify, and neither has the policy")?;
    let statement = Statement::read(wanted.expression.as_deref());
    Ok(Demand {
        material: material(verification, reader, hasher).await?,
        verification: verification.clone(),
        statement: statement.map_err(|error| format!("the expression for {predicate_type}: {error}"))?,
        max_age: wanted.max_age.map(api::meta::Duration::to_std),
        predicate_type,
    })
}

async fn material(
    wanted: &ArtifactVerification,
    reader: &Reader,
    hasher: &mut DefaultHasher,
) -> Result<Material, String> {
    // The definition says so as well; what was stored before it did does not count.
    if wanted.secret_ref.is_none() && wanted.match_oidc_identity.is_empty() {
        return Err(
            "verify needs secretRef or matchOIDCIdentity: otherwise anyone's signature would do".to_owned(),
        );
    }
    let material = oci_verify::read(wanted, reader).await;
    let material = material.map_err(|error| chain(&error))?;
    for secret in [&material.secret, &material.trusted_root].into_iter().flatten() {
        secret.data.hash(hasher);
    }
    Ok(material)
}

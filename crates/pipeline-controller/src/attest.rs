//! Attestations of promotions that ended (ADR 23): signed with the key of the pipeline's namespace, and asked for by gates.

use api::delivery::{GateAttestation, Pipeline, PipelineStatus, Release};
use kube::ResourceExt as _;
use promotion::decisions::Decisions;
use promotion::statement::{self, PREDICATE_TYPE};
use serde_json::Value;
use signature::cosign::{self, PublicKey, SigningKey};

use crate::context::Context;

/// Entry of the Secret with the private key.
const KEY: &str = "signing.key";
/// End of the entries with public keys, and how many are tried.
const PUBLIC: &str = ".pub";
const MAX_KEYS: usize = 20;

/// Has the newest promotion of each environment attested that is not yet. Returns why not, where it cannot be.
pub(crate) async fn sign(
    pipeline: &Pipeline,
    next: &mut PipelineStatus,
    decisions: &Decisions,
    context: &Context,
) -> Option<String> {
    let spec = pipeline.spec.attestation.as_ref()?;
    let environments = next.environments.iter_mut();
    let mut records: Vec<_> = environments
        .filter_map(|environment| Some((&environment.name, environment.history.first_mut()?)))
        .filter(|(_, record)| record.attestation.is_none())
        .collect();
    if records.is_empty() {
        return None;
    }
    let key = match key(pipeline, &spec.secret_ref.name, context).await {
        Ok(key) => key,
        Err(problem) => return Some(problem),
    };
    for (environment, record) in &mut records {
        let mut releases = next.releases.iter();
        // Without its release there is no digest to sign.
        let Some(release) = releases.find(|release| release.number == record.release) else {
            continue;
        };
        let statement = statement::statement(pipeline, environment, record, release, decisions);
        match key.attest(&statement) {
            Ok(envelope) => record.attestation = Some(envelope),
            Err(error) => return Some(error.to_string()),
        }
    }
    None
}

async fn key(pipeline: &Pipeline, secret: &str, context: &Context) -> Result<SigningKey, String> {
    let reader = context.reader(&pipeline.namespace().unwrap_or_default());
    let data = reader.secret(secret).await;
    let data = data.map_err(|error| error_chain::chain(&error))?;
    let pem = data
        .get(KEY)
        .ok_or_else(|| format!("the Secret '{secret}' has no entry {KEY}"))?;
    SigningKey::from_pem(pem).map_err(|error| format!("the entry {KEY} of the Secret '{secret}': {error}"))
}

/// Returns the predicate of the attestation that a gate asks for: that a release is healthy in an environment.
pub(crate) async fn attested(
    gate: &GateAttestation,
    (pipeline, status, release): (&Pipeline, &PipelineStatus, &Release),
    context: &Context,
) -> Result<Value, String> {
    let environment = &gate.environment;
    let seen = status.environments.iter().find(|one| one.name == *environment);
    let newest = seen.and_then(|one| one.history.first());
    let about = format!("the promotion of release {} to {environment}", release.number);
    let newest = newest
        .filter(|record| record.release == release.number)
        .ok_or_else(|| format!("{about} is not the newest one there"))?;
    let envelope = newest
        .attestation
        .as_ref()
        .ok_or_else(|| format!("{about} is not attested"))?;
    let (namespace, name) = (pipeline.namespace().unwrap_or_default(), pipeline.name_any());
    let secret = &gate.secret_ref.name;
    let data = context.reader(&namespace).secret(secret).await;
    let data = data.map_err(|error| error_chain::chain(&error))?;
    let keys = data.iter().filter(|(entry, _)| entry.ends_with(PUBLIC));
    let keys = keys.take(MAX_KEYS).map(|(entry, pem)| {
        PublicKey::from_pem(pem)
            .map_err(|error| format!("the entry {entry} of the Secret '{secret}': {error}"))
    });
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        return Err(format!(
            "the Secret '{secret}' has no entry that ends in {PUBLIC}"
        ));
    }
    let verified = keys
        .iter()
        .map(|key| cosign::attested(envelope.as_bytes(), &release.digest, PREDICATE_TYPE, key));
    // By the first key that signed it; else why the last one did not.
    let mut problem = String::new();
    for verified in verified {
        match verified {
            Ok(predicate) => {
                let place = (namespace.as_str(), name.as_str());
                statement::check(&predicate, place, environment)
                    .map_err(|why| format!("the attestation of {about}: {why}"))?;
                return Ok(predicate);
            }
            Err(error) => problem = error.to_string(),
        }
    }
    Err(format!("the attestation of {about}: {problem}"))
}

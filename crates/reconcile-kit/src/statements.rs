//! Signed statements of deliveries (ADR 35): the key of the platform, and which statement an entry of a history gets.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delivery_statement::{Contents, Delivery, KEY, says, statement};
use error_chain::chain;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::Value;
use signature::cosign::{PublicKey, SigningKey};
use tokio::time::Instant;

/// How long a key is used before the Secret is read again.
const FRESH_FOR: Duration = Duration::from_secs(60);

/// Signs statements with the key in a Secret.
pub struct Statements {
    secrets: Api<Secret>,
    secret: String,
    known: Mutex<Option<(Instant, Arc<Key>)>>,
}

struct Key {
    private: SigningKey,
    public: [PublicKey; 1],
}

/// A delivery, and the facts that change with each run.
pub struct Facts<'a> {
    /// The delivery.
    pub delivery: Delivery<'a>,
    /// Digest of its objects together.
    pub digest: &'a str,
    /// Its objects, if they were made anew.
    pub contents: Option<Contents>,
    /// When it began.
    pub began: Timestamp,
    /// The statement that the history has of the same objects and outcome.
    pub before: Option<&'a str>,
}

impl Statements {
    /// Signs with a Secret of this namespace.
    #[must_use]
    pub fn new(client: Client, namespace: &str, secret: &str) -> Self {
        Self {
            secrets: Api::namespaced(client, namespace),
            secret: secret.to_owned(),
            known: Mutex::default(),
        }
    }

    /// Returns the statement about a delivery: the one from before if it says the same, so that a delivery that is found good again
    /// changes nothing. Without a key there is no new one, and the log says so; the delivery counts all the same.
    pub async fn about(&self, facts: Facts<'_>) -> Option<String> {
        let key = match self.key().await {
            Ok(key) => key,
            Err(problem) => {
                tracing::error!(problem, "failed to sign the statement of a delivery");
                return facts.before.map(str::to_owned);
            }
        };
        let Facts {
            delivery,
            digest,
            contents,
            began,
            before,
        } = facts;
        let known = before.and_then(|before| Some((before, opened(before, digest, &key)?)));
        if let Some((before, predicate)) = &known
            && says(predicate, &delivery)
        {
            return Some((*before).to_owned());
        }
        // The same objects as then.
        let contents = contents.or_else(|| Contents::of_statement(&known?.1));
        let times = (began, Timestamp::now());
        let signed = key
            .private
            .attest(&statement(&delivery, digest, contents.as_ref(), times));
        let signed =
            signed.inspect_err(|error| tracing::error!(%error, "failed to sign the statement of a delivery"));
        signed.ok()
    }

    async fn key(&self) -> Result<Arc<Key>, String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, key)) = known.filter(|(since, _)| since.elapsed() < FRESH_FOR) {
            return Ok(key);
        }
        let name = &self.secret;
        let secret = self.secrets.get(name).await;
        let secret = secret.map_err(|error| format!("the Secret '{name}': {}", chain(&error)))?;
        let data = secret.data.unwrap_or_default();
        let pem = data
            .get(KEY)
            .ok_or_else(|| format!("the Secret '{name}' has no entry {KEY}"))?;
        let private = SigningKey::from_pem(&pem.0);
        let private = private.map_err(|error| format!("the entry {KEY} of the Secret '{name}': {error}"))?;
        let public = [private.public_key()];
        let key = Arc::new(Key { private, public });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((Instant::now(), Arc::clone(&key)));
        Ok(key)
    }
}

/// Opens a statement if this key signed it. Others may write statuses, too.
fn opened(statement: &str, digest: &str, key: &Key) -> Option<Value> {
    delivery_statement::open(statement, digest, &key.public).ok()
}

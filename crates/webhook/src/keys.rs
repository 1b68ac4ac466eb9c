//! The public keys of issuers, kept for a while.
//!
//! A stranger decides when a token comes and which key it names. So what was fetched is kept for an hour, a key that is
//! not there has the keys fetched again at most every half minute, a failure is remembered for some seconds, and callers
//! that wait for the same issuer wait for one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use crate::json;
use crate::token::{Algorithm, Key, Token};

/// How long keys are good, in seconds.
const KEPT: i64 = 3600;
/// How long they are good even if a token names another.
const REFRESHED: i64 = 30;
/// How long it is not tried again.
const FAILED: i64 = 5;
/// How far ahead a time may be that was noted: calls that come at once tell their time apart, and clocks are set.
const AHEAD: i64 = 60;
/// More issuers than that push each other out.
const MOST_ISSUERS: usize = 256;
/// More keys of one are not looked at.
const MOST_KEYS: usize = 100;
/// Larger documents are refused.
const MAX_DOCUMENT: usize = 1 << 20;

/// Where documents of issuers come from: an HTTP client with a timeout.
pub trait KeySource: Send + Sync {
    /// Gets a document; an error says why not, without secrets.
    fn get(&self, url: &Url) -> impl Future<Output = Result<Bytes, String>> + Send;
}

/// The keys of all issuers that were asked for.
#[derive(Debug, Default)]
pub struct Keys<S> {
    source: S,
    issuers: Mutex<HashMap<Place, Arc<Slot>>>,
}

/// Where the keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// An OpenID provider, which says it itself.
    Issuer(String),
    /// Known beforehand; signed by RS256.
    Certificates(&'static str),
}

#[derive(Debug, Default)]
struct Slot {
    found: tokio::sync::Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    /// When the keys were fetched.
    at: i64,
    /// When that was tried last.
    tried: i64,
    set: Option<Result<KeySet, String>>,
}

impl Found {
    /// Returns whether it is time to fetch keys that are good for so long.
    fn is_due(&self, now: i64, good: i64) -> bool {
        match &self.set {
            None => true,
            Some(Err(_)) => !is_within(now, self.tried, FAILED),
            Some(Ok(_)) => !is_within(now, self.at, good) && !is_within(now, self.tried, good.min(REFRESHED)),
        }
    }

    /// Takes what was fetched. Where nothing could be, keys that are still good stay.
    fn take(&mut self, set: Result<KeySet, String>, now: i64) {
        self.tried = now;
        let stays = set.is_err() && matches!(self.set, Some(Ok(_))) && is_within(now, self.at, KEPT);
        if !stays {
            self.at = now;
            self.set = Some(set);
        }
    }
}

/// Returns whether less than so many seconds have passed since.
fn is_within(now: i64, since: i64, time: i64) -> bool {
    (-AHEAD..time).contains(&now.saturating_sub(since))
}

#[derive(Debug)]
struct KeySet {
    keys: Vec<Key>,
    algorithms: Vec<Algorithm>,
}

impl KeySet {
    fn verifies(&self, token: &Token) -> bool {
        self.algorithms.contains(&token.algorithm()) && token.is_signed_by(&self.keys)
    }
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
    #[serde(default)]
    id_token_signing_alg_values_supported: Vec<String>,
}

#[derive(Deserialize)]
struct KeyDocument {
    // A key that is not understood does not spoil the others.
    keys: Vec<serde_json::Value>,
}

impl<S: KeySource> Keys<S> {
    /// Keys that are fetched from there.
    pub fn new(source: S) -> Self {
        Self {
            source,
            issuers: Mutex::default(),
        }
    }

    /// Checks that an issuer signed the token, for a call that came at this time.
    pub(crate) async fn check(&self, place: Place, token: &Token, came: Timestamp) -> Result<(), String> {
        let waits = Instant::now();
        // An issuer may take long to answer, and to fail: a pause counts from then.
        let now = || {
            let waited = i64::try_from(waits.elapsed().as_secs()).unwrap_or(i64::MAX);
            came.as_second().saturating_add(waited)
        };
        let slot = self.slot(&place);
        let mut found = slot.found.lock().await;
        for good in [KEPT, REFRESHED] {
            if found.is_due(now(), good) {
                let set = self.fetch(&place).await;
                found.take(set, now());
            }
            match &found.set {
                Some(Ok(set)) if set.verifies(token) => return Ok(()),
                Some(Err(reason)) => return Err(reason.clone()),
                _ => {}
            }
        }
        Err("failed to verify signature: no key of the issuer fits".to_owned())
    }

    fn slot(&self, place: &Place) -> Arc<Slot> {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        if issuers.len() >= MOST_ISSUERS && !issuers.contains_key(place) {
            // Which one goes hardly matters: it is fetched again when it is needed.
            let out = issuers.keys().next().cloned();
            out.map(|out| issuers.remove(&out));
        }
        Arc::clone(issuers.entry(place.clone()).or_default())
    }

    async fn fetch(&self, place: &Place) -> Result<KeySet, String> {
        let (url, algorithms) = match place {
            Place::Certificates(url) => ((*url).to_owned(), vec![Algorithm::Rs256]),
            Place::Issuer(issuer) => self.discover(issuer).await?,
        };
        let document: KeyDocument = self.document(&url).await?;
        let keys = document.keys.into_iter().take(MOST_KEYS);
        Ok(KeySet {
            keys: keys.filter_map(|key| serde_json::from_value(key).ok()).collect(),
            algorithms,
        })
    }

    async fn discover(&self, issuer: &str) -> Result<(String, Vec<Algorithm>), String> {
        let url = format!(
            "{}/.well-known/openid-configuration",
            issuer.strip_suffix('/').unwrap_or(issuer)
        );
        let discovery: Discovery = self.document(&url).await?;
        if discovery.issuer != issuer {
            return Err(format!(
                "issuer URL {issuer:?} did not match the issuer URL returned by provider"
            ));
        }
        if issuer.starts_with("https://") && !discovery.jwks_uri.starts_with("https://") {
            return Err("the issuer has its keys where anybody can change them on the way".to_owned());
        }
        let named = discovery.id_token_signing_alg_values_supported;
        let mut algorithms: Vec<Algorithm> = named.iter().filter_map(|name| Algorithm::named(name)).collect();
        if algorithms.is_empty() {
            algorithms.push(Algorithm::Rs256);
        }
        Ok((discovery.jwks_uri, algorithms))
    }

    async fn document<T: for<'de> Deserialize<'de>>(&self, url: &str) -> Result<T, String> {
        let invalid = || "the issuer has no valid URL".to_owned();
        let url = Url::parse(url).map_err(|_| invalid())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid());
        }
        let document = self.source.get(&url).await?;
        if document.len() > MAX_DOCUMENT || json::values(&document) > json::MOST_VALUES {
            return Err("the issuer's document is too large".to_owned());
        }
        serde_json::from_slice(&document).map_err(|error| {
            format!(
                "failed to decode the issuer's document: {}",
                crate::body::place(&error)
            )
        })
    }
}

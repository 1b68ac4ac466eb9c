//! The keys that a server shows, for a `known_hosts` that is written for the first time, as `ssh-keyscan` does it.
//!
//! Nothing says that the server is the one that is meant: people compare the fingerprints.

use std::sync::{Arc, Mutex, PoisonError};

use russh::client;
use russh::keys::{HashAlg, PublicKey, PublicKeyOrCertificate};
use tokio::time::{Instant, timeout_at};

use crate::algorithms::Algorithms;
use crate::deadline::{Allowance, Bounded};
use crate::dial;
use crate::error::Error;
use crate::session::{Failure, MAX_HANDSHAKE_BYTES, Target};

/// Types that are asked for one after the other, since a server shows one key only.
const TYPES: [&str; 3] = ["ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"];

/// A key of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKey {
    /// A line of `known_hosts`, without its end.
    pub line: String,
    /// Such as `ssh-ed25519`.
    pub key_type: String,
    /// Such as `SHA256:…`.
    pub fingerprint: String,
}

/// Reads the keys of a server, of each type that it has. A type that it does not have is no error, unless it has none.
///
/// # Errors
/// When the server cannot be reached, or does not show a key of a type that is known.
pub async fn scan(host: &str, port: u16, deadline: Instant) -> Result<Vec<HostKey>, Error> {
    let mut keys = Vec::new();
    let mut failure = None;
    for key_type in TYPES {
        let one = timeout_at(deadline, one(host, port, key_type, deadline));
        match one.await {
            Ok(Ok(key)) => keys.push(key),
            Ok(Err(error @ Error::Dial { .. })) => return Err(error),
            Ok(Err(error)) => failure = failure.or(Some(error)),
            Err(_) => {
                let address = dial::shown(host, port);
                failure = failure.or(Some(Error::Wait { address }));
            }
        }
    }
    match (keys.is_empty(), failure) {
        (true, Some(error)) => Err(error),
        _ => Ok(keys),
    }
}

async fn one(host: &str, port: u16, key_type: &str, deadline: Instant) -> Result<HostKey, Error> {
    let stream = dial::dial(host, port, None).await?;
    let stream = Bounded::new(stream, deadline, Allowance::new(MAX_HANDSHAKE_BYTES));
    let config = client::Config {
        preferred: Algorithms::default().preferred(&[key_type], false),
        ..Default::default()
    };
    let looker = Looker::default();
    let seen = Arc::clone(&looker.0);
    let connected = client::connect_stream(Arc::new(config), stream, looker).await;
    let key = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (key, connected) {
        (Some(key), _) => host_key(host, port, &key),
        (None, Err(failure)) => Err(failure.into_error(&Target {
            host: host.to_owned(),
            port,
            user: String::new(),
            path: String::new(),
        })),
        (None, Ok(_)) => Err(Error::Handshake("the server showed no key".to_owned())),
    }
}

fn host_key(host: &str, port: u16, key: &PublicKey) -> Result<HostKey, Error> {
    let mut key = key.clone();
    key.set_comment("");
    let text = key.to_openssh();
    let text = text.map_err(|_| Error::Handshake("the key of the server cannot be read".to_owned()))?;
    let text = text.trim();
    let name = match port {
        22 => host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port => format!("[{}]:{port}", host.trim_start_matches('[').trim_end_matches(']')),
    };
    Ok(HostKey {
        line: format!("{name} {text}"),
        key_type: text.split(' ').next().unwrap_or_default().to_owned(),
        fingerprint: key.fingerprint(HashAlg::Sha256).to_string(),
    })
}

/// Remembers the key of a server, and goes no further.
#[derive(Default)]
struct Looker(Arc<Mutex<Option<PublicKey>>>);

impl client::Handler for Looker {
    type Error = Failure;

    async fn check_server_key(&mut self, server: &PublicKeyOrCertificate) -> Result<bool, Failure> {
        if let PublicKeyOrCertificate::PublicKey { key, .. } = server {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(key.clone());
        }
        Ok(false)
    }
}

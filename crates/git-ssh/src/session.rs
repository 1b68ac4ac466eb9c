//! One ssh connection: handshake with a check of the server's key, sign-in with ours, a program of Git's.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use russh::client::{self, AuthResult, Handle, Msg};
use russh::keys::PublicKeyOrCertificate;
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Certificate, HashAlg, PrivateKeyWithHashAlg, PublicKey};
use russh::{AlgorithmKind, Channel, SshId};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::algorithms::Algorithms;
use crate::deadline::{Allowance, Bounded};
use crate::dial::{self, Proxy};
use crate::error::{Error, quoted};
use crate::identity::Identity;
use crate::known_hosts::{KnownHosts, Verdict};
use crate::stream::Running;

/// Bytes that a server may send before it runs our program: keys, banners, lists of algorithms.
pub(crate) const MAX_HANDSHAKE_BYTES: u64 = 4 << 20;
/// How much the server may send before we read it. Git's answers flow one way and are read at once.
const WINDOW_BYTES: u32 = 1 << 20;

/// A repository on a server.
#[derive(Debug, Clone)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// 22 if nothing else is said.
    pub port: u16,
    /// User name.
    pub user: String,
    /// As the server is to see it.
    pub path: String,
}

/// Access to a server: our credentials, its expected keys, and the way to it.
#[derive(Debug, Clone)]
pub struct Access {
    /// The key that we sign in with.
    pub identity: Identity,
    /// The keys that the server may have.
    pub known_hosts: KnownHosts,
    /// Offered algorithms.
    pub algorithms: Algorithms,
    /// The way, if not direct.
    pub proxy: Option<Proxy>,
}

/// Limits of one conversation.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// All must be over by then.
    pub deadline: Instant,
    /// Bytes that may be received.
    pub received: u64,
    /// Ends it at once.
    pub cancel: CancellationToken,
}

/// The programs of Git that a server runs for its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Sends what is fetched.
    UploadPack,
    /// Receives what is pushed.
    ReceivePack,
}

impl Program {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }
}

/// Connects, signs in and has the server run the program.
pub async fn run(
    program: Program,
    target: &Target,
    access: &Access,
    bounds: &Bounds,
) -> Result<Running, Error> {
    let opened = timeout_at(bounds.deadline, open(program, target, access, bounds));
    let opened = tokio::select! {
        opened = opened => opened,
        () = bounds.cancel.cancelled() => return Err(Error::Cancelled),
    };
    opened.unwrap_or_else(|_| {
        Err(Error::Wait {
            address: dial::shown(&target.host, target.port),
        })
    })
}

async fn open(program: Program, target: &Target, access: &Access, bounds: &Bounds) -> Result<Running, Error> {
    let stream = dial::dial(&target.host, target.port, access.proxy.as_ref()).await?;
    let allowance = Allowance::new(MAX_HANDSHAKE_BYTES.min(bounds.received));
    let stream = Bounded::new(stream, bounds.deadline, allowance.clone());
    let client = Client {
        host: target.host.clone(),
        port: target.port,
        known_hosts: access.known_hosts.clone(),
    };
    let connected = client::connect_stream(Arc::new(config(target, access)), stream, client).await;
    let mut session = connected.map_err(|failure| failure.into_error(target))?;
    authenticate(&mut session, target, &access.identity).await?;
    allowance.set(bounds.received);
    let channel = start(program, &session, target).await;
    let channel = channel.map_err(|error| lost(target, error))?;
    Ok(Running::new(
        program,
        session,
        channel,
        target,
        bounds.clone(),
        allowance,
    ))
}

fn config(target: &Target, access: &Access) -> client::Config {
    let types = access.known_hosts.key_types(&target.host, target.port);
    let has_authority = access.known_hosts.has_authority(&target.host, target.port);
    client::Config {
        client_id: SshId::Standard(concat!("SSH-2.0-windlass_", env!("CARGO_PKG_VERSION")).into()),
        preferred: access.algorithms.preferred(&types, has_authority),
        window_size: WINDOW_BYTES,
        keepalive_interval: Some(Duration::from_secs(15)),
        ..Default::default()
    }
}

/// Shows the server our key. It says which signatures of an RSA key it takes, or it is asked with one after the other.
async fn authenticate(
    session: &mut Handle<Client>,
    target: &Target,
    identity: &Identity,
) -> Result<(), Error> {
    let mut hashes = vec![None];
    if identity.is_rsa() {
        let supported = session
            .best_supported_rsa_hash()
            .await
            .map_err(|error| lost(target, error))?;
        hashes = match supported {
            Some(hash) => vec![hash],
            None => vec![Some(HashAlg::Sha512), Some(HashAlg::Sha256), None],
        };
    }
    for hash in hashes {
        let key = PrivateKeyWithHashAlg::new(identity.key(), hash);
        let answer = session.authenticate_publickey(&target.user, key).await;
        match answer {
            Ok(AuthResult::Success) => return Ok(()),
            Ok(AuthResult::Failure { .. }) => {}
            // Servers hang up after too many refusals.
            Err(russh::Error::Disconnect | russh::Error::RecvError | russh::Error::SendError) => break,
            Err(error) => return Err(lost(target, error)),
        }
    }
    Err(Error::Authenticate {
        user: target.user.clone(),
        key_type: identity.key_type(),
        fingerprint: identity.fingerprint(),
    })
}

/// Asks for version 2 of Git's protocol, which many servers do not let ssh ask for, and which pushes do not have: version
/// 0 is spoken then.
async fn start(
    program: Program,
    session: &Handle<Client>,
    target: &Target,
) -> Result<Channel<Msg>, russh::Error> {
    let channel = session.channel_open_session().await?;
    channel.set_env(false, "GIT_PROTOCOL", "version=2").await?;
    let command = format!("{} {}", program.name(), shell_quoted(&target.path));
    channel.exec(true, command).await?;
    Ok(channel)
}

/// As Git does it (quote.c): `!` too, because of shells that keep a history.
fn shell_quoted(path: &str) -> String {
    let mut quoted = String::from("'");
    for character in path.chars() {
        match character {
            '\'' | '!' => quoted.extend(["'\\", &character.to_string(), "'"]),
            character => quoted.push(character),
        }
    }
    quoted.push('\'');
    quoted
}

/// Judges the server. russh has checked that it owns the key.
pub(crate) struct Client {
    host: String,
    port: u16,
    known_hosts: KnownHosts,
}

impl client::Handler for Client {
    type Error = Failure;

    async fn check_server_key(&mut self, server: &PublicKeyOrCertificate) -> Result<bool, Failure> {
        match server {
            PublicKeyOrCertificate::PublicKey { key, .. } => self.check_key(key)?,
            PublicKeyOrCertificate::Certificate(certificate) => self.check_certificate(certificate)?,
        }
        Ok(true)
    }
}

impl Client {
    fn check_key(&self, key: &PublicKey) -> Result<(), Failure> {
        let bytes = key.to_bytes().map_err(|error| Failure::Russh(error.into()))?;
        let address = dial::shown(&self.host, self.port);
        let key_type = match key.algorithm().as_str() {
            "rsa-sha2-512" | "rsa-sha2-256" => "ssh-rsa".to_owned(),
            name => name.to_owned(),
        };
        let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
        Err(Failure::Ours(
            match self.known_hosts.check(&self.host, self.port, &bytes) {
                Verdict::Known => return Ok(()),
                Verdict::UnknownHost => Error::UnknownHost {
                    address,
                    key_type,
                    fingerprint,
                },
                Verdict::Mismatch => Error::HostKeyMismatch {
                    address,
                    key_type,
                    fingerprint,
                },
                Verdict::Revoked => Error::RevokedHostKey {
                    address,
                    key_type,
                    fingerprint,
                },
            },
        ))
    }

    fn check_certificate(&self, certificate: &Certificate) -> Result<(), Failure> {
        self.judge(certificate).map_err(|problem| {
            Failure::Ours(Error::HostCertificate {
                address: dial::shown(&self.host, self.port),
                problem,
            })
        })
    }

    fn judge(&self, certificate: &Certificate) -> Result<(), &'static str> {
        let authority = PublicKey::from(certificate.signature_key().clone());
        let bytes = authority
            .to_bytes()
            .map_err(|_| "the key of its authority cannot be read")?;
        if !self.known_hosts.trusts_authority(&self.host, self.port, &bytes) {
            return Err("known_hosts has no such certificate authority for the host");
        }
        let own = PublicKey::from(certificate.public_key().clone());
        let own = own.to_bytes().map_err(|_| "its key cannot be read")?;
        if self.known_hosts.check(&self.host, self.port, &own) == Verdict::Revoked {
            return Err("its key is revoked");
        }
        if certificate.cert_type() != CertType::Host {
            return Err("it is one of a user");
        }
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let is_host = |principal: &String| principal.eq_ignore_ascii_case(host);
        if !certificate.valid_principals().iter().any(is_host) {
            return Err("it is for another host");
        }
        if !certificate.critical_options().is_empty() {
            return Err("it has options that are not known");
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        let fingerprint = authority.fingerprint(HashAlg::Sha256);
        certificate
            .validate_at(now, [&fingerprint])
            .map_err(|_| "it is not valid now, or its signature is wrong")
    }
}

/// Reason why a handshake ended.
#[derive(Debug)]
pub(crate) enum Failure {
    Ours(Error),
    Russh(russh::Error),
}

impl From<russh::Error> for Failure {
    fn from(error: russh::Error) -> Self {
        Self::Russh(error)
    }
}

impl Failure {
    pub(crate) fn into_error(self, target: &Target) -> Error {
        match self {
            Self::Ours(error) => error,
            Self::Russh(error) => lost(target, error),
        }
    }
}

/// Sorts what russh says. The server's words in it are made fit to be shown.
pub(crate) fn lost(target: &Target, error: russh::Error) -> Error {
    match error {
        russh::Error::NoCommonAlgo { kind, ours, theirs } => Error::NoCommonAlgorithm {
            kind: match kind {
                AlgorithmKind::Kex => "key exchange",
                AlgorithmKind::Key => "host key",
                AlgorithmKind::Cipher => "cipher",
                AlgorithmKind::Compression => "compression",
                AlgorithmKind::Mac => "MAC",
            },
            ours: quoted(&ours.join(" ")),
            theirs: quoted(&theirs.join(" ")),
        },
        russh::Error::IO(error) if error.kind() == std::io::ErrorKind::TimedOut => Error::Wait {
            address: dial::shown(&target.host, target.port),
        },
        russh::Error::HUP | russh::Error::Disconnect | russh::Error::RecvError | russh::Error::SendError => {
            Error::Handshake("the server closed the connection".to_owned())
        }
        error => Error::Handshake(quoted(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::shell_quoted;

    #[test]
    fn paths_reach_the_server_as_one_word() {
        let cases = [
            ("/srv/a b.git", "'/srv/a b.git'"),
            ("/a'; rm -rf ~; '", "'/a'\\''; rm -rf ~; '\\'''"),
            ("/hey!", "'/hey'\\!''"),
        ];
        for (path, quoted) in cases {
            assert_eq!(shell_quoted(path), quoted);
        }
    }
}

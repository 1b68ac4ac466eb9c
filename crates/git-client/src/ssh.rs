//! Git over ssh: what crate `git-ssh` needs, and its two ends as a transport of gix.
//!
//! In: a URL `ssh://user@host:port/path` and the data of the object's Secret. Keys and `known_hosts` are read on the
//! blocking thread, because a passphrase takes a moment to undo.

use std::io;

use git_ssh::algorithms::Algorithms;
use git_ssh::identity::{self, Identity};
use git_ssh::known_hosts::{self, KnownHosts};
use git_ssh::{Access, Bounds, Outcome, Program, Proxy, Reader, Target, Writer};
use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::git::ConnectMode;
use gix::protocol::transport::client::git::blocking_io::Connection;
use percent_encoding::percent_decode_str;
use tokio::runtime::Handle;
use url::Url;

use transport::received;

/// The default in Git and Flux.
const DEFAULT_USER: &str = "git";
const DEFAULT_PORT: u16 = 22;

/// Settings for ssh from a Secret. Not shown, not compared.
#[derive(Clone)]
pub struct Settings {
    /// The private key, in PEM.
    pub identity: Vec<u8>,
    /// Passphrase of the key.
    pub passphrase: Option<String>,
    /// Keys of hosts, as in OpenSSH's file of this name.
    pub known_hosts: Vec<u8>,
    /// Which algorithms may be used.
    pub algorithms: Algorithms,
    /// The proxy to go through.
    pub proxy: Option<Proxy>,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The private key.
    #[error(transparent)]
    ReadIdentity(#[from] identity::ParseError),
    /// The host keys.
    #[error(transparent)]
    ReadKnownHosts(#[from] known_hosts::ParseError),
}

impl Settings {
    /// Translates the settings for the ssh client.
    pub(super) fn access(&self) -> Result<Access, Error> {
        Ok(Access {
            identity: Identity::parse(&self.identity, self.passphrase.as_deref())?,
            known_hosts: KnownHosts::parse(&self.known_hosts)?,
            algorithms: self.algorithms.clone(),
            proxy: self.proxy.clone(),
        })
    }
}

/// Returns whether the key has a passphrase that must be given. Undoes none.
pub fn needs_passphrase(identity: &[u8]) -> bool {
    matches!(
        Identity::parse(identity, None),
        Err(identity::ParseError::NeedsPassphrase)
    )
}

/// Where the URL leads to.
pub(super) fn target(url: &Url) -> Target {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decoded(url.username());
    let path = decoded(url.path());
    Target {
        host: decoded(url.host_str().unwrap_or_default()),
        port: url.port().unwrap_or(DEFAULT_PORT),
        user: if user.is_empty() {
            DEFAULT_USER.to_owned()
        } else {
            user
        },
        // As in Git: a path that begins with a user's home is not an absolute one.
        path: match path.strip_prefix('/') {
            Some(home) if home.starts_with('~') => home.to_owned(),
            _ => path,
        },
    }
}

/// Connects, and has the server run the program. Must be called on a thread of the runtime's blocking pool.
pub(super) fn open(
    program: Program,
    url: &Url,
    access: &Access,
    bounds: &Bounds,
) -> Result<(Counted, Writer, Outcome), git_ssh::Error> {
    let runtime = Handle::current();
    let running = runtime.block_on(git_ssh::run(program, &target(url), access, bounds))?;
    let (reader, writer, outcome) = running.into_blocking(runtime);
    Ok((Counted(reader), writer, outcome))
}

/// Connects for a fetch, as a transport of gix.
pub(super) fn open_for_fetch(
    url: &Url,
    access: &Access,
    bounds: &Bounds,
) -> Result<(Connection<Counted, Writer>, Outcome), git_ssh::Error> {
    let (reader, writer, outcome) = open(Program::UploadPack, url, access, bounds)?;
    let connection = Connection::new(
        reader,
        writer,
        Protocol::V2,
        target(url).path.into_bytes(),
        None::<(String, Option<u16>)>,
        ConnectMode::Process,
        false,
    );
    Ok((connection, outcome))
}

/// Reader that counts the server's bytes.
pub(super) struct Counted(Reader);

impl io::Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        received::add(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lead_where_git_would_go() {
        let cases = [
            (
                "ssh://git@example.com/org/repo.git",
                "git@example.com:22/org/repo.git",
            ),
            ("ssh://example.com:2222/repo", "git@example.com:2222/repo"),
            ("ssh://a%40b@[::1]:22/a%20b", "a@b@[::1]:22/a b"),
            ("ssh://u:p@h/~me/repo", "u@h:22~me/repo"),
        ];
        for (url, expected) in cases {
            let Target {
                host,
                port,
                user,
                path,
            } = target(&Url::parse(url).unwrap());
            assert_eq!(format!("{user}@{host}:{port}{path}"), expected, "{url}");
        }
    }
}

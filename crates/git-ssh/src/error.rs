//! Errors on the way to a program of Git's, each with what to do about it.
//!
//! Words that Go's ssh library uses, and that Flux's users know and search for, are kept: `ssh: handshake failed`,
//! `knownhosts: key is unknown`, `knownhosts: key mismatch`, `ssh: unable to authenticate`.

/// Why there is no program to talk to. Holds no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No one answers there, or its name is not known.
    #[error("failed to reach '{address}'")]
    Dial {
        /// `host:port` of the server or of the proxy.
        address: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The proxy does not let us through.
    #[error("failed to reach '{address}' through the proxy '{proxy}': {problem}")]
    Proxy {
        /// The server.
        address: String,
        /// The proxy, without credentials.
        proxy: String,
        /// Message of the other side.
        problem: String,
    },
    /// The address of the proxy is none.
    #[error("failed to use the proxy: {0}")]
    ProxyAddress(&'static str),
    /// `known_hosts` has nothing about the server.
    #[error(
        "ssh: handshake failed: knownhosts: key is unknown: '{address}' presented the {key_type} key {fingerprint}, and \
         known_hosts has no entry for it; add the server's key if it is this one"
    )]
    UnknownHost {
        /// `host:port`.
        address: String,
        /// Such as `ssh-ed25519`.
        key_type: String,
        /// Such as `SHA256:…`.
        fingerprint: String,
    },
    /// `known_hosts` has other keys.
    #[error(
        "ssh: handshake failed: knownhosts: key mismatch: '{address}' presented the {key_type} key {fingerprint}, which \
         is none of those in known_hosts; either the server has a new key or somebody poses as it"
    )]
    HostKeyMismatch {
        /// `host:port`.
        address: String,
        /// Such as `ssh-ed25519`.
        key_type: String,
        /// Such as `SHA256:…`.
        fingerprint: String,
    },
    /// `known_hosts` says that the key must not be used any more.
    #[error(
        "ssh: handshake failed: knownhosts: key is revoked: '{address}' presented the {key_type} key {fingerprint}"
    )]
    RevokedHostKey {
        /// `host:port`.
        address: String,
        /// Such as `ssh-ed25519`.
        key_type: String,
        /// Such as `SHA256:…`.
        fingerprint: String,
    },
    /// The server shows a certificate that does not vouch for it.
    #[error("ssh: handshake failed: the host certificate of '{address}' is not valid: {problem}")]
    HostCertificate {
        /// `host:port`.
        address: String,
        /// The problem.
        problem: &'static str,
    },
    /// The two sides have no algorithm in common.
    #[error(
        "ssh: handshake failed: ssh: no common algorithm for {kind}; we offered: [{ours}], peer offered: [{theirs}]"
    )]
    NoCommonAlgorithm {
        /// The purpose of the algorithm.
        kind: &'static str,
        /// Names.
        ours: String,
        /// Names, as the server gave them.
        theirs: String,
    },
    /// The other side is no ssh server, or breaks its protocol.
    #[error("ssh: handshake failed: {0}")]
    Handshake(String),
    /// The server does not take the key.
    #[error(
        "ssh: handshake failed: ssh: unable to authenticate: the server does not accept the {key_type} key {fingerprint} \
         for user '{user}'"
    )]
    Authenticate {
        /// Of the URL.
        user: String,
        /// Such as `ssh-ed25519`.
        key_type: String,
        /// Such as `SHA256:…`.
        fingerprint: String,
    },
    /// The server lets us in, and has no such repository for us.
    #[error("repository not found: {0}")]
    RepositoryNotFound(String),
    /// The server lets us in, and does not start the program.
    #[error("the server does not run {program}: {said}")]
    Refuse {
        /// Name of the program.
        program: &'static str,
        /// What the server says about it.
        said: String,
    },
    /// The time is over.
    #[error("timed out while waiting for '{address}'")]
    Wait {
        /// `host:port`.
        address: String,
    },
    /// The caller gave up.
    #[error("the connection was given up")]
    Cancelled,
}

/// Quotes the other side, made fit to be shown: one line of printable characters, of limited length.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_QUOTED: usize = 300;
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let printable: String = printable.take(MAX_QUOTED * 4).collect();
    let words: Vec<&str> = printable.split_whitespace().collect();
    words.join(" ").chars().take(MAX_QUOTED).collect()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn what_a_server_says_is_shown_on_one_short_line() {
        assert_eq!(
            quoted("ERROR: \u{1b}[31mno\r\n  such\u{7} repo\n"),
            "ERROR: [31mno such repo"
        );
        assert_eq!(quoted(&"x".repeat(10_000)).len(), 300);
    }
}

//! Why a connection failed, whatever was to be said over it: one classification for Git, registries, Helm repositories and
//! buckets, over http and ssh.
//!
//! In: an error of the operating system, of the resolver or of TLS, wherever it stands in a chain. Out: a [`Cause`], whose
//! words tell a person what to do. Words that Go uses and people search for are kept: `no such host`, `connection refused`,
//! `x509: certificate signed by unknown authority`. Pure; holds nothing but what the other side may know.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError};

/// Names of a certificate that are shown.
const MAX_NAMES: usize = 5;
/// Of the words of a library, in characters.
const MAX_WORDS: usize = 300;

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The resolver says that there is no such name.
    #[error("no such host: the name does not exist; check the address, or that of the proxy")]
    NoSuchHost,
    /// The resolver says nothing.
    #[error("temporary failure in name resolution: the name servers do not answer, so the name may be right")]
    Resolver,
    /// The machine is there, and nothing listens.
    #[error("connection refused: nothing listens there; check host and port")]
    Refused,
    /// The network has no way to the machine.
    #[error("no route to host: the network does not lead there; check the address and network policies")]
    NoRoute,
    /// The other side ended the connection too early.
    #[error("the other side broke the connection off")]
    BrokenOff,
    /// The issuer of the server's certificate is unknown.
    #[error(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority; put the authority's certificate \
         under 'ca.crt' into the Secret of spec.certSecretRef (of spec.secretRef for a GitRepository)"
    )]
    UnknownAuthority,
    /// The server's certificate is too old.
    #[error(
        "tls: failed to verify certificate: x509: certificate has expired{0}; the server needs a new certificate"
    )]
    Expired(When),
    /// The server's certificate is for later.
    #[error(
        "tls: failed to verify certificate: x509: certificate is not yet valid{0}; check the clocks of both sides"
    )]
    NotYetValid(When),
    /// The server's certificate is for other servers.
    #[error(
        "tls: failed to verify certificate: x509: certificate is valid for {0}, not for the name in the address"
    )]
    WrongName(Names),
    /// The server's certificate has something else.
    #[error("tls: failed to verify certificate: {0}")]
    Certificate(String),
    /// The server wants to see a certificate of ours.
    #[error(
        "remote error: tls: certificate required: the server wants a client certificate; put 'tls.crt' and 'tls.key' into \
         the Secret of spec.certSecretRef (of spec.secretRef for a GitRepository)"
    )]
    CertificateRequired,
    /// The server has seen our certificate, or wanted to, and says no.
    #[error(
        "remote error: tls: {0}: the server does not accept the client certificate, or the lack of one; check 'tls.crt' and \
         'tls.key'"
    )]
    CertificateRefused(String),
    /// The server does not speak TLS.
    #[error("the server does not speak TLS there; check the port, or use http if that is meant")]
    NoTls,
    /// The two sides do not come together.
    #[error("tls: {0}")]
    Tls(String),
    /// In the words of the library.
    #[error("{0}")]
    Other(String),
}

/// A moment, with a leading word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct When(Option<Timestamp>);

/// Names of a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Cause {
    /// The cause at the end of a chain.
    pub fn from_error(error: &(dyn StdError + 'static)) -> Self {
        let mut error = error;
        loop {
            if let Some(error) = error.downcast_ref::<rustls::Error>() {
                return Self::of_tls(error);
            }
            // The source of such an error is that of the one in it, which would be left out.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let next = inner.map(|inner| inner as &(dyn StdError + 'static));
            match next.or_else(|| error.source()) {
                Some(next) => error = next,
                None => break,
            }
        }
        match error.downcast_ref::<io::Error>() {
            Some(io) => Self::of_io(io.kind(), &io.to_string()),
            None => Self::of_words(&error.to_string()),
        }
    }

    /// Returns whether the other side speaks TLS, and the two do not trust each other.
    pub fn is_mistrust(&self) -> bool {
        matches!(
            self,
            Self::UnknownAuthority
                | Self::Expired(_)
                | Self::NotYetValid(_)
                | Self::WrongName(_)
                | Self::Certificate(_)
                | Self::CertificateRequired
                | Self::CertificateRefused(_)
        )
    }

    fn of_io(kind: io::ErrorKind, words: &str) -> Self {
        use io::ErrorKind as Kind;
        match kind {
            Kind::ConnectionRefused => Self::Refused,
            Kind::HostUnreachable | Kind::NetworkUnreachable => Self::NoRoute,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe | Kind::UnexpectedEof => {
                Self::BrokenOff
            }
            _ => Self::of_words(words),
        }
    }

    /// The resolvers of C libraries say it in words only.
    fn of_words(words: &str) -> Self {
        const RESOLVER: &str = "failed to lookup address information: ";
        // EAI_AGAIN and EAI_FAIL of glibc and of musl.
        const SILENT: [&str; 4] = [
            "temporary failure",
            "try again",
            "non-recoverable",
            "unrecoverable",
        ];
        const BROKEN: [&str; 3] = [
            "connection closed before message completed",
            "unexpected end of file",
            "end of file before message length reached",
        ];
        let lower = words.to_ascii_lowercase();
        if lower.starts_with(RESOLVER) {
            let is_silent = SILENT.iter().any(|text| lower.contains(text));
            return if is_silent {
                Self::Resolver
            } else {
                Self::NoSuchHost
            };
        }
        if BROKEN.contains(&lower.as_str()) {
            return Self::BrokenOff;
        }
        Self::Other(shortened(words))
    }

    fn of_tls(error: &rustls::Error) -> Self {
        use AlertDescription as Alert;
        match error {
            rustls::Error::InvalidCertificate(error) => Self::of_certificate(error),
            rustls::Error::AlertReceived(Alert::CertificateRequired) => Self::CertificateRequired,
            rustls::Error::AlertReceived(
                alert @ (Alert::BadCertificate
                | Alert::UnknownCA
                | Alert::CertificateUnknown
                | Alert::CertificateExpired
                | Alert::CertificateRevoked
                | Alert::UnsupportedCertificate
                | Alert::AccessDenied
                | Alert::DecryptError
                | Alert::HandshakeFailure),
            ) => Self::CertificateRefused(format!("{alert:?}")),
            rustls::Error::InvalidMessage(_) => Self::NoTls,
            error => Self::Tls(shortened(&error.to_string())),
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer => Self::UnknownAuthority,
            CertificateError::Expired => Self::Expired(When::default()),
            CertificateError::ExpiredContext { not_after, .. } => Self::Expired(When::from_time(*not_after)),
            CertificateError::NotValidYet => Self::NotYetValid(When::default()),
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::NotYetValid(When::from_time(*not_before))
            }
            CertificateError::NotValidForName => Self::WrongName(Names::default()),
            CertificateError::NotValidForNameContext { presented, .. } => {
                Self::WrongName(Names(presented.clone()))
            }
            // A certificate that signs itself, as `openssl req -x509` makes it.
            error if error.to_string().contains("CaUsedAsEndEntity") => Self::UnknownAuthority,
            error => Self::Certificate(shortened(&error.to_string())),
        }
    }
}

impl When {
    fn from_time(time: UnixTime) -> Self {
        let since = Duration::from_secs(time.as_secs());
        Self(
            jiff::SignedDuration::try_from(since)
                .ok()
                .and_then(|since| Timestamp::from_duration(since).ok()),
        )
    }
}

impl std::fmt::Display for When {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(time) => write!(formatter, " ({time})"),
            None => Ok(()),
        }
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = &self.0;
        if names.is_empty() {
            return formatter.write_str("other names");
        }
        // rustls-webpki writes them as `DnsName("h")` and `IpAddress(127.0.0.1)`.
        let plain = |name: &String| match name.split_once('(') {
            Some((_, rest)) => rest.trim_end_matches(')').trim_matches('"').to_owned(),
            None => name.clone(),
        };
        let shown: Vec<_> = names.iter().take(MAX_NAMES).map(plain).collect();
        formatter.write_str(&shortened(&shown.join(", ")))?;
        match names.len().checked_sub(MAX_NAMES) {
            Some(more @ 1..) => write!(formatter, " and {more} more"),
            _ => Ok(()),
        }
    }
}

fn shortened(words: &str) -> String {
    let printable = words.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(MAX_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("error trying to connect")]
    struct Wrapper(#[source] io::Error);

    fn check(error: io::Error) -> String {
        Cause::from_error(&Wrapper(error)).to_string()
    }

    #[test]
    fn resolvers_say_two_things() {
        let lookup = |words: &str| {
            check(io::Error::other(format!(
                "failed to lookup address information: {words}"
            )))
        };
        for words in [
            "Name or service not known",
            "Name does not resolve",
            "No address associated with hostname",
        ] {
            assert!(lookup(words).starts_with("no such host: "), "{words}");
        }
        for words in [
            "Temporary failure in name resolution",
            "Try again",
            "Non-recoverable failure in name resolution",
        ] {
            assert!(
                lookup(words).starts_with("temporary failure in name resolution: "),
                "{words}"
            );
        }
    }

    #[test]
    fn tls_is_found_inside_of_other_errors() {
        use rustls::Error as Tls;
        let cases = [
            (
                Tls::InvalidCertificate(CertificateError::UnknownIssuer),
                "certificate signed by unknown authority",
            ),
            (
                Tls::InvalidCertificate(CertificateError::Expired),
                "certificate has expired; ",
            ),
            (
                Tls::AlertReceived(AlertDescription::CertificateRequired),
                "'tls.crt'",
            ),
            (
                Tls::AlertReceived(AlertDescription::BadCertificate),
                "tls: BadCertificate",
            ),
            (
                Tls::InvalidMessage(rustls::InvalidMessage::InvalidContentType),
                "does not speak TLS",
            ),
        ];
        for (error, words) in cases {
            let text = check(io::Error::new(io::ErrorKind::InvalidData, error));
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn names_of_certificates_are_few_and_plain() {
        let names =
            |count: usize| Names((0..count).map(|n| format!("DnsName(\"h{n}\")")).collect()).to_string();
        assert_eq!(names(0), "other names");
        assert_eq!(names(2), "h0, h1");
        assert_eq!(names(7), "h0, h1, h2, h3, h4 and 2 more");
    }

    #[test]
    fn other_words_stay_on_one_short_line() {
        assert_eq!(check(io::Error::other("a\nb")), "a b");
        assert_eq!(check(io::Error::other("x".repeat(9999))).len(), MAX_WORDS);
        assert!(check(io::ErrorKind::ConnectionReset.into()).contains("broke the connection off"));
    }
}

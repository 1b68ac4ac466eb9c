//! Which algorithms are offered to servers: from the flags' lists of names to what russh is configured with.
//!
//! Defaults are those of Go's ssh client, which Flux uses, without the groups that take a server's whole second. A name
//! that is not known is refused at the start: a typing error would else weaken or break all repositories at once.

use std::borrow::Cow;

use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::{Preferred, kex};

const DEFAULT_KEY_EXCHANGES: [kex::Name; 8] = [
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::ECDH_SHA2_NISTP256,
    kex::ECDH_SHA2_NISTP384,
    kex::ECDH_SHA2_NISTP521,
    kex::DH_G16_SHA512,
    kex::DH_G14_SHA256,
];
/// Can be asked for by name besides the defaults.
const OTHER_KEY_EXCHANGES: [kex::Name; 7] = [
    kex::DH_GEX_SHA256,
    kex::DH_G15_SHA512,
    kex::DH_G17_SHA512,
    kex::DH_G18_SHA512,
    kex::DH_G14_SHA1,
    kex::DH_G1_SHA1,
    kex::DH_GEX_SHA1,
];
/// No algorithms, but what both sides can do: extensions, and the strict mode that keeps packets from being left out.
const CAPABILITIES: [kex::Name; 2] = [
    kex::EXTENSION_SUPPORT_AS_CLIENT,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
];
const CERTIFICATE_SUFFIX: &str = "-cert-v01@openssh.com";

/// A name that is not known.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{name}' is no {kind} algorithm that is supported; supported are {supported}")]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    supported: String,
}

/// Offered algorithms, most preferred first.
#[derive(Debug, Clone)]
pub struct Algorithms {
    key_exchanges: Vec<kex::Name>,
    host_keys: Option<HostKeys>,
}

#[derive(Debug, Clone)]
struct HostKeys {
    plain: Vec<Algorithm>,
    certificates: Vec<Algorithm>,
}

impl Default for Algorithms {
    fn default() -> Self {
        Self {
            key_exchanges: DEFAULT_KEY_EXCHANGES.to_vec(),
            host_keys: None,
        }
    }
}

impl Algorithms {
    /// Takes the lists of `--ssh-kex-algos` and `--ssh-hostkey-algos`; an empty one leaves the defaults.
    pub fn new(key_exchanges: &[String], host_keys: &[String]) -> Result<Self, UnknownName> {
        let mut algorithms = Self::default();
        if !key_exchanges.is_empty() {
            algorithms.key_exchanges = key_exchanges.iter().map(key_exchange).collect::<Result<_, _>>()?;
        }
        if !host_keys.is_empty() {
            let mut chosen = HostKeys {
                plain: Vec::new(),
                certificates: Vec::new(),
            };
            for name in host_keys {
                let algorithm = host_key(name)?;
                let list = if name.ends_with(CERTIFICATE_SUFFIX) {
                    &mut chosen.certificates
                } else {
                    &mut chosen.plain
                };
                list.push(algorithm);
            }
            algorithms.host_keys = Some(chosen);
        }
        Ok(algorithms)
    }

    /// Algorithms that russh offers to a server with host keys of these types. A key of another type could
    /// not be accepted, so it is not offered; for an unknown server all types are offered, so that the
    /// message can name its key.
    pub(crate) fn preferred(&self, known_types: &[&str], has_authority: bool) -> Preferred {
        let mut kex = self.key_exchanges.clone();
        kex.extend(CAPABILITIES);
        let HostKeys { plain, certificates } = self.host_keys.clone().unwrap_or_else(|| {
            let is_known =
                |algorithm: &Algorithm| known_types.is_empty() || known_types.contains(&key_type(algorithm));
            HostKeys {
                plain: default_host_keys().into_iter().filter(is_known).collect(),
                certificates: if has_authority {
                    default_host_keys()
                } else {
                    Vec::new()
                },
            }
        });
        Preferred {
            kex: Cow::Owned(kex),
            key: Cow::Owned(plain),
            host_key_certificates: Cow::Owned(certificates),
            ..Preferred::DEFAULT
        }
    }
}

/// Signatures with SHA-1 come last, as in Flux: some old servers know no others.
fn default_host_keys() -> Vec<Algorithm> {
    let ecdsa = |curve| Algorithm::Ecdsa { curve };
    vec![
        Algorithm::Ed25519,
        ecdsa(EcdsaCurve::NistP256),
        ecdsa(EcdsaCurve::NistP384),
        ecdsa(EcdsaCurve::NistP521),
        Algorithm::Rsa {
            hash: Some(HashAlg::Sha512),
        },
        Algorithm::Rsa {
            hash: Some(HashAlg::Sha256),
        },
        Algorithm::Rsa { hash: None },
    ]
}

/// The type of the keys that sign with the algorithm: three algorithms sign with keys of RSA.
fn key_type(algorithm: &Algorithm) -> &str {
    match algorithm {
        Algorithm::Rsa { .. } => "ssh-rsa",
        algorithm => algorithm.as_str(),
    }
}

fn key_exchange(name: &String) -> Result<kex::Name, UnknownName> {
    let mut all = DEFAULT_KEY_EXCHANGES.iter().chain(&OTHER_KEY_EXCHANGES);
    all.clone()
        .find(|known| known.as_ref() == name)
        .copied()
        .ok_or_else(|| UnknownName {
            kind: "key exchange",
            name: name.clone(),
            supported: join(&mut all.by_ref().map(AsRef::as_ref)),
        })
}

fn host_key(name: &str) -> Result<Algorithm, UnknownName> {
    let plain = default_host_keys();
    let found = plain
        .iter()
        .find(|algorithm| algorithm.as_str() == name || algorithm.to_certificate_type() == name);
    found.cloned().ok_or_else(|| UnknownName {
        kind: "host key",
        name: name.to_owned(),
        supported: join(&mut plain.iter().map(Algorithm::as_str)),
    })
}

fn join(names: &mut dyn Iterator<Item = &str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(known_types: &[&str], algorithms: &Algorithms) -> Vec<String> {
        let preferred = algorithms.preferred(known_types, false);
        preferred.key.iter().map(|key| key.as_str().to_owned()).collect()
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_server_is_asked_for_the_keys_that_it_is_known_by() {
        let algorithms = Algorithms::default();
        assert_eq!(offered(&["ssh-ed25519"], &algorithms), ["ssh-ed25519"]);
        assert_eq!(
            offered(&["ssh-rsa", "ecdsa-sha2-nistp256"], &algorithms),
            ["ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"]
        );
        assert_eq!(offered(&[], &algorithms).len(), 7);
    }

    #[test]
    fn the_flags_decide_when_they_are_given() {
        let algorithms = Algorithms::new(
            &list(&["diffie-hellman-group14-sha1", "curve25519-sha256"]),
            &list(&["rsa-sha2-256"]),
        )
        .unwrap();
        assert_eq!(offered(&["ssh-ed25519"], &algorithms), ["rsa-sha2-256"]);
        let kex = algorithms.preferred(&[], false).kex;
        let names: Vec<&str> = kex.iter().map(AsRef::as_ref).collect();
        assert_eq!(
            names,
            [
                "diffie-hellman-group14-sha1",
                "curve25519-sha256",
                "ext-info-c",
                "kex-strict-c-v00@openssh.com"
            ]
        );
    }

    #[test]
    fn certificates_are_asked_for_only_where_an_authority_may_vouch() {
        let algorithms = Algorithms::default();
        assert!(algorithms.preferred(&[], false).host_key_certificates.is_empty());
        assert_eq!(algorithms.preferred(&[], true).host_key_certificates.len(), 7);
        let named = Algorithms::new(&[], &list(&["ssh-ed25519-cert-v01@openssh.com"])).unwrap();
        assert_eq!(
            named.preferred(&[], false).host_key_certificates.as_ref(),
            [Algorithm::Ed25519]
        );
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = Algorithms::new(&list(&["curve25519-sha256", "none"]), &[]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("'none' is no key exchange algorithm that is supported; supported are mlkem")
        );
        let error = Algorithms::new(&[], &list(&["ssh-dss"])).unwrap_err();
        assert!(
            error.to_string().contains("'ssh-dss' is no host key algorithm"),
            "{error}"
        );
    }
}

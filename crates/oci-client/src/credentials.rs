//! Image pull secrets: which user name and password belong to a repository.
//!
//! Docker's own configuration file has the same form, and is read by [`in_config_file`].
//!
//! In: the data of Secrets of type `kubernetes.io/dockerconfigjson` or `kubernetes.io/dockercfg`. Out: the
//! [`Credentials`] of the most exact entry that matches, as the kubelet chooses them: globs per label of the host,
//! prefixes of the path. Pure; reads no Secret.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::name::Name;

/// Keys of the two types of pull secret.
const CONFIG_JSON: &str = ".dockerconfigjson";
const CONFIG: &str = ".dockercfg";

/// The data of a Secret.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// A pull secret that cannot be used. Quotes no value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither of the two keys is there.
    #[error("the secret has neither '{CONFIG_JSON}' nor '{CONFIG}'")]
    MissingKey,
    /// Not JSON of the right form.
    #[error("failed to parse '{key}'")]
    Parse {
        /// The key.
        key: &'static str,
    },
    /// An entry's `auth` is not base64 of `user:password`.
    #[error("failed to decode 'auth' of '{entry}'")]
    DecodeAuth {
        /// The registry of the entry.
        entry: String,
    },
}

/// Credentials for a registry.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// User name and password.
    Basic(String, String),
    /// A refresh token, exchanged at the registry's token service.
    IdentityToken(String),
    /// A token that is sent as it is.
    Bearer(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

#[derive(Deserialize)]
struct ConfigJson {
    #[serde(default)]
    auths: HashMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    auth: String,
    #[serde(default, alias = "identityToken")]
    identitytoken: String,
    #[serde(default, alias = "registryToken")]
    registrytoken: String,
}

/// The credentials for a repository in the text of Docker's configuration file (`~/.docker/config.json`).
///
/// # Errors
/// When it is no JSON, or an entry cannot be read.
pub fn in_config_file(text: &[u8], name: &Name) -> Result<Option<Credentials>, Error> {
    let secret = SecretData::from([(CONFIG_JSON.to_owned(), text.to_vec())]);
    find(&[secret], name)
}

/// The credentials for a repository among those of several secrets; None when none of them is meant for it.
///
/// # Errors
/// When one of them cannot be read.
pub fn find(secrets: &[SecretData], name: &Name) -> Result<Option<Credentials>, Error> {
    let mut best: Option<(usize, Credentials)> = None;
    for secret in secrets {
        for (key, entry) in entries(secret)? {
            let Some(exactness) = exactness(&key, name) else {
                continue;
            };
            let better = best.as_ref().is_none_or(|(known, _)| exactness > *known);
            if let Some(credentials) = credentials(&key, entry)?.filter(|_| better) {
                best = Some((exactness, credentials));
            }
        }
    }
    Ok(best.map(|(_, credentials)| credentials))
}

fn entries(secret: &SecretData) -> Result<HashMap<String, Entry>, Error> {
    if let Some(json) = secret.get(CONFIG_JSON) {
        let parsed: ConfigJson =
            serde_json::from_slice(json).map_err(|_| Error::Parse { key: CONFIG_JSON })?;
        return Ok(parsed.auths);
    }
    let json = secret.get(CONFIG).ok_or(Error::MissingKey)?;
    serde_json::from_slice(json).map_err(|_| Error::Parse { key: CONFIG })
}

fn credentials(key: &str, entry: Entry) -> Result<Option<Credentials>, Error> {
    if !entry.registrytoken.is_empty() {
        return Ok(Some(Credentials::Bearer(entry.registrytoken)));
    }
    if !entry.identitytoken.is_empty() {
        return Ok(Some(Credentials::IdentityToken(entry.identitytoken)));
    }
    if entry.auth.is_empty() {
        let given = !entry.username.is_empty();
        return Ok(given.then_some(Credentials::Basic(entry.username, entry.password)));
    }
    let decoded = STANDARD
        .decode(entry.auth.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.as_deref().and_then(|text| text.split_once(':'));
    let (user, password) = decoded.ok_or_else(|| Error::DecodeAuth {
        entry: key.to_owned(),
    })?;
    Ok(Some(Credentials::Basic(
        user.to_owned(),
        password.trim_end_matches('\0').to_owned(),
    )))
}

/// How exactly an entry's key speaks of the repository; None when it speaks of another.
fn exactness(key: &str, name: &Name) -> Option<usize> {
    let key = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"))
        .unwrap_or(key);
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    let host = if host == "docker.io" {
        "index.docker.io"
    } else {
        host
    };
    // The path of an API, as Docker Hub's `index.docker.io/v1/`, says nothing about repositories.
    let path = if matches!(path.trim_matches('/'), "v1" | "v2") {
        ""
    } else {
        path.trim_matches('/')
    };
    let below = name.repository == path || name.repository.starts_with(&format!("{path}/"));
    (glob_matches(host, &name.registry) && (path.is_empty() || below)).then_some(key.len())
}

/// Compares label by label; a `*` stands for any part of one label.
fn glob_matches(pattern: &str, host: &str) -> bool {
    let split_port = |text: &str| match text.rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), port.to_owned()),
        None => (text.to_owned(), String::new()),
    };
    let ((pattern, pattern_port), (host, port)) = (split_port(pattern), split_port(host));
    let (patterns, labels): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), host.split('.').collect());
    let labels_match = patterns
        .iter()
        .zip(&labels)
        .all(|(pattern, label)| label_matches(pattern, label));
    (pattern_port.is_empty() || pattern_port == port) && patterns.len() == labels.len() && labels_match
}

fn label_matches(pattern: &str, label: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == label;
    };
    let Some(mut label) = label.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<_> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(position) = label.find(part) else {
            return false;
        };
        label = &label[position + part.len()..];
    }
    label.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str, url: &str) -> Option<Credentials> {
        let secret = SecretData::from([(CONFIG_JSON.to_owned(), json.as_bytes().to_vec())]);
        find(&[secret], &Name::parse(url).unwrap()).unwrap()
    }

    fn basic(user: &str, password: &str) -> Option<Credentials> {
        Some(Credentials::Basic(user.to_owned(), password.to_owned()))
    }

    #[test]
    fn an_entry_is_found_by_host_and_path() {
        let auth = STANDARD.encode("a:b:c");
        let json = format!(
            r#"{{"auths": {{
                "ghcr.io": {{"username": "host", "password": "1"}},
                "ghcr.io/org": {{"username": "org", "password": "2"}},
                "https://index.docker.io/v1/": {{"auth": "{auth}"}},
                "*.example.com": {{"username": "glob", "password": "3"}},
                "r*.x*y.io:5000": {{"username": "port", "password": "4"}},
                "acr.io": {{"identitytoken": "t"}}
            }}}}"#
        );
        let cases = [
            ("oci://ghcr.io/other/app", basic("host", "1")),
            ("oci://ghcr.io/org/app", basic("org", "2")),
            ("oci://ghcr.io/organisation/app", basic("host", "1")),
            ("oci://library/app", basic("a", "b:c")),
            ("oci://r1.example.com/app", basic("glob", "3")),
            ("oci://a.b.example.com/app", None),
            ("oci://reg.xxy.io:5000/app", basic("port", "4")),
            ("oci://reg.xxy.io:5001/app", None),
            (
                "oci://acr.io/app",
                Some(Credentials::IdentityToken("t".to_owned())),
            ),
            ("oci://ghcr.io.evil.com/org/app", None),
        ];
        for (url, credentials) in cases {
            assert_eq!(found(&json, url), credentials, "{url}");
        }
    }

    #[test]
    fn broken_secrets_are_named_but_not_quoted() {
        let name = Name::parse("oci://ghcr.io/app").unwrap();
        let error = |key: &str, value: &str| {
            let secret = SecretData::from([(key.to_owned(), value.as_bytes().to_vec())]);
            find(&[secret], &name).unwrap_err().to_string()
        };
        assert_eq!(
            error("x", "secret"),
            "the secret has neither '.dockerconfigjson' nor '.dockercfg'"
        );
        assert_eq!(
            error(CONFIG_JSON, "secret"),
            "failed to parse '.dockerconfigjson'"
        );
        assert_eq!(
            error(CONFIG, r#"{"ghcr.io": {"auth": "secret"}}"#),
            "failed to decode 'auth' of 'ghcr.io'"
        );
    }

    #[test]
    fn secrets_do_not_appear_in_debug_output() {
        let credentials = Credentials::Basic("user".to_owned(), "secret".to_owned());
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}

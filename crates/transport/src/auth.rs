//! Meaning of a Secret: from `spec.url` and the data of `spec.secretRef` to connection settings and
//! credentials.
//!
//! Keys and rules are those of Flux (fluxcd/pkg git `NewAuthOptions`): `username` and `password`, or `bearerToken`;
//! `ca.crt` (or `caFile`), `tls.crt`, `tls.key`. User and password may stand in the URL. Pure; reads no Secret.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use url::Url;

use crate::http;

/// Data of a Secret.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// A secret that cannot be used as it is. Never quotes a value.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Basic authentication needs a name.
    #[error("invalid '{scheme}' auth option: 'password' requires 'username' to be set")]
    PasswordWithoutUsername {
        /// Scheme of the URL.
        scheme: String,
    },
    /// Only one can be sent.
    #[error("basic auth and bearer token cannot be set at the same time")]
    BasicAndBearer,
    /// A value with characters that no header can carry.
    #[error("'{key}' holds characters that cannot be sent")]
    Unsendable {
        /// The key of the secret.
        key: &'static str,
    },
    /// A client certificate is of no use without its key, nor the key without it.
    #[error("'tls.crt' and 'tls.key' must be set together")]
    HalfIdentity,
    /// ssh needs a host, a key and the host's keys.
    #[error("invalid 'ssh' auth option: '{0}' is required")]
    Missing(&'static str),
    /// The key's passphrase is not there.
    #[error("SSH identity key is encrypted but no 'password' field was provided in the secret")]
    MissingPassphrase,
    /// The data belongs to another provider.
    #[error("has github app data but provider is not set to github")]
    GithubApp,
}

/// How a remote is reached, and what is shown to it.
#[derive(Default, Clone)]
pub struct Access {
    /// How connections are made.
    pub settings: http::Settings,
    /// Header for the remote; never sent to a host that it redirects to.
    pub authorization: Option<HeaderValue>,
}

/// Reads credentials out of the URL, which is left without them, and out of the secret.
pub fn access(url: &mut Url, secret: &SecretData) -> Result<Access, Error> {
    if text(secret, "githubAppID").is_some() {
        return Err(Error::GithubApp);
    }
    let authorization = authorization(url, secret)?;
    let _ = url.set_username(""); // fails only for URLs that can have none
    let _ = url.set_password(None);
    Ok(Access {
        settings: tls(secret)?,
        authorization,
    })
}

fn authorization(url: &Url, secret: &SecretData) -> Result<Option<HeaderValue>, Error> {
    let token = secret.get("bearerToken");
    let from_secret = |key| text(secret, key).filter(|_| token.is_none());
    let username = from_secret("username").unwrap_or_else(|| decoded(url.username()));
    let password = from_secret("password").unwrap_or_else(|| decoded(url.password().unwrap_or_default()));
    match (username.is_empty(), password.is_empty(), token) {
        (true, false, _) => Err(Error::PasswordWithoutUsername {
            scheme: url.scheme().to_owned(),
        }),
        (false, _, Some(_)) => Err(Error::BasicAndBearer),
        (false, _, None) => sensitive("password", &basic(&username, &password)).map(Some),
        (true, true, Some(token)) => {
            let token = String::from_utf8_lossy(token);
            sensitive("bearerToken", &format!("Bearer {token}")).map(Some)
        }
        (true, true, None) => Ok(None),
    }
}

/// Certificate authority and client certificate.
pub fn tls(secret: &SecretData) -> Result<http::Settings, Error> {
    let bytes = |key: &str| secret.get(key).filter(|value| !value.is_empty());
    let identity = match (bytes("tls.crt"), bytes("tls.key")) {
        (Some(certificate), Some(key)) => Some([certificate.as_slice(), b"\n", key].concat()),
        (None, None) => None,
        _ => return Err(Error::HalfIdentity),
    };
    let ca = bytes("ca.crt").or_else(|| bytes("caFile")).cloned();
    Ok(http::Settings {
        ca,
        identity,
        ..Default::default()
    })
}

/// Value of an `Authorization` header for basic authentication.
pub fn basic(username: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
}

fn sensitive(key: &'static str, value: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(value).map_err(|_| Error::Unsendable { key })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns what a key holds as text; None without it, or if it is empty.
pub fn text(secret: &SecretData, key: &str) -> Option<String> {
    secret
        .get(key)
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .filter(|text| !text.is_empty())
}

/// Undoes the percent-encoding of user and password in a URL.
fn decoded(text: &str) -> String {
    url::form_urlencoded::parse(format!("={}", text.replace('+', "%2B").replace('&', "%26")).as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = &'static [(&'static str, &'static str)];

    fn check(url: &str, secret: &[(&str, &str)]) -> Result<(String, Option<String>), Error> {
        let mut url = Url::parse(url).unwrap();
        let secret = secret
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()))
            .collect();
        let access = access(&mut url, &secret)?;
        Ok((
            url.into(),
            access
                .authorization
                .map(|value| value.to_str().unwrap().to_owned()),
        ))
    }

    #[test]
    fn credentials_come_from_the_secret_or_the_url() {
        let basic = |text: &str| Some(format!("Basic {}", STANDARD.encode(text)));
        let cases: [(&str, Pairs, Option<String>); 7] = [
            ("https://h/r", &[], None),
            (
                "https://h/r",
                &[("username", "u"), ("password", "p")],
                basic("u:p"),
            ),
            (
                "http://h/r",
                &[("username", "u"), ("password", "p")],
                basic("u:p"),
            ),
            ("https://a%40b:c%3Ad+e&f@h/r", &[], basic("a@b:c:d+e&f")),
            (
                "https://x:y@h/r",
                &[("username", "u"), ("password", "p")],
                basic("u:p"),
            ),
            (
                "https://h/r",
                &[("bearerToken", "t")],
                Some("Bearer t".to_owned()),
            ),
            ("https://h/r", &[("username", "u")], basic("u:")),
        ];
        for (url, secret, authorization) in cases {
            let (shown, found) = check(url, secret).unwrap();
            assert_eq!(found, authorization, "{url} {secret:?}");
            assert!(!shown.contains('@'), "{shown}");
        }
    }

    #[test]
    fn unusable_secrets_are_refused_without_quoting_them() {
        let cases: [(&str, Pairs, Error); 5] = [
            (
                "https://h/r",
                &[("password", "p")],
                Error::PasswordWithoutUsername {
                    scheme: "https".to_owned(),
                },
            ),
            ("https://u:p@h/r", &[("bearerToken", "t")], Error::BasicAndBearer),
            (
                "https://h/r",
                &[("bearerToken", "a\nb")],
                Error::Unsendable { key: "bearerToken" },
            ),
            ("https://h/r", &[("tls.crt", "x")], Error::HalfIdentity),
            ("https://h/r", &[("githubAppID", "1")], Error::GithubApp),
        ];
        for (url, secret, error) in cases {
            assert_eq!(check(url, secret).unwrap_err(), error, "{secret:?}");
        }
    }

    #[test]
    fn the_newer_name_of_the_certificate_authority_counts() {
        let secret = |pairs: &[(&str, &str)]| -> SecretData {
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()))
                .collect()
        };
        assert_eq!(
            tls(&secret(&[("caFile", "old")])).unwrap().ca,
            Some(b"old".to_vec())
        );
        assert_eq!(
            tls(&secret(&[("caFile", "old"), ("ca.crt", "new")])).unwrap().ca,
            Some(b"new".to_vec())
        );
        assert_eq!(
            tls(&secret(&[("tls.crt", "c"), ("tls.key", "k")]))
                .unwrap()
                .identity,
            Some(b"c\nk".to_vec())
        );
    }
}

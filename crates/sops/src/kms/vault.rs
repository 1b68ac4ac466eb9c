//! The transit engine of HashiCorp Vault and OpenBao.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloud_identity::aws::encode;
use cloud_identity::{Future, Issuer, Request};
use http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use super::{Access, Hidden, ask, decoded, json_request};
use crate::key::{EncryptedKey, KeyError, KeyService, MasterKey};

/// Credentials for Vault.
pub enum Credentials {
    /// Whoever has this token.
    Token(Zeroizing<String>),
    /// A ServiceAccount, that logs in where the operator allows it.
    Login(Login),
}

/// Logs in with a token of a ServiceAccount, as the role `<namespace>_<name>`.
pub struct Login {
    paths: Result<BTreeMap<String, String>, String>,
    issuer: Arc<dyn Issuer>,
    tokens: Mutex<BTreeMap<String, Zeroizing<String>>>,
}

impl Login {
    /// `paths` has the path to log in at for each server that is trusted (all others get no token), or says why it is
    /// not known, which is told when someone has to log in.
    #[must_use]
    pub fn new(paths: Result<BTreeMap<String, String>, String>, issuer: Arc<dyn Issuer>) -> Self {
        Self {
            paths,
            issuer,
            tokens: Mutex::default(),
        }
    }
}

/// HashiCorp Vault or OpenBao.
pub struct Vault {
    /// How it is reached.
    pub access: Access,
    /// Credentials.
    pub credentials: Credentials,
}

#[derive(Deserialize)]
struct Decrypted {
    data: Plaintext,
}

#[derive(Deserialize)]
struct Plaintext {
    plaintext: Hidden,
}

#[derive(Deserialize)]
struct LoggedIn {
    auth: Auth,
}

#[derive(Deserialize)]
struct Auth {
    client_token: Hidden,
}

impl KeyService for Vault {
    fn handles(&self, master: &MasterKey) -> bool {
        matches!(master, MasterKey::Vault { .. })
    }

    fn decrypt<'a>(&'a self, key: &'a EncryptedKey) -> Future<'a, Result<Zeroizing<Vec<u8>>, KeyError>> {
        Box::pin(async move {
            let MasterKey::Vault {
                address,
                engine_path,
                key_name,
            } = &key.master
            else {
                return Err(KeyError("not a key of Vault".to_owned()));
            };
            let path = format!("{}/decrypt/{key_name}", engine_path.trim_matches('/'));
            let found = self.ask(address, &path, &key.encrypted).await;
            found.map_err(|problem| {
                KeyError(format!(
                    "failed to decrypt sops data key from Vault transit backend '{path}': {problem}"
                ))
            })
        })
    }
}

impl Vault {
    async fn ask(&self, address: &str, path: &str, ciphertext: &str) -> Result<Zeroizing<Vec<u8>>, String> {
        let url = url(address, path)?;
        let token = match &self.credentials {
            Credentials::Token(token) => token.clone(),
            Credentials::Login(login) => self.log_in(login, address).await?,
        };
        let mut request = put(url, &serde_json::json!({"ciphertext": ciphertext}));
        let mut value = HeaderValue::from_str(&token)
            .map_err(|_| "the token has characters that no header can carry".to_owned())?;
        value.set_sensitive(true);
        request
            .headers
            .insert(HeaderName::from_static("x-vault-token"), value);
        let answer: Decrypted = ask(&self.access, request).await?;
        decoded(&answer.data.plaintext)
    }

    async fn log_in(&self, login: &Login, address: &str) -> Result<Zeroizing<String>, String> {
        let lock = || login.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(address).cloned();
        if let Some(token) = known {
            return Ok(token);
        }
        let paths = login.paths.as_ref().map_err(Clone::clone)?;
        let path = paths.get(address).filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| format!("no Vault login path configured for address '{address}'"))?;
        let issued = login.issuer.issue(address.to_owned()).await;
        let issued = issued.map_err(|problem| {
            format!("failed to issue Kubernetes token for Vault authentication: {problem}")
        })?;
        let issued = Zeroizing::new(issued);
        let role = role(&issued)?;
        let body = serde_json::json!({"role": role, "jwt": issued.as_str()});
        let answer: Result<LoggedIn, _> = ask(&self.access, put(url(address, path)?, &body)).await;
        let answer = answer.map_err(|problem| {
            format!("failed to authenticate with Vault '{address}' at login path '{path}' as role '{role}': {problem}")
        })?;
        let token = answer.auth.client_token.0;
        if token.is_empty() {
            return Err(format!(
                "Vault '{address}' returned no token for login at '{path}' as role '{role}'"
            ));
        }
        lock().insert(address.to_owned(), token.clone());
        Ok(token)
    }
}

fn put(url: Url, body: &serde_json::Value) -> Request {
    let mut request = json_request(Method::PUT, url, body, "application/json");
    // Vault wants it of whoever is no browser that was led here.
    request.headers.insert(
        HeaderName::from_static("x-vault-request"),
        HeaderValue::from_static("true"),
    );
    request
}

/// A path of the interface; nothing in it leads elsewhere.
fn url(address: &str, path: &str) -> Result<Url, String> {
    let mut url =
        Url::parse(address).map_err(|error| format!("invalid Vault address '{address}': {error}"))?;
    let has_login = !url.username().is_empty() || url.password().is_some();
    if !matches!(url.scheme(), "http" | "https") || has_login {
        return Err(format!(
            "invalid Vault address '{address}': it must be http:// or https://, without a login"
        ));
    }
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err(format!("invalid Vault path '{path}'"));
    }
    let parts: Vec<String> = parts.iter().map(|part| encode(part, false)).collect();
    let base = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{base}/v1/{}", parts.join("/")));
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// The role of a ServiceAccount, from the subject of its token.
fn role(token: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Claims {
        sub: String,
    }
    let failed = |problem: &str| format!("failed to derive Vault role for authentication: {problem}");
    let parts: Vec<&str> = token.split('.').collect();
    let [_, payload, _] = parts[..] else {
        return Err(failed("not a JWT"));
    };
    let payload = URL_SAFE_NO_PAD.decode(payload);
    let payload = payload.map_err(|_| failed("failed to decode token payload"))?;
    let claims: Result<Claims, _> = serde_json::from_slice(&payload);
    let claims = claims.map_err(|_| failed("failed to unmarshal token payload"))?;
    let account = claims.sub.strip_prefix("system:serviceaccount:");
    match account.and_then(|account| account.split_once(':')) {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(format!("{namespace}_{name}"))
        }
        _ => Err(failed(&format!("unexpected token subject '{}'", claims.sub))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_is_the_account_of_the_token() {
        let token = |claims: &str| format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(
            role(&token(r#"{"sub":"system:serviceaccount:apps:decryptor"}"#)).unwrap(),
            "apps_decryptor"
        );
        for token in [
            token(r#"{"sub":"alice"}"#),
            token("{}"),
            token(r#"{"sub":"system:serviceaccount:apps:"}"#),
            "x".into(),
        ] {
            assert!(
                role(&token)
                    .unwrap_err()
                    .starts_with("failed to derive Vault role"),
                "{token}"
            );
        }
    }

    #[test]
    fn a_path_leads_nowhere_else() {
        let text = |address: &str, path: &str| url(address, path).map(|url| url.to_string());
        assert_eq!(
            text("https://v:8200", "transit/decrypt/a b").unwrap(),
            "https://v:8200/v1/transit/decrypt/a%20b"
        );
        assert_eq!(
            text("https://v/base/", "/t/decrypt/k").unwrap(),
            "https://v/base/v1/t/decrypt/k"
        );
        for (address, path) in [
            ("https://v", "t/../sys/seal"),
            ("https://v", "t//k"),
            ("file:///x", "t"),
            ("https://u:p@v", "t"),
        ] {
            assert!(text(address, path).is_err(), "{address} {path}");
        }
    }
}

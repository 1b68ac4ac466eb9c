//! Azure Key Vault: `decrypt` with RSA-OAEP-256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloud_identity::azure::{self, Application, managed_identity};
use cloud_identity::{Future, Identity, Token, access_token};
use error_chain::chain;
use http::Method;
use serde::Deserialize;
use url::{Host, Url};
use zeroize::Zeroizing;

use super::{Access, Hidden, ask, bearer, json_request};
use crate::key::{EncryptedKey, KeyError, KeyService, MasterKey};

const API_VERSION: &str = "7.6";

/// The hosts of Azure's clouds that end so are vaults, and take tokens for what they end with.
const VAULTS: [&str; 8] = [
    "vault.azure.net",
    "vault.azure.cn",
    "vault.usgovcloudapi.net",
    "vault.microsoftazure.de",
    "managedhsm.azure.net",
    "managedhsm.azure.cn",
    "managedhsm.usgovcloudapi.net",
    "managedhsm.microsoftazure.de",
];

/// Credentials for Microsoft.
pub enum Credentials {
    /// An application of Entra.
    Application(Application),
    /// A managed identity of the machine, by its client id.
    Managed(String),
    /// The controller or a ServiceAccount.
    Identity(Identity),
}

/// Azure Key Vault.
pub struct AzureKeyVault {
    /// How it is reached.
    pub access: Access,
    /// Credentials.
    pub credentials: Credentials,
    /// Another server than the one that files name, for tests. The token is still for the vault that they name.
    pub endpoint: Option<Url>,
}

#[derive(Deserialize)]
struct Decrypted {
    value: Hidden,
}

impl KeyService for AzureKeyVault {
    fn handles(&self, master: &MasterKey) -> bool {
        matches!(master, MasterKey::AzureKeyVault { .. })
    }

    fn decrypt<'a>(&'a self, key: &'a EncryptedKey) -> Future<'a, Result<Zeroizing<Vec<u8>>, KeyError>> {
        Box::pin(async move {
            let MasterKey::AzureKeyVault {
                vault_url,
                name,
                version,
            } = &key.master
            else {
                return Err(KeyError("not a key of Azure Key Vault".to_owned()));
            };
            let found = self.ask(vault_url, name, version, &key.encrypted).await;
            found.map_err(|problem| {
                KeyError(format!(
                    "failed to decrypt sops data key with Azure Key Vault key '{}': {problem}",
                    key.master
                ))
            })
        })
    }
}

impl AzureKeyVault {
    async fn ask(
        &self,
        vault: &str,
        name: &str,
        version: &str,
        ciphertext: &str,
    ) -> Result<Zeroizing<Vec<u8>>, String> {
        if URL_SAFE_NO_PAD.decode(ciphertext).is_err() {
            return Err("failed to base64 decode Azure Key Vault encrypted key".to_owned());
        }
        let vault = Url::parse(vault).map_err(|error| format!("invalid vault URL: {error}"))?;
        let scope = scope(&vault).ok_or("the vault is no vault of Azure")?;
        let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if name.is_empty() || !is_name(name) || !is_name(version) {
            return Err("invalid name or version of a key".to_owned());
        }
        let mut url = self.endpoint.clone().unwrap_or(vault);
        let version = if version.is_empty() {
            String::new()
        } else {
            format!("{version}/")
        };
        url.set_path(&format!("keys/{name}/{version}decrypt"));
        url.set_query(Some(&format!("api-version={API_VERSION}")));
        let body = serde_json::json!({"alg": "RSA-OAEP-256", "value": ciphertext});
        let mut request = json_request(Method::POST, url, &body, "application/json");
        let token = self.token(&scope).await?;
        let (name, value) = bearer(token.as_bearer().ok_or("the token is none of Azure")?)?;
        request.headers.insert(name, value);
        let answer: Decrypted = ask(&self.access, request).await?;
        let key = URL_SAFE_NO_PAD.decode(answer.value.0.as_bytes());
        key.map(Zeroizing::new)
            .map_err(|_| "cannot decode base64 plaintext into data key bytes".to_owned())
    }

    async fn token(&self, scope: &str) -> Result<Token, String> {
        let session = self.access.session();
        let token = match &self.credentials {
            Credentials::Application(application) => application.access_token(scope, session).await,
            Credentials::Managed(client) => managed_identity(Some(client), scope, session).await,
            Credentials::Identity(identity) => {
                let access = azure::Access {
                    scope: scope.to_owned(),
                };
                access_token(&access, identity, session).await
            }
        };
        token.map_err(|error| chain(&error))
    }
}

/// Returns the scope of tokens for this vault. None for a host that is no vault: its owner would get the
/// token.
fn scope(vault: &Url) -> Option<String> {
    let Some(Host::Domain(host)) = vault.host() else {
        return None;
    };
    let is_of = |cloud: &&&str| {
        host.strip_suffix(**cloud)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    };
    let cloud = VAULTS.iter().find(is_of)?;
    let is_plain = vault.scheme() == "https" && vault.port().is_none() && vault.username().is_empty();
    is_plain.then(|| format!("https://{cloud}/.default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_vaults_get_tokens() {
        for (vault, expected) in [
            (
                "https://mine.vault.azure.net",
                Some("https://vault.azure.net/.default"),
            ),
            (
                "https://mine.vault.azure.cn/",
                Some("https://vault.azure.cn/.default"),
            ),
            (
                "https://hsm.managedhsm.azure.net",
                Some("https://managedhsm.azure.net/.default"),
            ),
            ("http://mine.vault.azure.net", None),
            ("https://evilvault.azure.net", None),
            ("https://vault.azure.net.evil.com", None),
            ("https://mine.vault.azure.net:8443", None),
            ("https://127.0.0.1", None),
        ] {
            assert_eq!(scope(&Url::parse(vault).unwrap()).as_deref(), expected, "{vault}");
        }
    }
}

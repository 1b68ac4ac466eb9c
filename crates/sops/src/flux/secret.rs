//! The keys in a Secret, by the names of its entries.

use std::collections::BTreeMap;

use cloud_identity::aws::Keys as AwsKeys;
use cloud_identity::azure::{Application, Credential};
use cloud_identity::gcp::AccountKey;
use cloud_identity::{Access, Identity};
use zeroize::Zeroizing;

use crate::age::Identities;
use crate::key::Keys;
use crate::kms::{aws, azure, gcp, vault};
use crate::openpgp::SecretKeys;

const AGE: &str = ".agekey";
const OPENPGP: &str = ".asc";
const VAULT: &str = "sops.vault-token";
const AWS: &str = "sops.aws-kms";
const AZURE: &str = "sops.azure-kv";
const GCP: &str = "sops.gcp-kms";

/// Why an entry of a Secret holds no key. Quotes nothing of it.
#[derive(Debug, thiserror::Error)]
#[error("failed to import '{entry}' data from sops decryption Secret: {problem}")]
pub struct ImportError {
    /// The name of the entry.
    pub entry: String,
    /// The problem.
    pub problem: String,
}

/// The keys in a Secret.
#[derive(Default)]
pub struct Imported {
    age: Identities,
    openpgp: SecretKeys,
    vault: Option<Zeroizing<String>>,
    aws: Option<AwsKeys>,
    azure: Option<azure::Credentials>,
    gcp: Option<AccountKey>,
}

/// How the clouds are asked for what the Secret has no credentials for.
pub struct Clouds {
    /// How they are reached.
    pub access: Access,
    /// The controller, or the ServiceAccount of `spec.decryption.serviceAccountName`; else why there is no one who
    /// asks, which is told when someone has to.
    pub identity: Result<Identity, String>,
    /// Where to log in to Vault without a token in the Secret (the ConfigMap of `--sops-vault-configmap`).
    pub vault: Option<vault::Login>,
}

impl Imported {
    /// Reads the Secret of `spec.decryption.secretRef`. Entries of other names are passed over.
    pub fn of_secret(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, ImportError> {
        let mut imported = Self::default();
        for (entry, value) in data {
            let read = imported.import(entry, value);
            read.map_err(|problem| ImportError {
                entry: entry.clone(),
                problem,
            })?;
        }
        Ok(imported)
    }

    /// Reads the Secret of `--sops-age-secret`, which counts for Kustomizations without a `secretRef`: only keys of
    /// age, so that no one gets a cloud's credentials by it.
    pub fn of_global_secret(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, ImportError> {
        let age = data.iter().filter(|(entry, _)| entry.ends_with(AGE));
        let age = age.map(|(entry, value)| (entry.clone(), value.clone()));
        Self::of_secret(&age.collect())
    }

    fn import(&mut self, entry: &str, value: &[u8]) -> Result<(), String> {
        match entry {
            _ if entry.ends_with(OPENPGP) => self.openpgp.import(value).map_err(|error| error.to_string())?,
            _ if entry.ends_with(AGE) => {
                let text = std::str::from_utf8(value).map_err(|_| "it is no UTF-8".to_owned())?;
                self.age.import(text).map_err(|error| error.to_string())?;
            }
            VAULT => {
                let token = std::str::from_utf8(value).map_err(|_| "it is no UTF-8".to_owned())?;
                self.vault = Some(Zeroizing::new(token.trim().to_owned()));
            }
            AWS => self.aws = Some(aws_keys(value)?),
            AZURE => self.azure = Some(azure_credentials(value)?),
            GCP => {
                let json = value.trim_ascii();
                self.gcp = Some(AccountKey::parse(json).map_err(|error| error.to_string())?);
            }
            _ => {}
        }
        Ok(())
    }

    /// All key services of a Kustomization: what the Secret has, and the clouds.
    #[must_use]
    pub fn into_keys(self, clouds: Option<Clouds>) -> Keys {
        let mut keys = Keys::default();
        keys.add(self.age);
        keys.add(self.openpgp);
        let Some(Clouds {
            access,
            identity,
            vault,
        }) = clouds
        else {
            return keys;
        };
        let (identity, problem) = match identity {
            Ok(identity) => (Some(identity), None),
            Err(problem) => (None, Some(problem)),
        };
        let aws = self.aws.map(aws::Credentials::Static);
        if let Some(credentials) = aws.or(identity.clone().map(aws::Credentials::Identity)) {
            let access = access.clone();
            keys.add(aws::AwsKms { access, credentials });
        }
        if let Some(credentials) = self.azure.or(identity.clone().map(azure::Credentials::Identity)) {
            keys.add(azure::AzureKeyVault {
                access: access.clone(),
                credentials,
                endpoint: None,
            });
        }
        let gcp = self.gcp.map(gcp::Credentials::Key);
        if let Some(credentials) = gcp.or(identity.map(gcp::Credentials::Identity)) {
            keys.add(gcp::GcpKms {
                access: access.clone(),
                credentials,
                endpoint: None,
            });
        }
        let token = self.vault.filter(|token| !token.is_empty());
        let login = vault.map(vault::Credentials::Login);
        if let Some(credentials) = token.map(vault::Credentials::Token).or(login) {
            keys.add(vault::Vault { access, credentials });
        }
        if let Some(problem) = problem {
            keys.add_last_resort(problem);
        }
        keys
    }
}

fn aws_keys(value: &[u8]) -> Result<AwsKeys, String> {
    let fields = fields(value, "AWS credentials file")?;
    let text = |name: &str| fields.get(name).cloned().unwrap_or_default();
    Ok(AwsKeys {
        access_key_id: text("aws_access_key_id"),
        secret_access_key: text("aws_secret_access_key"),
        session_token: Some(text("aws_session_token")).filter(|token| !token.is_empty()),
    })
}

/// In the order of Flux: a secret, a certificate, what `az` prints, a managed identity.
fn azure_credentials(value: &[u8]) -> Result<azure::Credentials, String> {
    let fields = fields(value, "Azure authentication file")?;
    let text = |name: &str| fields.get(name).filter(|value| !value.is_empty()).cloned();
    let authority = text("authorityHost");
    let application = |tenant, client, credential| {
        azure::Credentials::Application(Application::new(authority.clone(), tenant, client, credential))
    };
    if let (Some(tenant), Some(client)) = (text("tenantId"), text("clientId")) {
        if let Some(secret) = text("clientSecret") {
            return Ok(application(tenant, client, Credential::Secret(secret)));
        }
        if let Some(certificate) = text("clientCertificate") {
            if text("clientCertificatePassword").is_some() {
                return Err(
                    "clientCertificatePassword is not supported: the key must be unencrypted".to_owned(),
                );
            }
            let credential = Credential::Certificate {
                pem: certificate.into_bytes(),
                send_chain: text("clientCertificateSendChain").is_some_and(|flag| flag == "true"),
            };
            return Ok(application(tenant, client, credential));
        }
    }
    match (text("tenant"), text("appId"), text("password"), text("clientId")) {
        (Some(tenant), Some(client), Some(secret), _) => {
            Ok(application(tenant, client, Credential::Secret(secret)))
        }
        (_, _, _, Some(client)) => Ok(azure::Credentials::Managed(client)),
        _ => Err(
            "invalid data: requires a 'clientId' field, a combination of 'tenantId', 'clientId' and \
                  'clientSecret', or 'tenantId', 'clientId' and 'clientCertificate'"
                .to_owned(),
        ),
    }
}

/// The scalars of a YAML mapping, as texts.
fn fields(value: &[u8], what: &str) -> Result<BTreeMap<String, String>, String> {
    use manifest::yaml::{Dialect, Input, Nodes, compose_first, json};
    use serde_json::Value;
    let failed = || format!("failed to unmarshal {what}: it is no mapping in YAML");
    let mut nodes = Nodes::default();
    let root = compose_first(Input::from(value), &mut nodes, Dialect::Sigs).map_err(|_| failed())?;
    let read = match root {
        Some(root) => json::decode(&nodes, root).map_err(|_| failed())?,
        None => Value::Null,
    };
    match read {
        Value::Null => Ok(BTreeMap::new()),
        Value::Object(map) => {
            let texts = map.into_iter().filter_map(|(name, value)| match value {
                Value::String(text) => Some((name, text)),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
                other => Some((name, other.to_string())),
            });
            Ok(texts.collect())
        }
        _ => Err(failed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::MasterKey;

    const AGE_KEY: &[u8] = include_bytes!("../../tests/keys/one.agekey");
    const PGP_KEY: &[u8] = include_bytes!("../../tests/keys/curve.asc");

    fn secret(entries: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
        let owned = entries
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_vec()));
        owned.collect()
    }

    fn age() -> MasterKey {
        MasterKey::Age {
            recipient: String::new(),
        }
    }

    fn openpgp() -> MasterKey {
        MasterKey::OpenPgp {
            fingerprint: String::new(),
        }
    }

    #[test]
    fn entries_are_keys_by_their_names() {
        let data = secret(&[
            ("identity.agekey", AGE_KEY),
            (".asc", PGP_KEY),
            ("sops.vault-token", b" token\n"),
            ("other.vault-token", b"\xff"),
            (
                "sops.aws-kms",
                b"aws_access_key_id: id\naws_secret_access_key: secret\n",
            ),
            ("sops.azure-kv", b"tenantId: t\nclientId: c\nclientSecret: s\n"),
            ("readme.txt", b"\xff"),
        ]);
        let imported = Imported::of_secret(&data).unwrap();
        assert_eq!(imported.vault.as_ref().unwrap().as_str(), "token");
        assert_eq!(imported.aws.as_ref().unwrap().access_key_id, "id");
        assert!(matches!(imported.azure, Some(azure::Credentials::Application(_))));
        let keys = imported.into_keys(None);
        assert!(keys.handle(&age()) && keys.handle(&openpgp()));
    }

    #[test]
    fn the_global_secret_gives_keys_of_age_only() {
        let data = secret(&[("a.agekey", AGE_KEY), ("b.asc", PGP_KEY), ("sops.gcp-kms", b"{}")]);
        let keys = Imported::of_global_secret(&data).unwrap().into_keys(None);
        assert!(keys.handle(&age()) && !keys.handle(&openpgp()));
    }

    #[test]
    fn why_nobody_asks_a_cloud_is_told_when_one_must_be_asked() {
        struct Nobody;
        impl cloud_identity::Http for Nobody {
            fn send(
                &self,
                _: cloud_identity::Request,
            ) -> cloud_identity::Future<'_, Result<cloud_identity::Answer, cloud_identity::SendError>>
            {
                panic!("nobody is asked")
            }
        }
        let access = Access {
            http: std::sync::Arc::new(Nobody),
            environment: std::sync::Arc::default(),
            cache: std::sync::Arc::new(cloud_identity::Cache::new(0, std::time::Duration::ZERO)),
        };
        let clouds = Clouds {
            access,
            identity: Err("failed to get service account 'a/b'".to_owned()),
            vault: None,
        };
        let keys = Imported::default().into_keys(Some(clouds));
        let key = crate::key::EncryptedKey {
            master: MasterKey::GcpKms {
                resource_id: "projects/p".to_owned(),
            },
            encrypted: String::new(),
        };
        let mut future = std::pin::pin!(keys.decrypt(&key));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(Err(errors)) = future.as_mut().poll(&mut context) else {
            panic!("nobody can decrypt that");
        };
        assert_eq!(errors[0].0, "failed to get service account 'a/b'");
    }

    #[test]
    fn an_entry_that_is_no_key_is_named_and_not_quoted() {
        for (entry, value) in [
            ("a.agekey", &b"hunter2"[..]),
            ("a.asc", b"hunter2"),
            ("sops.aws-kms", b"- hunter2"),
            ("sops.azure-kv", b"tenantId: hunter2"),
            ("sops.gcp-kms", b"{\"type\": \"hunter2\"}"),
        ] {
            let error = Imported::of_secret(&secret(&[(entry, value)]))
                .err()
                .unwrap()
                .to_string();
            assert!(
                error.starts_with(&format!("failed to import '{entry}' data from")),
                "{error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn azure_is_asked_as_whoever_the_file_describes() {
        let credentials = |text: &str| azure_credentials(text.as_bytes());
        let application = |text: &str| match credentials(text) {
            Ok(azure::Credentials::Application(application)) => (application.tenant, application.client),
            _ => panic!("{text}"),
        };
        assert_eq!(
            application("{tenantId: t, clientId: c, clientSecret: s}"),
            ("t".into(), "c".into())
        );
        assert_eq!(
            application("{tenantId: t, clientId: c, clientCertificate: pem}"),
            ("t".into(), "c".into())
        );
        assert_eq!(
            application("{tenant: t, appId: a, password: p}"),
            ("t".into(), "a".into())
        );
        assert!(
            matches!(credentials("clientId: c"), Ok(azure::Credentials::Managed(client)) if client == "c")
        );
        assert!(credentials("").is_err());
    }
}

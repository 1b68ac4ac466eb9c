//! `spec.decryption`: the keys that open what a Kustomization brings encrypted.
//!
//! Read anew by each run, from the Secret that the spec names in its own namespace, or from the one of
//! `--sops-age-secret`; between runs only the digest of what it held is kept. Clouds and Vault are asked by `sops` when
//! something is encrypted with their keys, as the ServiceAccount of the spec or as the controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::kustomize::Kustomization;
use artifact::Digest;
use controller_kit::credentials::{self, Newest};
use controller_kit::{ObjectKey, check_name};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use sops::flux::secret::{Clouds, ImportError, Imported};
use sops::kms::vault::Login;
use sops::{Decryptor, Integrity};
use workload_identity::{Identities, api_message};
use zeroize::{Zeroize as _, Zeroizing};

/// Key of the list of servers in the ConfigMap of `--sops-vault-configmap`.
const VAULT_CONFIG: &str = "config.yaml";

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Secret cannot be read.
    #[error("cannot get sops decryption Secret '{secret}': {problem}")]
    Read {
        /// Namespace and name.
        secret: String,
        /// Why.
        problem: String,
    },
    /// An entry of it is no key.
    #[error("failed to import '{entry}' data from sops decryption Secret '{secret}': {problem}")]
    Import {
        /// Namespace and name.
        secret: String,
        /// The entry.
        entry: String,
        /// Why; nothing of its content.
        problem: String,
    },
}

/// Settings of decryption other than the object.
pub struct Settings {
    /// The Secret with keys for Kustomizations that name none (`--sops-age-secret`).
    pub age_secret: Option<ObjectKey>,
    /// The ConfigMap with the Vault servers that are logged in to (`--sops-vault-configmap`).
    pub vault_config_map: Option<ObjectKey>,
    /// The ServiceAccount of Kustomizations that name none (`--default-decryption-service-account`).
    pub default_account: Option<String>,
}

/// Finds the keys of Kustomizations.
pub struct Decryption {
    client: Client,
    identities: Arc<Identities>,
    settings: Settings,
    vault: Option<Newest>,
}

/// The keys of one Kustomization, for one run.
pub struct Keyring {
    /// Decrypts with them.
    pub decryptor: Decryptor,
    /// Of what they were made of.
    pub digest: Digest,
    /// Added to a failure if no Secret is named: says so.
    pub hint: &'static str,
}

/// Said where something cannot be decrypted and there are no keys of a Secret.
const NO_SECRET: &str =
    "; spec.decryption.secretRef names no Secret with keys, so only key services were asked";

/// Reads the keys in the data of a Secret.
type Import = fn(&BTreeMap<String, Vec<u8>>) -> Result<Imported, ImportError>;

impl Decryption {
    /// The work keeps the list of Vault servers newest; it never ends.
    pub fn new(
        client: Client,
        identities: Arc<Identities>,
        settings: Settings,
    ) -> (Self, BoxFuture<'static, ()>) {
        let mut work: BoxFuture<'static, ()> = Box::pin(futures::future::pending());
        let vault = settings.vault_config_map.as_ref().map(|key| {
            let (newest, keep) =
                credentials::config_map_key(client.clone(), &key.namespace, &key.name, VAULT_CONFIG);
            work = Box::pin(keep);
            newest
        });
        let decryption = Self {
            client,
            identities,
            settings,
            vault,
        };
        (decryption, work)
    }

    /// The keys of a Kustomization; None if it asks for no decryption.
    pub async fn keys_of(&self, object: &Kustomization) -> Result<Option<Keyring>, Error> {
        let Some(decryption) = &object.spec.decryption else {
            return Ok(None);
        };
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let own = decryption.secret_ref.as_ref();
        let own = own.map(|reference| ObjectKey::new(namespace.clone(), reference.name.clone()));
        let (imported, digest) = match (&own, &self.settings.age_secret) {
            (Some(key), _) => self.import(key, Imported::of_secret).await?,
            (None, Some(key)) => self.import(key, Imported::of_global_secret).await?,
            (None, None) => (Imported::default(), Digest::from_content(b"")),
        };
        let account = decryption.service_account_name.as_deref();
        let account = account.or(self.settings.default_account.as_deref());
        let clouds = Clouds {
            access: self.identities.access().clone(),
            identity: self.identities.identity_of(&namespace, account).await,
            vault: self.vault_login(&namespace, account),
        };
        let keys = imported.into_keys(Some(clouds));
        Ok(Some(Keyring {
            // As in Flux: kustomize has changed most objects before they are decrypted.
            decryptor: Decryptor::new(keys, Integrity::Ignored),
            digest,
            hint: match (&own, &self.settings.age_secret) {
                (None, None) => NO_SECRET,
                _ => "",
            },
        }))
    }

    /// Returns whether a Kustomization's keys come from this Secret.
    pub fn reads(&self, object: &Kustomization, secret: &ObjectKey) -> bool {
        object
            .spec
            .decryption
            .as_ref()
            .is_some_and(|decryption| match &decryption.secret_ref {
                Some(reference) => {
                    object.metadata.namespace.as_deref() == Some(&secret.namespace)
                        && reference.name == secret.name
                }
                None => self.settings.age_secret.as_ref() == Some(secret),
            })
    }

    async fn import(&self, key: &ObjectKey, import: Import) -> Result<(Imported, Digest), Error> {
        let secret = format!("{}/{}", key.namespace, key.name);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        let unreadable = |problem: String| Error::Read {
            secret: secret.clone(),
            problem,
        };
        check_name(&key.name).map_err(unreadable)?;
        let found = secrets.get(&key.name).await;
        let found = found.map_err(|error| unreadable(api_message(&error)))?;
        let data = found.data.unwrap_or_default().into_iter();
        let data = Wiped(data.map(|(entry, value)| (entry, value.0)).collect());
        let imported = import(&data.0).map_err(|ImportError { entry, problem }| Error::Import {
            secret,
            entry,
            problem,
        })?;
        Ok((imported, digest(key, &data.0)))
    }

    fn vault_login(&self, namespace: &str, account: Option<&str>) -> Option<Login> {
        let newest = self.vault.as_ref()?.borrow().clone();
        let key = self.settings.vault_config_map.as_ref()?;
        let of_config =
            |problem: String| format!("Vault ConfigMap '{}/{}': {problem}", key.namespace, key.name);
        let paths = match newest {
            Some(text) => login_paths(&text).map_err(of_config),
            None => Err(of_config(format!(
                "it is not there, or has no '{VAULT_CONFIG}' key"
            ))),
        };
        let allowed = account.map_or(Ok(()), |_| self.identities.check_object_level());
        let issuer = Arc::new(self.identities.tokens_of(namespace, account));
        Some(Login::new(allowed.and(paths), issuer))
    }
}

/// Values of a Secret, that are wiped when they are not needed any more.
struct Wiped(BTreeMap<String, Vec<u8>>);

impl Drop for Wiped {
    fn drop(&mut self) {
        for value in self.0.values_mut() {
            value.zeroize();
        }
    }
}

/// A digest of what is in a Secret, in which no entry can pretend to be two.
fn digest(key: &ObjectKey, data: &BTreeMap<String, Vec<u8>>) -> Digest {
    let mut bytes = Zeroizing::new(Vec::new());
    let mut add = |part: &[u8]| {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    };
    add(key.namespace.as_bytes());
    add(key.name.as_bytes());
    for (entry, value) in data {
        add(entry.as_bytes());
        add(value);
    }
    Digest::from_content(&bytes)
}

/// Where each Vault server is logged in to.
fn login_paths(config: &str) -> Result<BTreeMap<String, String>, String> {
    let documents = manifest::yaml::read_documents(config, VAULT_CONFIG)
        .map_err(|error| format!("failed to parse '{VAULT_CONFIG}': {error}"))?;
    let instances = documents
        .first()
        .and_then(|document| document.value.get("instances")?.as_array());
    let instances = instances.ok_or_else(|| format!("'{VAULT_CONFIG}' has no list 'instances'"))?;
    let text = |instance: &serde_json::Value, field: &str| {
        instance
            .get(field)
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned)
    };
    let pair = |instance| Some((text(instance, "address")?, text(instance, "loginPath")?));
    Ok(instances.iter().filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_of_a_secret_is_seen() {
        let of = |name: &str, data: &[(&str, &str)]| {
            let data = data
                .iter()
                .map(|(entry, value)| ((*entry).to_owned(), value.as_bytes().to_vec()));
            digest(&ObjectKey::new("ns", name), &data.collect())
        };
        let digests = [
            of("a", &[]),
            of("b", &[]),
            of("a", &[("x.agekey", "1")]),
            of("a", &[("x.agekey", "2")]),
            of("a", &[("x.agekey1", "")]),
            of("a", &[("x.agekey", "1"), ("y.agekey", "")]),
        ];
        for (index, one) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(one), "{index}");
        }
        assert_eq!(of("a", &[("x.agekey", "1")]), digests[2]);
    }

    #[test]
    fn the_config_map_says_where_to_log_in() {
        let config = "instances:\n- address: https://a:8200\n  loginPath: auth/kubernetes/login\n- address: https://b\n";
        let expected = BTreeMap::from([("https://a:8200".to_owned(), "auth/kubernetes/login".to_owned())]);
        assert_eq!(login_paths(config), Ok(expected));
        for config in ["", "a: [", "instances: 1"] {
            assert!(login_paths(config).is_err(), "{config}");
        }
    }
}

//! Reads the objects that a spec refers to, as the object's tenant may.

use std::fmt::Debug;
use std::sync::Arc;

use cloud_identity::Identity;
use controller_kit::check_name;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use transport::auth::SecretData;
use transport::http::Proxy;

use crate::error::{IdentityError, ProxyError, ReadError};
use crate::identity::Identities;

/// Kinds that other objects refer to by name.
pub trait Named:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl<K> Named for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

/// Hears which Secrets are read, also of those that are not there.
pub trait NoteSecret: Send + Sync {
    /// A Secret was asked for.
    fn note(&self, namespace: &str, name: &str);
}

/// Reads objects in the namespace of the object that refers to them, never in another.
#[derive(Clone)]
pub struct Reader {
    client: Client,
    identities: Identities,
    namespace: String,
    notes: Option<Arc<dyn NoteSecret>>,
}

impl Reader {
    /// A reader for objects of a namespace.
    pub fn new(client: Client, identities: Identities, namespace: &str) -> Self {
        Self {
            client,
            identities,
            namespace: namespace.to_owned(),
            notes: None,
        }
    }

    /// The same, with someone who hears which Secrets are read.
    #[must_use]
    pub fn noting(mut self, notes: Arc<dyn NoteSecret>) -> Self {
        self.notes = Some(notes);
        self
    }

    /// The namespace that is read from.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Another object.
    pub async fn object<K: Named>(&self, name: &str) -> Result<K, ReadError> {
        let failed = |problem| ReadError::Object {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            problem,
        };
        check_name(name).map_err(failed)?;
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        api.get(name).await.map_err(|error| failed(problem(&error)))
    }

    /// Returns whether ServiceAccounts may be used at providers; if not, that is an error.
    pub fn check_object_level_identity(&self) -> Result<(), IdentityError> {
        if self.identities.object_level {
            return Ok(());
        }
        Err(IdentityError::FeatureGateDisabled)
    }

    /// Identity of an object at its provider: the ServiceAccount that it names, else the default one, else the controller.
    /// The outer error says that the controller does not allow it. `ways` are fields with which the object's owner decides
    /// who sees what is sent, and whether they are there.
    pub async fn identity(
        &self,
        service_account: Option<&str>,
        ways: &[(&'static str, bool)],
    ) -> Result<Result<Identity, ReadError>, IdentityError> {
        let default = self.identities.default_service_account.as_deref();
        let Some(name) = service_account.or(default) else {
            return match ways.iter().find(|(_, given)| *given && self.identities.locked) {
                Some((field, _)) => Err(IdentityError::OwnIdentity { field }),
                None => Ok(Ok(Identity::Controller)),
            };
        };
        self.check_object_level_identity()?;
        let account = self.service_account(name).await;
        Ok(account.map(|account| {
            Identity::Account(cloud_identity::ServiceAccount {
                namespace: self.namespace.clone(),
                name: name.to_owned(),
                annotations: account.metadata.annotations.unwrap_or_default(),
                issuer: Arc::new(TokenRequests {
                    api: Api::namespaced(self.client.clone(), &self.namespace),
                    name: name.to_owned(),
                }),
            })
        }))
    }

    async fn service_account(&self, name: &str) -> Result<ServiceAccount, ReadError> {
        let failed = |problem| ReadError::ServiceAccount {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            problem,
        };
        check_name(name).map_err(failed)?;
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        api.get(name).await.map_err(|error| failed(problem(&error)))
    }

    /// All objects of a kind.
    pub async fn objects<K: Named>(&self) -> Result<Vec<K>, ReadError> {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let list = api.list(&ListParams::default()).await;
        let list = list.map_err(|error| ReadError::Object {
            namespace: self.namespace.clone(),
            name: String::new(),
            problem: problem(&error),
        })?;
        Ok(list.items)
    }

    /// The data of a Secret.
    pub async fn secret(&self, name: &str) -> Result<SecretData, ReadError> {
        let failed = |problem| ReadError::Secret {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            problem,
        };
        check_name(name).map_err(failed)?;
        if let Some(notes) = &self.notes {
            notes.note(&self.namespace, name);
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let secret = api.get(name).await.map_err(|error| failed(problem(&error)))?;
        Ok(secret
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, value.0))
            .collect())
    }

    /// Returns whether there is an object of the kind with this name; else what the API server said.
    pub async fn exists<K: Named>(&self, name: &str) -> Result<(), String> {
        check_name(name)?;
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let found = api.get_metadata(name).await;
        found.map(drop).map_err(|error| problem(&error))
    }

    /// The data of the image pull secrets of a ServiceAccount.
    pub async fn pull_secrets(&self, service_account: &str) -> Result<Vec<SecretData>, ReadError> {
        let account = self.service_account(service_account).await?;
        let mut secrets = Vec::new();
        for reference in account.image_pull_secrets.unwrap_or_default() {
            secrets.push(self.secret(&reference.name).await?);
        }
        Ok(secrets)
    }

    /// The proxy in a Secret: `address`, and `username` and `password` if it wants them.
    pub async fn proxy(&self, name: &str) -> Result<Proxy, ProxyError> {
        let secret = self.secret(name).await?;
        let text = |key: &str| {
            secret
                .get(key)
                .map(|value| String::from_utf8_lossy(value).trim().to_owned())
        };
        let address = text("address").filter(|address| !address.is_empty());
        let address = address.ok_or_else(|| ProxyError::MissingAddress {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        })?;
        let username = text("username").filter(|username| !username.is_empty());
        let credentials = username.map(|username| (username, text("password").unwrap_or_default()));
        Ok(Proxy { address, credentials })
    }
}

/// Makes tokens of a ServiceAccount: TokenRequest.
struct TokenRequests {
    api: Api<ServiceAccount>,
    name: String,
}

impl cloud_identity::Issuer for TokenRequests {
    fn issue(&self, audience: String) -> cloud_identity::Future<'_, Result<String, String>> {
        Box::pin(async move {
            let request = TokenRequest {
                spec: TokenRequestSpec {
                    audiences: vec![audience],
                    ..Default::default()
                },
                ..Default::default()
            };
            let answer = self
                .api
                .create_token_request(&self.name, &PostParams::default(), &request)
                .await
                .map_err(|error| problem(&error))?;
            Ok(answer.status.map(|status| status.token).unwrap_or_default())
        })
    }
}

/// The API server's own words, without the client's around them.
fn problem(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => error_chain::chain(error),
    }
}

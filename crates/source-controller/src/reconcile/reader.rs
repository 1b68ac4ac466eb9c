//! Reads the objects that a spec refers to, as the object's tenant may.

use std::fmt::Debug;
use std::sync::Arc;

use artifact::store::Store;
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

use super::read_error::{ProxyError, ReadError};
use super::secrets_read::Reading;
use crate::error::{AccessError, Error};
use crate::fetch::identity::Identities;
use crate::kind::Kind;

/// Kinds that other objects refer to by name.
pub(crate) trait Named:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl<K> Named for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

/// Reads objects in the namespace of the object that refers to them, never in another.
pub(crate) struct Reader<'a> {
    pub(super) client: &'a Client,
    /// For the artifacts of other sources.
    pub(crate) store: &'a Store,
    pub(super) identities: &'a Identities,
    pub(super) namespace: &'a str,
    pub(super) reading: Reading,
}

/// Parts of a [`Reader`], for references that turn out to be needed in the middle of the work.
#[derive(Clone)]
pub(crate) struct Lookup {
    client: Client,
    store: Store,
    identities: Identities,
    namespace: String,
    pub(super) reading: Reading,
}

impl Lookup {
    /// A lookup of its own, not of a reader.
    #[cfg(test)]
    pub(crate) fn new(client: Client, store: Store, identities: Identities, namespace: &str) -> Self {
        Self {
            client,
            store,
            identities,
            namespace: namespace.to_owned(),
            reading: super::secrets_read::SecretsRead::default()
                .begin(artifact::store::ObjectKey::new("", "", "")),
        }
    }

    /// Reads in the same namespace.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            client: &self.client,
            store: &self.store,
            identities: &self.identities,
            namespace: &self.namespace,
            reading: self.reading.clone(),
        }
    }

    /// The namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl Reader<'_> {
    /// The namespace that is read from.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace
    }

    /// The same for later.
    pub(crate) fn later(&self) -> Lookup {
        Lookup {
            client: self.client.clone(),
            store: self.store.clone(),
            identities: self.identities.clone(),
            namespace: self.namespace.to_owned(),
            reading: self.reading.clone(),
        }
    }

    /// Another object.
    pub(crate) async fn object<K: Named>(&self, name: &str) -> Result<K, ReadError> {
        let failed = |problem| ReadError::Object {
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            problem,
        };
        check_name(name).map_err(failed)?;
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        api.get(name).await.map_err(|error| failed(problem(&error)))
    }

    /// Returns whether ServiceAccounts may be used at providers; if not, that is an error.
    pub(crate) fn check_object_level_identity(&self) -> Result<(), Error> {
        if self.identities.object_level {
            return Ok(());
        }
        Err(Error::Access(AccessError::FeatureGateDisabled))
    }

    /// Identity of an object at its provider: the ServiceAccount that it names, else the default one, else the controller.
    /// The outer error says that the controller does not allow it. `ways` are fields with which the object's owner decides
    /// who sees what is sent, and whether they are there.
    pub(crate) async fn identity(
        &self,
        service_account: Option<&str>,
        ways: &[(&'static str, bool)],
    ) -> Result<Result<Identity, ReadError>, Error> {
        let default = self.identities.default_service_account.as_deref();
        let Some(name) = service_account.or(default) else {
            return match ways.iter().find(|(_, given)| *given && self.identities.locked) {
                Some((field, _)) => Err(Error::Access(AccessError::OwnIdentity { field })),
                None => Ok(Ok(Identity::Controller)),
            };
        };
        self.check_object_level_identity()?;
        let account = self.service_account(name).await;
        Ok(account.map(|account| {
            Identity::Account(cloud_identity::ServiceAccount {
                namespace: self.namespace.to_owned(),
                name: name.to_owned(),
                annotations: account.metadata.annotations.unwrap_or_default(),
                issuer: Arc::new(TokenRequests {
                    api: Api::namespaced(self.client.clone(), self.namespace),
                    name: name.to_owned(),
                }),
            })
        }))
    }

    async fn service_account(&self, name: &str) -> Result<ServiceAccount, ReadError> {
        let failed = |problem| ReadError::ServiceAccount {
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            problem,
        };
        check_name(name).map_err(failed)?;
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), self.namespace);
        api.get(name).await.map_err(|error| failed(problem(&error)))
    }

    /// All objects of a kind.
    pub(crate) async fn objects<K: Named>(&self) -> Result<Vec<K>, ReadError> {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        let list = api.list(&ListParams::default()).await;
        let list = list.map_err(|error| ReadError::Object {
            namespace: self.namespace.to_owned(),
            name: String::new(),
            problem: problem(&error),
        })?;
        Ok(list.items)
    }

    /// The data of a Secret.
    pub(crate) async fn secret(&self, name: &str) -> Result<SecretData, ReadError> {
        let failed = |problem| ReadError::Secret {
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            problem,
        };
        check_name(name).map_err(failed)?;
        self.reading.note(self.namespace, name);
        let api: Api<Secret> = Api::namespaced(self.client.clone(), self.namespace);
        let secret = api.get(name).await.map_err(|error| failed(problem(&error)))?;
        Ok(secret
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, value.0))
            .collect())
    }

    /// Returns whether there is an object of the kind with this name; else what the API server said.
    pub(crate) async fn exists<K: Kind>(&self, name: &str) -> Result<(), String> {
        check_name(name)?;
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        let found = api.get_metadata(name).await;
        found.map(drop).map_err(|error| problem(&error))
    }

    /// The data of the image pull secrets of a ServiceAccount.
    pub(crate) async fn pull_secrets(&self, service_account: &str) -> Result<Vec<SecretData>, ReadError> {
        let account = self.service_account(service_account).await?;
        let mut secrets = Vec::new();
        for reference in account.image_pull_secrets.unwrap_or_default() {
            secrets.push(self.secret(&reference.name).await?);
        }
        Ok(secrets)
    }

    /// The proxy in a Secret: `address`, and `username` and `password` if it wants them.
    pub(crate) async fn proxy(&self, name: &str) -> Result<Proxy, ProxyError> {
        let secret = self.secret(name).await?;
        let text = |key: &str| {
            secret
                .get(key)
                .map(|value| String::from_utf8_lossy(value).trim().to_owned())
        };
        let address = text("address").filter(|address| !address.is_empty());
        let address = address.ok_or_else(|| ProxyError::MissingAddress {
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
        })?;
        let username = text("username").filter(|username| !username.is_empty());
        let credentials = username.map(|username| (username, text("password").unwrap_or_default()));
        Ok(Proxy { address, credentials })
    }
}

/// Makes tokens of a ServiceAccount: TokenRequest.
pub(super) struct TokenRequests {
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
pub(super) fn problem(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => error_chain::chain(error),
    }
}

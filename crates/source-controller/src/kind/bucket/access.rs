//! Credentials of a Bucket: turns Secrets, identities and token services into a [`Remote`].

use api::source::{Bucket, BucketProvider, BucketSts, Source as _, StsProvider};
use artifact::store::Store;
use bucket_client::azure::{Azure, Credential, account, is_of_microsoft};
use bucket_client::gcs::{self, Gcs};
use bucket_client::remote::{Problem, Remote};
use bucket_client::s3::{self, S3};
use cloud_identity::azure::{self, Application, BLOB_STORAGE, SharedKey};
use cloud_identity::gcp::AccountKey;
use cloud_identity::{Identity, access_token, aws, gcp};
use transport::auth::{self, SecretData};
use transport::http;
use url::Url;
use verification_policy::sources::Origin;
use workload_identity::Exchange;

use crate::error::{BucketError, Error};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;
use remote_access::error::{ProxyError, ReadError};

/// What is done with a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its objects are fetched.
    Read,
    /// They are put and deleted as well.
    Write,
}

impl Purpose {
    /// The scope of tokens of Google.
    fn scope(self) -> &'static str {
        match self {
            Self::Read => "https://www.googleapis.com/auth/devstorage.read_only",
            Self::Write => "https://www.googleapis.com/auth/devstorage.read_write",
        }
    }
}

/// Objects that a Bucket refers to.
pub(crate) struct References {
    pub(super) store: Store,
    pub(super) identity: Identity,
    pub(super) secret: Option<SecretData>,
    pub(super) sts_secret: Option<SecretData>,
    pub(super) tls: http::Settings,
    pub(super) sts_tls: http::Settings,
    pub(super) proxy: Option<http::Proxy>,
}

impl References {
    /// A bucket that everybody may read.
    #[cfg(test)]
    pub(crate) fn from_store(store: Store) -> Self {
        Self {
            store,
            identity: Identity::Controller,
            secret: None,
            sts_secret: None,
            tls: http::Settings::default(),
            sts_tls: http::Settings::default(),
            proxy: None,
        }
    }
}

/// Why a store cannot even be asked. Holds no credentials.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    /// A Secret cannot be read.
    #[error(transparent)]
    Secret(ReadError),
    /// That of the token service.
    #[error("failed to get STS secret")]
    StsSecret(#[source] ReadError),
    /// That of the proxy.
    #[error("failed to get proxy URL")]
    Proxy(#[from] ProxyError),
    /// Certificates of the store cannot be read.
    #[error("failed to get TLS config")]
    Tls(#[source] crate::error::TransportError),
    /// Certificates of the token service cannot be read.
    #[error("failed to get STS TLS config")]
    StsTls(#[source] crate::error::TransportError),
    /// A Secret has not what it takes.
    #[error("invalid '{secret}' secret data: {problem}")]
    Invalid {
        /// Its name.
        secret: String,
        /// The missing setting.
        problem: &'static str,
    },
    /// There is no token.
    #[error("{cloud} authentication failed")]
    Token {
        /// The cloud provider.
        cloud: &'static str,
        /// Why not.
        #[source]
        source: cloud_identity::Error,
    },
    /// The identity cannot be used.
    #[error(transparent)]
    Identity(ReadError),
    /// The endpoint or the name of the bucket cannot be.
    #[error(transparent)]
    Address(#[from] s3::Error),
    /// The endpoint of Azure is no URL.
    #[error("failed to parse endpoint '{0}': it must be a URL")]
    Endpoint(String),
    /// A shared key needs the name of its account.
    #[error("failed to extract account name from endpoint: expected '{0}' to be a subdomain")]
    Account(String),
    /// Tokens do not go everywhere.
    #[error(
        "endpoint '{0}' is no storage account in a cloud of Microsoft over https: only such get tokens of this cluster; \
         use a secretRef for another one"
    )]
    ForeignEndpoint(String),
    /// No client can be made.
    #[error(transparent)]
    Client(#[from] http::Error),
    /// No request can be made.
    #[error(transparent)]
    Remote(#[from] Problem),
}

fn denied(error: impl Into<AccessError>) -> Error {
    Error::Bucket(BucketError::Access(error.into()))
}

fn provider(object: &Bucket) -> BucketProvider {
    object.spec.provider.unwrap_or_default()
}

/// Returns problems that only a change of the spec solves. The API server refuses most of them already.
pub(super) fn refusal(object: &Bucket) -> Option<Error> {
    let sts = object.spec.sts.as_ref()?;
    let refuse = |problem: String| Some(Error::Bucket(BucketError::StsConfiguration(problem)));
    match (provider(object), sts.provider) {
        (BucketProvider::Aws, StsProvider::Aws) if sts.secret_ref.is_some() => {
            refuse("spec.sts.secretRef is not required for the 'aws' STS provider".to_owned())
        }
        (BucketProvider::Aws, StsProvider::Aws) if sts.cert_secret_ref.is_some() => {
            refuse("spec.sts.certSecretRef is not required for the 'aws' STS provider".to_owned())
        }
        (BucketProvider::Aws, StsProvider::Aws) | (BucketProvider::Generic, StsProvider::Ldap) => {
            match Url::parse(&sts.endpoint) {
                Ok(_) => None,
                Err(error) => Some(Error::Bucket(BucketError::StsEndpoint {
                    endpoint: sts.endpoint.clone(),
                    source: error,
                })),
            }
        }
        (BucketProvider::Aws | BucketProvider::Generic, of_sts) => refuse(format!(
            "STS provider '{}' is not supported for '{}' bucket provider",
            name(of_sts),
            name(provider(object))
        )),
        (other, _) => refuse(format!(
            "STS configuration is not supported for '{}' bucket provider",
            name(other)
        )),
    }
}

/// How it is written in manifests.
fn name(provider: impl serde::Serialize) -> String {
    let value = serde_json::to_value(provider).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Reads all Secrets and, where the provider knows such, the ServiceAccount.
pub(crate) async fn read(object: &Bucket, reader: &Reader) -> Result<References, Error> {
    let spec = &object.spec;
    let knows_accounts = provider(object) != BucketProvider::Generic;
    // Before anything is read, as in Flux: whether it may be used at all.
    if knows_accounts && spec.service_account_name.is_some() {
        reader.check_object_level_identity()?;
    }
    let secret = match &spec.secret_ref {
        Some(reference) => Some(
            reader
                .secret(&reference.name)
                .await
                .map_err(|error| denied(AccessError::Secret(error)))?,
        ),
        None => None,
    };
    let sts = spec.sts.as_ref();
    let sts_secret = match sts.and_then(|sts| sts.secret_ref.as_ref()) {
        Some(reference) => Some(
            reader
                .secret(&reference.name)
                .await
                .map_err(|error| denied(AccessError::StsSecret(error)))?,
        ),
        None => None,
    };
    let proxy = match &spec.proxy_secret_ref {
        Some(reference) => Some(reader.proxy(&reference.name).await.map_err(denied)?),
        None => None,
    };
    let tls = certificates(spec.cert_secret_ref.as_ref(), reader).await;
    let sts_tls = certificates(sts.and_then(|sts| sts.cert_secret_ref.as_ref()), reader).await;
    let identity = if knows_accounts && secret.is_none() {
        let account = spec.service_account_name.as_deref();
        let is_plain = spec.insecure || spec.endpoint.starts_with("http://");
        let ways = [
            ("spec.proxySecretRef", spec.proxy_secret_ref.is_some()),
            ("spec.certSecretRef", spec.cert_secret_ref.is_some()),
            ("spec.insecure, or an endpoint without TLS,", is_plain),
        ];
        let identity = reader.identity(account, &ways).await?;
        identity.map_err(|error| denied(AccessError::Identity(error)))?
    } else {
        Identity::Controller
    };
    Ok(References {
        store: reader.store.clone(),
        identity,
        secret,
        sts_secret,
        tls: tls.map_err(|error| denied(AccessError::Tls(error)))?,
        sts_tls: sts_tls.map_err(|error| denied(AccessError::StsTls(error)))?,
        proxy,
    })
}

async fn certificates(
    reference: Option<&api::meta::LocalObjectReference>,
    reader: &Reader,
) -> Result<http::Settings, crate::error::TransportError> {
    match reference {
        Some(reference) => Ok(auth::tls(&reader.secret(&reference.name).await?)?),
        None => Ok(http::Settings::default()),
    }
}

/// Where the bucket is, for VerificationPolicies.
pub(super) fn origin(object: &Bucket, references: &References) -> Origin {
    let spec = &object.spec;
    let origin = match provider(object) {
        // Whatever the object says: see there.
        BucketProvider::Gcp => Origin::of_url(gcs::ENDPOINT, false),
        BucketProvider::Azure => Origin::of_url(&spec.endpoint, false),
        BucketProvider::Generic | BucketProvider::Aws => {
            Origin::of_url(&format!("https://{}", spec.endpoint), spec.insecure)
        }
    };
    let own_authorities = references.tls.ca.is_some();
    let origin = origin.with_name(&spec.bucket_name);
    origin.asked_by(references.proxy.is_some(), own_authorities)
}

/// The store that the object names, with its credentials.
pub(crate) async fn remote(
    object: &Bucket,
    references: &References,
    fetcher: &Fetcher,
    purpose: Purpose,
) -> Result<Remote, Error> {
    let at = At {
        object,
        references,
        fetcher,
        purpose,
    };
    let remote = match provider(object) {
        BucketProvider::Generic | BucketProvider::Aws => at.s3().await.map(Remote::S3),
        BucketProvider::Gcp => at.gcs().await.map(Remote::Gcs),
        BucketProvider::Azure => at.azure().await.map(Remote::Azure),
    };
    remote.map_err(denied)
}

struct At<'a> {
    object: &'a Bucket,
    references: &'a References,
    fetcher: &'a Fetcher,
    purpose: Purpose,
}

impl At<'_> {
    fn invalid(&self, problem: &'static str) -> AccessError {
        let reference = self.object.spec.secret_ref.as_ref();
        AccessError::Invalid {
            secret: reference
                .map(|reference| reference.name.clone())
                .unwrap_or_default(),
            problem,
        }
    }

    fn client(&self, host: &str) -> Result<reqwest::Client, AccessError> {
        let settings = http::Settings {
            proxy: self.references.proxy.clone(),
            ..self.references.tls.clone()
        };
        let client = self.fetcher.clients.get(&settings.towards(host))?;
        Ok((*client).clone())
    }

    /// For token services: through the object's proxy, with these certificates.
    fn exchange(&self, tls: http::Settings) -> Exchange {
        Exchange {
            clients: self.fetcher.clients.clone(),
            settings: http::Settings {
                proxy: self.references.proxy.clone(),
                ..tls
            },
            deadline: Some(self.fetcher.deadline(self.object.timeout())),
        }
    }

    async fn s3(&self) -> Result<S3, AccessError> {
        let spec = &self.object.spec;
        let address = s3::Address {
            endpoint: &spec.endpoint,
            insecure: spec.insecure,
            bucket: &spec.bucket_name,
            prefix: spec.prefix.as_deref(),
            region: spec.region.as_deref(),
        };
        let client = self.client(&address.host()?)?;
        Ok(S3::new(&address, self.keys().await?, client)?)
    }

    async fn keys(&self) -> Result<Option<aws::Keys>, AccessError> {
        if let Some(secret) = &self.references.secret {
            return self.keys_of_secret(secret);
        }
        let sts = self.object.spec.sts.as_ref();
        match (provider(self.object), sts) {
            (BucketProvider::Aws, sts) => self.keys_of_identity(sts).await.map(Some),
            (_, Some(sts)) => self.keys_of_ldap(sts).await.map(Some),
            (_, None) => Ok(None),
        }
    }

    fn keys_of_secret(&self, secret: &SecretData) -> Result<Option<aws::Keys>, AccessError> {
        let (Some(id), Some(key)) = (secret.get("accesskey"), secret.get("secretkey")) else {
            return Err(self.invalid("required fields 'accesskey' and 'secretkey'"));
        };
        let keys = aws::Keys {
            access_key_id: String::from_utf8_lossy(id).into_owned(),
            secret_access_key: String::from_utf8_lossy(key).into_owned(),
            session_token: None,
        };
        Ok(Some(keys).filter(|_| !id.is_empty() && !key.is_empty()))
    }

    async fn keys_of_identity(&self, sts: Option<&BucketSts>) -> Result<aws::Keys, AccessError> {
        let access = aws::Access {
            region: self.object.spec.region.clone(),
            sts_endpoint: sts.map(|sts| sts.endpoint.clone()),
        };
        let exchange = self.exchange(http::Settings::default());
        let session = self.fetcher.identities.session(&exchange);
        let token = access_token(&access, &self.references.identity, session).await;
        let token = token.map_err(|source| AccessError::Token { cloud: "AWS", source })?;
        // The provider makes nothing else.
        Ok(token.as_keys().cloned().expect("tokens of AWS are keys"))
    }

    async fn keys_of_ldap(&self, sts: &BucketSts) -> Result<aws::Keys, AccessError> {
        let invalid = || AccessError::Invalid {
            secret: sts
                .secret_ref
                .as_ref()
                .map(|reference| reference.name.clone())
                .unwrap_or_default(),
            problem: "required fields username, password for the 'ldap' STS provider",
        };
        let (username, password) = match &self.references.sts_secret {
            Some(secret) => {
                let text = |key| text(secret, key).ok_or_else(invalid);
                (text("username")?, text("password")?)
            }
            None => Default::default(),
        };
        let endpoint = Url::parse(&sts.endpoint).map_err(|_| AccessError::Endpoint(sts.endpoint.clone()))?;
        let exchange = self.exchange(self.references.sts_tls.clone());
        let token = aws::assume_role_with_ldap_identity(&exchange, endpoint, &username, &password).await;
        let token = token.map_err(|source| AccessError::Token {
            cloud: "LDAP",
            source,
        })?;
        Ok(token.as_keys().cloned().expect("tokens of this service are keys"))
    }

    async fn gcs(&self) -> Result<Gcs, AccessError> {
        let spec = &self.object.spec;
        let emulator = self.fetcher.identities.storage_emulator.as_deref();
        let endpoint = gcs::endpoint(emulator)?;
        let token = match emulator {
            Some(_) => None,
            None => Some(self.gcs_token().await?),
        };
        let client = self.client(endpoint.host_str().unwrap_or_default())?;
        Ok(Gcs::new(
            endpoint,
            &spec.bucket_name,
            spec.prefix.as_deref(),
            token.as_deref(),
            client,
        )?)
    }

    async fn gcs_token(&self) -> Result<String, AccessError> {
        let exchange = self.exchange(http::Settings::default());
        let session = self.fetcher.identities.session(&exchange);
        let token = match &self.references.secret {
            Some(secret) => {
                let key = secret.get("serviceaccount");
                let key = key.ok_or_else(|| self.invalid("required fields 'serviceaccount'"))?;
                match AccountKey::parse(key) {
                    Ok(key) => key.access_token(self.purpose.scope(), session).await,
                    Err(error) => Err(error),
                }
            }
            None => access_token(&gcp::Access, &self.references.identity, session).await,
        };
        let token = token.map_err(|source| AccessError::Token { cloud: "GCP", source })?;
        Ok(token.as_bearer().unwrap_or_default().to_owned())
    }

    async fn azure(&self) -> Result<Azure, AccessError> {
        let spec = &self.object.spec;
        let endpoint = Url::parse(&spec.endpoint)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| AccessError::Endpoint(spec.endpoint.clone()))?;
        let credential = match &self.references.secret {
            Some(secret) if !secret.is_empty() => self.azure_secret(secret, &endpoint).await?,
            Some(_) => return Err(self.invalid(AZURE_FIELDS)),
            None => self.azure_identity(&endpoint).await?,
        };
        let client = self.client(endpoint.host_str().unwrap_or_default())?;
        Ok(Azure::new(
            endpoint,
            &spec.bucket_name,
            spec.prefix.as_deref(),
            credential,
            client,
        )?)
    }

    /// In the order of Flux: an application, a managed identity, the key of the account, a signature.
    async fn azure_secret(&self, secret: &SecretData, endpoint: &Url) -> Result<Credential, AccessError> {
        let failed = |source| AccessError::Token {
            cloud: "Azure",
            source,
        };
        let exchange = self.exchange(http::Settings::default());
        let session = self.fetcher.identities.session(&exchange);
        let client = text(secret, "clientId");
        if let Some(application) = application(secret) {
            let token = application
                .access_token(BLOB_STORAGE, session)
                .await
                .map_err(failed)?;
            return Ok(Credential::Bearer(
                token.as_bearer().unwrap_or_default().to_owned(),
            ));
        }
        if let Some(client) = client {
            // The identity is one of the node, which is not the tenant's.
            if !is_of_microsoft(endpoint) {
                return Err(AccessError::ForeignEndpoint(endpoint_shown(endpoint)));
            }
            let token = azure::managed_identity(Some(&client), BLOB_STORAGE, session).await;
            let token = token.map_err(failed)?;
            return Ok(Credential::Bearer(
                token.as_bearer().unwrap_or_default().to_owned(),
            ));
        }
        if let Some(key) = text(secret, "accountKey") {
            let name = account(endpoint);
            let name = name.ok_or_else(|| AccessError::Account(endpoint_shown(endpoint)))?;
            return Ok(Credential::Key(SharedKey::parse(name, &key).map_err(failed)?));
        }
        let signature = text(secret, "sasKey").ok_or_else(|| self.invalid(AZURE_FIELDS))?;
        Ok(Credential::Signature(signature))
    }

    /// The identity of the ServiceAccount or of the controller. Without any the bucket is taken for a public one.
    async fn azure_identity(&self, endpoint: &Url) -> Result<Credential, AccessError> {
        let exchange = self.exchange(http::Settings::default());
        let session = self.fetcher.identities.session(&exchange);
        let is_account = matches!(self.references.identity, Identity::Account(_));
        if !is_of_microsoft(endpoint) {
            return if is_account {
                Err(AccessError::ForeignEndpoint(endpoint_shown(endpoint)))
            } else {
                Ok(Credential::Anonymous)
            };
        }
        let access = azure::Access {
            scope: BLOB_STORAGE.to_owned(),
        };
        match access_token(&access, &self.references.identity, session).await {
            Ok(token) => Ok(Credential::Bearer(
                token.as_bearer().unwrap_or_default().to_owned(),
            )),
            Err(source) if is_account => Err(AccessError::Token {
                cloud: "Azure",
                source,
            }),
            Err(error) => {
                tracing::debug!(
                    error = error_chain::chain(&error),
                    "no identity at Azure; reading the bucket without"
                );
                Ok(Credential::Anonymous)
            }
        }
    }
}

const AZURE_FIELDS: &str = "requires a 'clientId' or 'accountKey' field, a combination of 'tenantId', 'clientId' and \
                            'clientSecret', or 'tenantId', 'clientId' and 'clientCertificate'";

fn application(secret: &SecretData) -> Option<Application> {
    let (tenant, client) = (text(secret, "tenantId")?, text(secret, "clientId")?);
    let credential = match (text(secret, "clientSecret"), secret.get("clientCertificate")) {
        (Some(secret), _) => azure::Credential::Secret(secret),
        (None, Some(pem)) if !pem.is_empty() => azure::Credential::Certificate {
            pem: pem.clone(),
            send_chain: text(secret, "clientCertificateSendChain")
                .is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true")),
        },
        _ => return None,
    };
    Some(Application::new(
        text(secret, "authorityHost"),
        tenant,
        client,
        credential,
    ))
}

fn text(secret: &SecretData, key: &str) -> Option<String> {
    let value = secret.get(key)?;
    let text = String::from_utf8_lossy(value).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn endpoint_shown(endpoint: &Url) -> String {
    http::public(endpoint)
}

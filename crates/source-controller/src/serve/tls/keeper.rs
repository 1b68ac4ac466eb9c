//! Keeps our own authority in the cluster, and the certificate of this process fresh.
//!
//! The Secret has the authorities with their keys, the ConfigMap of the same name their certificates alone, so that
//! clients need no Secret. Both are written with the resource version that was read: of two replicas that find
//! none, one makes it and the other reads it. Sleeps until something is due or someone touches them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};

use super::{
    authority::{self, Authorities},
    certificate::Certificate,
};

/// Key of the certificates, as elsewhere in Kubernetes.
pub const CERTIFICATES_KEY: &str = "ca.crt";
/// Key of all that is known of the authorities.
const AUTHORITIES_KEY: &str = "authorities.json";
/// Label, and field manager: the program of an image has another name.
const COMPONENT: &str = "source-controller";
/// Times that someone else may be faster.
const ATTEMPTS: usize = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or did not answer.
    #[error("failed to {operation} '{name}' with the authority of the artifact service")]
    Api {
        /// Verb and kind.
        operation: &'static str,
        /// Namespace and name.
        name: String,
        /// Error of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// The Secret is not ours, or was changed.
    #[error(
        "failed to use the Secret '{name}' with the authority of the artifact service: delete it to have a new one made"
    )]
    Damaged {
        /// Namespace and name.
        name: String,
        /// The error.
        #[source]
        source: Option<authority::Error>,
    },
    /// No certificate can be made.
    #[error("failed to make the certificate of the artifact service")]
    Issue(#[from] authority::Error),
    /// Others change them all the time.
    #[error(
        "failed to write '{name}' with the authority of the artifact service: others were faster each time"
    )]
    Contended {
        /// Namespace and name.
        name: String,
    },
}

/// Where the authority is kept, and what certificates are for.
pub struct Keeper {
    client: Client,
    namespace: String,
    /// Of the Secret and of the ConfigMap.
    name: String,
    /// Host names and addresses by which clients reach us.
    hosts: Vec<String>,
    certificate: Arc<Certificate>,
    shown: Option<(Authorities, Timestamp)>,
}

impl Keeper {
    /// Keeps `certificate` fresh once it is told to.
    pub fn new(
        client: Client,
        namespace: String,
        name: String,
        hosts: Vec<String>,
        certificate: Arc<Certificate>,
    ) -> Self {
        Self {
            client,
            namespace,
            name,
            hosts,
            certificate,
            shown: None,
        }
    }

    /// Reads or makes the authority, publishes it, and shows a certificate. Says when to come again.
    ///
    /// # Errors
    /// When the API server refuses, or the Secret is damaged.
    pub async fn refresh(&mut self, now: Timestamp) -> Result<Timestamp, Error> {
        let authorities = self.authorities(now).await?;
        self.publish(&authorities.bundle()).await?;
        if let Some((shown, renew_at)) = &self.shown
            && *shown == authorities
            && now < *renew_at
        {
            return Ok(*renew_at);
        }
        let issued = authorities.issue(&self.hosts, now)?;
        self.certificate.set(issued.certificate);
        self.shown = Some((authorities, issued.renew_at));
        tracing::info!(logger = "artifact-service", until = %issued.renew_at, "issued a certificate");
        Ok(issued.renew_at)
    }

    /// Refreshes for ever: when it is due, when Secret or ConfigMap change, and again after a failure.
    pub async fn keep(mut self) {
        let name = self.name.clone();
        let secrets = watcher::watch_object(self.secrets(), &name)
            .default_backoff()
            .map(drop);
        let config_maps = watcher::watch_object(self.config_maps(), &name)
            .default_backoff()
            .map(drop);
        let mut touched = std::pin::pin!(futures::stream::select(secrets, config_maps));
        let mut pause = FIRST_PAUSE;
        loop {
            let wait = match self.refresh(Timestamp::now()).await {
                Ok(due) => {
                    pause = FIRST_PAUSE;
                    Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or_default()
                }
                Err(error) => {
                    let error = error_chain::chain(&error);
                    tracing::error!(
                        logger = "artifact-service",
                        error,
                        "no certificate for the artifact service"
                    );
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    pause
                }
            };
            // Nothing may turn this into a busy loop, watches that fail included.
            tokio::time::sleep(FIRST_PAUSE.min(wait)).await;
            tokio::select! {
                () = tokio::time::sleep(wait.saturating_sub(FIRST_PAUSE)) => {}
                Some(()) = touched.next(), if wait > FIRST_PAUSE => {}
            }
        }
    }

    async fn authorities(&self, now: Timestamp) -> Result<Authorities, Error> {
        let secrets = self.secrets();
        for _ in 0..ATTEMPTS {
            let found = secrets
                .get_opt(&self.name)
                .await
                .map_err(self.failed("get the Secret"))?;
            let current = found.as_ref().map(|secret| self.parse(secret)).transpose()?;
            let current = current.unwrap_or_default();
            let Some(renewed) = current.renewed(now)? else {
                return Ok(current);
            };
            let secret = Secret {
                metadata: self.metadata(found.map(|found| found.metadata)),
                data: Some(BTreeMap::from([
                    (AUTHORITIES_KEY.to_owned(), ByteString(renewed.to_json()?)),
                    (
                        CERTIFICATES_KEY.to_owned(),
                        ByteString(renewed.bundle().into_bytes()),
                    ),
                ])),
                ..Secret::default()
            };
            match write(&secrets, &secret).await {
                Ok(()) => {
                    tracing::info!(
                        logger = "artifact-service",
                        secret = self.full_name(),
                        "made a certificate authority"
                    );
                    return Ok(renewed);
                }
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(self.failed("write the Secret")(error)),
            }
        }
        Err(Error::Contended {
            name: self.full_name(),
        })
    }

    fn parse(&self, secret: &Secret) -> Result<Authorities, Error> {
        let damaged = |source| Error::Damaged {
            name: self.full_name(),
            source,
        };
        let data = secret.data.as_ref().and_then(|data| data.get(AUTHORITIES_KEY));
        let data = data.ok_or_else(|| damaged(None))?;
        Authorities::parse(&data.0).map_err(|error| damaged(Some(error)))
    }

    /// Writes the certificates where clients read them, if they are not there.
    async fn publish(&self, bundle: &str) -> Result<(), Error> {
        let config_maps = self.config_maps();
        for _ in 0..ATTEMPTS {
            let found = config_maps
                .get_opt(&self.name)
                .await
                .map_err(self.failed("get the ConfigMap"))?;
            let data = BTreeMap::from([(CERTIFICATES_KEY.to_owned(), bundle.to_owned())]);
            if found
                .as_ref()
                .is_some_and(|found| found.data.as_ref() == Some(&data))
            {
                return Ok(());
            }
            let config_map = ConfigMap {
                metadata: self.metadata(found.map(|found| found.metadata)),
                data: Some(data),
                ..ConfigMap::default()
            };
            match write(&config_maps, &config_map).await {
                Ok(()) => return Ok(()),
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(self.failed("write the ConfigMap")(error)),
            }
        }
        Err(Error::Contended {
            name: self.full_name(),
        })
    }

    /// Of a new object, or of the one that was found, with its resource version.
    fn metadata(&self, found: Option<ObjectMeta>) -> ObjectMeta {
        let labels = [
            ("app.kubernetes.io/part-of", "windlass"),
            ("app.kubernetes.io/component", COMPONENT),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        found.unwrap_or_else(|| ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        })
    }

    fn failed(&self, operation: &'static str) -> impl Fn(kube::Error) -> Error {
        let name = self.full_name();
        move |source| Error::Api {
            operation,
            name: name.clone(),
            source: Box::new(source),
        }
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// Creates an object, or replaces the one with its resource version.
async fn write<K>(api: &Api<K>, object: &K) -> Result<(), kube::Error>
where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let parameters = PostParams {
        field_manager: Some(COMPONENT.to_owned()),
        ..PostParams::default()
    };
    let written = match (&object.meta().resource_version, &object.meta().name) {
        (Some(_), Some(name)) => api.replace(name, &parameters, object).await,
        _ => api.create(&parameters, object).await,
    };
    written.map(drop)
}

/// Someone else was faster.
fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

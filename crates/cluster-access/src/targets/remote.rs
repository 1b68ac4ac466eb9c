//! What `spec.kubeConfig` refers to: the Secret with a kubeconfig, or the ConfigMap that describes a cluster. Both are
//! in the namespace of the object.

use artifact::Digest;
use controller_kit::check_name;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use workload_identity::api_message;

use super::described::{Asker, Description};
use super::error::Error;
use super::target::Placement;

/// A cluster that is not this one.
pub(super) enum Remote {
    /// As a kubeconfig says.
    Kubeconfig(Kubeconfig),
    /// As a ConfigMap says.
    Described(Description),
}

/// A kubeconfig and where it was found.
pub(super) struct Kubeconfig {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Remote {
    /// Differs wherever another cluster, or someone else there, could be meant. Who impersonates an account does not have
    /// the user of a kubeconfig, and the other way round.
    pub(super) fn digest(&self, impersonates: bool) -> Digest {
        let what = match self {
            Self::Kubeconfig(found) => Digest::from_content(&found.bytes),
            Self::Described(description) => description.digest(),
        };
        Digest::from_content(format!("{impersonates} {what}").as_bytes())
    }
}

/// Reads what the spec refers to; None if the objects are in this cluster.
pub(super) async fn read(
    client: &Client,
    placement: Placement<'_>,
    asker: Asker<'_>,
) -> Result<Option<Remote>, Error> {
    let Some(reference) = placement.kube_config else {
        return Ok(None);
    };
    let namespace = placement.namespace.to_owned();
    if let Some(secret) = &reference.secret_ref {
        let key = secret.key.as_deref().filter(|key| !key.is_empty());
        let found = kubeconfig(client, namespace, secret.name.clone(), key).await?;
        return Ok(Some(Remote::Kubeconfig(found)));
    }
    let Some(map) = &reference.config_map_ref else {
        return Ok(None);
    };
    let described = description(client, namespace, map.name.clone(), asker).await?;
    Ok(Some(Remote::Described(described)))
}

async fn kubeconfig(
    client: &Client,
    namespace: String,
    name: String,
    key: Option<&str>,
) -> Result<Kubeconfig, Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let found = match check_name(&name) {
        Ok(()) => match secrets.get_opt(&name).await {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => Err(("it does not exist".to_owned(), true)),
            Err(error) => Err((error.to_string(), false)),
        },
        Err(problem) => Err((problem, false)),
    };
    let secret = match found {
        Ok(secret) => secret,
        Err((problem, missing)) => {
            return Err(Error::ReadSecret {
                namespace,
                name,
                problem,
                missing,
            });
        }
    };
    let mut data = secret.data.unwrap_or_default();
    let mut take = |key: &str| data.remove(key).map(|bytes| bytes.0);
    let bytes = match key {
        Some(key) => take(key),
        None => take("value").or_else(|| take("value.yaml")),
    };
    match bytes {
        Some(bytes) => Ok(Kubeconfig {
            namespace,
            name,
            bytes,
        }),
        None => Err(Error::MissingKey {
            namespace,
            name,
            key: key.unwrap_or("value").to_owned(),
        }),
    }
}

async fn description(
    client: &Client,
    namespace: String,
    name: String,
    asker: Asker<'_>,
) -> Result<Description, Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let found = match check_name(&name) {
        Ok(()) => maps.get(&name).await.map_err(|error| {
            let missing = matches!(&error, kube::Error::Api(status) if status.code == 404);
            (api_message(&error), missing)
        }),
        Err(problem) => Err((problem, false)),
    };
    match found {
        Ok(map) => {
            let data = map.data.unwrap_or_default();
            Description::new(&namespace, &name, &data, asker).map_err(|problem| Error::UseConfigMap {
                namespace,
                name,
                problem,
            })
        }
        Err((problem, missing)) => Err(Error::ReadConfigMap {
            namespace,
            name,
            problem,
            missing,
        }),
    }
}

//! Tags of an artifact in a registry, with their digests.

use std::time::Duration;

use api::flux_operator::{AnyMap, ResourceSetInputProvider, ServiceFamily};
use api::source::OCIProvider;
use futures::StreamExt as _;
use oci_client::credentials;
use oci_client::name::Name;
use oci_client::registry::Repository;
use remote_access::identity::registry_credentials;
use resource_set::found::{Filter, Named};
use tokio::time::Instant;
use transport::http;
use workload_identity::Exchange;

use super::{Error as ProviderError, namespace, secrets};
use crate::context::Context;

/// Digests that are asked for at once.
const AT_ONCE: usize = 8;

/// Why the tags cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The address.
    #[error("spec.url")]
    Name(#[from] oci_client::name::Error),
    /// The data of the Secret.
    #[error("failed to read the credentials of spec.secretRef")]
    Credentials(#[from] credentials::Error),
    /// Credentials of a cloud provider.
    #[error("failed to sign in at the cloud provider")]
    Cloud(#[from] cloud_identity::Error),
    /// No client can be made of the certificates.
    #[error("failed to configure TLS")]
    Client(#[from] http::Error),
    /// The registry.
    #[error("failed to list tags")]
    List(#[from] oci_client::registry::Error),
    /// The registry, about a tag.
    #[error("failed to find the digest of the tag '{tag}'")]
    Digest {
        /// The tag.
        tag: String,
        /// Why.
        source: oci_client::PullError,
    },
}

/// Lists the tags that count.
pub(super) async fn read(
    object: &ResourceSetInputProvider,
    filter: &Filter,
    timeout: Duration,
    context: &Context,
) -> Result<Vec<AnyMap>, ProviderError> {
    let repository = repository(object, timeout, context).await?;
    let tags = repository.tags().await.map_err(Error::from)?;
    let counting = filter.tags(
        tags.iter()
            .map(String::as_str)
            .filter(|tag| oci_client::is_tag(tag)),
    );
    let digests = counting.into_iter().map(|tag| {
        let repository = &repository;
        async move {
            let digest = oci_client::digest_of_tag(repository, tag).await;
            let digest = digest.map_err(|source| Error::Digest {
                tag: tag.to_owned(),
                source,
            })?;
            let named = Named {
                name: tag.to_owned(),
                target: digest.to_string(),
            };
            Ok::<_, Error>(named.inputs("tag", "digest"))
        }
    });
    let digests: Vec<_> = digests.collect();
    let found: Vec<Result<AnyMap, Error>> = futures::stream::iter(digests).buffered(AT_ONCE).collect().await;
    let found: Result<Vec<_>, Error> = found.into_iter().collect();
    Ok(found?)
}

async fn repository(
    object: &ResourceSetInputProvider,
    timeout: Duration,
    context: &Context,
) -> Result<Repository, ProviderError> {
    let spec = &object.spec;
    let deadline = Instant::now() + timeout;
    let name = Name::parse(&spec.url).map_err(Error::from)?;
    let (secret, settings) = secrets(object, context).await?;
    let provider = match spec.type_.parts().0 {
        ServiceFamily::Acr => OCIProvider::Azure,
        ServiceFamily::Ecr => OCIProvider::Aws,
        ServiceFamily::Gar => OCIProvider::Gcp,
        _ => OCIProvider::Generic,
    };
    let credentials = match secret {
        Some(secret) => credentials::find(&[secret], &name).map_err(Error::from)?,
        None => {
            let account = Some(spec.service_account_name.as_str()).filter(|account| !account.is_empty());
            let reader = context.reader(&namespace(object));
            let ways = [("spec.certSecretRef", spec.cert_secret_ref.is_some())];
            let identity = match provider {
                OCIProvider::Generic => cloud_identity::Identity::Controller,
                _ => reader.identity(account, &ways).await??,
            };
            let exchange = Exchange {
                clients: context.clients.clone(),
                settings: http::Settings::default(),
                deadline: Some(deadline),
            };
            let found =
                registry_credentials(provider, name.host(), &identity, &context.identities, &exchange).await;
            found.map_err(Error::from)?
        }
    };
    let client = context.clients.get(&settings.towards(name.host()));
    Ok(Repository {
        client: client.map_err(Error::from)?,
        name,
        insecure: spec.insecure,
        credentials,
        memory: context.registries.clone(),
        deadline,
    })
}

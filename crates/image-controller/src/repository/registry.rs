//! The registry of an image, with the credentials that the ImageRepository refers to.

use std::time::Duration;

use api::image::ImageRepository;
use api::source::OCIProvider;
use cloud_identity::Identity;
use jiff::{Timestamp, Unit};
use oci_client::credentials::{self, Credentials};
use oci_client::name::Name;
use oci_client::registry::Repository;
use remote_access::error::{IdentityError, ProxyError, ReadError};
use remote_access::identity::registry_credentials;
use tokio::time::Instant;
use transport::{auth, http};
use workload_identity::Exchange;

use crate::context::Context;
use crate::pauses::Way;

/// Why a registry cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A Secret or a ServiceAccount.
    #[error("failed to configure authentication options")]
    Read(#[from] ReadError),
    /// The data of pull secrets.
    #[error("failed to configure authentication options")]
    Credentials(#[from] credentials::Error),
    /// The identity at a provider.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Credentials of a provider.
    #[error("failed to configure authentication options")]
    Provider(#[from] cloud_identity::Error),
    /// `spec.proxySecretRef`.
    #[error("failed to configure proxy options")]
    Proxy(#[from] ProxyError),
    /// The data of `spec.certSecretRef`.
    #[error("failed to configure transport options")]
    Tls(#[from] auth::Error),
    /// The registry asked for a pause, because of this object or another.
    #[error("the registry '{host}' asked for a pause until {until}")]
    Paused {
        /// Name of the registry.
        host: String,
        /// When the pause ends.
        until: Timestamp,
        /// How long the pause lasts.
        rest: Duration,
    },
    /// No client can be made of it.
    #[error("failed to configure transport options")]
    Build(#[source] http::Error),
}

/// The repository of the image, as the object's tenant may see it.
pub(crate) async fn repository(
    object: &ImageRepository,
    name: Name,
    context: &Context,
) -> Result<Repository, Error> {
    let spec = &object.spec;
    let deadline = Instant::now() + object.timeout().to_std();
    let reader = context.reader(object.metadata.namespace.as_deref().unwrap_or_default());
    let proxy = match &spec.proxy_secret_ref {
        Some(reference) => Some(reader.proxy(&reference.name).await?),
        None => None,
    };
    let tls = match &spec.cert_secret_ref {
        Some(reference) => Some(auth::tls(&reader.secret(&reference.name).await?)?),
        None => None,
    };
    let credentials = credentials_of(object, &name, proxy.clone(), deadline, context).await?;
    // Whoever gives certificates wants them checked.
    let skip_verification = spec.insecure && tls.is_none();
    let settings = http::Settings {
        proxy,
        skip_verification,
        ..tls.unwrap_or_default()
    };
    let client = context
        .clients
        .get(&settings.towards(name.host()))
        .map_err(Error::Build)?;
    let remote = Repository {
        name,
        insecure: spec.insecure,
        credentials,
        client,
        memory: context.registries.clone(),
        deadline,
    };
    let way = Way::new(object, &remote);
    match context.pauses.rest(&way) {
        None => {
            context.pauses.turn(way).await;
            Ok(remote)
        }
        Some(rest) => {
            let until = Timestamp::now().saturating_add(rest).unwrap_or(Timestamp::MAX);
            Err(Error::Paused {
                host: remote.name.host().to_owned(),
                until: until.round(Unit::Second).unwrap_or(until),
                rest,
            })
        }
    }
}

/// How an object signs in: by its Secrets, or as who it is at a provider.
async fn credentials_of(
    object: &ImageRepository,
    name: &Name,
    proxy: Option<http::Proxy>,
    deadline: Instant,
    context: &Context,
) -> Result<Option<Credentials>, Error> {
    let spec = &object.spec;
    let reader = context.reader(object.metadata.namespace.as_deref().unwrap_or_default());
    let account = spec.service_account_name.as_deref();
    let mut secrets = Vec::new();
    if let Some(reference) = &spec.secret_ref {
        secrets.push(reader.secret(&reference.name).await?);
    }
    let mut identity = Identity::Controller;
    if object.provider() == OCIProvider::Generic {
        if let Some(account) = account {
            secrets.extend(reader.pull_secrets(account).await?);
        }
    } else if secrets.is_empty() {
        let ways = [
            ("spec.proxySecretRef", spec.proxy_secret_ref.is_some()),
            ("spec.certSecretRef", spec.cert_secret_ref.is_some()),
            ("spec.insecure", spec.insecure),
        ];
        identity = reader.identity(account, &ways).await??;
    }
    if !secrets.is_empty() {
        return Ok(credentials::find(&secrets, name)?);
    }
    let exchange = Exchange {
        clients: context.clients.clone(),
        settings: http::Settings {
            proxy,
            ..Default::default()
        },
        deadline: Some(deadline),
    };
    let (provider, identities) = (object.provider(), &context.identities);
    Ok(registry_credentials(provider, name.host(), &identity, identities, &exchange).await?)
}

/// Remembers a pause that the registry asked for, if the error says so.
pub(crate) fn heed(
    error: &(dyn std::error::Error + 'static),
    object: &ImageRepository,
    remote: &Repository,
    context: &Context,
) {
    if let Some(pause) = pause(error) {
        context.meters.paused();
        context.pauses.pause(Way::new(object, remote), pause);
    }
}

/// The pause that a registry asked for, now or before.
pub(crate) fn pause(error: &(dyn std::error::Error + 'static)) -> Option<Duration> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(asked) = error.downcast_ref::<http::RetryAfter>() {
            return Some(asked.pause());
        }
        if let Some(Error::Paused { rest, .. }) = error.downcast_ref::<Error>() {
            return Some(*rest);
        }
        next = error.source();
    }
    None
}

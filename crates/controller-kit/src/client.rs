//! The connection to the Kubernetes API.
//!
//! In: the flags, and $KUBECONFIG or the service account. Out: one [`kube::Client`] that all parts of the
//! process share. All requests and watches go over one HTTP/2 connection (kube's own stack opens one HTTP/1.1
//! connection per watch), are counted, and are held back when the server has no priority and fairness.

mod error;
mod limit;
mod stack;

use kube::{Client, Config};

use crate::flags::ClientFlags;
use crate::metrics::RestMetrics;
use limit::TokenBucket;

pub use error::Error;

/// Makes the client that the environment describes: $KUBECONFIG or ~/.kube/config, else the service account. `name` is that of the
/// controller, as audit logs and field managers have it: the program of an image is called otherwise.
///
/// As in Flux, requests are limited here (--kube-api-qps, --kube-api-burst) only if the API server does not
/// say that it does so itself.
pub async fn connect(name: &str, flags: &ClientFlags, metrics: &RestMetrics) -> Result<Client, Error> {
    let config = Config::infer()
        .await
        .map_err(|error| Error::Configure(Box::new(error)))?;
    connect_to(config, name, flags, metrics).await
}

/// Makes the client of a cluster that is described by `config`.
pub async fn connect_to(
    config: Config,
    name: &str,
    flags: &ClientFlags,
    metrics: &RestMetrics,
) -> Result<Client, Error> {
    let bucket = TokenBucket::from_flags(flags);
    let client = stack::build(config, name, bucket.clone(), metrics.clone())?;
    if let Some(bucket) = bucket
        && has_priority_and_fairness(&client).await
    {
        bucket.open();
    }
    Ok(client)
}

/// Returns whether the server schedules requests by priority and fairness: it names the flow in each answer then.
async fn has_priority_and_fairness(client: &Client) -> bool {
    let request = http::Request::head("/livez/ping").body(kube::client::Body::empty());
    let Ok(request) = request else { return false };
    match client.send(request).await {
        Ok(response) => response.headers().contains_key("x-kubernetes-pf-flowschema-uid"),
        Err(error) => {
            tracing::debug!(%error, "the API server did not answer the question for priority and fairness");
            false
        }
    }
}

//! Credentials for calling another controller of ours: the authority to trust, and a service account token.
//!
//! Both change while the process runs, so they are handed out as channels that always have the newest value. Files
//! (projected volumes) need nothing from here.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::watch;

/// How long a token is asked to be good.
const TOKEN_LIFE: Duration = Duration::from_secs(3600);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A text that changes; None until it is known.
pub type Newest = watch::Receiver<Option<Arc<str>>>;

/// The value of a key of a ConfigMap, and the work that keeps it newest.
///
/// A ConfigMap that is deleted leaves the value as it was: what was trusted still is.
pub fn config_map_key(
    client: Client,
    namespace: &str,
    name: &str,
    key: &'static str,
) -> (Newest, impl Future<Output = ()> + Send + use<>) {
    let (sender, newest) = watch::channel(None);
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    let name = name.to_owned();
    let work = async move {
        let mut found = std::pin::pin!(watcher::watch_object(api, &name).default_backoff());
        while let Some(config_map) = found.next().await {
            match config_map {
                Ok(Some(config_map)) => {
                    let value = config_map.data.and_then(|mut data| data.remove(key));
                    if let Some(value) = value {
                        sender.send_replace(Some(value.into()));
                    } else {
                        tracing::warn!(name, key, "the ConfigMap has no such key");
                    }
                }
                Ok(None) => tracing::warn!(name, "the ConfigMap is not there (yet)"),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(name, error, "failed to watch the ConfigMap");
                }
            }
        }
    };
    (newest, work)
}

/// A token of a service account for an audience, and the work that gets the next one in time.
pub fn service_account_token(
    client: Client,
    namespace: &str,
    name: &str,
    audience: &str,
) -> (Newest, impl Future<Output = ()> + Send + use<>) {
    let (sender, newest) = watch::channel(None);
    let api: Api<ServiceAccount> = Api::namespaced(client, namespace);
    let name = name.to_owned();
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: vec![audience.to_owned()],
            expiration_seconds: i64::try_from(TOKEN_LIFE.as_secs()).ok(),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let work = async move {
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = api
                .create_token_request(&name, &PostParams::default(), &request)
                .await;
            match answer.map(|answer| answer.status) {
                Ok(Some(status)) => {
                    sender.send_replace(Some(status.token.into()));
                    tokio::time::sleep(use_for(Timestamp::now(), status.expiration_timestamp.0)).await;
                    pause = FIRST_PAUSE;
                    continue;
                }
                Ok(None) => tracing::warn!(service_account = name, "the API server gave no token"),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(service_account = name, error, "failed to get a token");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    };
    (newest, work)
}

/// Four fifths of the life of a token, as the kubelet does.
fn use_for(now: Timestamp, expires: Timestamp) -> Duration {
    let left = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
    (left / 5 * 4).max(FIRST_PAUSE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mock_api;

    #[test]
    fn a_token_is_replaced_before_it_expires_and_never_in_a_busy_loop() {
        let now = Timestamp::UNIX_EPOCH;
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        assert_eq!(use_for(now, at(3600)), Duration::from_secs(2880));
        assert_eq!(use_for(at(10), now), FIRST_PAUSE);
    }

    #[tokio::test]
    async fn a_token_is_asked_for_with_its_audience() {
        let (client, log) = mock_api::client(|_| {
            let status = json!({"token": "secret", "expirationTimestamp": "2999-01-01T00:00:00Z"});
            (
                201,
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}, "status": status}),
            )
        });
        let (mut newest, work) = service_account_token(client, "flux-system", "apply", "ours");
        let work = tokio::spawn(work);
        let token = newest.wait_for(Option::is_some).await.unwrap().clone();
        assert_eq!(token.as_deref(), Some("secret"));
        work.abort();
        assert_eq!(
            log.lines(),
            ["POST /api/v1/namespaces/flux-system/serviceaccounts/apply/token"]
        );
        assert_eq!(log.all()[0].body["spec"]["audiences"], json!(["ours"]));
    }
}

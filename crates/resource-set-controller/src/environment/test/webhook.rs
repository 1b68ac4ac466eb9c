//! Tests by a CI system: it is called with a kubeconfig whose token ends with the test, and says the result by a commit status.
//!
//! The address is a tenant's: redirects are not followed, and what was answered is in no message.

use std::time::Duration;

use api::delivery::EnvironmentWebhook;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forge::check::State;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use kube::runtime::reflector::ObjectRef;
use serde_json::{Value, json};
use tokio::time::Instant;
use transport::auth::{self, SecretData};
use url::Url;

use super::{Found, Test, said};
use crate::provider::git;

/// Where the certificates of the API server lie in each namespace.
const ROOT: &str = "kube-root-ca.crt";
/// The API server gives no token for less.
const SHORTEST_TOKEN: Duration = Duration::from_mins(10);
/// How often the Git service is asked for the result.
const PAUSE: Duration = Duration::from_secs(15);
/// Longest time for a request.
const REQUEST: Duration = Duration::from_secs(15);

impl Test {
    /// Calls the CI system, and waits for its commit status.
    pub(super) async fn call(&self, webhook: &EnvironmentWebhook, namespace: &str) -> Found {
        let deadline = Instant::now() + self.timeout();
        let kubeconfig = self.kubeconfig(webhook, namespace).await?;
        let body = json!({
            "policy": format!("{}/{}", self.policy.namespace, self.policy.name),
            "provider": self.request.provider,
            "number": self.request.number,
            "commit": self.request.commit,
            "address": self.address,
            "namespace": namespace,
            "commitStatus": webhook.commit_status,
            "kubeconfig": kubeconfig.to_string(),
        });
        let reader = self.context.reader(&self.policy.namespace);
        let secret = reader.secret(&webhook.secret_ref.name).await;
        let secret = secret.map_err(|error| error_chain::chain(&error))?;
        self.post(&secret, body.to_string()).await?;
        let name = format!("the commit status '{}'", webhook.commit_status);
        loop {
            match self.result(&webhook.commit_status).await? {
                State::Success => return Ok(()),
                State::Failure => return Err(format!("{name} is a failure")),
                State::Pending if Instant::now() + PAUSE > deadline => {
                    return Err(format!(
                        "{name} was not there within {} s",
                        self.timeout().as_secs()
                    ));
                }
                State::Pending => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn kubeconfig(&self, webhook: &EnvironmentWebhook, namespace: &str) -> Result<Value, String> {
        let roots: Api<ConfigMap> = Api::namespaced(self.target.client.clone(), namespace);
        let root = roots.get(ROOT).await;
        let root =
            root.map_err(|error| format!("failed to read ConfigMap/{namespace}/{ROOT}: {}", said(&error)))?;
        let root = root.data.and_then(|mut data| data.remove("ca.crt"));
        let account = &webhook.service_account_name;
        let lasts = self.timeout().max(SHORTEST_TOKEN).as_secs();
        let request = TokenRequest {
            spec: TokenRequestSpec {
                expiration_seconds: Some(lasts.cast_signed()),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.target.client.clone(), namespace);
        let made = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await;
        let made = made.map_err(|error| {
            let why = said(&error);
            format!("failed to make a token for ServiceAccount/{namespace}/{account}: {why}")
        })?;
        let token = made.status.map(|status| status.token).unwrap_or_default();
        Ok(kubeconfig(
            (&webhook.server, &root.unwrap_or_default()),
            &token,
            namespace,
        ))
    }

    async fn post(&self, secret: &SecretData, body: String) -> Result<(), String> {
        let text = |key: &str| {
            let value = secret
                .get(key)
                .map(|value| String::from_utf8_lossy(value).trim().to_owned());
            value
                .filter(|value| !value.is_empty())
                .ok_or_else(|| format!("the Secret of spec.test.webhook has no '{key}'"))
        };
        let url = Url::parse(&text("address")?);
        let url = url.map_err(|error| format!("the address of spec.test.webhook: {error}"))?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, text("token")?.as_bytes());
        let signature = format!("sha256={}", hex::encode(hmac::sign(&key, body.as_bytes())));
        let settings = auth::tls(secret).map_err(|error| error_chain::chain(&error))?;
        let settings = settings.towards(url.host_str().unwrap_or_default());
        let client = self.context.clients.get(&settings);
        let client = client.map_err(|error| error_chain::chain(&error))?;
        let request = client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("X-Signature", signature)
            .body(body);
        let answer = transport::http::within(Instant::now() + REQUEST, &url, request.send()).await;
        let answer = answer
            .map_err(|error| format!("failed to call the CI system: {}", error_chain::chain(&error)))?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("the CI system answered {}", answer.status())),
        }
    }

    /// What the CI system says of the commit; Pending if that is nothing.
    async fn result(&self, name: &str) -> Result<State, String> {
        let at = ObjectRef::new(&self.request.provider).within(&self.policy.namespace);
        let provider = self.context.providers.cache.get(&at);
        let provider = provider.ok_or("the ResourceSetInputProvider is gone")?;
        let forge = git::open(&provider, REQUEST, &self.context).await;
        let forge = forge.map_err(|error| error_chain::chain(&error))?;
        let checks = match forge.checks(&self.request.commit).await {
            Ok(checks) => checks,
            // It is asked again.
            Err(error) => {
                tracing::info!(
                    error = error_chain::chain(&error),
                    "the result of a test is not known"
                );
                return Ok(State::Pending);
            }
        };
        let found = checks.into_iter().find(|check| check.name == name);
        Ok(found.map_or(State::Pending, |check| check.state))
    }
}

/// Access to a namespace, as `kubectl` reads it.
fn kubeconfig((server, root): (&str, &str), token: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "environment",
        "clusters": [{"name": "environment", "cluster": {
            "server": server, "certificate-authority-data": STANDARD.encode(root),
        }}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "environment", "context": {
            "cluster": "environment", "user": "test", "namespace": namespace,
        }}],
    })
}

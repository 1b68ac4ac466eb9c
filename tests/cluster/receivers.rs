//! Receivers: who may call, what a call does, and what a stranger learns.

mod calls;
mod cli;
mod oidc;
mod replicas;
mod states;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aws_lc_rs::hmac;
use kube::api::DynamicObject;
use kube::{Api, ResourceExt as _};
use reqwest::{Client as Http, StatusCode};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, is_ready, text};
use testkit::{Controller, wait_for};

use crate::world::{PATIENCE, SOURCE, Test};

const NOTIFICATION: &str = "notification.toolkit.fluxcd.io/v1";
const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";
const TOKEN: &str = "the-token-of-the-receiver";

/// A notification-controller for the namespace of a test.
struct Receivers<'a> {
    test: &'a Test,
    controller: Controller,
    http: Http,
}

impl<'a> Receivers<'a> {
    async fn start(test: &'a Test, flags: &[&str]) -> Result<Self> {
        let mut options = ControllerOptions {
            namespace: test.namespace.clone(),
            ..ControllerOptions::default()
        };
        options.flags.push("--watch-all-namespaces=false".to_owned());
        options.flags.extend(flags.iter().map(ToString::to_string));
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        Ok(Self {
            test,
            controller: Controller::start_notification(kubeconfig, options).await?,
            http: Http::builder()
                .no_proxy()
                .timeout(Duration::from_secs(30))
                .build()?,
        })
    }

    fn api(&self) -> Api<DynamicObject> {
        self.test.objects(NOTIFICATION, "Receiver")
    }

    /// Applies a Secret with a token.
    async fn token(&self, token: &str) -> Result<()> {
        self.test
            .apply(&json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "token", "namespace": self.test.namespace},
                "stringData": {"token": token},
            }))
            .await
    }

    /// Applies a Receiver; `spec` may leave out the Secret.
    async fn apply(&self, name: &str, mut spec: Value) -> Result<()> {
        if spec["type"] != "generic-oidc" {
            spec["secretRef"] = json!({"name": "token"});
        }
        self.test
            .apply(&json!({
                "apiVersion": NOTIFICATION, "kind": "Receiver",
                "metadata": {"name": name, "namespace": self.test.namespace},
                "spec": spec,
            }))
            .await
    }

    /// Applies a Receiver and its Secret; returns its path once it is ready.
    async fn ready(&self, name: &str, spec: Value) -> Result<String> {
        self.token(TOKEN).await?;
        self.apply(name, spec).await?;
        let object = wait_for(&self.api(), name, is_current, PATIENCE).await?;
        Ok(text(&object, "/status/webhookPath").to_owned())
    }

    /// Applies a GitRepository of a repository that does not exist, with labels: only its annotation matters.
    async fn target(&self, namespace: &str, name: &str, label: &str) -> Result<()> {
        let mut object = objects::git_repository(namespace, name, "http://127.0.0.1:1/none", "main");
        object["metadata"]["labels"] = json!({"team": label});
        object["spec"]["suspend"] = json!(true);
        self.test.apply(&object).await
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Result<StatusCode> {
        let mut request = self
            .http
            .post(format!("{}{path}", self.controller.receiver_url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_owned()).send().await?;
        let status = answer.status();
        let said = answer.text().await?;
        ensure!(said.is_empty(), "a stranger was told {said:?}");
        Ok(status)
    }

    /// Posts as GitHub does.
    async fn push(&self, path: &str, body: &str) -> Result<StatusCode> {
        let signature = signature(TOKEN, body);
        let headers = [
            ("Content-Type", "application/json"),
            ("X-GitHub-Event", "push"),
            ("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
            ("X-Hub-Signature-256", signature.as_str()),
        ];
        self.post(path, &headers, body).await
    }

    /// When a GitRepository was annotated last; empty if never.
    async fn annotated(&self, namespace: &str, name: &str) -> Result<String> {
        let api = objects::api(&self.test.client, SOURCE, "GitRepository", namespace);
        let object = api
            .get(name)
            .await
            .with_context(|| format!("failed to get {name}"))?;
        Ok(object
            .annotations()
            .get(REQUESTED_AT)
            .cloned()
            .unwrap_or_default())
    }
}

/// Whether the controller has dealt with the spec as it is, and is content.
fn is_current(object: &DynamicObject) -> bool {
    let observed = objects::field(object, "/status/observedGeneration").and_then(Value::as_i64);
    is_ready(object) && observed == object.metadata.generation
}

fn signature(token: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

/// The body of a push; no two are the same.
fn push_of(commit: &str) -> String {
    json!({"ref": "refs/heads/main", "after": commit, "repository": {"full_name": "org/app"}}).to_string()
}

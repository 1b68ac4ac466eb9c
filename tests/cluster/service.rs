//! The artifact service of a controller of the test's own, and calls of it by hand.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use artifact::client::{ArtifactRef, Client, ClientOptions, Error, RemoteTree, SourceObject, Supply};
use kube::api::DynamicObject;
use testkit::controller::ControllerOptions;
use testkit::objects::{is_ready, text};
use testkit::{Controller, wait_for};
use tokio::sync::watch;

use crate::world::{PATIENCE, Test};

/// The name of the Secret and of the ConfigMap with the authority.
pub const AUTHORITY: &str = "windlass-artifact-ca";

/// Options for controllers that run in the test's namespace and look at its objects only.
pub fn own_options(test: &Test, flags: &[String]) -> ControllerOptions {
    let mut options = test.own_shard();
    options.namespace.clone_from(&test.namespace);
    options.flags.extend_from_slice(flags);
    options
}

/// A source-controller in the test's namespace, so that its authority is its own.
pub async fn start_source(test: &Test, flags: &[String]) -> Result<Controller> {
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    Controller::start_source(kubeconfig, own_options(test, flags)).await
}

/// The same, with an address for downloads over HTTP where no one is: what arrives came from the service.
pub async fn start_source_without_http(test: &Test, flags: &[String]) -> Result<Controller> {
    let nobody = format!("--storage-adv-addr=127.0.0.1:{}", testkit::ports::free_port()?);
    start_source(test, &[&[nobody], flags].concat()).await
}

/// An apply-controller in the test's namespace.
pub async fn start_apply(test: &Test, source: &Controller, flags: &[String]) -> Result<Controller> {
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    Controller::start_apply(kubeconfig, source, own_options(test, flags)).await
}

/// Certificates that clients trust, from the ConfigMap.
pub async fn bundle(test: &Test) -> Result<String> {
    let config_map = test.config_maps().get(AUTHORITY).await?;
    let bundle = config_map.data.and_then(|mut data| data.remove("ca.crt"));
    bundle.context("the ConfigMap has no ca.crt")
}

/// Waits until the GitRepository `app` has an artifact, and names it with a URL where nothing is.
pub async fn artifact_of(test: &Test) -> Result<ArtifactRef> {
    let ready = |object: &DynamicObject| is_ready(object);
    let object = wait_for(&test.git_repositories(), "app", ready, PATIENCE).await?;
    Ok(ArtifactRef {
        object: SourceObject::new("GitRepository", &test.namespace, "app"),
        url: format!("http://127.0.0.1:{}/none", testkit::ports::free_port()?),
        digest: text(&object, "/status/artifact/digest").to_owned(),
        revision: text(&object, "/status/artifact/revision").to_owned(),
    })
}

/// Opens the artifact over the service alone, with a new connection.
pub async fn open(
    endpoint: &str,
    authority: &str,
    token: Option<&str>,
    artifact: &ArtifactRef,
) -> Result<RemoteTree, Error> {
    let client = Client::new(ClientOptions {
        grpc_endpoint: Some(endpoint.to_owned()),
        authority: constant(authority),
        token: token.map_or(Supply::Nothing, constant),
        http_retries: 0,
        ..ClientOptions::default()
    })?;
    client.open(artifact).await
}

/// The service's words about a caller that it refuses.
pub async fn refusal(
    endpoint: &str,
    authority: &str,
    token: Option<&str>,
    artifact: &ArtifactRef,
) -> Result<String> {
    match open(endpoint, authority, token, artifact).await {
        Err(Error::Refused { reason, .. }) => Ok(reason),
        Err(error) => Err(error).context("not refused, but failed"),
        Ok(_) => bail!("not refused"),
    }
}

/// Tries until it succeeds; for what nothing can be watched of.
pub async fn eventually<T, F>(mut attempt: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt().await {
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            done => return done,
        }
    }
}

fn constant(value: &str) -> Supply {
    Supply::Watched(watch::channel(Some(value.into())).1)
}

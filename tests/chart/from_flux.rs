//! Tests of taking over what Flux left, by containers that truly run.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::{self, is_ready, text};
use testkit::recorded::replay;
use testkit::wait_for;

use crate::cluster::{NAMESPACE, PATIENCE};
use crate::containers::World;
use crate::install::{CONTROLLERS, deployment_of_flux};

/// The namespace of the recording.
const APP: &str = "takeover";

#[tokio::test(flavor = "multi_thread")]
async fn what_flux_left_is_taken_over_and_nothing_is_made_anew() {
    let world = World::start().await.unwrap();
    if let Err(problem) = scenario(&world).await {
        panic!("{problem:#}\n{}", world.logs().await);
    }
}

async fn scenario(world: &World) -> Result<()> {
    let client = &world.cluster.client;
    testkit::install_crds(client).await?;
    world.cluster.restricted_namespace().await;
    for name in CONTROLLERS {
        // Its Pods would not be let in, and no one has its images here: as if someone had scaled it down.
        let stopped = json!({"replicas": 0});
        objects::apply(client, &objects::with_spec(deployment_of_flux(name), stopped)).await?;
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let flux = deployments.get(CONTROLLERS[0]).await?.uid();

    let recording: Vec<Value> = serde_json::from_str(include_str!("../cases/takeover/by-flux.json"))?;
    let (kustomizations, applied): (Vec<_>, Vec<_>) = recording
        .into_iter()
        .partition(|object| object["kind"] == "Kustomization");
    objects::apply(
        client,
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": APP}}),
    )
    .await?;
    let mut before = Vec::new();
    for object in &applied {
        before.push(replay(client, object).await?);
    }
    let revision = declare(world, &kustomizations[0]).await?;

    world.install(&["--take-ownership", "--force-conflicts"]).await?;
    ensure!(
        deployments.get(CONTROLLERS[0]).await?.uid() == flux,
        "a Deployment was made anew"
    );
    let kustomizations = objects::api(client, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", APP);
    let taken_over = |object: &_| is_ready(object) && text(object, "/status/lastAppliedRevision") == revision;
    wait_for(&kustomizations, "app", taken_over, PATIENCE).await?;
    for (object, before) in applied.iter().zip(&before) {
        let (api, name) = objects::api_of(client, object)?;
        let after = api.get(&name).await?;
        let name = format!("{} {name}", object["kind"]);
        ensure!(after.metadata.uid == before.metadata.uid, "{name} was made anew");
        ensure!(
            after.metadata.generation == before.metadata.generation,
            "{name} was changed"
        );
    }
    Ok(())
}

/// The Kustomization as Flux left it, and its source; returns the revision that is there.
async fn declare(world: &World, recorded: &Value) -> Result<String> {
    let client = &world.cluster.client;
    let manifests = include_str!("../cases/takeover/manifests/app.yaml");
    let commit =
        world
            .repository
            .commit("main", "the app", &[Change::write("deploy/app.yaml", manifests)])?;
    objects::apply(
        client,
        &objects::git_repository(APP, "app", world.repository.url(), "main"),
    )
    .await?;
    let mut kustomization = objects::kustomization(APP, "app", ("GitRepository", "app"), "./deploy");
    kustomization["metadata"]["finalizers"] = recorded["metadata"]["finalizers"].clone();
    objects::apply(client, &kustomization).await?;
    let status = Patch::Merge(json!({"status": recorded["status"]}));
    let kustomizations = objects::api(client, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", APP);
    let patched = kustomizations
        .patch_status("app", &PatchParams::default(), &status)
        .await;
    patched.context("failed to write the status that Flux left")?;
    Ok(format!("main@sha1:{commit}"))
}

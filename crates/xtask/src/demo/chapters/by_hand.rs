//! Someone deletes one managed object, edits it, and scales another; all come back.

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::objects::{self, field, text};

use super::commit::NEW_IMAGE;
use super::steps::{LIMIT, available, ready};
use crate::demo::story::Story;
use crate::demo::witness::{Witness, expect};
use crate::demo::world::World;

pub(super) async fn play(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    story.chapter("Changes by hand")?;
    delete_settings(story, world, witness).await?;
    edit_settings(story, world, witness).await?;
    scale(story, world, witness).await
}

async fn delete_settings(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    let api = objects::api(&world.client, "v1", "ConfigMap", &world.namespace);
    let old = api.get("shop-settings").await?.metadata.uid;
    story.cause("delete ConfigMap/shop-settings")?;
    api.delete("shop-settings", &DeleteParams::default())
        .await
        .context("failed to delete the ConfigMap")?;
    let restored = expect("ConfigMap/shop-settings", "restored", move |known| {
        let settings = known.get("ConfigMap/shop-settings")?;
        (settings.metadata.uid != old).then(|| format!("currency is {}", text(settings, "/data/currency")))
    });
    witness.follow(story, world, vec![restored], LIMIT).await
}

async fn edit_settings(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    let api = objects::api(&world.client, "v1", "ConfigMap", &world.namespace);
    story.cause("set currency to USD in ConfigMap/shop-settings")?;
    let edited = edit(&api, "shop-settings", json!({"data": {"currency": "USD"}})).await?;
    let restored = expect("ConfigMap/shop-settings", "restored", move |known| {
        let settings = known.get("ConfigMap/shop-settings")?;
        // The state before the edit also says EUR.
        let later = resource_version(settings) > resource_version(&edited);
        (later && text(settings, "/data/currency") == "EUR").then(|| "currency is EUR".to_owned())
    });
    witness.follow(story, world, vec![restored], LIMIT).await
}

async fn scale(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    let api = objects::api(&world.client, "apps/v1", "Deployment", &world.namespace);
    story.cause("scale Deployment/shop to 5")?;
    let edited = edit(&api, "shop", json!({"spec": {"replicas": 5}})).await?;
    let restored = expect("Deployment/shop", "restored", move |known| {
        let deployment = known.get("Deployment/shop")?;
        let later = deployment.metadata.generation > edited.metadata.generation;
        let replicas = field(deployment, "/spec/replicas").and_then(Value::as_i64);
        (later && replicas == Some(2)).then(|| "replicas is 2".to_owned())
    });
    let revision = format!("main@sha1:{}", world.repository.resolve("main")?);
    let settled = [
        available("Deployment/shop", NEW_IMAGE),
        ready("Kustomization/shop", revision),
    ];
    let [pods, kustomization] = settled.map(|expectation| expectation.checked_after(0));
    witness
        .follow(story, world, vec![restored, pods, kustomization], LIMIT)
        .await
}

async fn edit(api: &Api<DynamicObject>, name: &str, change: Value) -> Result<DynamicObject> {
    let parameters = PatchParams {
        field_manager: Some("somebody".to_owned()),
        ..PatchParams::default()
    };
    let edited = api.patch(name, &parameters, &Patch::Merge(change)).await;
    edited.with_context(|| format!("failed to edit {name}"))
}

/// Resource versions of one kind may be compared (KEP-5504).
fn resource_version(object: &DynamicObject) -> Option<u64> {
    object.metadata.resource_version.as_deref()?.parse().ok()
}

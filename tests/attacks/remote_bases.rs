//! A tenant has builds fetch what they name, where an administrator has listed servers for remote bases.
//!
//! They hold: repositories with kustomizations that name any address, a server of the list that redirects wherever they say, and a
//! namespace in which a policy of the platform wants sources verified. No other server may be asked, whatever leads there; and
//! nothing that is not verified may come in beside a source.

use std::sync::PoisonError;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::json;
use testkit::git::{Change, Repository};
use testkit::objects;
use testkit::wait_for;

use crate::scene::{KUSTOMIZE, PATIENCE, Scene, play, serve};

/// Has a new revision of the attacker's Kustomization name an address; returns why it is refused.
async fn refused(scene: &Scene, repository: &Repository, address: &str) -> Result<String> {
    let content = format!("resources: ['{address}']\n");
    let change = Change::write("deploy/kustomization.yaml", content);
    let revision = format!("main@sha1:{}", repository.commit("main", address, &[change])?);
    let sources = scene.api(crate::scene::SOURCE, "GitRepository", &scene.attacker);
    objects::poke(&sources, "app").await?;
    let kustomizations = scene.api(KUSTOMIZE, "Kustomization", &scene.attacker);
    let is_refused = |object: &DynamicObject| {
        let ready = objects::condition(object, "Ready");
        objects::text(object, "/status/lastAttemptedRevision") == revision
            && ready.is_some_and(|(status, reason, _)| (status, reason) == ("False", "BuildFailed"))
    };
    let object = wait_for(&kustomizations, "app", is_refused, PATIENCE).await?;
    let message = objects::condition(&object, "Ready").map(|(_, _, message)| message.to_owned());
    Ok(message.unwrap_or_default())
}

#[test]
fn builds_ask_no_server_but_those_of_the_list() {
    play("remote-bases", |scene| async move {
        let (hidden, heard) = serve(|_, _| "200 OK".to_owned()).await?;
        let open = scene.world.open_redirect;
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        repository.commit("main", "nothing", &[Change::write("deploy/none", "")])?;
        let source = objects::git_repository(&scene.attacker, "app", repository.url(), "main");
        scene.apply(&source).await?;
        scene
            .apply(&scene.kustomization("app", ("GitRepository", "app")))
            .await?;
        for address in [
            format!("http://{hidden}/metadata.yaml"),
            format!("http://{hidden}/org/repo.git//app?ref=main"),
            format!("http://{open}/to/{hidden}/metadata.yaml"),
            format!("http://{open}/to/{hidden}/org/repo.git//app?ref=main"),
            format!("http://{open}@{hidden}/metadata.yaml"),
            format!("http://ana:tr0ub4dor@{hidden}/metadata.yaml"),
        ] {
            let message = refused(&scene, &repository, &address).await?;
            ensure!(
                message.contains("its server is not in the list"),
                "{address}: {message}"
            );
            ensure!(!message.contains("tr0ub4dor"), "{message}");
        }
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ensure!(heard.is_empty(), "it was asked: {heard}");
        Ok(())
    });
}

#[test]
fn what_is_not_verified_comes_in_beside_no_source() {
    play("remote-unverified", |scene| async move {
        // The base itself may be had: its server is in the list.
        let base = scene.world.git.create_repository(&scene.victim)?;
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stolen"}});
        let files = [
            Change::write("kustomization.yaml", "resources: [map.yaml]\n"),
            Change::write("map.yaml", manifest.to_string()),
        ];
        base.commit("main", "base", &files)?;
        let policy = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "VerificationPolicy",
            "metadata": {"name": scene.attacker, "namespace": "default"},
            // The GitRepository of the attacker is let in, and yet it brings what it likes.
            "spec": {"namespaces": [scene.attacker], "sources": {"kinds": ["Bucket"], "from": ["nowhere"]}},
        });
        scene.apply(&policy).await?;
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        repository.commit("main", "nothing", &[Change::write("deploy/none", "")])?;
        let source = objects::git_repository(&scene.attacker, "app", repository.url(), "main");
        scene.apply(&source).await?;
        scene
            .apply(&scene.kustomization("app", ("GitRepository", "app")))
            .await?;
        let message = refused(&scene, &repository, &format!("{}?ref=main", base.url())).await?;
        let words = format!(
            "VerificationPolicy default/{} applies to the sources of namespace",
            scene.attacker
        );
        ensure!(message.contains(&words), "{message}");
        scene.nothing_is_stolen().await
    });
}

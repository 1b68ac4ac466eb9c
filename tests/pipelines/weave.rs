//! Pipelines of Weave GitOps, as its documentation has them.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::{self, apply, condition, field, text};
use testkit::{wait_for, wait_until_gone};

use crate::clusters::Leaf;
use crate::proposals::Forge;
use crate::world::{DELIVERY, HELM, KUSTOMIZE, PATIENCE, Scene, app, play, release, release_of};

const WEAVE: &str = "pipelines.weave.works/v1alpha1";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

/// A pipeline of Weave GitOps. Who may read the targets is not in its spec.
fn pipeline(scene: &Scene, kind: (&str, &str), environments: Value, promotion: Value) -> Value {
    let mut pipeline = json!({
        "apiVersion": WEAVE, "kind": "Pipeline",
        "metadata": {"name": "shop", "namespace": scene.namespace,
            "annotations": {"delivery.windlass.dev/service-account": "promoter"},
            "labels": {"team": "shop", "kustomize.toolkit.fluxcd.io/name": "fleet"}},
        "spec": {
            "appRef": {"apiVersion": kind.0, "kind": kind.1, "name": "shop"},
            "environments": environments,
        },
    });
    if !promotion.is_null() {
        pipeline["spec"]["promotion"] = promotion;
    }
    pipeline
}

/// Waits until the pipeline of Weave GitOps looks so.
async fn wait(scene: &Scene, predicate: impl Fn(&DynamicObject) -> bool) -> Result<DynamicObject> {
    let api = objects::api(&scene.client, WEAVE, "Pipeline", &scene.namespace);
    wait_for(&api, "shop", predicate, PATIENCE).await
}

fn ready(object: &DynamicObject) -> Option<(&str, &str, &str)> {
    condition(object, "Ready")
}

fn revision<'a>(object: &'a DynamicObject, environment: &str) -> &'a str {
    text(
        object,
        &format!("/status/environments/{environment}/targets/0/revision"),
    )
}

async fn events(scene: &Scene) -> Result<Vec<String>> {
    let api: Api<Event> = Api::namespaced(scene.client.clone(), &scene.namespace);
    let events = api.list(&ListParams::default()).await?.items.into_iter();
    let texts = events.map(|event| {
        let (reason, message) = (
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default(),
        );
        format!("{reason}: {message}")
    });
    Ok(texts.collect())
}

#[test]
fn a_pipeline_of_weave_promotes_by_pull_request_and_by_event() {
    play("weave", async |scene| {
        let [dev, staging, production] = scene.targets(["dev", "staging", "production"]).await?;
        let team = &scene.namespace;
        let files = [("dev", &dev), ("staging", &staging), ("production", &production)];
        let files = files.map(|(name, namespace)| (name, release(namespace, team, "1.0.0", "v1")));
        let forge = Forge::open(&scene, &files, json!({})).await?;
        let (bot, url) = (&forge.bot, forge.gitea.repository_url(&forge.bot.name, "fleet"));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "promotion", "namespace": team},
            "stringData": {"username": bot.name, "password": bot.token, "token": bot.token},
        });
        apply(&scene.client, &secret).await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "staging", "targets": [{"namespace": staging}]},
            {"name": "production", "targets": [{"namespace": production}],
                "promotion": {"manual": true, "strategy": {"notification": {}}}},
        ]);
        let promotion = json!({"strategy": {"pull-request": {
            "type": "gitea", "url": url, "baseBranch": "main", "secretRef": {"name": "promotion"},
        }}});
        let spec = pipeline(&scene, (HELM, "HelmRelease"), environments, promotion);
        apply(&scene.client, &spec).await?;
        let is_everywhere = |object: &DynamicObject| revision(object, "production") == "1.0.0";
        let object = wait(&scene, is_everywhere).await?;
        let expected = ("True", "ReconciliationSucceeded", "All clusters checked");
        ensure!(ready(&object) == Some(expected), "{:?}", ready(&object));
        let target = json!({"clusterAppRef": {"apiVersion": HELM, "kind": "HelmRelease", "name": "shop"},
            "ready": true, "revision": "1.0.0"});
        ensure!(field(&object, "/status/environments/dev/targets") == Some(&json!([target])));
        let made = scene.wait(|_| true).await?;
        let labels = made.metadata.labels.clone().unwrap_or_default();
        ensure!(
            labels.get("team").is_some_and(|team| team == "shop") && labels.len() == 1,
            "{labels:?}"
        );

        // The next version: a pull request, which a person merges.
        forge.deploy("dev", release(&dev, team, "1.1.0", "v1")).await?;
        let requests = forge.requests(|all| !all.is_empty()).await?;
        let number = requests[0]["number"].as_u64().context("it has a number")?;
        forge.merge(number).await?;
        let waits = |object: &DynamicObject| {
            text(object, "/status/environments/production/waitingApproval/revision") == "1.1.0"
        };
        let object = wait(&scene, waits).await?;
        ensure!(revision(&object, "staging") == "1.1.0" && revision(&object, "production") == "1.0.0");

        // Agreed to, it is made known, once; others change the file.
        let due =
            format!("Promote: release 2 is due in production ({production}): HelmRelease/shop: chart 1.1.0");
        ensure!(!events(&scene).await?.contains(&due));
        let (ok, said) = scene
            .windlass(&["approve", "pipeline/shop", "--env", "production"])
            .await?;
        ensure!(ok, "{said}");
        let is_due = |object: &DynamicObject| {
            !text(object, "/status/environments/2/targets/0/change/pullRequest").is_empty()
        };
        scene.wait(is_due).await?;
        let has_event = async {
            while !events(&scene).await?.contains(&due) {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            Ok::<_, anyhow::Error>(())
        };
        tokio::time::timeout(PATIENCE, has_event)
            .await
            .context("there is no event")??;
        let requests = forge.requests(|_| true).await?;
        ensure!(requests.len() == 1, "{requests:?}");
        forge
            .deploy("production", release(&production, team, "1.1.0", "v1"))
            .await?;
        wait(&scene, |object| revision(object, "production") == "1.1.0").await?;

        // What is not wanted any more goes; and everything goes with the pipeline.
        let all = objects::api(&scene.client, DELIVERY, "ChangePolicy", team);
        ensure!(all.get_opt("shop.production").await?.is_some());
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "staging", "targets": [{"namespace": staging}]},
        ]);
        let api = objects::api(&scene.client, WEAVE, "Pipeline", team);
        let patch = kube::api::Patch::Merge(json!({"spec": {"environments": environments}}));
        api.patch("shop", &Default::default(), &patch).await?;
        wait_until_gone(&all, "shop.production", PATIENCE).await?;
        ensure!(all.get_opt("review").await?.is_some(), "it is not its own");
        api.delete("shop", &DeleteParams::default()).await?;
        let own = objects::api(&scene.client, DELIVERY, "Pipeline", team);
        wait_until_gone(&own, "shop", PATIENCE).await?;
        wait_until_gone(&all, "shop", PATIENCE).await?;
        let repositories = objects::api(&scene.client, SOURCE, "GitRepository", team);
        wait_until_gone(&repositories, "shop", PATIENCE).await
    });
}

#[test]
fn clusters_of_weave_are_targets() {
    play("weave-leaf", async |scene| {
        let [dev, eu] = scene.targets(["dev", "eu"]).await?;
        let team = &scene.namespace;
        let files = [("dev", app(&dev, team, "v1")), ("eu", app(&eu, team, "v1"))];
        let repository = scene.fleet(&files).await?;
        let us = Change::write("us/shop.yaml", app("shop", team, "v1"));
        repository.commit("main", "us", &[us])?;
        let leaf = Leaf::start(&scene, &repository, "us").await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [
                {"namespace": eu},
                {"namespace": "shop", "clusterRef": {"kind": "GitopsCluster", "name": "us"}},
            ]},
        ]);
        let spec = pipeline(&scene, (KUSTOMIZE, "Kustomization"), environments, Value::Null);
        apply(&scene.client, &spec).await?;
        // A cluster that is not there leaves the other target unhurt.
        let object = wait(&scene, |object| {
            ready(object).is_some_and(|ready| ready.1 == "TargetClusterNotFound")
                && field(object, "/status/environments/production/targets/0/ready") == Some(&json!(true))
        })
        .await?;
        let expected = ("False", "TargetClusterNotFound", "there is no GitopsCluster 'us'");
        ensure!(ready(&object) == Some(expected), "{:?}", ready(&object));
        let error = text(&object, "/status/environments/production/targets/1/error");
        ensure!(error.contains("gitopscluster.us"), "{error}");

        leaf.name_it(&scene, "us-kubeconfig").await?;
        let cluster = json!({
            "apiVersion": "gitops.weave.works/v1alpha1", "kind": "GitopsCluster",
            "metadata": {"name": "us", "namespace": team},
            "spec": {"secretRef": {"name": "us-kubeconfig"}},
        });
        apply(&scene.client, &cluster).await?;
        wait(&scene, |object| {
            let is_read =
                field(object, "/status/environments/production/targets/1/ready") == Some(&json!(true));
            is_read && ready(object).is_some_and(|ready| ready.0 == "True")
        })
        .await?;
        scene
            .wait(|pipeline| release_of(pipeline, 1) == Some(1))
            .await
            .map(drop)
    });
}

/// A user who may write Weave's kind must not be able to change other objects through it.
#[test]
fn a_pipeline_of_weave_leaves_alone_what_was_not_made_of_it() {
    play("weave-taken", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [("dev", &dev), ("production", &production)];
        let files = files.map(|(name, namespace)| (name, app(namespace, team, "v1")));
        scene.fleet(&files).await?;
        let own = json!({
            "apiVersion": DELIVERY, "kind": "ChangePolicy", "metadata": {"name": "shop", "namespace": team},
            "spec": {"type": "Commit"},
        });
        let own = apply(&scene.client, &own).await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}]},
        ]);
        let spec = pipeline(
            &scene,
            (KUSTOMIZE, "Kustomization"),
            environments.clone(),
            Value::Null,
        );
        apply(&scene.client, &spec).await?;
        let taken = |object: &DynamicObject| ready(object).is_some_and(|ready| ready.1 == "NameTaken");
        let object = wait(&scene, taken).await?;
        let said =
            "there is ChangePolicy/shop already, which was not made of this pipeline: rename one of them";
        ensure!(
            ready(&object).is_some_and(|ready| ready.2 == said),
            "{:?}",
            ready(&object)
        );
        let policies = objects::api(&scene.client, DELIVERY, "ChangePolicy", team);
        let left = policies.get("shop").await?;
        ensure!(left.metadata.resource_version == own.metadata.resource_version);
        let pipelines = objects::api(&scene.client, DELIVERY, "Pipeline", team);
        ensure!(pipelines.get_opt("shop").await?.is_none());

        // Nor is a Pipeline taken over.
        policies.delete("shop", &DeleteParams::default()).await?;
        wait(&scene, |object| {
            ready(object).is_some_and(|ready| ready.0 == "True")
        })
        .await?;
        let api = objects::api(&scene.client, WEAVE, "Pipeline", team);
        api.delete("shop", &DeleteParams::default()).await?;
        wait_until_gone(&pipelines, "shop", PATIENCE).await?;
        scene.pipeline("Kustomization", environments).await?;
        apply(&scene.client, &spec).await?;
        let object = wait(&scene, taken).await?;
        ensure!(ready(&object).is_some_and(|ready| ready.2.contains("Pipeline/shop already")));
        let left = pipelines.get("shop").await?;
        ensure!(left.metadata.owner_references.is_none());
        Ok(())
    });
}

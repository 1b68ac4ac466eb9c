//! Targets in other clusters, each with Flux's applications delivered there.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, apply, condition, field, text};
use testkit::{ControlPlane, Controller, Options, install_all_crds, wait_for};

use crate::world::{DELIVERY, KUSTOMIZE, PATIENCE, Scene, app, play, release_of};

/// A cluster of its own, with controllers of its own.
pub struct Leaf {
    control_plane: ControlPlane,
    _controllers: [Controller; 2],
}

impl Leaf {
    /// Delivers an environment of the team's repository to a new cluster.
    pub async fn start(scene: &Scene, repository: &Repository, environment: &str) -> Result<Self> {
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        let client = control_plane.client();
        install_all_crds(&client).await?;
        let team = &scene.namespace;
        for name in [team.as_str(), "shop"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            apply(&client, &namespace).await?;
        }
        let kubeconfig = control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
        let applying = Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
        let source_of = objects::git_repository(team, "fleet", repository.url(), "main");
        apply(&client, &objects::with_spec(source_of, json!({"interval": "1s"}))).await?;
        let path = format!("./{environment}");
        let delivers = objects::kustomization(team, environment, ("GitRepository", "fleet"), &path);
        apply(&client, &objects::with_spec(delivers, json!({"wait": false}))).await?;
        Ok(Self {
            control_plane,
            _controllers: [source, applying],
        })
    }

    /// The Secret that has its kubeconfig.
    pub async fn name_it(&self, scene: &Scene, name: &str) -> Result<()> {
        let kubeconfig = std::fs::read_to_string(self.control_plane.kubeconfig_path())?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": scene.namespace},
            "stringData": {"value": kubeconfig},
        });
        apply(&scene.client, &secret).await.map(drop)
    }

    pub async fn has(&self, tag: &str) -> Result<()> {
        let api = objects::api(&self.control_plane.client(), KUSTOMIZE, "Kustomization", "shop");
        let is_there = |object: &DynamicObject| {
            text(object, "/spec/images/0/newTag") == tag && objects::is_ready(object)
        };
        wait_for(&api, "shop", is_there, PATIENCE).await.map(drop)
    }
}

fn away(name: &str) -> Value {
    json!({"namespace": "shop", "kubeConfig": {"secretRef": {"name": name}}})
}

/// A pipeline whose changes go into the team's GitRepository.
async fn pipeline(scene: &Scene, environments: Value) -> Result<()> {
    let pipeline = json!({
        "apiVersion": DELIVERY, "kind": "Pipeline", "metadata": {"name": "shop", "namespace": scene.namespace},
        "spec": {
            "serviceAccountName": "promoter", "interval": "1s", "repositoryRef": {"name": "fleet"},
            "apps": [{"kind": "Kustomization", "name": "shop"}], "environments": environments,
        },
    });
    apply(&scene.client, &pipeline).await.map(drop)
}

#[test]
fn a_release_goes_into_another_cluster() {
    play("leaf", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let files = [("dev", app(&dev, team, "v1"))];
        let repository = scene.fleet(&files).await?;
        let production = Change::write("production/shop.yaml", app("shop", team, "v1"));
        repository.commit("main", "production", &[production])?;
        let leaf = Leaf::start(&scene, &repository, "production").await?;
        leaf.name_it(&scene, "leaf").await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [away("leaf")]},
        ]);
        pipeline(&scene, environments.clone()).await?;
        let pipeline = scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        ensure!(field(&pipeline, "/status/environments/1/targets/0/name") == Some(&json!("leaf/shop")));
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        leaf.has("v2").await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        let message = repository.git(&["log", "-1", "--format=%B", "main"])?;
        ensure!(message.contains("Targets: leaf/shop\n"), "{message}");

        // What is not its any more is not watched: the pipeline does not hear of it.
        let mut only_dev = environments;
        only_dev
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.truncate(1));
        crate::clusters::pipeline(&scene, only_dev).await?;
        scene
            .wait(|pipeline| field(pipeline, "/status/environments/1").is_none())
            .await?;
        Ok(())
    });
}

#[test]
fn a_cluster_that_is_away_holds_up_itself_alone() {
    play("away", async |scene| {
        let [dev, eu] = scene.targets(["dev", "eu"]).await?;
        let team = &scene.namespace;
        let files = [("dev", app(&dev, team, "v1")), ("eu", app(&eu, team, "v1"))];
        let repository = scene.fleet(&files).await?;
        let us = Change::write("us/shop.yaml", app("shop", team, "v1"));
        repository.commit("main", "us", &[us])?;
        let mut leaf = Leaf::start(&scene, &repository, "us").await?;
        leaf.name_it(&scene, "us").await?;
        // A server that nobody runs, and a kubeconfig that is none.
        let nowhere = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n\
                       contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: {}}]\n";
        for (name, text) in [("nowhere", nowhere), ("nothing", "hello")] {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": team},
                "stringData": {"value": text},
            });
            apply(&scene.client, &secret).await?;
        }
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": eu}, away("us")]},
            {"name": "lost", "targets": [away("nowhere"), away("nothing"), away("missing"), away("../secrets/us")], "needs": ["dev"]},
        ]);
        pipeline(&scene, environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        let away = async {
            // Long enough for the release to come and to be refused there.
            leaf.control_plane
                .restart_api_server(Duration::from_secs(6))
                .await
        };
        let deploying = async {
            tokio::time::sleep(Duration::from_secs(1)).await; // the server is being stopped
            repository.commit("main", "by a person", &[next])?;
            scene
                .has((KUSTOMIZE, "Kustomization"), &eu, "/spec/images/0/newTag", "v2")
                .await
        };
        let (restarted, deployed) = tokio::join!(away, deploying);
        restarted?;
        deployed?;
        let pipeline = scene.wait(|_| true).await?;
        let (_, _, message) = condition(&pipeline, "Ready").unwrap_or_default();
        for name in ["nowhere", "nothing", "missing", "../secrets/us"] {
            let of = |target: &&Value| target["name"] == format!("{name}/shop").as_str();
            let targets = field(&pipeline, "/status/environments/2/targets").and_then(Value::as_array);
            let told = targets
                .into_iter()
                .flatten()
                .find(of)
                .map(|target| target["message"].clone());
            ensure!(
                told.as_ref().is_some_and(|told| !told.is_null()),
                "{name}: {message}"
            );
        }
        leaf.has("v2").await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        Ok(())
    });
}

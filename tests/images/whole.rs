//! The whole way, as docs/from-image-to-merge.md describes it: an image is pushed, a webhook says so, a pull request is opened,
//! a person merges it, the forge says so, and the cluster runs it. Nothing waits for an interval.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply, is_ready, text};
use testkit::{Controller, wait_for};

use crate::proposals::{BASE, Shop};
use crate::world::{PATIENCE, Scene, play};

pub const NOTIFICATION: &str = "notification.toolkit.fluxcd.io/v1";
const TOKEN: &str = "the-token-of-the-receivers";
/// Objects with this label belong to the controllers of the story whose namespace it names: other stories count what is fetched,
/// and two source-controllers at one object serve different artifacts.
pub const WHOLE: &str = "images.example.com/whole";

/// A ConfigMap with the image in it: what matters here is that it arrives.
pub fn manifest(scene: &Scene, tag: &str) -> String {
    let image = scene.image("web");
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n  namespace: {0}\ndata:\n  image: {image}:{tag} # \
         {{\"$imagepolicy\": \"{0}:web\"}}\n",
        scene.namespace
    )
}

/// A Receiver that wakes an object; the path of its hook.
pub async fn receiver(scene: &Scene, name: &str, kind: &str, object: &str) -> Result<String> {
    let receiver = json!({
        "apiVersion": NOTIFICATION,
        "kind": "Receiver",
        "metadata": {"name": name, "namespace": scene.namespace, "labels": {WHOLE: scene.namespace}},
        "spec": {
            "type": "generic",
            "secretRef": {"name": "hooks"},
            "resources": [{"kind": kind, "name": object}],
        },
    });
    apply(&scene.client, &receiver).await?;
    let api = objects::api(&scene.client, NOTIFICATION, "Receiver", &scene.namespace);
    let receiver = wait_for(&api, name, is_ready, PATIENCE).await?;
    Ok(text(&receiver, "/status/webhookPath").to_owned())
}

pub async fn hook(shop: &Shop, url: &str, events: &[&str]) -> Result<()> {
    let hook = json!({
        "type": "gitea",
        "active": true,
        "events": events,
        "config": {"url": url, "content_type": "json"},
    });
    let at = format!("repos/{}/hooks", shop.repository);
    shop.gitea
        .call_as(&shop.bot, Method::POST, &at, Some(hook))
        .await?;
    Ok(())
}

pub async fn delivered(scene: &Scene, tag: &str) -> Result<()> {
    let maps = objects::api(&scene.client, "v1", "ConfigMap", &scene.namespace);
    let image = format!("{}:{tag}", scene.image("web"));
    let has = |map: &DynamicObject| text(map, "/data/image") == image;
    wait_for(&maps, "web", has, PATIENCE).await.map(drop)
}

pub async fn opened(shop: &Shop, number: u64) -> Result<()> {
    let opening = async {
        loop {
            if shop.requests().await?.iter().any(|one| one["number"] == number) {
                return Ok::<_, anyhow::Error>(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, opening).await?
}

/// The controllers that deliver what is merged, and the objects that name it.
pub struct Cluster {
    pub hooks: Controller,
    _source: Controller,
    _apply: Controller,
}

impl Cluster {
    pub async fn start(scene: &Scene, shop: &Shop) -> Result<Self> {
        let kubeconfig = scene.world.control_plane.kubeconfig_path();
        let own = || ControllerOptions {
            flags: vec![format!("--watch-label-selector={WHOLE}={}", scene.namespace)],
            ..ControllerOptions::default()
        };
        let source = Controller::start_source(kubeconfig, own()).await?;
        let apply = Controller::start_apply(kubeconfig, &source, own()).await?;
        let hooks = Controller::start_notification(kubeconfig, own()).await?;
        let url = format!("{}/{}.git", shop.gitea.url(), shop.repository);
        let git = objects::git_repository(&scene.namespace, "app", &url, BASE);
        let git = objects::with_spec(git, json!({"secretRef": {"name": "shop"}}));
        let kustomization =
            objects::kustomization(&scene.namespace, "app", ("GitRepository", "app"), "./app");
        for mut object in [git, kustomization] {
            object["metadata"]["labels"] = json!({WHOLE: scene.namespace});
            objects::apply(&scene.client, &object).await?;
        }
        let secret: Value = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "hooks", "namespace": scene.namespace},
            "stringData": {"token": TOKEN},
        });
        objects::apply(&scene.client, &secret).await?;
        Ok(Self {
            hooks,
            _source: source,
            _apply: apply,
        })
    }
}

#[test]
fn a_pushed_image_is_delivered_after_its_merge() {
    play("whole", async |scene| {
        let shop = Shop::open(&scene, &[("app/map.yaml", &manifest(&scene, "0.1.0"))]).await?;
        let cluster = Cluster::start(&scene, &shop).await?;
        scene.push("web", &["0.1.0"]).await?;
        let any = json!({"policy": {"semver": {"range": "*"}}});
        scene.follow("web", any).await?;
        shop.review(&scene, json!({}), json!({})).await?;
        let pushed = receiver(&scene, "image", "ImageRepository", "web").await?;
        let merged = receiver(&scene, "source", "GitRepository", "app").await?;
        let proposed = receiver(&scene, "automation", "ImageUpdateAutomation", "auto").await?;
        let url = cluster.hooks.receiver_url();
        hook(&shop, &format!("{url}{merged}"), &["push"]).await?;
        hook(&shop, &format!("{url}{proposed}"), &["pull_request_only"]).await?;
        delivered(&scene, "0.1.0").await?;

        let began = Instant::now();
        scene.push("web", &["1.0.0"]).await?;
        let registry_says = reqwest::Client::builder()
            .no_proxy()
            .build()?
            .post(format!("{url}{pushed}"))
            .send()
            .await?;
        ensure!(registry_says.status().is_success(), "{}", registry_says.status());
        opened(&shop, 1).await?;
        let proposed_after = began.elapsed();
        shop.merge(1).await?;
        let merged_at = Instant::now();
        delivered(&scene, "1.0.0").await?;
        let delivered_after = merged_at.elapsed();
        eprintln!(
            "image pushed -> pull request: {proposed_after:?}; merged -> delivered: {delivered_after:?}"
        );
        let file = shop.gitea.file(&shop.repository, BASE, "app/map.yaml").await?;
        assert_eq!(file, manifest(&scene, "1.0.0"));
        // The forge's own word of the merge is enough to clean up.
        let cleaned = async {
            while shop.branches().await? != [BASE] {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok::<_, anyhow::Error>(())
        };
        tokio::time::timeout(PATIENCE, cleaned).await??;
        Ok(())
    });
}

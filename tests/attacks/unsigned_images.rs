//! A tenant delivers images that a VerificationPolicy of the platform refuses, or turns policies against others.
//!
//! They hold: a Git repository, Kustomizations, policies of their own, registries that they run. No image that is refused may be
//! applied, whatever it is called and wherever it stands; others must be delivered meanwhile; and a refusal must not tell what is in
//! the platform's namespace.

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects;
use testkit::registry::{Artifact, CosignKey};
use testkit::{Registry, wait_for};
use tokio::net::TcpListener;

use crate::scene::{KUSTOMIZE, PATIENCE, SOURCE, Scene, play};

/// Where the controllers are.
const PLATFORM: &str = "default";
const REASON: &str = "ImageVerificationFailed";
/// A quarter of the chart's limit for the Pod.
const LIMIT: u64 = 256 << 20;

impl Scene {
    /// A policy of the platform for one namespace, named after it.
    async fn policy(&self, namespace: &str, spec: Value) -> Result<()> {
        let mut spec = spec;
        spec["namespaces"] = json!([namespace]);
        self.policy_in(PLATFORM, namespace, spec).await
    }

    async fn policy_in(&self, namespace: &str, name: &str, spec: Value) -> Result<()> {
        let policy = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "VerificationPolicy",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        self.apply(&policy).await
    }

    /// Kustomizations of a namespace: for each object one, with more of a spec.
    async fn deliver(&self, namespace: &str, objects: &[(&str, Value)], spec: &Value) -> Result<()> {
        let repository = self.world.git.create_repository(namespace)?;
        let files: Vec<_> = objects
            .iter()
            .map(|(name, object)| Change::write(&format!("{name}/object.yaml"), object.to_string()))
            .collect();
        repository.commit("main", "images", &files)?;
        let source = objects::git_repository(namespace, "images", repository.url(), "main");
        self.apply(&source).await?;
        for (name, _) in objects {
            let path = format!("./{name}");
            let object = objects::kustomization(namespace, name, ("GitRepository", "images"), &path);
            let all = json!({"targetNamespace": namespace, "retryInterval": "1s"});
            let object = objects::with_spec(objects::with_spec(object, all), spec.clone());
            self.apply(&object).await?;
        }
        Ok(())
    }

    async fn refused_images(&self, namespace: &str, name: &str) -> Result<String> {
        let api = self.api(KUSTOMIZE, "Kustomization", namespace);
        let is_refused = |object: &DynamicObject| {
            objects::condition(object, "Ready").is_some_and(|(_, reason, _)| reason == REASON)
        };
        let object = wait_for(&api, name, is_refused, PATIENCE).await?;
        let ready = objects::condition(&object, "Ready").context("no condition Ready")?;
        Ok(ready.2.to_owned())
    }
}

fn ready_since(object: &DynamicObject) -> Result<Timestamp> {
    let conditions = object.data["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|one| one["type"] == "Ready"));
    let since = ready.and_then(|ready| ready["lastTransitionTime"].as_str());
    Ok(since.context("no condition Ready")?.parse()?)
}

fn pod(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

fn container(image: &str) -> Value {
    json!([{"name": "c", "image": image}])
}

#[test]
fn no_place_and_no_name_hides_an_image() {
    play("images-hidden", |scene| async move {
        scene
            .policy(
                &scene.attacker,
                json!({"images": {"from": ["registry.example.com/*"]}}),
            )
            .await?;
        // A policy of the tenant takes nothing away from that.
        let own = json!({"action": "Warn", "images": {"from": ["*"]}});
        scene.policy_in(&scene.attacker, "own", own).await?;
        let (good, evil) = ("registry.example.com/app:1", "evil.example.com/app:1");
        let template = |containers: Value| json!({"spec": {"containers": containers}});
        let objects = [
            (
                "init",
                pod(
                    "init",
                    json!({"containers": container(good), "initContainers": container(evil)}),
                ),
            ),
            (
                "volume",
                pod(
                    "volume",
                    json!({
                        "containers": container(good),
                        "volumes": [{"name": "v", "image": {"reference": evil}}],
                    }),
                ),
            ),
            (
                "template",
                json!({
                    "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "template"},
                    "template": template(container(evil)),
                }),
            ),
            (
                "list",
                json!({
                    "apiVersion": "v1", "kind": "List",
                    "items": [pod("listed", json!({"containers": container(evil)}))],
                }),
            ),
            // Its end looks like what is allowed.
            (
                "path",
                pod(
                    "path",
                    json!({"containers": container("evil.example.com/registry.example.com/app")}),
                ),
            ),
            (
                "hub",
                pod(
                    "hub",
                    json!({"containers": container("registry.example.com-x/app")}),
                ),
            ),
            (
                "case",
                pod(
                    "case",
                    json!({"containers": container("Registry.example.com/app")}),
                ),
            ),
            (
                "port",
                pod(
                    "port",
                    json!({"containers": container("registry.example.com:8443/app")}),
                ),
            ),
            (
                "user",
                pod(
                    "user",
                    json!({"containers": container("registry.example.com/@evil.example.com/app")}),
                ),
            ),
            (
                "dots",
                pod(
                    "dots",
                    json!({"containers": container("registry.example.com/../app")}),
                ),
            ),
        ];
        scene.deliver(&scene.attacker, &objects, &json!({})).await?;
        for (name, _) in &objects {
            let message = scene.refused_images(&scene.attacker, name).await?;
            ensure!(
                message.contains("is refused by VerificationPolicy"),
                "{name}: {message}"
            );
        }
        let pods = scene.api("v1", "Pod", &scene.attacker);
        ensure!(pods.list(&Default::default()).await?.items.is_empty());
        Ok(())
    });
}

#[test]
fn who_delivers_from_elsewhere_does_not_get_around_a_policy() {
    play("images-elsewhere", |scene| async move {
        scene
            .policy(
                &scene.victim,
                json!({"images": {"from": ["registry.example.com/*"]}}),
            )
            .await?;
        // The attacker may write there, by mistake of a person.
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "mistake", "namespace": scene.victim},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": scene.attacker}],
        });
        scene.apply(&binding).await?;
        // Nor does the attacker's own policy reach the victim.
        let wide = json!({"namespaces": ["*"], "images": {"from": ["evil.example.com/*"]}});
        scene.policy_in(&scene.attacker, "wide", wide).await?;
        let evil = pod("evil", json!({"containers": container("evil.example.com/app")}));
        let into = json!({"targetNamespace": scene.victim});
        scene.deliver(&scene.attacker, &[("evil", evil)], &into).await?;
        let good = pod(
            "good",
            json!({"containers": container("registry.example.com/app")}),
        );
        scene
            .deliver(&scene.victim, &[("good", good)], &json!({"wait": false}))
            .await?;
        let message = scene.refused_images(&scene.attacker, "evil").await?;
        ensure!(
            message.contains(&format!("{PLATFORM}/{}", scene.victim)),
            "{message}"
        );
        let api = scene.api(KUSTOMIZE, "Kustomization", &scene.victim);
        wait_for(&api, "good", objects::is_ready, PATIENCE).await?;
        let pods = scene.api("v1", "Pod", &scene.victim);
        ensure!(pods.get_opt("evil").await?.is_none() && pods.get_opt("good").await?.is_some());
        Ok(())
    });
}

#[test]
fn a_refusal_does_not_tell_of_the_platforms_secrets() {
    play("images-told", |scene| async move {
        let secret = "keys-of-the-platform";
        let spec = json!({"images": {}, "verify": {"provider": "cosign", "secretRef": {"name": secret}}});
        scene.policy(&scene.attacker, spec).await?;
        let object = pod(
            "any",
            json!({"containers": container("registry.example.com/app")}),
        );
        scene
            .deliver(&scene.attacker, &[("any", object)], &json!({}))
            .await?;
        let message = scene.refused_images(&scene.attacker, "any").await?;
        ensure!(
            message.contains("the policy cannot be applied") && !message.contains(secret),
            "{message}"
        );
        Ok(())
    });
}

#[test]
fn registries_that_do_not_answer_hold_up_no_one() {
    play("images-silent", |scene| async move {
        // It takes connections, and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").await?;
        let address = silent.local_addr()?;
        for namespace in [&scene.attacker, &scene.victim] {
            let known = json!({"except": ["registry.example.com/*"], "pin": true});
            scene.policy(namespace, json!({"images": known})).await?;
        }
        let evil = pod(
            "evil",
            json!({"containers": container(&format!("{address}/app"))}),
        );
        let names: Vec<_> = (0..8).map(|number| format!("evil-{number}")).collect();
        let objects: Vec<_> = names.iter().map(|name| (name.as_str(), evil.clone())).collect();
        scene.deliver(&scene.attacker, &objects, &json!({})).await?;
        // The connection of the first is there: the workers wait.
        let _held = silent.accept().await?;
        let good = pod(
            "good",
            json!({"containers": container("registry.example.com/app")}),
        );
        scene
            .deliver(&scene.victim, &[("good", good)], &json!({"wait": false}))
            .await?;
        let api = scene.api(KUSTOMIZE, "Kustomization", &scene.victim);
        let good = wait_for(&api, "good", objects::is_ready, PATIENCE).await?;
        let sources = scene.api(SOURCE, "GitRepository", &scene.victim);
        let source = wait_for(&sources, "images", objects::is_ready, PATIENCE).await?;
        let waited = ready_since(&good)?.duration_since(ready_since(&source)?);
        ensure!(waited.as_secs() < 25, "it waited {waited} for the others");
        let message = scene.refused_images(&scene.attacker, "evil-0").await?;
        ensure!(message.contains("failed to determine its digest"), "{message}");
        Ok(())
    });
}

#[test]
fn attestations_and_names_without_end_fill_neither_memory_nor_messages() {
    play("images-heavy", |scene| async move {
        let (registry, key) = (Registry::start().await?, CosignKey::generate()?);
        let tags: Vec<_> = (0..16).map(|number| format!("v{number}")).collect();
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        let image = Artifact::image("linux", "amd64", "heavy")?;
        let digest = registry.push("heavy", &tags, &image).await?;
        let kind = "https://example.com/heavy";
        for number in 0..4 {
            let predicate = json!({"number": number, "many": vec![1; 1_300_000]});
            key.attest(&registry, "heavy", &digest, kind, &predicate).await?;
        }
        // The attacker's own policy, key and registry.
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": scene.attacker},
            "stringData": {"cosign.pub": key.public_key()?},
        });
        scene.apply(&secret).await?;
        let never = json!({
            "predicateType": kind, "expression": "predicate.number == 5",
            "verify": {"provider": "cosign", "secretRef": {"name": "keys"}},
        });
        let spec = json!({"images": {"match": ["127.0.0.1*"]}, "attestations": [never]});
        scene.policy_in(&scene.attacker, "heavy", spec).await?;
        let long = json!({"images": {"match": ["long.example.com/*"], "from": ["none.example.com/*"]}});
        scene.policy_in(&scene.attacker, "long", long).await?;
        let containers: Vec<_> = tags
            .iter()
            .map(|tag| json!({"name": tag, "image": format!("{}/heavy:{tag}", registry.address())}))
            .collect();
        let name = format!("LONG.example.com/{}", "a".repeat(1 << 20));
        let objects = [
            ("heavy", pod("heavy", json!({"containers": containers}))),
            ("long", pod("long", json!({"containers": container(&name)}))),
        ];
        let before = scene.world.apply.usage()?.peak_resident_bytes;
        scene.deliver(&scene.attacker, &objects, &json!({})).await?;
        let message = scene.refused_images(&scene.attacker, "heavy").await?;
        ensure!(
            message.contains("too many for an expression") && message.ends_with("and 11 more images"),
            "{message}"
        );
        let message = scene.refused_images(&scene.attacker, "long").await?;
        ensure!(message.len() < 2000, "{} characters", message.len());
        let peak = scene.world.apply.usage()?.peak_resident_bytes;
        ensure!(
            peak < before.max(LIMIT),
            "the controller took {} MiB, and {} MiB before",
            peak >> 20,
            before >> 20
        );
        Ok(())
    });
}

//! Beside one of Flux's own controllers: who holds the Lease of the one half does not hold the other half up.

use anyhow::{Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply, is_ready, text};
use testkit::{Controller, wait_for};

use crate::world::{IMAGE, KILLED, PATIENCE, Scene, play};

const SELECTOR: &str = "images.example.com/killed=leases";

async fn apply_own(scene: &Scene, kind: &str, spec: Value) -> Result<()> {
    let object = json!({
        "apiVersion": IMAGE,
        "kind": kind,
        "metadata": {"name": "web", "namespace": scene.namespace, "labels": {KILLED: "leases"}},
        "spec": spec,
    });
    apply(&scene.client, &object).await?;
    Ok(())
}

/// The Lease of image-automation-controller for objects of this story, held by someone else who has just renewed it.
async fn hold(scene: &Scene) -> Result<Api<Lease>> {
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), &scene.namespace);
    let now = jiff::Timestamp::now();
    let lease = json!({
        "metadata": {"name": lease_name("image-automation-controller")},
        "spec": {"holderIdentity": "flux", "leaseDurationSeconds": 600, "acquireTime": format!("{now:.6}"),
            "renewTime": format!("{now:.6}"), "leaseTransitions": 0},
    });
    let lease = serde_json::from_value(lease)?;
    leases.create(&PostParams::default(), &lease).await?;
    Ok(leases)
}

/// Shards elect a leader each: their Leases end with the beginning of the selector's SHA-256.
fn lease_name(controller: &str) -> String {
    format!("{controller}-leader-election-e587c9d7")
}

#[test]
fn automations_wait_for_their_own_lease_and_nothing_else_does() {
    play("leases", async |scene| {
        let image = scene.image("web");
        let marker = format!("{{\"$imagepolicy\": \"{}:web\"}}", scene.namespace);
        let file = format!("image: {image}:0.0.0 # {marker}\n");
        let repository = scene.git(&[("app.yaml", &file)]).await?;
        scene.push("web", &["1.0.0"]).await?;
        let spec = json!({"image": image, "interval": "1h", "insecure": true});
        apply_own(&scene, "ImageRepository", spec).await?;
        let spec = json!({"imageRepositoryRef": {"name": "web"}, "policy": {"semver": {"range": "*"}}});
        apply_own(&scene, "ImagePolicy", spec).await?;
        let spec = json!({"sourceRef": {"kind": "GitRepository", "name": "app"}, "interval": "1h",
            "git": {"commit": {"author": {"email": "bot@example.com"}}}});
        apply_own(&scene, "ImageUpdateAutomation", spec).await?;
        let leases = hold(&scene).await?;
        let first = repository.resolve("main")?;

        let options = ControllerOptions {
            flags: vec![
                format!("--watch-label-selector={SELECTOR}"),
                "--enable-leader-election".to_owned(),
                "--leader-election-retry-period=200ms".to_owned(),
            ],
            namespace: scene.namespace.clone(),
            ..ControllerOptions::default()
        };
        let kubeconfig = scene.world.control_plane.kubeconfig_path();
        let controller = Controller::start_image(kubeconfig, options).await?;
        scene.wait("ImagePolicy", "web", is_ready).await?;
        let waits = format!(
            "attempting to acquire leader lease\",\"lease\":\"{}",
            lease_name("image-automation-controller")
        );
        ensure!(controller.log().contains(&waits), "{}", controller.log());
        let automations = objects::api(&scene.client, IMAGE, "ImageUpdateAutomation", &scene.namespace);
        let untouched = automations.get("web").await?;
        ensure!(
            untouched.data["status"]["conditions"].is_null(),
            "{:#}",
            untouched.data
        );
        ensure!(repository.resolve("main")? == first);

        let given_up = Patch::Merge(json!({"spec": {"holderIdentity": ""}}));
        let name = lease_name("image-automation-controller");
        leases.patch(&name, &PatchParams::default(), &given_up).await?;
        let is_pushed = |found: &_| !text(found, "/status/lastPushCommit").is_empty();
        wait_for(&automations, "web", is_pushed, PATIENCE).await?;
        for controller in ["image-automation-controller", "image-reflector-controller"] {
            let lease = leases.get(&lease_name(controller)).await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity);
            let holder = holder.unwrap_or_default();
            ensure!(
                !matches!(holder.as_str(), "" | "flux"),
                "{controller}: {holder:?}"
            );
        }
        Ok(())
    });
}

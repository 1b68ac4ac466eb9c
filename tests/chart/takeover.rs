//! `windlass takeover` and `giveback`, with objects that our own controllers deliver meanwhile: those of the chart are Pods of kwok, which
//! do nothing.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, api_of};
use testkit::{Controller, GitServer, wait_for};

use crate::cluster::{Cluster, NAMESPACE, PATIENCE};
use crate::command::killed_at;
use crate::install::{CONTROLLERS, create_namespace, definitions};

/// Flux's controllers of images, whose place one of ours takes.
const IMAGES: [&str; 2] = ["image-reflector-controller", "image-automation-controller"];

/// Keeps an object away from the controllers of the test.
const SHARD: &str = "sharding.fluxcd.io/key";

#[tokio::test]
async fn windlass_takes_the_place_of_flux_and_gives_it_back() {
    let cluster = Cluster::start().await;
    let _delivery = Delivery::start(&cluster).await.unwrap();
    let flux = flux(&cluster).await.unwrap();
    let map = uid(&cluster, "delivered").await;

    let instance = instance_of_operator(&cluster).await.unwrap();
    let said = cluster.windlass(&["takeover"], 3).await.unwrap();
    let disable = "annotate fluxinstance/flux fluxcd.controlplane.io/reconcile=disabled";
    assert!(
        said.contains("FluxInstance/flux-system/flux keeps Flux in place") && said.contains(disable),
        "{said}"
    );
    let disabled = json!({"metadata": {"annotations": {"fluxcd.controlplane.io/reconcile": "disabled"}}});
    let patch = Patch::Merge(&disabled);
    instance
        .patch("flux", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert!(
        said.contains("Kustomization/flux-system/flux-system delivers Flux's own objects")
            && said.contains(
                "`windlass suspend kustomization/flux-system -n flux-system`, or give --suspend-self"
            ),
        "{said}"
    );
    let dry = ["takeover", "--dry-run", "--suspend-self"];
    let said = cluster.windlass(&dry, 0).await.unwrap();
    for line in [
        "suspend Kustomization/flux-system/flux-system\n",
        "scale down Deployment/flux-system/source-watcher (fluxcd/source-watcher:v1)\n",
        "scale down Deployment/flux-system/image-automation-controller (fluxcd/image-automation-controller:v1)\n",
        "take over  Deployment/flux-system/source-controller\n",
        "take over  ServiceAccount/flux-system/source-controller\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(replicas(&cluster, "source-watcher").await, 1);

    // Killed in the middle, and something is re-created before it goes on.
    killed_at(&cluster, &["takeover", "--suspend-self"], "pending-install")
        .await
        .unwrap();
    maps(&cluster)
        .delete("delivered", &DeleteParams::default())
        .await
        .unwrap();
    let is_other = |found: &ConfigMap| found.uid().as_deref() != Some(map.as_str());
    wait_for(&maps(&cluster), "delivered", is_other, PATIENCE)
        .await
        .unwrap();
    let said = cluster.windlass(&["takeover"], 3).await.unwrap();
    for line in [
        "was killed; going on from there\n",
        "a takeover was begun before; going on\n",
        "controllers of Flux: 5 replaced in place, 2 scaled down\n",
        "Kustomization/flux-system/flux-system stays suspended",
        "1 object is not as it was:\n  ConfigMap/flux-system/delivered was made anew\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    taken_over(&cluster, &flux).await.unwrap();
    let said = cluster.windlass(&["takeover"], 0).await.unwrap();
    assert!(
        said.contains("nothing was made anew, changed or released\n"),
        "{said}"
    );
    assert!(said.contains("Helm releases: 1\n"), "{said}");
    assert!(
        said.contains(" of the delivered objects, such as ConfigMaps"),
        "{said}"
    );
    let said = cluster.windlass(&["install"], 0).await.unwrap();
    assert!(said.contains("nothing to do"), "{said}");

    killed_at(&cluster, &["giveback"], "uninstalling").await.unwrap();
    let said = cluster.windlass(&["takeover"], 3).await.unwrap();
    assert!(
        said.contains("end that first, with `windlass giveback`"),
        "{said}"
    );
    let said = cluster.windlass(&["giveback"], 0).await.unwrap();
    for line in [
        "controllers of Flux: 5 put back, 2 scaled up again\n",
        "Deployment/flux-system/source-watcher is scaled to 1 again\n",
        "Deployment/flux-system/source-controller is put back\n",
        "resuming Kustomization/flux-system/flux-system\n",
        "nothing was made anew, changed or released\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    given_back(&cluster, &flux).await.unwrap();
    let said = cluster.windlass(&["giveback"], 3).await.unwrap();
    assert!(said.contains("no takeover is recorded"), "{said}");
}

#[tokio::test]
async fn windlass_takes_the_place_of_one_controller_after_the_other() {
    let cluster = Cluster::start().await;
    testkit::install_crds(&cluster.client).await.unwrap();
    create_namespace(&cluster, json!({})).await;
    let flux = flux(&cluster).await.unwrap();
    let one = [
        "takeover",
        "--suspend-self",
        "--set=crds.install=false,networkPolicy.create=false,source.enabled=false,helm.enabled=false,images.enabled=false",
        "--set=notification.enabled=false,eventsAddress=http://notification-controller.flux-system.svc.cluster.local./",
    ];
    let said = cluster.windlass(&one, 0).await.unwrap();
    assert!(
        said.contains("controllers of Flux: 1 replaced in place, 0 scaled down\n"),
        "{said}"
    );
    for (name, expected) in [
        ("kustomize-controller", "windlass/"),
        ("source-controller", "fluxcd/"),
        ("source-watcher", "fluxcd/"),
    ] {
        let image = container(&cluster, name).await.unwrap()["image"].to_string();
        assert!(image.contains(expected), "{name}: {image}");
    }
    assert_eq!(replicas(&cluster, "source-watcher").await, 1);

    let said = cluster
        .windlass(&["takeover", "--set", "logging.level=debug"], 0)
        .await
        .unwrap();
    assert!(
        said.contains("controllers of Flux: 5 replaced in place, 2 scaled down\n"),
        "{said}"
    );
    taken_over(&cluster, &flux).await.unwrap();
    cluster.windlass(&["giveback"], 0).await.unwrap();
    for (name, _) in &flux {
        let image = container(&cluster, name).await.unwrap()["image"].clone();
        assert_eq!(image, format!("fluxcd/{name}:v1"));
    }
    assert_eq!(replicas(&cluster, "source-watcher").await, 1);
}

/// Parts of a delivery: controllers, a source, and the objects made from it.
struct Delivery {
    _git: GitServer,
    _controllers: [Controller; 3],
}

impl Delivery {
    async fn start(cluster: &Cluster) -> Result<Self> {
        let client = &cluster.client;
        testkit::install_crds(client).await?;
        create_namespace(cluster, json!({})).await;
        let kubeconfig = cluster.control_plane.kubeconfig_path();
        let options = || ControllerOptions {
            flags: vec![format!("--watch-label-selector=!{SHARD}")],
            ..ControllerOptions::default()
        };
        let source = Controller::start_source(kubeconfig, options()).await?;
        let apply = Controller::start_apply(kubeconfig, &source, options()).await?;
        let helm = Controller::start_helm(kubeconfig, &source, options()).await?;
        let git = GitServer::start().await?;
        let repository = repository(&git)?;
        let fleet = objects::git_repository(NAMESPACE, "fleet", repository.url(), "main");
        objects::apply(client, &fleet).await?;
        for (name, path) in [("app", "./deploy"), ("broken", "./nowhere")] {
            let one = objects::kustomization(NAMESPACE, name, ("GitRepository", "fleet"), path);
            objects::apply(client, &one).await?;
        }
        let release = json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"interval": "1h", "chart": {"spec": {"chart": "./chart", "interval": "1h",
                "sourceRef": {"kind": "GitRepository", "name": "fleet"}}}}});
        objects::apply(client, &release).await?;
        let app = objects::kustomization(NAMESPACE, "app", ("GitRepository", "fleet"), "");
        for object in [&app, &release] {
            let (api, name) = api_of(client, object)?;
            wait_for(&api, &name, objects::is_ready, PATIENCE).await?;
        }
        Ok(Self {
            _git: git,
            _controllers: [source, apply, helm],
        })
    }
}

fn repository(git: &GitServer) -> Result<Repository> {
    let repository = git.create_repository("fleet")?;
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "delivered", "namespace": NAMESPACE},
        "stringData": {"word": "hunter2"}});
    let files = [
        ("deploy/map.json", map("delivered").to_string()),
        ("deploy/secret.json", secret.to_string()),
        (
            "deploy/kustomization.yaml",
            "resources: [map.json, secret.json]\n".to_owned(),
        ),
        (
            "chart/Chart.yaml",
            "{apiVersion: v2, name: web, version: 1.0.0}\n".to_owned(),
        ),
        ("chart/templates/map.yaml", map("released").to_string()),
    ];
    let changes: Vec<_> = files
        .iter()
        .map(|(path, text)| Change::write(path, text.as_bytes()))
        .collect();
    repository.commit("main", "all", &changes)?;
    Ok(repository)
}

/// Flux as `flux bootstrap` leaves it, as far as it matters; returns the UIDs of its Deployments.
async fn flux(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let mut objects = Vec::new();
    for name in CONTROLLERS.into_iter().chain(IMAGES).chain(["source-watcher"]) {
        objects.push(deployment(name));
        objects.push(json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"cloud.example.com/role": name}}}));
    }
    objects.push(json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "source-controller", "namespace": NAMESPACE},
        "spec": {"selector": {"app": "source-controller"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}}));
    for object in &objects {
        let (api, name) = api_of(&cluster.client, object)?;
        let parameters = PatchParams::apply("kustomize-controller").force();
        api.patch(&name, &parameters, &Patch::Apply(object)).await?;
    }
    // What keeps it in place. No one reconciles it here.
    let mut own = objects::kustomization(
        NAMESPACE,
        "flux-system",
        ("GitRepository", "flux-system"),
        "./clusters/a",
    );
    own["metadata"]["labels"] = json!({SHARD: "nobody"});
    objects::apply(&cluster.client, &own).await?;
    let entries: Vec<Value> = CONTROLLERS
        .iter()
        .map(|name| json!({"id": format!("{NAMESPACE}_{name}_apps_Deployment"), "v": "v1"}))
        .collect();
    let status = Patch::Merge(json!({"status": {"inventory": {"entries": entries}}}));
    let (kustomizations, name) = api_of(&cluster.client, &own)?;
    kustomizations
        .patch_status(&name, &PatchParams::default(), &status)
        .await?;
    let mut uids = Vec::new();
    for name in CONTROLLERS.into_iter().chain([IMAGES[0]]) {
        let ready =
            |found: &Deployment| found.status.as_ref().and_then(|status| status.ready_replicas) == Some(1);
        let deployment = wait_for(&deployments(cluster), name, ready, PATIENCE).await?;
        uids.push((name.to_owned(), deployment.uid().context("no uid")?));
    }
    Ok(uids)
}

/// An instance of flux-operator, of which there is nothing but the definition.
async fn instance_of_operator(cluster: &Cluster) -> Result<Api<DynamicObject>> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fluxinstances.fluxcd.controlplane.io"},
        "spec": {"group": "fluxcd.controlplane.io", "scope": "Namespaced",
            "names": {"kind": "FluxInstance", "plural": "fluxinstances", "singular": "fluxinstance"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let made = objects::apply(&cluster.client, &definition).await?;
    let crds: Api<DynamicObject> = api_of(&cluster.client, &definition)?.0;
    let is_served = |found: &DynamicObject| {
        objects::condition(found, "Established").is_some_and(|(status, ..)| status == "True")
    };
    wait_for(&crds, &made.name_any(), is_served, PATIENCE).await?;
    let instance = json!({"apiVersion": "fluxcd.controlplane.io/v1", "kind": "FluxInstance",
        "metadata": {"name": "flux", "namespace": NAMESPACE}});
    objects::apply(&cluster.client, &instance).await?;
    Ok(api_of(&cluster.client, &instance)?.0)
}

/// With a limit and a variable that the chart does not have.
fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {
            "app.kubernetes.io/component": name, "app.kubernetes.io/instance": NAMESPACE,
            "app.kubernetes.io/part-of": "flux", "app.kubernetes.io/version": "v2.9.4", "control-plane": "controller",
        }},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"serviceAccountName": name, "terminationGracePeriodSeconds": 0, "containers": [{
                    "name": "manager", "image": format!("fluxcd/{name}:v1"),
                    "env": [{"name": "TUF_ROOT", "value": "/tmp/.sigstore"}],
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                }]},
            },
        },
    })
}

fn deployments(cluster: &Cluster) -> Api<Deployment> {
    Api::namespaced(cluster.client.clone(), NAMESPACE)
}

fn maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client.clone(), NAMESPACE)
}

async fn uid(cluster: &Cluster, map: &str) -> String {
    maps(cluster).get(map).await.unwrap().uid().unwrap()
}

async fn replicas(cluster: &Cluster, name: &str) -> i32 {
    let deployment = deployments(cluster).get(name).await.unwrap();
    deployment.spec.unwrap().replicas.unwrap()
}

async fn container(cluster: &Cluster, name: &str) -> Result<Value> {
    let deployment = serde_json::to_value(deployments(cluster).get(name).await?)?;
    Ok(deployment["spec"]["template"]["spec"]["containers"][0].clone())
}

async fn is_suspended(cluster: &Cluster) -> Result<bool> {
    let own = objects::kustomization(NAMESPACE, "flux-system", ("GitRepository", "flux-system"), "");
    let (kustomizations, name) = api_of(&cluster.client, &own)?;
    let own: DynamicObject = kustomizations.get(&name).await?;
    Ok(own.data["spec"]["suspend"] == true)
}

async fn record(cluster: &Cluster) -> Result<Option<Secret>> {
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    Ok(secrets.get_opt("windlass-takeover").await?)
}

async fn taken_over(cluster: &Cluster, flux: &[(String, String)]) -> Result<()> {
    for (name, uid) in flux {
        let found = deployments(cluster).get(name).await?;
        ensure!(found.uid().as_ref() == Some(uid), "{name} was made anew");
        let container = container(cluster, name).await?;
        let image = container["image"].as_str().context("no image")?;
        ensure!(image.starts_with("windlass/"), "{name}: {image}");
        ensure!(
            container["resources"]["limits"]["cpu"].is_null(),
            "{name}: {container:#}"
        );
        let is_flux = |variable: &Value| variable["name"] == "TUF_ROOT";
        ensure!(
            !container["env"].as_array().context("no env")?.iter().any(is_flux),
            "{name}: {container:#}"
        );
    }
    ensure!(replicas(cluster, "source-watcher").await == 0);
    ensure!(replicas(cluster, IMAGES[1]).await == 0);
    ensure!(is_suspended(cluster).await?);
    ensure!(record(cluster).await?.is_some());
    Ok(())
}

async fn given_back(cluster: &Cluster, flux: &[(String, String)]) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    for (name, _) in flux {
        let container = container(cluster, name).await?;
        ensure!(container["image"] == format!("fluxcd/{name}:v1"), "{container:#}");
        ensure!(container["resources"]["limits"]["cpu"] == "1", "{container:#}");
        let found = deployments(cluster).get(name).await?;
        let managers: Vec<_> = found
            .managed_fields()
            .iter()
            .filter_map(|one| one.manager.as_deref())
            .collect();
        ensure!(
            managers.contains(&"kustomize-controller") && !managers.contains(&"helm"),
            "{managers:?}"
        );
        let role = accounts
            .get(name)
            .await?
            .annotations()
            .get("cloud.example.com/role")
            .cloned();
        ensure!(role.as_ref() == Some(name), "{name}: {role:?}");
    }
    ensure!(replicas(cluster, "source-watcher").await == 1);
    ensure!(replicas(cluster, IMAGES[1]).await == 1);
    ensure!(!is_suspended(cluster).await?);
    ensure!(record(cluster).await?.is_none());
    // Ours, and that of flux-operator.
    ensure!(definitions(cluster).await == 21);
    // That of the HelmRelease.
    ensure!(cluster.helm(&["list", "-q"]).await? == "web\n");
    Ok(())
}

//! `windlass install`, `uninstall` and `check`, and the real helm that goes on from what they leave.

use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use testkit::objects;

use crate::cluster::{Cluster, NAMESPACE, PATIENCE, windlass, windlass_command};
use crate::install::{CONTROLLERS, create_namespace, definitions, deployment_of_flux, deployments};

#[tokio::test]
async fn windlass_installs_upgrades_and_uninstalls_and_helm_goes_on_from_each() {
    let cluster = Cluster::start().await;
    let said = cluster.windlass(&["check", "--pre"], 0).await.unwrap();
    assert!(said.contains("✔ the credentials allow an installation"), "{said}");
    let said = cluster.windlass(&["install", "--dry-run"], 0).await.unwrap();
    assert!(
        said.contains("create  Deployment/flux-system/source-controller"),
        "{said}"
    );
    assert_eq!(definitions(&cluster).await, 0);
    // As README has it: the definitions by hand first. They are ours, and no one need say so.
    testkit::install_crds(&cluster.client).await.unwrap();
    let said = cluster.windlass(&["check", "--pre"], 0).await.unwrap();
    assert!(
        said.contains("✔ nothing of the names of the release's objects is in the way"),
        "{said}"
    );

    let said = cluster.windlass(&["install"], 0).await.unwrap();
    assert!(said.contains("is deployed, revision 1"), "{said}");
    for controller in CONTROLLERS {
        assert!(said.contains(&format!("{controller}: 1 of 1 ready\n")), "{said}");
    }
    assert_eq!(deployments(&cluster).await, CONTROLLERS);
    let said = cluster.windlass(&["install"], 0).await.unwrap();
    assert!(said.contains("is as asked, revision 1: nothing to do"), "{said}");
    let words = [
        "install",
        "--set",
        "apply.replicas=2",
        "--set",
        "logging.level=debug",
    ];
    let said = cluster.windlass(&words, 0).await.unwrap();
    assert!(
        said.contains("kustomize-controller: 2 of 2 ready") && said.contains("revision 2"),
        "{said}"
    );

    // The real helm reads it, and makes the next revision of it.
    let listed: Value = serde_json::from_str(&cluster.helm(&["list", "-o", "json"]).await.unwrap()).unwrap();
    assert_eq!(listed[0]["name"], "windlass");
    assert_eq!(
        (&listed[0]["revision"], &listed[0]["status"]),
        (&json!("2"), &json!("deployed"))
    );
    let values = cluster
        .helm(&["get", "values", "windlass", "-o", "json"])
        .await
        .unwrap();
    let values: Value = serde_json::from_str(&values).unwrap();
    assert_eq!(
        values,
        json!({"apply": {"replicas": 2}, "logging": {"level": "debug"}})
    );
    cluster.install(&["--set", "sharding.shards={a}"]).await.unwrap();
    assert_eq!(deployments(&cluster).await.len(), 7);
    let said = cluster.windlass(&["install"], 0).await.unwrap();
    assert!(said.contains("is as asked, revision 3: nothing to do"), "{said}");
    let said = cluster
        .windlass(&["install", "--set", "crds.keep=true"], 0)
        .await
        .unwrap();
    assert!(said.contains("revision 4"), "{said}");
    assert_eq!(deployments(&cluster).await, CONTROLLERS);
    assert_eq!(
        statuses(&cluster).await,
        ["superseded", "superseded", "superseded", "deployed"]
    );

    cluster
        .helm(&["uninstall", "windlass", "--wait", "--timeout", "2m"])
        .await
        .unwrap();
    assert_eq!(deployments(&cluster).await, [""; 0]);
    let said = cluster.windlass(&["uninstall"], 3).await.unwrap();
    assert!(
        said.contains("there is no release windlass in namespace flux-system"),
        "{said}"
    );
}

#[tokio::test]
async fn windlass_uninstalls_without_a_trace_but_keeps_what_people_declared() {
    let cluster = Cluster::start().await;
    cluster.windlass(&["install"], 0).await.unwrap();
    let source = objects::git_repository(NAMESPACE, "fleet", "https://git.example.com/fleet", "main");
    objects::apply(&cluster.client, &source).await.unwrap();
    let said = cluster.windlass(&["check"], 3).await.unwrap();
    assert!(
        said.contains("✗ the artifact service source-controller.flux-system:9091 has no Pod")
            && said.contains("✗ 1 of 1 objects are not ready"),
        "{said}"
    );
    what_controllers_make(&cluster).await;
    let said = cluster.windlass(&["check", "-o", "json"], 3).await.unwrap();
    let (json, _) = said.split_once("\nError: 1 check failed").unwrap();
    let checked: Value = serde_json::from_str(json).unwrap();
    let failed: Vec<_> = checked["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["result"] == "failed")
        .collect();
    assert_eq!((failed.len(), &failed[0]["check"]), (1, &json!("objects")));

    let said = cluster.windlass(&["uninstall", "--crds"], 2).await.unwrap();
    assert!(
        said.contains("would delete the definitions and with them 1 objects (1 gitrepository)"),
        "{said}"
    );
    let said = cluster.windlass(&["uninstall"], 0).await.unwrap();
    assert!(
        said.contains("left: the namespace flux-system, the definitions, and 1 gitrepository"),
        "{said}"
    );
    assert_eq!(left(&cluster).await, [""; 0]);
    let (sources, name) = objects::api_of(&cluster.client, &source).unwrap();
    sources.get(&name).await.unwrap();

    cluster
        .windlass(&["install", "--set", "crds.keep=false"], 0)
        .await
        .unwrap();
    let said = cluster.windlass(&["uninstall"], 3).await.unwrap();
    assert!(said.contains("was installed with crds.keep=false"), "{said}");
    // A finalizer that no one will answer does not keep the definitions.
    let finalizer = json!({"metadata": {"finalizers": ["finalizers.fluxcd.io"]}});
    let patch = kube::api::Patch::Merge(&finalizer);
    sources
        .patch_metadata(&name, &Default::default(), &patch)
        .await
        .unwrap();
    // Who is at work elsewhere would take that for the wish to delete everything.
    let mut other = deployment_of_flux("helm-controller");
    other["metadata"]["namespace"] = json!("default");
    objects::apply(&cluster.client, &other).await.unwrap();
    let all = ["uninstall", "--crds", "--yes"];
    let said = cluster.windlass(&all, 3).await.unwrap();
    assert!(
        said.contains("other controllers are at work: Deployment/default/helm-controller;"),
        "{said}"
    );
    let (deployments, name) = objects::api_of(&cluster.client, &other).unwrap();
    deployments.delete(&name, &Default::default()).await.unwrap();
    let said = cluster.windlass(&all, 0).await.unwrap();
    assert!(said.contains("left: the namespace flux-system;"), "{said}");
    assert_eq!(definitions(&cluster).await, 0);
    // The release may be gone, and the definitions not: of an uninstall that was interrupted, or of helm.
    testkit::install_crds(&cluster.client).await.unwrap();
    let said = cluster.windlass(&all, 0).await.unwrap();
    assert!(said.contains("the definitions are gone"), "{said}");
    assert_eq!(definitions(&cluster).await, 0);
    // Nothing is installed onto what is still ending.
    cluster.windlass(&["install"], 0).await.unwrap();
    let finalizers = |all: Value| kube::api::Patch::Merge(json!({"metadata": {"finalizers": all}}));
    let held = finalizers(json!(["example.com/held"]));
    let ours = objects::api_of(&cluster.client, &deployment_of_flux("helm-controller"))
        .unwrap()
        .0;
    ours.patch_metadata("helm-controller", &Default::default(), &held)
        .await
        .unwrap();
    for words in [["uninstall", "--timeout=3s"], ["install", "--timeout=3s"]] {
        let said = cluster.windlass(&words, 124).await.unwrap();
        assert!(said.contains("Deployment/flux-system/helm-controller"), "{said}");
    }
    let free = finalizers(Value::Null);
    ours.patch_metadata("helm-controller", &Default::default(), &free)
        .await
        .unwrap();
    cluster.windlass(&["install"], 0).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_installed_is_refused_by_name() {
    let cluster = Cluster::with_nodes(0).await;
    for (value, problem) in [
        ("logging.level=loud", "/logging/level"),
        ("loging.level=debug", "additional properties 'loging' not allowed"),
        ("apply.clusterAdmin=false", "set tenancy.defaultServiceAccount"),
    ] {
        let said = cluster.windlass(&["install", "--set", value], 1).await.unwrap();
        assert!(said.contains(problem), "{said}");
    }
    let said = cluster.windlass(&["install", "--set", "image"], 2).await.unwrap();
    assert!(said.contains("failed parsing --set data"), "{said}");
    let said = cluster.windlass(&["uninstall"], 3).await.unwrap();
    assert!(said.contains("there is no release windlass"), "{said}");

    // Flux's own controllers, wherever they are.
    testkit::install_crds(&cluster.client).await.unwrap();
    create_namespace(&cluster, json!({})).await;
    let flux = deployment_of_flux("helm-controller");
    objects::apply(&cluster.client, &flux).await.unwrap();
    let said = cluster.windlass(&["install"], 3).await.unwrap();
    assert!(
        said.contains("Flux's own controllers are here: Deployment/flux-system/helm-controller")
            && said.contains("`windlass takeover -n flux-system`"),
        "{said}"
    );
    let said = cluster.windlass(&["check", "--pre"], 0).await.unwrap();
    assert!(said.contains("• Flux's own controllers are here"), "{said}");
    let (deployments, name) = objects::api_of(&cluster.client, &flux).unwrap();
    deployments.delete(&name, &Default::default()).await.unwrap();

    let said = without_rights(&cluster, &["install"], 1).await.unwrap();
    assert!(
        said.contains("the credentials of the kubeconfig do not allow to")
            && said.contains("; get, create, patch, delete services in flux-system;"),
        "{said}"
    );
    let said = without_rights(&cluster, &["check", "--pre"], 3).await.unwrap();
    assert!(said.contains("✗ the credentials do not allow to"), "{said}");

    // A definition that is there, no one's, and not as ours.
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let other = Patch::Merge(json!({"spec": {"names": {"shortNames": ["other"]}}}));
    let name = "helmreleases.helm.toolkit.fluxcd.io";
    definitions
        .patch(name, &PatchParams::default(), &other)
        .await
        .unwrap();
    let said = cluster.windlass(&["check", "--pre"], 3).await.unwrap();
    assert!(
        said.contains(&format!("CustomResourceDefinition/{name}; `windlass takeover`")),
        "{said}"
    );
    let said = cluster.windlass(&["install"], 3).await.unwrap();
    assert!(
        said.contains("cannot be imported into the current release")
            && said.contains("--take-ownership makes them"),
        "{said}"
    );

    // No node, no Pod, not ready.
    let words = ["install", "--take-ownership", "--timeout", "3s"];
    let said = cluster.windlass(&words, 124).await.unwrap();
    assert!(
        said.contains("Deployment/flux-system/") && said.contains("0 of 1"),
        "{said}"
    );
    killed_while_it_waits(&cluster).await.unwrap();
    let said = cluster.windlass(&words, 124).await.unwrap();
    assert!(
        said.contains("was killed; going on from there")
            && said.contains("revision 2 was left pending-upgrade: it counts as failed"),
        "{said}"
    );
    let said = interrupted_while_it_waits(&cluster).await.unwrap();
    assert!(said.contains("interrupted; run the command again"), "{said}");
    assert_eq!(statuses(&cluster).await, ["failed", "failed", "failed", "failed"]);
}

/// Kills an upgrade once its record is there.
async fn killed_while_it_waits(cluster: &Cluster) -> Result<()> {
    let words = ["install", "--take-ownership", "--set", "logging.level=debug"];
    killed_at(cluster, &words, "pending-upgrade").await
}

/// Kills a command once the newest record of the release has this status.
pub async fn killed_at(cluster: &Cluster, words: &[&str], status: &str) -> Result<()> {
    let mut process = started(cluster, words, Stdio::null())?;
    let seen = record_with(cluster, status).await;
    process.kill()?;
    process.wait()?;
    seen
}

/// Presses Ctrl-C in an upgrade that waits; returns what it said.
async fn interrupted_while_it_waits(cluster: &Cluster) -> Result<String> {
    let words = ["install", "--take-ownership", "--set", "logging.level=info"];
    let process = started(cluster, &words, Stdio::piped())?;
    record_with(cluster, "pending-upgrade").await?;
    let id = process.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status()?;
    ensure!(sent.success(), "no signal was sent");
    let output = tokio::task::spawn_blocking(move || process.wait_with_output()).await??;
    ensure!(output.status.code() == Some(1), "{:?}", output.status);
    Ok(String::from_utf8(output.stderr)?)
}

fn started(cluster: &Cluster, words: &[&str], stderr: Stdio) -> Result<Child> {
    let kubeconfig = cluster.control_plane.kubeconfig_path().display().to_string();
    let mut command = windlass_command(&kubeconfig, words)?;
    Ok(command.stdout(Stdio::null()).stderr(stderr).spawn()?)
}

async fn record_with(cluster: &Cluster, status: &str) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let labels = format!("owner=helm,name=windlass,status={status}");
    let config = watcher::Config::default().labels(&labels);
    let mut changes = std::pin::pin!(watcher(secrets, config).applied_objects());
    let seen = tokio::time::timeout(PATIENCE, changes.try_next()).await;
    seen.context("no record was made")??.context("the watch ended")?;
    Ok(())
}

/// Statuses of the revisions, from the real helm.
async fn statuses(cluster: &Cluster) -> Vec<String> {
    let history = cluster
        .helm(&["history", "windlass", "-o", "json"])
        .await
        .unwrap();
    let history: Vec<Value> = serde_json::from_str(&history).unwrap();
    let status = |revision: &Value| revision["status"].as_str().unwrap().to_owned();
    history.iter().map(status).collect()
}

/// Runs it as someone who may only look at Secrets of the namespace.
async fn without_rights(cluster: &Cluster, words: &[&str], code: i32) -> Result<String> {
    let mut kubeconfig = Kubeconfig::read_from(cluster.control_plane.kubeconfig_path())?;
    for user in &mut kubeconfig.auth_infos {
        user.auth_info.get_or_insert_default().impersonate = Some("somebody".to_owned());
    }
    let folder = testkit::scratch::directory("somebody")?;
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, serde_json::to_string(&kubeconfig)?)?;
    let path = path.to_str().context("no text")?;
    let said = windlass(path, words, code).await?;
    ensure!(!said.contains("panicked"), "{said}");
    Ok(said)
}

/// kwok's Pods do nothing, and no one looks for their addresses: what comes of real ones is made here.
async fn what_controllers_make(cluster: &Cluster) {
    let client = &cluster.client;
    let slice = json!({"metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "source-controller"}},
        "addressType": "IPv4", "ports": [{"name": "grpc", "port": 9091}],
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]});
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    let slice = serde_json::from_value(slice).unwrap();
    slices.create(&PostParams::default(), &slice).await.unwrap();
    let named = |name: &str| json!({"metadata": {"name": name}});
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    for name in ["windlass-artifact-ca", "notification-controller-state"] {
        let secret = serde_json::from_value(named(name)).unwrap();
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    let mut record = named("last-known-good-1");
    record["metadata"]["labels"] = json!({"windlass.dev/last-known-good": "true"});
    let record = serde_json::from_value(record).unwrap();
    secrets.create(&PostParams::default(), &record).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let map = serde_json::from_value(named("windlass-artifact-ca")).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    for name in [
        "source-controller-leader-election",
        "helm-controller-leader-election-0a1b2c3d",
    ] {
        let lease = serde_json::from_value(named(name)).unwrap();
        leases.create(&PostParams::default(), &lease).await.unwrap();
    }
}

/// Remaining objects of the namespace, except for those that every namespace has.
async fn left(cluster: &Cluster) -> Vec<String> {
    let client = &cluster.client;
    let mut names = deployments(cluster).await;
    let all = ListParams::default();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    names.extend(
        secrets
            .list(&all)
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any),
    );
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    names.extend(maps.list(&all).await.unwrap().iter().map(ResourceExt::name_any));
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    names.extend(leases.list(&all).await.unwrap().iter().map(ResourceExt::name_any));
    names.retain(|name| name != "kube-root-ca.crt");
    names
}

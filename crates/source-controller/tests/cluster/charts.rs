//! Charts from Git and from a registry: packaged, woken by their sources, told in the status.

use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::bucket::ObjectStore;
use testkit::git::{Change, GitServer};
use testkit::objects::{apply, condition, is_ready, text, with_spec};
use testkit::registry::{Artifact, Registry, tar_gz};
use testkit::tools::Package;

use super::{World, download, files, ready, until};

pub(crate) fn helm_chart(world: &World, name: &str, kind: &str, source: &str, chart: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": {"chart": chart, "interval": "10m", "sourceRef": {"kind": kind, "name": source}},
    })
}

/// A chart as it is pushed to registries.
pub(crate) fn packaged(data: &[u8]) -> Artifact {
    Artifact::from_chart(data.to_vec())
}

pub(crate) fn oci_charts(world: &World, registry: &Registry) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"name": "charts", "namespace": world.namespace},
        "spec": {"type": "oci", "url": registry.url("charts"), "insecure": true},
    })
}

pub(crate) fn revision(object: &DynamicObject) -> &str {
    text(object, "/status/artifact/revision")
}

#[tokio::test]
async fn a_chart_of_a_git_repository_waits_for_it_and_follows_it() {
    let world = World::start().await;
    let (api, name) = world
        .create(&helm_chart(&world, "app", "GitRepository", "repo", "charts/app"))
        .await;
    let unavailable = |object: &DynamicObject| {
        condition(object, "FetchFailed").is_some_and(|(_, reason, _)| reason == "SourceUnavailable")
    };
    until(&api, &name, unavailable).await;

    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("repo").unwrap();
    let chart = |version: &str| {
        Change::write(
            "charts/app/Chart.yaml",
            format!("{{apiVersion: v2, name: app, version: {version}}}"),
        )
    };
    let defaults = Change::write("charts/app/values.yaml", "a: 1\n");
    repository
        .commit("main", "one", &[chart("1.0.0"), defaults])
        .unwrap();
    world.create(&world.git("repo", repository.url())).await;
    let object = ready(&api, &name).await;
    assert_eq!(revision(&object), "1.0.0");
    assert!(text(&object, "/status/artifact/path").ends_with("/app/app-1.0.0.tgz"));
    assert_eq!(text(&object, "/status/observedChartName"), "app");
    assert!(text(&object, "/status/observedSourceArtifactRevision").starts_with("main@sha1:"));
    assert!(text(&object, "/status/url").ends_with("/latest.tar.gz"));
    let said = "packaged 'app' chart with version '1.0.0'";
    assert_eq!(
        condition(&object, "Ready"),
        Some(("True", "ChartPackageSucceeded", said))
    );
    let archive = download(&object).await;
    assert!(files(&archive).contains(&"app/values.yaml: a: 1\n".to_owned()));

    // A new commit wakes the repository's charts; one that leaves the version as it is changes only what was seen.
    repository.commit("main", "two", &[chart("1.1.0")]).unwrap();
    super::handled(&world.git_api(), "repo").await;
    until(&api, &name, |object| {
        revision(object) == "1.1.0" && is_ready(object)
    })
    .await;
    let same = repository
        .commit("main", "three", &[Change::write("other", "x")])
        .unwrap();
    super::handled(&world.git_api(), "repo").await;
    let seen = format!("main@sha1:{same}");
    let object = until(&api, &name, |object| {
        text(object, "/status/observedSourceArtifactRevision") == seen
    })
    .await;
    assert_eq!(revision(&object), "1.1.0");
    assert_eq!(
        condition(&object, "Ready").map(|(status, ..)| status),
        Some("True")
    );

    // A mistake in the spec stalls, and the next change of the spec ends that.
    let mistake = with_spec(
        helm_chart(&world, "app", "GitRepository", "repo", "charts/app"),
        json!({"valuesFiles": ["none.yaml"]}),
    );
    apply(&world.plane.client(), &mistake).await.unwrap();
    let stalled = |object: &DynamicObject| {
        condition(object, "Stalled").is_some_and(|(_, reason, _)| reason == "ValuesFilesError")
    };
    let object = until(&api, &name, stalled).await;
    assert_eq!(
        condition(&object, "BuildFailed").map(|(_, reason, _)| reason),
        Some("ValuesFilesError")
    );
    assert_eq!(revision(&object), "1.1.0", "the artifact stays");
}

#[tokio::test]
async fn a_chart_of_a_registry_is_pulled() {
    let world = World::start().await;
    let registry = Registry::start().await.unwrap();
    let data = tar_gz(&[("web/Chart.yaml", "{apiVersion: v2, name: web, version: 0.3.0}")]).unwrap();
    registry
        .push("charts/web", &["0.3.0"], &packaged(&data))
        .await
        .unwrap();
    let source = oci_charts(&world, &registry);
    apply(&world.plane.client(), &source).await.unwrap();
    let (api, name) = world
        .create(&helm_chart(&world, "web", "HelmRepository", "charts", "web"))
        .await;
    let object = ready(&api, &name).await;
    let said = "pulled 'web' chart with version '0.3.0'";
    assert_eq!(
        condition(&object, "Ready"),
        Some(("True", "ChartPullSucceeded", said))
    );
    assert_eq!(download(&object).await, data);
}

#[tokio::test]
async fn a_chart_of_a_bucket_follows_each_of_its_revisions() {
    let world = World::start().await;
    let store = ObjectStore::start(Package::Moto).await.unwrap();
    store.make_s3("charts").await.unwrap();
    let put = async |key: &str, content: &str| store.put_s3("charts", key, content).await.unwrap();
    put("app/Chart.yaml", "{apiVersion: v2, name: app, version: 1.0.0}").await;
    put("app/values.yaml", "a: 1\n").await;
    put("env.yaml", "a: 2\n").await;
    let keys = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": world.namespace},
        "stringData": {"accesskey": "test", "secretkey": "test"},
    });
    apply(&world.plane.client(), &keys).await.unwrap();
    let bucket = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "Bucket",
        "metadata": {"name": "bucket", "namespace": world.namespace},
        "spec": {
            "interval": "10m", "bucketName": "charts", "endpoint": store.address(), "insecure": true,
            "secretRef": {"name": "keys"},
        },
    });
    let (buckets, bucket) = world.create(&bucket).await;
    let chart = helm_chart(&world, "app", "Bucket", "bucket", "app");
    let (api, name) = world
        .create(&with_spec(
            chart,
            json!({"reconcileStrategy": "Revision", "valuesFiles": ["env.yaml"]}),
        ))
        .await;
    let version = |bucket: &DynamicObject| {
        let (_, hex) = revision(bucket).split_once(':').unwrap();
        format!("1.0.0+{}.1", &hex[..12])
    };
    let first = version(&ready(&buckets, &bucket).await);
    let object = ready(&api, &name).await;
    assert_eq!(revision(&object), first);
    let said = format!("packaged 'app' chart with version '{first}' and merged values files [env.yaml]");
    assert_eq!(
        condition(&object, "Ready"),
        Some(("True", "ChartPackageSucceeded", said.as_str()))
    );
    assert!(files(&download(&object).await).contains(&"app/values.yaml: a: 2\n".to_owned()));

    put("env.yaml", "a: 3\n").await;
    let second = version(&super::handled(&buckets, &bucket).await);
    assert_ne!(first, second);
    let object = until(&api, &name, |object| {
        revision(object) == second && is_ready(object)
    })
    .await;
    assert!(files(&download(&object).await).contains(&"app/values.yaml: a: 3\n".to_owned()));
}

//! Where charts come from besides the usual: a HelmRepository of a registry, an ExternalArtifact; and who may refer to what in
//! another namespace.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::{self, condition, is_ready};
use testkit::registry::Artifact;
use testkit::{Controller, HelmRepository, wait_for};

use crate::helm::{HELM, HelmTest, chart, ensure_condition, newest, run, said};
use crate::world::{PATIENCE, SOURCE};

/// The annotation by which the owner of a source says who may refer to it.
const ACCESS_FROM: &str = "windlass.dev/access-from";

/// Pushes a chart below the namespace's name, as `helm push` does: a repository for each chart, a tag for each version.
async fn push_below(test: &HelmTest, version: &str) -> Result<()> {
    let artifact = Artifact::from_chart(chart(version, &[])?);
    let repository = format!("{}/web", test.namespace);
    test.world
        .registry
        .push(&repository, &[version], &artifact)
        .await
        .map(drop)
}

/// The HelmRelease `web` of a chart that is described in its spec.
fn templated(test: &HelmTest, chart: Value) -> Value {
    let mut release = test.release(json!({"chart": {"spec": chart}}));
    release["spec"]
        .as_object_mut()
        .map(|spec| spec.remove("chartRef"));
    release
}

#[test]
fn a_chart_of_a_registry_is_released_in_the_newest_version_of_the_range() {
    run("helm-registry", |test| async move {
        let ns = &test.namespace;
        push_below(&test, "1.0.0").await?;
        push_below(&test, "2.0.0").await?;
        test.apply(&json!({
            "apiVersion": SOURCE, "kind": "HelmRepository", "metadata": {"name": "charts", "namespace": ns},
            "spec": {"type": "oci", "url": test.world.registry.url(ns), "insecure": true, "interval": "1h"},
        }))
        .await?;
        let source = json!({"kind": "HelmRepository", "name": "charts"});
        test.apply(&templated(
            &test,
            json!({"chart": "web", "version": "1.x", "sourceRef": source}),
        ))
        .await?;
        let object = test.ready().await?;
        ensure!(said(&object, "helmChart") == format!("{ns}/{ns}-web"));
        ensure!(newest(&object)["chartVersion"] == "1.0.0", "{}", newest(&object));
        test.map_has("chart", "1.0.0").await?;

        push_below(&test, "1.1.0").await?;
        objects::poke(&test.objects(SOURCE, "HelmChart"), &format!("{ns}-web")).await?;
        let object = test.ready_at(2).await?;
        ensure!(newest(&object)["chartVersion"] == "1.1.0", "{}", newest(&object));
        test.map_has("chart", "1.1.0").await
    });
}

/// A chart in a folder of a Git repository, and an ExternalArtifact `chart` that holds it.
async fn external(test: &HelmTest) -> Result<testkit::git::Repository> {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\ndata:\n  \
                    chart: {{ .Chart.Version | quote }}\n";
    let repository = test.repository(&[
        ("charts/web/Chart.yaml", metadata("0.1.0")),
        ("charts/web/templates/map.yaml", template.to_owned()),
    ])?;
    test.git_source(&repository).await?;
    test.apply(&json!({
        "apiVersion": "source.extensions.fluxcd.io/v1beta1", "kind": "ArtifactGenerator",
        "metadata": {"name": "chart", "namespace": test.namespace},
        "spec": {
            "sources": [{"alias": "git", "kind": "GitRepository", "name": "app"}],
            "artifacts": [{"name": "chart", "revision": "@git", "copy": [
                {"from": "@git/charts/web/**", "to": "@artifact/web/"},
            ]}],
        },
    }))
    .await?;
    Ok(repository)
}

fn metadata(version: &str) -> String {
    format!("apiVersion: v2\nname: web\nversion: {version}\n")
}

#[test]
fn a_chart_of_an_external_artifact_is_followed_when_the_gate_is_open() {
    run("helm-external", |test| async move {
        let repository = external(&test).await?;
        let reference = json!({"chartRef": {"kind": "ExternalArtifact", "name": "chart"}});
        test.apply(&test.release(reference.clone())).await?;
        let object = test.ready().await?;
        let digits = repository.resolve("main")?;
        ensure!(
            newest(&object)["chartVersion"] == format!("0.1.0+{}", &digits[..12]),
            "{}",
            newest(&object)
        );
        let revision = test
            .push(
                &repository,
                &[Change::write("charts/web/Chart.yaml", metadata("0.2.0"))],
            )
            .await?;
        let object = test.ready_at(2).await?;
        ensure!(said(&object, "lastAttemptedRevisionDigest") == revision);
        ensure!(said(&object, "lastAttemptedRevision").starts_with("0.2.0+"));

        // Without the gate, which is Flux's default.
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _helm = Controller::start_helm(kubeconfig, &test.world.source, test.own_shard()).await?;
        let mut closed = test.in_own_shard(test.release(reference));
        closed["metadata"]["name"] = json!("closed");
        test.apply(&closed).await?;
        let message = denied(&test.releases(), "closed").await?;
        let expected = format!(
            "can't access 'ExternalArtifact/{}/chart', ExternalArtifact feature gate is disabled",
            test.namespace
        );
        ensure!(message == expected, "{message}");
        Ok(())
    });
}

/// Waits until an object is refused for who it refers to, and returns the message.
async fn denied(releases: &Api<DynamicObject>, name: &str) -> Result<String> {
    let refused = |object: &DynamicObject| {
        condition(object, "Ready")
            .is_some_and(|(status, reason, _)| status == "False" && reason == "AccessDenied")
    };
    let object = wait_for(releases, name, refused, PATIENCE).await?;
    let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
    Ok(message.to_owned())
}

#[test]
fn a_source_of_another_namespace_is_out_of_reach_under_the_lock() {
    run("helm-lock", |test| async move {
        let ns = &test.namespace;
        let other = test.world.control_plane.namespace("helm-lock-other").await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let mut options = test.own_shard();
        options.flags.push("--no-cross-namespace-refs=true".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _helm = Controller::start_helm(kubeconfig, &test.world.source, options).await?;
        let releases = objects::api(&test.client, HELM, "HelmRelease", &other);

        // One that is there and one that is not are refused in the same words.
        let mut messages = Vec::new();
        for (name, source) in [("there", "web"), ("missing", "nosuch")] {
            let chart = json!({"kind": "OCIRepository", "name": source, "namespace": ns});
            test.apply(&elsewhere(&test, &other, name, json!({"chartRef": chart})))
                .await?;
            messages.push(denied(&releases, name).await?);
        }
        let expected =
            format!("can't access 'OCIRepository/{ns}/web', cross-namespace references have been blocked");
        ensure!(
            messages[0] == expected && messages[1] == expected.replace("/web'", "/nosuch'"),
            "{messages:?}"
        );
        ensure_condition(&releases.get("there").await?, "Stalled", "True", "AccessDenied")?;

        // Nor is anything made there.
        let source = json!({"kind": "HelmRepository", "name": "charts", "namespace": ns});
        let chart = json!({"chart": {"spec": {"chart": "web", "sourceRef": source}}});
        test.apply(&elsewhere(&test, &other, "made", chart)).await?;
        let message = denied(&releases, "made").await?;
        ensure!(
            message.contains("cross-namespace references have been blocked"),
            "{message}"
        );
        let charts = test.objects(SOURCE, "HelmChart");
        ensure!(charts.list(&Default::default()).await?.items.is_empty());

        // In its own namespace the same object is released.
        test.apply(&test.in_own_shard(test.release(json!({})))).await?;
        test.ready().await.map(drop)
    });
}

/// A HelmRelease in another namespace, of this test's shard.
fn elsewhere(test: &HelmTest, namespace: &str, name: &str, spec: Value) -> Value {
    let mut release = test.in_own_shard(test.release(json!({})));
    release["metadata"]["namespace"] = json!(namespace);
    release["metadata"]["name"] = json!(name);
    if spec.get("chart").is_some() {
        release["spec"]
            .as_object_mut()
            .map(|spec| spec.remove("chartRef"));
    }
    objects::with_spec(release, spec)
}

/// The patch by which the owner of a source says who may refer to it.
fn listing(namespaces: &str) -> Patch<Value> {
    Patch::Merge(json!({"metadata": {"annotations": {ACCESS_FROM: namespaces}}}))
}

#[test]
fn the_owner_of_a_source_says_who_may_release_its_charts() {
    run("helm-access", |test| async move {
        let ns = &test.namespace;
        let other = test.world.control_plane.namespace("helm-access-other").await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let repositories = test.oci_repositories();
        repositories
            .patch("web", &PatchParams::default(), &listing("team-*"))
            .await?;
        let mut release = elsewhere(
            &test,
            &other,
            "web",
            json!({"chartRef": {"kind": "OCIRepository", "name": "web", "namespace": ns}}),
        );
        release["metadata"]["labels"] = Value::Null;
        test.apply(&release).await?;
        let releases = objects::api(&test.client, HELM, "HelmRelease", &other);
        let message = denied(&releases, "web").await?;
        ensure!(
            message
                == format!(
                    "can't access 'OCIRepository/{ns}/web': the annotation {ACCESS_FROM} of the source does not list \
                     the namespace '{other}'"
                ),
            "{message}"
        );
        repositories
            .patch("web", &PatchParams::default(), &listing(&other))
            .await?;
        wait_for(&releases, "web", is_ready, PATIENCE).await.map(drop)
    });
}

#[test]
fn the_owner_of_a_helm_repository_says_who_may_have_charts_made_of_it() {
    run("helm-access-made", |test| async move {
        let ns = &test.namespace;
        let other = test
            .world
            .control_plane
            .namespace("helm-access-made-other")
            .await?;
        let repository = HelmRepository::start().await?;
        test.apply(&json!({
            "apiVersion": SOURCE, "kind": "HelmRepository",
            "metadata": {"name": "charts", "namespace": ns, "annotations": {ACCESS_FROM: "team-*"}},
            "spec": {"url": repository.url(), "interval": "1h"},
        }))
        .await?;
        let source = json!({"kind": "HelmRepository", "name": "charts", "namespace": ns});
        let chart = json!({"chart": "app", "version": "1.0.0", "sourceRef": source});
        let mut release = elsewhere(&test, &other, "web", json!({"chart": {"spec": chart}}));
        release["metadata"]["labels"] = Value::Null;
        test.apply(&release).await?;
        let releases = objects::api(&test.client, HELM, "HelmRelease", &other);
        let message = denied(&releases, "web").await?;
        ensure!(
            message.starts_with(&format!(
                "can't access 'HelmRepository/{ns}/charts': the annotation"
            )),
            "{message}"
        );
        // No one's HelmChart was made where the tenant may write nothing.
        let charts = test.objects(SOURCE, "HelmChart");
        ensure!(charts.list(&Default::default()).await?.items.is_empty());
        test.objects(SOURCE, "HelmRepository")
            .patch("charts", &PatchParams::default(), &listing(&other))
            .await?;
        wait_for(&releases, "web", is_ready, PATIENCE).await?;

        // What is taken back counts for the next run.
        test.objects(SOURCE, "HelmRepository")
            .patch("charts", &PatchParams::default(), &listing("team-*"))
            .await?;
        objects::poke(&releases, "web").await?;
        denied(&releases, "web").await?;

        // The HelmChart that was made is no way round it.
        let made = format!("{other}-web");
        test.objects(SOURCE, "HelmChart").get(&made).await?;
        let reference = json!({"kind": "HelmChart", "name": made, "namespace": ns});
        let mut around = elsewhere(&test, &other, "around", json!({"chartRef": reference}));
        around["metadata"]["labels"] = Value::Null;
        test.apply(&around).await?;
        let message = denied(&releases, "around").await?;
        ensure!(
            message.starts_with(&format!(
                "can't access 'HelmRepository/{ns}/charts': the annotation"
            )),
            "{message}"
        );
        Ok(())
    });
}

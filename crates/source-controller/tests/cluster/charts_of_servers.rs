//! Charts of Helm repositories over HTTP: waited for, followed, accepted by helm, and looked for at once when they are new.

use artifact::digest::Digest;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::HelmRepository;
use testkit::objects::{apply, condition, field, is_ready, text, with_spec};
use testkit::tools::run_helm;

use super::charts::{helm_chart, revision};
use super::{World, download, handled, ready, until};

pub(crate) fn repository(world: &World, name: &str, url: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": {"url": url, "interval": "1h", "timeout": "20s"},
    })
}

fn stalled<'a>(object: &'a DynamicObject, reason: &str) -> Option<&'a str> {
    let (_, given, message) = condition(object, "Stalled")?;
    (given == reason).then_some(message)
}

/// The chart, if helm takes it: what it says of itself, and that it renders.
fn taken_by_helm(archive: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("chart.tgz"), archive).unwrap();
    run_helm(&["lint", "--strict", "chart.tgz"], folder.path()).unwrap();
    run_helm(&["template", "demo", "chart.tgz"], folder.path()).unwrap();
    run_helm(&["show", "chart", "chart.tgz"], folder.path()).unwrap()
}

/// Renames a version in the index of a server.
fn rename(server: &HelmRepository, from: &str, to: &str) {
    let index = String::from_utf8(server.file("index.yaml").unwrap()).unwrap();
    let (from, to) = (format!("version: {from}\n"), format!("version: {to}\n"));
    let renamed = index.replacen(&format!("    {from}"), &format!("    {to}"), 1);
    assert_ne!(index, renamed);
    server.set_file("index.yaml", Some(renamed.into_bytes()));
}

#[tokio::test]
async fn a_chart_of_a_server_waits_for_its_index_and_follows_it() {
    let world = World::start().await;
    let server = HelmRepository::start().await.unwrap();
    server.set_failing(Some(503));
    let (repositories, charts) = world.create(&repository(&world, "charts", server.url())).await;
    let (api, name) = world
        .create(&helm_chart(&world, "app", "HelmRepository", "charts", "app"))
        .await;
    let waiting = |object: &DynamicObject| {
        condition(object, "FetchFailed").is_some_and(|(_, reason, _)| reason == "NoSourceArtifact")
    };
    until(&api, &name, waiting).await;
    server.set_failing(None);
    let source = handled(&repositories, &charts).await;
    // A chart that looked when its repository was just there notes the revision when that wakes it.
    let follows = |object: &DynamicObject| {
        is_ready(object) && text(object, "/status/observedSourceArtifactRevision") == revision(&source)
    };
    let object = until(&api, &name, follows).await;
    let said = "pulled 'app' chart with version '1.1.0'";
    for type_ in ["Ready", "ArtifactInStorage"] {
        assert_eq!(
            condition(&object, type_),
            Some(("True", "ChartPullSucceeded", said))
        );
    }
    assert_eq!(revision(&object), "1.1.0");
    assert!(text(&object, "/status/artifact/path").ends_with("/app/app-1.1.0.tgz"));
    assert_eq!(text(&object, "/status/observedChartName"), "app");

    // The artifact is the archive, its digest that of the archive and of the index.
    let archive = download(&object).await;
    assert_eq!(Some(&archive), server.file("app-1.1.0.tgz").as_ref());
    let digest = Digest::from_content(&archive);
    assert_eq!(text(&object, "/status/artifact/digest"), digest.to_string());
    let index = String::from_utf8(server.file("index.yaml").unwrap()).unwrap();
    assert!(index.contains(&digest.hex()), "{index}");
    let size = field(&object, "/status/artifact/size").and_then(Value::as_u64);
    assert_eq!(size, Some(archive.len() as u64));
    let shown = taken_by_helm(&archive);
    assert!(shown.contains("version: 1.1.0\n"), "{shown}");

    // A new index wakes its charts.
    rename(&server, "1.1.0", "1.2.0");
    handled(&repositories, &charts).await;
    let object = until(&api, &name, |object| {
        revision(object) == "1.2.0" && is_ready(object)
    })
    .await;
    let (first, path) = (text(&object, "/status/artifact/path"), "/app/app-1.2.0.tgz");
    assert!(first.ends_with(path), "{first}");

    // A chart that the repository no longer has keeps its artifact, and says what is wrong.
    let full = server.file("index.yaml").unwrap();
    server.set_file("index.yaml", Some(b"apiVersion: v1\nentries: {}\n".to_vec()));
    handled(&repositories, &charts).await;
    let object = until(&api, &name, |object| {
        stalled(object, "InvalidChartReference").is_some()
    })
    .await;
    let expected =
        "invalid chart reference: failed to get chart version for remote reference: no chart name found";
    assert_eq!(
        condition(&object, "FetchFailed"),
        Some(("True", "InvalidChartReference", expected))
    );
    assert_eq!(
        condition(&object, "Ready"),
        Some(("False", "InvalidChartReference", expected))
    );
    assert_eq!(revision(&object), "1.2.0");
    download(&object).await;
    server.set_file("index.yaml", Some(full));
    handled(&repositories, &charts).await;
    let object = ready(&api, &name).await;
    assert!(condition(&object, "Stalled").is_none());
}

#[tokio::test]
async fn a_version_that_the_index_has_not_yet_is_looked_for_at_once() {
    let world = World::start().await;
    let server = HelmRepository::start().await.unwrap();
    let (repositories, charts) = world.create(&repository(&world, "charts", server.url())).await;
    let before = ready(&repositories, &charts).await;
    let chart = |range: &str| {
        let chart = helm_chart(&world, "app", "HelmRepository", "charts", "app");
        with_spec(chart, json!({"version": range}))
    };
    rename(&server, "1.1.0", "3.0.0");
    let (api, name) = world.create(&chart("3.x")).await;
    let object = ready(&api, &name).await;
    assert_eq!(revision(&object), "3.0.0");
    let source = until(&repositories, &charts, |object| {
        revision(object) != revision(&before)
    })
    .await;
    let seen = revision(&source).to_owned();
    until(&api, &name, |object| {
        text(object, "/status/observedSourceArtifactRevision") == seen
    })
    .await;

    apply(&world.plane.client(), &chart("4.x")).await.unwrap();
    let object = until(&api, &name, |object| {
        stalled(object, "InvalidChartReference").is_some()
    })
    .await;
    let message = stalled(&object, "InvalidChartReference").unwrap();
    assert!(
        message.ends_with("no 'app' chart with version matching '4.x' found"),
        "{message}"
    );
    assert_eq!(revision(&object), "3.0.0");
    // Whoever asks for a reconcile gets one.
    rename(&server, "3.0.0", "4.0.0");
    handled(&api, &name).await;
    assert_eq!(revision(&ready(&api, &name).await), "4.0.0");

    // Pre-releases only for those who ask for them.
    apply(&world.plane.client(), &chart(">=1.0.0")).await.unwrap();
    assert_eq!(revision(&ready(&api, &name).await), "4.0.0");
    apply(&world.plane.client(), &chart("~2.0.0-0")).await.unwrap();
    assert_eq!(revision(&ready(&api, &name).await), "2.0.0-rc.1");
}

#[tokio::test]
async fn a_chart_needs_what_its_repository_needs() {
    let world = World::start().await;
    let server = HelmRepository::start().await.unwrap();
    server.set_credentials("user", "pass");
    let login = |password: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": world.namespace},
            "stringData": {"username": "user", "password": password},
        })
    };
    apply(&world.plane.client(), &login("pass")).await.unwrap();
    let charts = with_spec(
        repository(&world, "charts", server.url()),
        json!({"secretRef": {"name": "login"}}),
    );
    world.create(&charts).await;
    let chart = |spec: Value| {
        let chart = helm_chart(&world, "app", "HelmRepository", "charts", "app");
        with_spec(chart, spec)
    };
    let (api, name) = world.create(&chart(json!({"version": "1.0.0"}))).await;
    let object = ready(&api, &name).await;
    assert_eq!(revision(&object), "1.0.0");

    apply(&world.plane.client(), &login("other")).await.unwrap();
    apply(&world.plane.client(), &chart(json!({"version": "1.1.0"})))
        .await
        .unwrap();
    let refused = |object: &DynamicObject| {
        condition(object, "Ready").is_some_and(|(_, reason, _)| reason == "AuthenticationFailed")
    };
    let object = until(&api, &name, refused).await;
    let (_, _, message) = condition(&object, "FetchFailed").unwrap();
    let expected = "failed to authenticate with the Helm repository: chart pull error: failed to download chart for remote reference: ";
    assert!(
        message.starts_with(expected) && message.contains(" answered 401 Unauthorized; "),
        "{message}"
    );
    assert!(
        !message.contains("other") && !message.contains("pass"),
        "{message}"
    );
    assert_eq!(
        condition(&object, "ArtifactOutdated"),
        Some(("True", "NewChart", "new 'app' chart with version '1.1.0'"))
    );

    // Signatures are in registries only. It is not Flux's silence that answers whoever wants them elsewhere.
    apply(&world.plane.client(), &login("pass")).await.unwrap();
    let verify = json!({"version": "1.1.0", "verify": {"provider": "cosign"}});
    apply(&world.plane.client(), &chart(verify)).await.unwrap();
    let object = until(&api, &name, |object| {
        stalled(object, "ChartVerificationError").is_some()
    })
    .await;
    let is = |type_| condition(&object, type_).map(|(status, reason, _)| (status, reason));
    assert_eq!(is("SourceVerified"), Some(("False", "VerificationError")));
    assert_eq!(is("BuildFailed"), Some(("True", "ChartVerificationError")));
    assert_eq!(is("Ready"), Some(("False", "VerificationError")));
    let (_, _, message) = condition(&object, "Ready").unwrap();
    assert!(
        message.starts_with("chart verification error: not implemented"),
        "{message}"
    );

    let patch = json!({"spec": {"verify": null}});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let merged = json!({"valuesFiles": ["values.yaml"], "reconcileStrategy": "ChartVersion"});
    api.patch(
        &name,
        &PatchParams::default(),
        &Patch::Merge(&json!({"spec": merged})),
    )
    .await
    .unwrap();
    let object = ready(&api, &name).await;
    assert!(condition(&object, "SourceVerified").is_none());
    assert_eq!(revision(&object), "1.1.0");
}

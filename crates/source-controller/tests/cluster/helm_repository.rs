//! Helm repositories: an index becomes an artifact, and a repository of type oci is left alone.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::HelmRepository;
use testkit::objects::{apply, condition, field, text, with_spec};

use super::{World, download, handled, ready, until};

fn repository(world: &World, url: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "HelmRepository",
        "metadata": {"name": "charts", "namespace": world.namespace},
        "spec": {"url": url, "interval": "1h", "timeout": "20s"},
    })
}

#[tokio::test]
async fn an_index_becomes_an_artifact_and_follows_its_repository() {
    let world = World::start().await;
    let server = HelmRepository::start().await.unwrap();
    let (api, name) = world.create(&repository(&world, server.url())).await;
    let object = ready(&api, &name).await;
    let revision = text(&object, "/status/artifact/revision").to_owned();
    let (algorithm, hex) = revision.split_once(':').unwrap();
    assert_eq!(algorithm, "sha256");
    let folder = format!("helmrepository/{}/charts", world.namespace);
    assert_eq!(
        text(&object, "/status/artifact/path"),
        format!("{folder}/index-{hex}.yaml")
    );
    assert!(text(&object, "/status/url").ends_with(&format!("{folder}/index.yaml")));
    let message = format!("stored artifact: revision '{revision}'");
    for type_ in ["Ready", "ArtifactInStorage"] {
        assert_eq!(
            condition(&object, type_),
            Some(("True", "Succeeded", message.as_str()))
        );
    }
    let index: Value = serde_json::from_slice(&download(&object).await).unwrap();
    assert_eq!(index["entries"]["app"][1]["version"], "1.1.0");

    server.take_requests();
    handled(&api, &name).await;
    let asked: Vec<_> = server.take_requests().iter().map(|asked| asked.status).collect();
    assert_eq!(asked, [304], "nothing moved");

    server.set_file(
        "index.yaml",
        Some(b"apiVersion: v1\nentries: nonsense\n".to_vec()),
    );
    let object = handled(&api, &name).await;
    let (status, reason, message) = condition(&object, "Ready").unwrap();
    assert_eq!((status, reason), ("False", "IndexationFailed"));
    assert!(
        message.starts_with("failed to load Helm repository from index YAML: "),
        "{message}"
    );
    assert_eq!(
        text(&object, "/status/artifact/revision"),
        revision,
        "what was good stays"
    );

    server.set_file("index.yaml", Some(b"apiVersion: v1\nentries: {}\n".to_vec()));
    server.set_credentials("user", "pass");
    let object = handled(&api, &name).await;
    let (_, reason, message) = condition(&object, "FetchFailed").unwrap();
    assert_eq!(reason, "Failed");
    assert!(message.contains("401"), "{message}");

    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "login", "namespace": world.namespace},
        "stringData": {"username": "user", "password": "pass"},
    });
    let with_login = with_spec(
        repository(&world, server.url()),
        json!({"secretRef": {"name": "login"}}),
    );
    apply(&world.plane.client(), &with_login).await.unwrap();
    let object = until(&api, &name, |object| {
        condition(object, "Ready").is_some_and(|(_, reason, _)| reason == "AuthenticationFailed")
    })
    .await;
    let (_, _, message) = condition(&object, "Ready").unwrap();
    assert!(
        message.starts_with(&format!(
            "failed to get authentication secret '{}/login': ",
            world.namespace
        )),
        "{message}"
    );
    apply(&world.plane.client(), &secret).await.unwrap();
    handled(&api, &name).await;
    let object = ready(&api, &name).await;
    assert_ne!(text(&object, "/status/artifact/revision"), revision);
}

#[tokio::test]
async fn a_repository_of_type_oci_has_no_status_and_no_finalizer() {
    let world = World::start().await;
    let server = HelmRepository::start().await.unwrap();
    let (api, name) = world.create(&repository(&world, server.url())).await;
    let object = ready(&api, &name).await;
    let artifact = text(&object, "/status/artifact/url").to_owned();

    let patch = json!({"spec": {"type": "oci", "url": "oci://registry.example.com/charts"}});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let is_bare = |object: &DynamicObject| {
        let status = field(object, "/status").and_then(Value::as_object);
        object
            .metadata
            .finalizers
            .as_deref()
            .unwrap_or_default()
            .is_empty()
            && status.is_none_or(serde_json::Map::is_empty)
    };
    until(&api, &name, is_bare).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    assert_eq!(client.get(artifact).send().await.unwrap().status(), 404);

    let patch = json!({"spec": {"type": "default"}});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let object = until(&api, &name, |object| condition(object, "Stalled").is_some()).await;
    assert_eq!(
        condition(&object, "Ready"),
        Some((
            "False",
            "URLInvalid",
            "invalid Helm repository URL: 'oci' URL scheme cannot be used with 'default' HelmRepository type"
        ))
    );
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    testkit::wait_until_gone(&api, &name, super::PATIENCE)
        .await
        .unwrap();
}

//! source-controller as a process against a real API server, Git server and registry.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

#[path = "cluster/chart_dependencies.rs"]
mod chart_dependencies;
#[path = "cluster/charts.rs"]
mod charts;
#[path = "cluster/charts_of_servers.rs"]
mod charts_of_servers;
#[path = "cluster/helm_repository.rs"]
mod helm_repository;
#[path = "cluster/policies.rs"]
mod policies;
#[path = "cluster/signed_charts.rs"]
mod signed_charts;

use std::path::Path;
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::control_plane::{ApiMetrics, ControlPlane, Options};
use testkit::controller::{Controller, ControllerOptions};
use testkit::git::signing::Gpg;
use testkit::git::{Change, Counts, Fault, GitServer};
use testkit::objects::{
    api_of, apply, condition, field, git_repository, is_ready, oci_repository, poke, text, with_spec,
};
use testkit::registry::{Access, Kind, Registry};
use testkit::{wait_for, wait_until_gone};

const PATIENCE: Duration = Duration::from_secs(20);
const HANDLED: &str = "/status/lastHandledReconcileAt";

/// A cluster without nodes, and a controller.
struct World {
    plane: ControlPlane,
    controller: Controller,
    namespace: String,
}

impl World {
    async fn start() -> Self {
        let plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
        testkit::install_crds(&plane.client()).await.unwrap();
        let namespace = plane.namespace("source").await.unwrap();
        let controller = Controller::start_source(plane.kubeconfig_path(), ControllerOptions::default())
            .await
            .unwrap();
        Self {
            plane,
            controller,
            namespace,
        }
    }

    fn git(&self, name: &str, url: &str) -> Value {
        git_repository(&self.namespace, name, url, "main")
    }

    fn oci(&self, name: &str, url: &str) -> Value {
        oci_repository(&self.namespace, name, url, "latest")
    }

    async fn create(&self, object: &Value) -> (Api<DynamicObject>, String) {
        apply(&self.plane.client(), object).await.unwrap();
        api_of(&self.plane.client(), object).unwrap()
    }

    fn git_api(&self) -> Api<DynamicObject> {
        let any = self.git("any", "https://h/r");
        api_of(&self.plane.client(), &any).unwrap().0
    }

    async fn metrics(&self) -> ApiMetrics {
        self.plane.api_metrics().await.unwrap()
    }
}

async fn until(
    api: &Api<DynamicObject>,
    name: &str,
    predicate: impl Fn(&DynamicObject) -> bool,
) -> DynamicObject {
    wait_for(api, name, predicate, PATIENCE).await.unwrap()
}

async fn ready(api: &Api<DynamicObject>, name: &str) -> DynamicObject {
    until(api, name, is_ready).await
}

/// Pokes and waits until that was handled.
async fn handled(api: &Api<DynamicObject>, name: &str) -> DynamicObject {
    let token = poke(api, name).await.unwrap();
    until(api, name, |object| text(object, HANDLED) == token).await
}

async fn download(object: &DynamicObject) -> Vec<u8> {
    let url = text(object, "/status/artifact/url");
    let response = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(url)
        .send()
        .await
        .unwrap();
    assert!(response.status().is_success(), "{url}: {}", response.status());
    response.bytes().await.unwrap().to_vec()
}

/// Files of a tar.gz with their content.
fn files(archive: &[u8]) -> Vec<String> {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let mut files = Vec::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.header().entry_type().is_file() {
            let mut content = String::new();
            std::io::Read::read_to_string(&mut entry, &mut content).unwrap();
            files.push(format!("{}: {content}", entry.path().unwrap().display()));
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn sources_become_artifacts_and_follow_their_remotes() {
    let world = World::start().await;
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    let first = repository
        .commit(
            "main",
            "First commit",
            &[Change::write("app.yaml", "one"), Change::write("logo.png", "x")],
        )
        .unwrap();

    let before = world.metrics().await;
    let (api, name) = world.create(&world.git("app", repository.url())).await;
    let object = ready(&api, &name).await;
    let revision = format!("main@sha1:{first}");
    assert_eq!(text(&object, "/status/artifact/revision"), revision);
    assert_eq!(
        text(&object, "/status/artifact/path"),
        format!("gitrepository/{}/app/{first}.tar.gz", world.namespace)
    );
    let message = format!("stored artifact for revision '{revision}'");
    assert_eq!(
        condition(&object, "Ready"),
        Some(("True", "Succeeded", message.as_str()))
    );
    assert_eq!(
        condition(&object, "ArtifactInStorage"),
        Some(("True", "Succeeded", message.as_str()))
    );
    assert_eq!(
        field(&object, "/status/conditions")
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        field(&object, "/status/observedGeneration").and_then(Value::as_i64),
        object.metadata.generation
    );
    assert_eq!(
        object.metadata.finalizers.as_deref(),
        Some(&["finalizers.fluxcd.io".to_owned()][..])
    );
    assert_eq!(files(&download(&object).await), ["app.yaml: one"]);
    let since = world.metrics().await.since(&before);
    assert_eq!(since.count("PATCH", "gitrepositories/status"), 1, "{since:?}");

    // Nothing moved: one ls-refs, and a status patch only for the request itself.
    server.reset_requests();
    handled(&api, &name).await;
    assert_eq!(
        server.counts("app"),
        Counts {
            info_refs: 1,
            ls_refs: 1,
            fetch: 0,
            push: 0,
            other: 0
        }
    );

    let second = repository
        .commit("main", "Second", &[Change::write("app.yaml", "two")])
        .unwrap();
    let object = handled(&api, &name).await;
    assert_eq!(
        text(&object, "/status/artifact/revision"),
        format!("main@sha1:{second}")
    );
    assert_eq!(files(&download(&object).await), ["app.yaml: two"]);

    // Other ignore rules make another artifact of the same revision.
    apply(
        &world.plane.client(),
        &with_spec(world.git("app", repository.url()), json!({"ignore": "app.yaml"})),
    )
    .await
    .unwrap();
    let object = until(&api, &name, |object| {
        text(object, "/status/observedIgnore") == "app.yaml"
    })
    .await;
    assert_eq!(files(&download(&object).await), ["logo.png: x"]);

    api.delete(&name, &DeleteParams::default()).await.unwrap();
    wait_until_gone(&api, &name, PATIENCE).await.unwrap();
    let url = text(&object, "/status/artifact/url");
    let gone = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(url)
        .send()
        .await
        .unwrap();
    assert_eq!(gone.status(), 404);
}

#[tokio::test]
async fn oci_artifacts_are_extracted_and_cost_one_head_at_rest() {
    let world = World::start().await;
    let registry = Registry::start().await.unwrap();
    let digest = registry
        .push_files(
            "org/app",
            &["latest"],
            "main@sha1:1",
            &[("app.yaml", "one"), ("docs/a.md", "x")],
        )
        .await
        .unwrap();
    let (api, name) = world.create(&world.oci("app", &registry.url("org/app"))).await;
    let object = ready(&api, &name).await;
    let revision = format!("latest@{digest}");
    assert_eq!(text(&object, "/status/artifact/revision"), revision);
    assert_eq!(
        text(
            &object,
            "/status/artifact/metadata/org.opencontainers.image.revision"
        ),
        "main@sha1:1"
    );
    let latest = format!("/ocirepository/{}/app/latest.tar.gz", world.namespace);
    assert!(text(&object, "/status/url").ends_with(&latest));
    assert_eq!(files(&download(&object).await), ["app.yaml: one", "docs/a.md: x"]);
    registry.reset_requests();
    handled(&api, &name).await;
    assert_eq!(registry.kinds("org/app"), [Kind::ManifestHead]);

    // A wrong password, and then the right one.
    registry.set_access(Access::Basic {
        username: "u".to_owned(),
        password: "secret".to_owned(),
    });
    let secret = |password: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "pull", "namespace": world.namespace},
            "stringData": {".dockerconfigjson": json!({"auths": {registry.address(): {"username": "u", "password": password}}}).to_string()},
        })
    };
    apply(&world.plane.client(), &secret("mistaken")).await.unwrap();
    let private = with_spec(
        world.oci("private", &registry.url("org/app")),
        json!({"secretRef": {"name": "pull"}}),
    );
    let (api, name) = world.create(&private).await;
    let refused = |object: &DynamicObject| {
        condition(object, "FetchFailed").is_some_and(|(_, reason, message)| {
            assert!(!message.contains("mistaken"), "{message}");
            reason == "OCIArtifactPullFailed"
        })
    };
    until(&api, &name, refused).await;
    apply(&world.plane.client(), &secret("secret")).await.unwrap();
    poke(&api, &name).await.unwrap();
    let object = ready(&api, &name).await;
    assert_eq!(condition(&object, "FetchFailed"), None);
}

#[tokio::test]
async fn failures_are_told_and_recovered_from() {
    let world = World::start().await;
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    repository
        .commit("main", "one", &[Change::write("a", "1")])
        .unwrap();
    let (api, name) = world.create(&world.git("app", repository.url())).await;
    ready(&api, &name).await;

    server.set_fault("app", Fault::Status(503));
    let object = handled(&api, &name).await;
    let (status, reason, message) = condition(&object, "Ready").unwrap();
    assert_eq!((status, reason), ("False", "GitOperationFailed"));
    assert!(message.contains("503"), "{message}");
    assert_eq!(
        condition(&object, "Reconciling").map(|(_, reason, _)| reason),
        Some("ProgressingWithRetry")
    );
    assert_eq!(
        condition(&object, "ArtifactInStorage").map(|(status, ..)| status),
        Some("True")
    );
    server.set_fault("app", None);
    ready(&api, &name).await;

    let absent = with_spec(world.git("absent", &server.url("absent")), json!({}));
    let (absent_api, absent_name) = world.create(&absent).await;
    let failed = |object: &DynamicObject| condition(object, "FetchFailed").is_some();
    let object = until(&absent_api, &absent_name, failed).await;
    let (_, _, message) = condition(&object, "Ready").unwrap();
    assert!(message.contains("repository not found"), "{message}");

    let verified = with_spec(
        world.git("verified", repository.url()),
        json!({"verify": {"mode": "HEAD", "secretRef": {"name": "x"}}}),
    );
    let (verified_api, verified_name) = world.create(&verified).await;
    let refused = |object: &DynamicObject| {
        condition(object, "SourceVerified").is_some_and(|(status, ..)| status == "False")
    };
    let object = until(&verified_api, &verified_name, refused).await;
    let (status, reason, message) = condition(&object, "Ready").unwrap();
    assert_eq!((status, reason), ("False", "VerificationError"));
    assert!(
        message.starts_with("public keys secret error: failed to get secret"),
        "{message}"
    );
}

#[tokio::test]
async fn a_lost_disk_and_a_kill_lose_only_time() {
    let mut world = World::start().await;
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    repository
        .commit("main", "one", &[Change::write("a", "1")])
        .unwrap();
    let (api, name) = world.create(&world.git("app", repository.url())).await;
    let object = ready(&api, &name).await;
    let archive = download(&object).await;

    // Suspended: the artifact stays, and nothing is fetched.
    let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
    api.patch(&name, &PatchParams::default(), &suspend(true))
        .await
        .unwrap();
    server.reset_requests();
    handled(&api, &name).await;
    assert_eq!(server.counts("app"), Counts::default());
    api.patch(&name, &PatchParams::default(), &suspend(false))
        .await
        .unwrap();

    world.controller.kill();
    empty(&world.controller.storage_path());
    world.controller.restart().await.unwrap();
    until(&api, &name, |_| server.counts("app").fetch == 1).await;
    let object = handled(&api, &name).await;
    assert_eq!(download(&object).await, archive);

    let status = world.controller.terminate(PATIENCE).unwrap();
    assert!(
        status.success(),
        "it ends by itself when it is told to: {}",
        world.controller.log_tail(20)
    );
}

fn empty(folder: &Path) {
    std::fs::remove_dir_all(folder).unwrap();
    std::fs::create_dir(folder).unwrap();
}

#[tokio::test]
async fn an_unsigned_commit_never_becomes_the_artifact() {
    let world = World::start().await;
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    let gpg = Gpg::new().unwrap();
    let key = gpg.generate(&[], "author", "ed25519", "sign", "never").unwrap();
    let signer = gpg.signer(&key);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "keys", "namespace": world.namespace},
        "stringData": {"author.asc": String::from_utf8(gpg.export(&key).unwrap()).unwrap()},
    });
    world.create(&secret).await;
    let commit = |text: &str| [Change::write("app.yaml", text)];
    let good = repository
        .commit_signed("main", "one", &commit("one"), &signer)
        .unwrap();
    let verify = json!({"verify": {"mode": "HEAD", "secretRef": {"name": "keys"}}});
    let (api, name) = world
        .create(&with_spec(world.git("app", repository.url()), verify))
        .await;
    let object = ready(&api, &name).await;
    let id = &key[key.len() - 16..];
    let message = format!("verified signature of\n\t- commit '{good}' with key '{id}'");
    let verified = Some(("True", "Succeeded", message.as_str()));
    assert_eq!(condition(&object, "SourceVerified"), verified);
    assert_eq!(text(&object, "/status/sourceVerificationMode"), "HEAD");

    let bad = repository.commit("main", "two", &commit("two")).unwrap();
    let refused = handled(&api, &name).await;
    let message =
        format!("signature verification of commit '{bad}' failed: unsupported signature type: empty");
    let reason = Some(("False", "InvalidCommitSignature", message.as_str()));
    assert_eq!(condition(&refused, "SourceVerified"), reason);
    assert_eq!(
        condition(&refused, "Ready").map(|(status, ..)| status),
        Some("False")
    );
    assert_eq!(
        field(&refused, "/status/artifact"),
        field(&object, "/status/artifact")
    );
    assert_eq!(files(&download(&refused).await), ["app.yaml: one"]);
    let latest = format!("main@sha1:{bad}");
    assert!(
        !world
            .controller
            .log()
            .contains(&format!("stored artifact for revision '{latest}'"))
    );

    let third = repository
        .commit_signed("main", "three", &commit("three"), &signer)
        .unwrap();
    handled(&api, &name).await;
    let object = ready(&api, &name).await;
    assert_eq!(
        text(&object, "/status/artifact/revision"),
        format!("main@sha1:{third}")
    );

    // A mode that cannot be met waits for another spec.
    let tag = json!({"verify": {"mode": "Tag", "secretRef": {"name": "keys"}}});
    world
        .create(&with_spec(world.git("app", repository.url()), tag))
        .await;
    let object = until(&api, &name, |object| condition(object, "Stalled").is_some()).await;
    let (_, reason, _) = condition(&object, "Stalled").unwrap();
    assert_eq!(reason, "InvalidVerificationMode");
    // No one asks any more, so nothing says that someone signed.
    world.create(&world.git("app", repository.url())).await;
    let object = ready(&api, &name).await;
    assert_eq!(condition(&object, "SourceVerified"), None);
}

#[tokio::test]
async fn what_is_included_wakes_the_including_one() {
    let world = World::start().await;
    let server = GitServer::start().await.unwrap();
    let (app, other) = (
        server.create_repository("app").unwrap(),
        server.create_repository("other").unwrap(),
    );
    app.commit("main", "one", &[Change::write("app.yaml", "a")])
        .unwrap();
    other
        .commit("main", "one", &[Change::write("x/lib.yaml", "one")])
        .unwrap();
    let include = json!({"interval": "1h", "include": [{"repository": {"name": "other"}, "fromPath": "x", "toPath": "lib"}]});
    let (api, name) = world
        .create(&with_spec(world.git("app", app.url()), include))
        .await;
    let object = until(&api, &name, |object| {
        condition(object, "IncludeUnavailable").is_some()
    })
    .await;
    let (status, reason, message) = condition(&object, "IncludeUnavailable").unwrap();
    assert_eq!((status, reason), ("True", "NotFound"));
    assert!(
        message.starts_with("could not get resource for include 'other': "),
        "{message}"
    );
    assert_eq!(
        condition(&object, "Ready").map(|(status, ..)| status),
        Some("False")
    );

    let source = with_spec(world.git("other", other.url()), json!({"interval": "1h"}));
    let (others, other_name) = world.create(&source).await;
    let first = ready(&api, &name).await;
    assert_eq!(condition(&first, "IncludeUnavailable"), None);
    assert_eq!(
        files(&download(&first).await),
        ["app.yaml: a", "lib/lib.yaml: one"]
    );
    let included = ready(&others, &other_name).await;
    let known = field(&first, "/status/includedArtifacts/0").unwrap();
    assert_eq!(Some(known), field(&included, "/status/artifact"));
    assert_eq!(text(&first, "/status/observedInclude/0/toPath"), "lib");

    other
        .commit("main", "two", &[Change::write("x/lib.yaml", "two")])
        .unwrap();
    poke(&others, &other_name).await.unwrap();
    let before = text(&first, "/status/artifact/digest");
    let second = until(&api, &name, |object| {
        text(object, "/status/artifact/digest") != before
    })
    .await;
    assert_eq!(
        files(&download(&second).await),
        ["app.yaml: a", "lib/lib.yaml: two"]
    );
    // The revision is that of the including repository, as in Flux.
    assert_eq!(
        text(&second, "/status/artifact/revision"),
        text(&first, "/status/artifact/revision")
    );
}

//! VerificationPolicies: where sources may be, and who must have signed them.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::config::{AuthInfo, Kubeconfig};
use serde_json::{Value, json};
use testkit::HelmRepository;
use testkit::controller::{Controller, ControllerOptions};
use testkit::git::signing::{Gpg, Signer};
use testkit::git::{Change, Counts, GitServer};
use testkit::objects::{apply, condition, poke, text, with_spec};
use testkit::registry::{CosignKey, Registry, tar_gz};

use super::charts::{helm_chart, oci_charts, packaged, revision};
use super::charts_of_servers::repository;
use super::{World, handled, ready, until};

/// Where the controller is, whose policies reach into other namespaces.
const PLATFORM: &str = "default";

impl World {
    /// A policy of the platform about the sources of the world's namespace.
    fn policy(&self, sources: Value, spec: Value) -> Value {
        let all = json!({"namespaces": [self.namespace], "sources": sources, "reason": "ask the platform"});
        let policy = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "VerificationPolicy",
            "metadata": {"name": "known", "namespace": PLATFORM}, "spec": all,
        });
        with_spec(policy, spec)
    }

    async fn secret(&self, name: &str, key: &str, data: String) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": PLATFORM},
            "stringData": {key: data},
        });
        apply(&self.plane.client(), &secret).await.unwrap();
    }

    async fn apply(&self, object: &Value) {
        apply(&self.plane.client(), object).await.unwrap();
    }
}

/// A key of gpg that signs commits, and its public part.
fn author() -> (Gpg, Signer, String) {
    let gpg = Gpg::new().unwrap();
    let key = gpg.generate(&[], "author", "ed25519", "sign", "never").unwrap();
    let public = String::from_utf8(gpg.export(&key).unwrap()).unwrap();
    let signer = gpg.signer(&key);
    (gpg, signer, public)
}

fn is_refused(object: &DynamicObject) -> bool {
    condition(object, "PoliciesMet")
        .is_some_and(|(status, reason, _)| (status, reason) == ("False", "VerificationError"))
}

fn told(object: &DynamicObject, type_: &str) -> String {
    condition(object, type_).map_or_else(String::new, |(status, reason, message)| {
        format!("{status} {reason} {message}")
    })
}

fn meets(object: &DynamicObject) -> bool {
    condition(object, "PoliciesMet").is_some_and(|(status, ..)| status == "True")
}

#[tokio::test]
async fn commits_are_signed_as_the_platform_demands() {
    let mut world = World::start().await;
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    let (_gpg, signer, public) = author();
    let commit = |text: &str| [Change::write("app.yaml", text)];
    let unsigned = repository.commit("main", "one", &commit("one")).unwrap();
    let (api, name) = world.create(&world.git("app", repository.url())).await;
    ready(&api, &name).await;

    // What was stored before the policy came is looked at again, and stays.
    world.secret("authors", "author.asc", public).await;
    let git = json!({"kinds": ["GitRepository"], "git": {"secretRef": {"name": "authors"}}});
    world.apply(&world.policy(git.clone(), json!({}))).await;
    let object = until(&api, &name, is_refused).await;
    let message = format!(
        "refused by VerificationPolicy default/known: signature verification of commit '{unsigned}' failed: unsupported \
         signature type: empty (ask the platform)"
    );
    assert_eq!(
        told(&object, "Ready"),
        format!("False VerificationError {message}")
    );
    assert_eq!(told(&object, "PoliciesMet"), told(&object, "Ready"));
    assert_eq!(revision(&object), format!("main@sha1:{unsigned}"));

    let good = repository
        .commit_signed("main", "two", &commit("two"), &signer)
        .unwrap();
    poke(&api, &name).await.unwrap();
    let object = until(&api, &name, meets).await;
    let said = told(&object, "PoliciesMet");
    let expected = format!(
        "True Succeeded revision 'main@sha1:{good}' meets all that is demanded of it (VerificationPolicy default/known; specs "
    );
    assert!(said.starts_with(&expected), "{said}");
    assert!(
        told(&object, "Ready").starts_with("True Succeeded stored artifact"),
        "{}",
        told(&object, "Ready")
    );
    assert!(condition(&object, "SourceVerified").is_none());

    // That it was verified is known, also to a process that begins.
    server.reset_requests();
    handled(&api, &name).await;
    world.controller.kill();
    world.controller.restart().await.unwrap();
    handled(&api, &name).await;
    assert_eq!(server.counts("app").fetch, 0, "{:?}", server.counts("app"));

    // A later commit that is not signed changes nothing.
    let bad = repository.commit("main", "three", &commit("three")).unwrap();
    poke(&api, &name).await.unwrap();
    let object = until(&api, &name, is_refused).await;
    assert!(
        told(&object, "Ready").contains(&bad),
        "{}",
        told(&object, "Ready")
    );
    assert_eq!(revision(&object), format!("main@sha1:{good}"));

    // With the action Warn it is stored, with one warning.
    world.apply(&world.policy(git, json!({"action": "Warn"}))).await;
    let warned = |object: &DynamicObject| {
        condition(object, "PoliciesMet").is_some_and(|(_, reason, _)| reason == "PolicyWarning")
    };
    let object = until(&api, &name, warned).await;
    let said = told(&object, "PoliciesMet");
    let expected = format!(
        "False PolicyWarning revision 'main@sha1:{bad}' does not meet VerificationPolicy default/known: signature verification"
    );
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(revision(&object), format!("main@sha1:{bad}"));
    assert!(
        told(&object, "Ready").starts_with("True Succeeded"),
        "{}",
        told(&object, "Ready")
    );
    server.reset_requests();
    handled(&api, &name).await;
    assert_eq!(server.counts("app").fetch, 0, "what was warned of is known");

    // Without the policy nothing is said of it.
    let policies = testkit::objects::api_of(&world.plane.client(), &world.policy(json!({}), json!({})));
    let (policies, policy) = policies.unwrap();
    policies.delete(&policy, &DeleteParams::default()).await.unwrap();
    until(&api, &name, |object| condition(object, "PoliciesMet").is_none()).await;
    assert_eq!(server.counts("app").fetch, 0);
    let status = world.controller.terminate(super::PATIENCE).unwrap();
    assert!(status.success(), "{}", world.controller.log_tail(20));
}

#[tokio::test]
async fn nothing_is_fetched_from_where_it_may_not_come() {
    let world = World::start().await;
    let (server, elsewhere) = (
        GitServer::start().await.unwrap(),
        GitServer::start().await.unwrap(),
    );
    let (app, lib) = (
        server.create_repository("app").unwrap(),
        elsewhere.create_repository("lib").unwrap(),
    );
    let commit = lib
        .commit("main", "one", &[Change::write("lib.yaml", "one")])
        .unwrap();
    let modules = format!("[submodule \"lib\"]\n\tpath = lib\n\turl = {}\n", lib.url());
    let changes = [
        Change::write("app.yaml", "one"),
        Change::write(".gitmodules", modules),
        Change::Submodule("lib".to_owned(), commit),
    ];
    app.commit("main", "one", &changes).unwrap();
    let place = |url: &str| url.trim_end_matches(".git").to_owned();
    world
        .apply(&world.policy(json!({"from": [place(app.url())]}), json!({})))
        .await;
    // Once this one is refused, the policy is known.
    let (api, _) = world.create(&world.git("lib", lib.url())).await;
    let object = until(&api, "lib", is_refused).await;
    let message = format!(
        "False VerificationError refused by VerificationPolicy default/known: nothing may come from {} (ask the platform)",
        place(lib.url())
    );
    assert_eq!(told(&object, "Ready"), message);
    assert_eq!(
        condition(&object, "Stalled").map(|(status, ..)| status),
        Some("True")
    );
    elsewhere.reset_requests();

    world.create(&world.git("app", app.url())).await;
    let object = ready(&api, "app").await;
    assert!(meets(&object), "{}", told(&object, "PoliciesMet"));
    world
        .create(&with_spec(
            world.git("whole", app.url()),
            json!({"recurseSubmodules": true}),
        ))
        .await;
    let object = until(&api, "whole", is_refused).await;
    assert!(
        told(&object, "Ready").contains(&place(lib.url())),
        "{}",
        told(&object, "Ready")
    );

    let charts = HelmRepository::start().await.unwrap();
    let registry = Registry::start().await.unwrap();
    let bucket = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "Bucket",
        "metadata": {"name": "files", "namespace": world.namespace},
        "spec": {"bucketName": "files", "endpoint": "s3.example.com", "interval": "1m"},
    });
    for object in [
        repository(&world, "charts", charts.url()),
        world.oci("artifact", &registry.url("org/app")),
        bucket,
    ] {
        let (api, name) = world.create(&object).await;
        until(&api, &name, is_refused).await;
    }
    assert_eq!(elsewhere.counts("lib"), Counts::default());
    assert!(charts.take_requests().is_empty());
    assert_eq!(registry.all_requests(), 0);

    // A chart of a repository that is let in brings along another one.
    let changes = [Change::write(
        "umbrella/Chart.yaml",
        format!(
            "apiVersion: v2\nname: umbrella\nversion: 1.0.0\ndependencies:\n- {{name: app, version: 1.0.0, repository: '{}'}}\n",
            charts.url()
        ),
    )];
    app.commit("main", "two", &changes).unwrap();
    poke(&api, "app").await.unwrap();
    let umbrella = helm_chart(&world, "umbrella", "GitRepository", "app", "umbrella");
    let (charts_api, name) = world.create(&umbrella).await;
    let refused = |object: &DynamicObject| told(object, "Ready").contains("nothing may come from");
    let object = until(&charts_api, &name, refused).await;
    assert!(
        told(&object, "Ready").contains(&place(charts.url())),
        "{}",
        told(&object, "Ready")
    );
    assert!(charts.take_requests().is_empty());
}

#[tokio::test]
async fn artifacts_and_charts_are_signed_as_the_platform_demands() {
    let world = World::start().await;
    let registry = Registry::start().await.unwrap();
    let key = CosignKey::generate().unwrap();
    world
        .secret("keys", "cosign.pub", key.public_key().unwrap())
        .await;
    let data = tar_gz(&[("web/Chart.yaml", "{apiVersion: v2, name: web, version: 0.3.0}")]).unwrap();
    let chart = registry
        .push("charts/web", &["0.3.0"], &packaged(&data))
        .await
        .unwrap();
    let files = [("app.yaml", "one")];
    let app = registry
        .push_files("org/app", &["latest"], "main@sha1:1", &files)
        .await
        .unwrap();
    let verify = json!({"verify": {"provider": "cosign", "secretRef": {"name": "keys"}}});
    world.apply(&world.policy(json!({}), verify)).await;

    let (artifacts, _) = world.create(&world.oci("app", &registry.url("org/app"))).await;
    let object = until(&artifacts, "app", is_refused).await;
    assert!(
        told(&object, "Ready").contains("no signatures found"),
        "{}",
        told(&object, "Ready")
    );
    assert_eq!(revision(&object), "");
    world.apply(&oci_charts(&world, &registry)).await;
    let (charts, _) = world
        .create(&helm_chart(&world, "web", "HelmRepository", "charts", "web"))
        .await;
    until(&charts, "web", is_refused).await;
    for (repository, digest) in [("org/app", &app), ("charts/web", &chart)] {
        key.sign(&registry, repository, digest).await.unwrap();
    }
    poke(&artifacts, "app").await.unwrap();
    poke(&charts, "web").await.unwrap();
    let object = until(&artifacts, "app", meets).await;
    assert_eq!(revision(&object), format!("latest@{app}"));
    let object = until(&charts, "web", meets).await;
    assert_eq!(revision(&object), "0.3.0");

    // What has no signature cannot meet it, and what the policy says nothing of neither.
    let server = HelmRepository::start().await.unwrap();
    let (repositories, _) = world.create(&repository(&world, "plain", server.url())).await;
    ready(&repositories, "plain").await;
    world
        .create(&helm_chart(&world, "app", "HelmRepository", "plain", "app"))
        .await;
    let object = until(&charts, "app", is_refused).await;
    let said = told(&object, "Ready");
    assert!(
        said.contains("charts of a repository with an index have no signature"),
        "{said}"
    );
    let git = GitServer::start().await.unwrap();
    let repository = git.create_repository("app").unwrap();
    repository
        .commit("main", "one", &[Change::write("a", "1")])
        .unwrap();
    let (api, name) = world.create(&world.git("app", repository.url())).await;
    let said = told(&until(&api, &name, is_refused).await, "Ready");
    assert!(
        said.contains("it says nothing of the signatures of commits: spec.sources.git does"),
        "{said}"
    );
    assert!(text(&object, "/status/artifact/url").is_empty());
}

/// The kubeconfig of an account that may do what Flux lets source-controller do.
async fn as_flux(world: &World, folder: &std::path::Path) -> std::path::PathBuf {
    let client = world.plane.client();
    let metadata = json!({"name": "source-controller", "namespace": PLATFORM});
    let rules = json!([
        {"apiGroups": ["source.toolkit.fluxcd.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets", "serviceaccounts", "configmaps"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
    ]);
    let rbac = "rbac.authorization.k8s.io/v1";
    for object in [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "as-flux"}, "rules": rules}),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "as-flux"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "as-flux"},
            "subjects": [{"kind": "ServiceAccount", "name": "source-controller", "namespace": PLATFORM}],
        }),
    ] {
        apply(&client, &object).await.unwrap();
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client, PLATFORM);
    let request = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
    let token = accounts
        .create_token_request("source-controller", &PostParams::default(), &request)
        .await
        .unwrap();
    let mut kubeconfig = Kubeconfig::read_from(world.plane.kubeconfig_path()).unwrap();
    kubeconfig.auth_infos[0].auth_info = Some(AuthInfo {
        token: Some(token.status.unwrap().token.into()),
        ..AuthInfo::default()
    });
    let path = folder.join("kubeconfig");
    std::fs::write(&path, serde_json::to_string(&kubeconfig).unwrap()).unwrap();
    path
}

#[tokio::test]
async fn in_a_cluster_of_flux_there_are_no_policies() {
    let mut world = World::start().await;
    world.controller.terminate(super::PATIENCE).unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(world.plane.client());
    let name = "verificationpolicies.delivery.windlass.dev";
    definitions.delete(name, &DeleteParams::default()).await.unwrap();
    testkit::wait_until_gone(&definitions, name, super::PATIENCE)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = as_flux(&world, folder.path()).await;
    world.controller = Controller::start_source(&kubeconfig, ControllerOptions::default())
        .await
        .unwrap();
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    repository
        .commit("main", "one", &[Change::write("a", "1")])
        .unwrap();
    let (api, name) = world.create(&world.git("app", repository.url())).await;
    ready(&api, &name).await;
}

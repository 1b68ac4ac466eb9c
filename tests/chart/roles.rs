//! Tests that the chart's roles suffice: the controllers run as the chart's service accounts, and deliver.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::controller::ControllerOptions;
use testkit::git::Change;
use testkit::message_sink::Call;
use testkit::registry::Artifact;
use testkit::{Controller, GitServer, MessageSink, Registry, objects, wait_for, wait_until_gone};

use crate::cluster::{Cluster, NAMESPACE, PATIENCE};

const TENANT: &str = "tenant";
const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: delivered, namespace: tenant}\n";
const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: released}\n";

#[tokio::test]
async fn locked_down_controllers_deliver_with_the_roles_of_the_chart() {
    let cluster = Cluster::start().await;
    let values = [
        "images.enabled=true",
        "apply.clusterAdmin=false",
        "helm.clusterAdmin=false",
        "tenancy.defaultServiceAccount=deployer",
        "tenancy.noCrossNamespaceRefs=true",
        "flowControl.create=true",
    ];
    let set: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    cluster.install(&set).await.unwrap();
    let accounts = Accounts::new(&cluster).unwrap();
    let source = accounts.start_source().await.unwrap();
    let lockdown = ["--default-service-account=deployer", "--no-cross-namespace-refs"];
    let _apply = Controller::start_apply(
        &accounts.kubeconfig("kustomize-controller").await.unwrap(),
        &source,
        accounts.options("kustomize-controller", &lockdown).await.unwrap(),
    )
    .await
    .unwrap();
    let _helm = Controller::start_helm(
        &accounts.kubeconfig("helm-controller").await.unwrap(),
        &source,
        accounts.options("helm-controller", &lockdown).await.unwrap(),
    )
    .await
    .unwrap();

    let (git, sink) = (
        GitServer::start().await.unwrap(),
        MessageSink::start().await.unwrap(),
    );
    create_tenant(&cluster.client).await.unwrap();
    alert(&cluster.client, &sink).await.unwrap();
    // It is ready when it knows the Alert: what is said earlier is told to no one.
    let notification = Controller::start_notification(
        &accounts.kubeconfig("notification-controller").await.unwrap(),
        accounts.in_our_namespace(&["--no-cross-namespace-refs"]),
    )
    .await
    .unwrap();

    let files = [
        Change::write("app/map.yaml", MANIFEST),
        Change::write("web/Chart.yaml", CHART),
        Change::write("web/templates/map.yaml", TEMPLATE),
    ];
    let repository = git.create_repository("fleet").unwrap();
    repository.commit("main", "all", &files).unwrap();
    let repository = objects::git_repository(TENANT, "fleet", &git.url("fleet"), "main");
    objects::apply(&cluster.client, &repository).await.unwrap();
    let mut app = objects::kustomization(TENANT, "app", ("GitRepository", "fleet"), "./app");
    app["metadata"]["annotations"] = json!({"windlass.dev/rollback": "last-known-good"});
    let app = objects::with_spec(app, json!({"wait": true}));
    objects::apply(&cluster.client, &app).await.unwrap();
    objects::apply(&cluster.client, &release()).await.unwrap();
    for (kind, api_version, name) in [
        ("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "app"),
        ("HelmRelease", "helm.toolkit.fluxcd.io/v2", "web"),
    ] {
        let api = objects::api(&cluster.client, api_version, kind, TENANT);
        wait_for(&api, name, objects::is_ready, PATIENCE).await.unwrap();
    }
    let applied = |call: &Call| {
        let object = &call.json["involvedObject"];
        object["kind"] == "Kustomization" && call.json["reason"] == "ReconciliationSucceeded"
    };
    sink.until("alerts", applied).await.unwrap();
    call(&cluster.client, &notification).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), TENANT);
    for name in ["delivered", "released"] {
        maps.get(name).await.unwrap();
    }
    statuses_are_not_the_tenants(&cluster.client).await.unwrap();
    is_kept(&cluster.client).await.unwrap();
    for (path, schema) in [("/api/v1/namespaces", "controllers"), (LEASES, "leases")] {
        let account = accounts.kubeconfig("kustomize-controller").await.unwrap();
        flows(&cluster.client, &account, path, schema).await.unwrap();
    }
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/flux-system/leases";

/// What was healthy is kept, where the tenant is not.
async fn is_kept(client: &Client) -> Result<()> {
    let api = objects::api(client, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", TENANT);
    let uid = api.get("app").await?.uid().context("it has a uid")?;
    let name = format!("last-known-good-{uid}");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    ensure!(secrets.get(&name).await?.data.is_some());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), TENANT);
    ensure!(secrets.get_opt(&name).await?.is_none());
    Ok(())
}

/// Waits until requests of an account are counted by a FlowSchema of the chart.
async fn flows(client: &Client, kubeconfig: &Path, path: &str, schema: &str) -> Result<()> {
    let schemas: Api<FlowSchema> = Api::all(client.clone());
    let schema = schemas.get(&format!("{NAMESPACE}-windlass-{schema}")).await?;
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let account = Client::try_from(config)?;
    let counted = async {
        loop {
            let request = http::Request::get(path).body(kube::client::Body::empty())?;
            let answer = account.send(request).await?;
            let by = answer.headers().get("x-kubernetes-pf-flowschema-uid");
            if by.is_some_and(|by| Some(by.as_bytes()) == schema.uid().as_deref().map(str::as_bytes)) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, counted)
        .await
        .context(path.to_owned())?
}

/// Policies of a namespace may use an ImageRepository of another one if the labels of theirs say so: those are read, too.
#[tokio::test]
async fn images_become_commits_with_the_roles_of_the_chart() {
    let cluster = Cluster::start().await;
    cluster.install(&["--set", "images.enabled=true"]).await.unwrap();
    let accounts = Accounts::new(&cluster).unwrap();
    let (git, registry) = (
        GitServer::start().await.unwrap(),
        Registry::start().await.unwrap(),
    );
    let artifact = Artifact::from_files("main@sha1:1", &[("content", "1.0.0")]).unwrap();
    registry.push("web", &["1.0.0"], &artifact).await.unwrap();
    let image = format!("{}/web", registry.address());
    let repository = git.create_repository("fleet").unwrap();
    let file = format!("image: {image}:0.0.0 # {{\"$imagepolicy\": \"{TENANT}:web\"}}\n");
    repository
        .commit("main", "first", &[Change::write("app.yaml", file)])
        .unwrap();
    create_tenant(&cluster.client).await.unwrap();
    for object in images(&image) {
        objects::apply(&cluster.client, &object).await.unwrap();
    }
    let source = objects::git_repository(TENANT, "fleet", repository.url(), "main");
    objects::apply(&cluster.client, &source).await.unwrap();

    let kubeconfig = accounts.kubeconfig("image-reflector-controller").await.unwrap();
    let options = accounts.in_our_namespace(&["--enable-leader-election"]);
    let _images = Controller::start_image(&kubeconfig, options).await.unwrap();
    let automations = objects::api(
        &cluster.client,
        "image.toolkit.fluxcd.io/v1",
        "ImageUpdateAutomation",
        TENANT,
    );
    let is_pushed = |found: &DynamicObject| !objects::text(found, "/status/lastPushCommit").is_empty();
    wait_for(&automations, "fleet", is_pushed, PATIENCE)
        .await
        .unwrap();
    let written = repository.git(&["show", "main:app.yaml"]).unwrap();
    assert!(written.contains(&format!("{image}:1.0.0")), "{written}");
}

/// A ResourceSet is applied as its account, with inputs of a provider.
#[tokio::test]
async fn templates_are_applied_with_the_roles_of_the_chart() {
    let cluster = Cluster::start().await;
    let values =
        "resourceSets.enabled=true,resourceSets.clusterAdmin=false,tenancy.defaultServiceAccount=deployer";
    cluster.install(&["--set", values]).await.unwrap();
    let accounts = Accounts::new(&cluster).unwrap();
    create_tenant(&cluster.client).await.unwrap();
    let group = "fluxcd.controlplane.io/v1";
    let metadata = |name: &str| json!({"name": name, "namespace": TENANT});
    let provider = json!({
        "apiVersion": group, "kind": "ResourceSetInputProvider", "metadata": metadata("values"),
        "spec": {"type": "Static", "defaultValues": {"name": "delivered"}},
    });
    let set = json!({
        "apiVersion": group, "kind": "ResourceSet", "metadata": metadata("maps"),
        "spec": {
            "inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "values"}],
            "wait": true,
            "resources": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "<< inputs.name >>"}}],
        },
    });
    for object in [provider, set] {
        objects::apply(&cluster.client, &object).await.unwrap();
    }
    let kubeconfig = accounts.kubeconfig("resource-set-controller").await.unwrap();
    let options =
        accounts.in_our_namespace(&["--enable-leader-election", "--default-service-account=deployer"]);
    let _controller = Controller::start_resource_sets(&kubeconfig, options)
        .await
        .unwrap();
    let sets = objects::api(&cluster.client, group, "ResourceSet", TENANT);
    wait_for(&sets, "maps", objects::is_ready, PATIENCE)
        .await
        .unwrap();
    sets.delete("maps", &Default::default()).await.unwrap();
    testkit::wait_until_gone(&sets, "maps", PATIENCE).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), TENANT);
    assert!(maps.get_opt("delivered").await.unwrap().is_none());
}

/// What a pipeline may see of other namespaces is asked for; what it changes is in the repository of the tenant.
#[tokio::test]
async fn a_pipeline_promotes_with_the_roles_of_the_chart() {
    let cluster = Cluster::start().await;
    cluster
        .install(&["--set", "pipelines.enabled=true,pipelines.weave=true"])
        .await
        .unwrap();
    let accounts = Accounts::new(&cluster).unwrap();
    let git = GitServer::start().await.unwrap();
    let repository = git.create_repository("fleet").unwrap();
    let mut production = application("default", "1.0.0");
    let file = serde_json::to_string(&production).unwrap();
    let first = [Change::write("apps/shop.yaml", file)];
    repository.commit("main", "first", &first).unwrap();
    create_tenant(&cluster.client).await.unwrap();
    let labels =
        json!({"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": TENANT});
    production["metadata"]["labels"] = labels;
    let source = objects::git_repository(TENANT, "fleet", repository.url(), "main");
    let owner = objects::kustomization(TENANT, "apps", ("GitRepository", "fleet"), "./apps");
    for object in [&application(TENANT, "1.1.0"), &production, &source, &owner] {
        objects::apply(&cluster.client, object).await.unwrap();
    }
    let applied = json!([{"id": "default_shop_helm.toolkit.fluxcd.io_HelmRelease", "v": "v2"}]);
    say(
        &cluster.client,
        &owner,
        json!({"inventory": {"entries": applied}}),
    )
    .await
    .unwrap();
    for object in [&application(TENANT, "1.1.0"), &production] {
        say(&cluster.client, object, json!({})).await.unwrap();
    }
    for object in pipeline() {
        objects::apply(&cluster.client, &object).await.unwrap();
    }

    let kubeconfig = accounts.kubeconfig("pipeline-controller").await.unwrap();
    let options = accounts.in_our_namespace(&["--enable-leader-election", "--weave-pipelines"]);
    let _pipelines = Controller::start_pipeline(&kubeconfig, options).await.unwrap();
    let pipelines = objects::api(
        &cluster.client,
        "delivery.windlass.dev/v1alpha1",
        "Pipeline",
        TENANT,
    );
    let change = "/status/environments/1/targets/0/change/commit";
    let is_pushed = |found: &DynamicObject| !objects::text(found, change).is_empty();
    wait_for(&pipelines, "shop", is_pushed, PATIENCE).await.unwrap();
    let written = repository.git(&["show", "main:apps/shop.yaml"]).unwrap();
    assert!(written.contains("1.1.0"), "{written}");

    // A change that somebody asks for: it is judged, and deleted when it was kept long enough after its end.
    let mut request = json!({
        "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "ChangeRequest",
        "metadata": {"name": "more", "namespace": TENANT},
        "spec": {
            "kustomizationRef": {"name": "apps"}, "changePolicyRef": {"name": "none"}, "title": "More", "keepFor": "1s",
            "files": [{"path": "apps/a.yaml", "content": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}],
        },
    });
    objects::apply(&cluster.client, &request).await.unwrap();
    let (requests, name) = objects::api_of(&cluster.client, &request).unwrap();
    let is_judged = |found: &DynamicObject| objects::condition(found, "Ready").is_some();
    wait_for(&requests, &name, is_judged, PATIENCE).await.unwrap();
    let ended = Patch::Merge(json!({"status": {"finishedAt": "2026-11-26T00:00:00Z"}}));
    requests
        .patch_status(&name, &PatchParams::default(), &ended)
        .await
        .unwrap();
    request["metadata"]["annotations"] = json!({"reconcile.fluxcd.io/requestedAt": "now"});
    objects::apply(&cluster.client, &request).await.unwrap();
    wait_until_gone(&requests, &name, PATIENCE).await.unwrap();

    // What is made of a pipeline of Weave GitOps, and unmade.
    let strategy = json!({"type": "gitea", "url": "https://git.example.com/a/b", "baseBranch": "main", "secretRef": {"name": "a"}});
    let mut old = json!({
        "apiVersion": "pipelines.weave.works/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "old", "namespace": TENANT},
        "spec": {
            "appRef": {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "shop"},
            "environments": [
                {"name": "dev", "targets": [{"namespace": TENANT}]},
                {"name": "production", "targets": [{"namespace": "default"}]},
            ],
            "promotion": {"manual": true, "strategy": {"pull-request": strategy}},
        },
    });
    objects::apply(&cluster.client, &old).await.unwrap();
    let (theirs, name) = objects::api_of(&cluster.client, &old).unwrap();
    let is_shown = |found: &DynamicObject| objects::condition(found, "Ready").is_some();
    wait_for(&theirs, &name, is_shown, PATIENCE).await.unwrap();
    let repositories = objects::api(
        &cluster.client,
        "source.toolkit.fluxcd.io/v1",
        "GitRepository",
        TENANT,
    );
    let policies = objects::api(
        &cluster.client,
        "delivery.windlass.dev/v1alpha1",
        "ChangePolicy",
        TENANT,
    );
    assert!(repositories.get_opt("old").await.unwrap().is_some());
    assert!(policies.get_opt("old").await.unwrap().is_some());
    old["spec"]["environments"].as_array_mut().unwrap().pop();
    objects::apply(&cluster.client, &old).await.unwrap();
    for made in [&repositories, &policies] {
        wait_until_gone(made, "old", PATIENCE).await.unwrap();
    }
}

/// The console watches, asks for reviews, and reads what names further clusters: nothing of the tenants' Secrets.
#[tokio::test]
async fn the_console_answers_with_the_roles_of_the_chart() {
    let cluster = Cluster::start().await;
    let clusters = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}});
    objects::apply(&cluster.client, &clusters).await.unwrap();
    let console = "console.enabled=true,console.clustersNamespace=clusters,images.enabled=true,console.actions=fine-grained";
    cluster.install(&["--set", console]).await.unwrap();
    create_tenant(&cluster.client).await.unwrap();
    let app = objects::kustomization(TENANT, "app", ("GitRepository", "fleet"), "./");
    objects::apply(&cluster.client, &app).await.unwrap();
    let kubeconfig = std::fs::read_to_string(cluster.control_plane.kubeconfig_path()).unwrap();
    let again = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": {"value": kubeconfig},
        "metadata": {"name": "again", "namespace": "clusters", "labels": {"windlass.dev/cluster": "again"}},
    });
    objects::apply(&cluster.client, &again).await.unwrap();
    let accounts = Accounts::new(&cluster).unwrap();
    let kubeconfig = accounts.kubeconfig("console").await.unwrap();
    let options = accounts.in_our_namespace(&["--clusters-namespace=clusters", "--actions=fine-grained"]);
    let console = Controller::start_console(&kubeconfig, options).await.unwrap();

    let accounts = ["viewer", "editor"].into_iter().zip(["view", "edit"]);
    let mut tokens = Vec::new();
    for (name, role) in accounts {
        tokens.push(account_with(&cluster.client, name, role).await.unwrap());
    }
    let (token, editor) = (&tokens[0], &tokens[1]);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = async |path: &str| {
        let url = format!("{}/{path}", console.api_url());
        let answer = http.get(url).bearer_auth(token).send().await.unwrap();
        answer.json::<Value>().await.unwrap()
    };
    let waiting = async {
        loop {
            let (rows, clusters) = (ask("objects").await, ask("clusters").await);
            let is_complete = |cluster: &Value| cluster["complete"] == true && cluster["away"] == false;
            let all = clusters.as_array().into_iter().flatten();
            if rows["total"] == 1 && all.filter(|cluster| is_complete(cluster)).count() == 2 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await; // lists tell nobody of changes
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    // Whoever may edit has it act; whoever may view does not.
    let wanted = json!({"verb": "suspend",
        "objects": [{"cluster": "local", "kind": "ks", "namespace": TENANT, "name": "app"}]});
    for (token, code) in [(token, 403), (editor, 200)] {
        let url = format!("{}/actions", console.api_url());
        let request = http
            .post(url)
            .bearer_auth(token)
            .header("content-type", "application/json");
        let answer = request.body(wanted.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), code, "{}", answer.text().await.unwrap());
    }
    let plain = ["reconcile", "suspend", "resume"];
    let decisions = ["promote", "rollback", "approve", "hold", "release"];
    for (token, kind, verbs) in [
        (token, "git", vec![]),
        (editor, "git", [&plain[..], &["download"]].concat()),
        (token, "pipelines", vec![]),
        (editor, "pipelines", [&plain[..], &decisions].concat()),
    ] {
        let url = format!("{}/objects/local/{kind}/{TENANT}/any/verbs", console.api_url());
        let answer = http.get(url).bearer_auth(token).send().await.unwrap();
        assert_eq!(answer.json::<Value>().await.unwrap()["verbs"], json!(verbs));
    }
    // Nobody but the administrator's namespace is read by it.
    let reader = kube::config::Kubeconfig::read_from(&kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(reader, &Default::default())
        .await
        .unwrap();
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(Client::try_from(config).unwrap(), TENANT);
    let refused = secrets.list(&Default::default()).await.unwrap_err().to_string();
    assert!(refused.contains("forbidden"), "{refused}");
}

/// A service account of the tenant with a role of Kubernetes there. Its token.
async fn account_with(client: &Client, name: &str, role: &str) -> anyhow::Result<String> {
    let metadata = json!({"name": name, "namespace": TENANT});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    objects::apply(client, &account).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": TENANT}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
    });
    objects::apply(client, &binding).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), TENANT);
    let (parameters, request) = (PostParams::default(), TokenRequest::default());
    let made = accounts.create_token_request(name, &parameters, &request).await?;
    Ok(made.status.context("no token was made")?.token)
}

/// An ImageRepository in a namespace of its own, and a policy and an automation of the tenant that use it.
fn images(image: &str) -> Vec<Value> {
    let object = |kind: &str, namespace: &str, name: &str, spec: Value| {
        json!({"apiVersion": "image.toolkit.fluxcd.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    };
    let labels = json!({"matchLabels": {"kubernetes.io/metadata.name": TENANT}});
    let repository = json!({"image": image, "interval": "1h", "insecure": true,
        "accessFrom": {"namespaceSelectors": [labels]}});
    let policy = json!({"imageRepositoryRef": {"name": "web", "namespace": "default"},
        "policy": {"semver": {"range": "*"}}});
    let automation = json!({"sourceRef": {"kind": "GitRepository", "name": "fleet"}, "interval": "1h",
        "git": {"commit": {"author": {"email": "bot@example.com"}}}});
    vec![
        object("ImageRepository", "default", "web", repository),
        object("ImagePolicy", TENANT, "web", policy),
        object("ImageUpdateAutomation", TENANT, "fleet", automation),
    ]
}

/// A HelmRelease that is promoted.
fn application(namespace: &str, version: &str) -> Value {
    let chart = json!({"chart": "app", "version": version, "sourceRef": {"kind": "HelmRepository", "name": "charts"}});
    json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "shop", "namespace": namespace}, "spec": {"interval": "1h", "chart": {"spec": chart}}})
}

/// Writes a status, as the controller of the kind would: the object is ready.
async fn say(client: &Client, object: &Value, mut status: Value) -> Result<()> {
    let (api, name) = objects::api_of(client, object)?;
    let generation = api.get(&name).await?.metadata.generation;
    status["observedGeneration"] = json!(generation);
    status["conditions"] = json!([{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "",
        "lastTransitionTime": "2026-11-26T00:00:00Z"}]);
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(&name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A pipeline of the tenant into a namespace that its account may read.
fn pipeline() -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io";
    let environments = json!([{"name": "dev", "targets": [{}]}, {"name": "production", "targets": [{"namespace": "default"}]}]);
    let rules =
        json!([{"apiGroups": ["helm.toolkit.fluxcd.io"], "resources": ["helmreleases"], "verbs": ["get"]}]);
    vec![
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role",
            "metadata": {"name": "promoter", "namespace": "default"}, "rules": rules}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "promoter", "namespace": "default"},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "promoter"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": TENANT}]}),
        json!({"apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": "shop", "namespace": TENANT},
            "spec": {"apps": [{"kind": "HelmRelease", "name": "shop"}], "environments": environments}}),
    ]
}

/// Whoever has the role edit in a namespace writes specs there, and no status: consumers believe those.
async fn statuses_are_not_the_tenants(client: &Client) -> Result<()> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "mallory", "namespace": TENANT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    });
    objects::apply(client, &binding).await?;
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let may = async |group: &str, resource: &str, subresource: &str| -> Result<bool> {
        let review = serde_json::from_value(
            json!({"metadata": {}, "spec": {"user": "mallory", "resourceAttributes": {
            "namespace": TENANT, "verb": "patch", "group": group, "resource": resource, "subresource": subresource}}}),
        )?;
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    };
    for definition in api::crd::all() {
        let (group, resource) = (&definition.spec.group, &definition.spec.names.plural);
        // The role is put together a moment after the chart was installed.
        let deadline = std::time::Instant::now() + PATIENCE;
        while !may(group, resource, "").await? {
            ensure!(
                std::time::Instant::now() < deadline,
                "{resource} cannot be written"
            );
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        ensure!(
            !may(group, resource, "status").await?,
            "{resource}/status can be written"
        );
    }
    Ok(())
}

fn release() -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": TENANT},
        "spec": {"interval": "1h", "chart": {"spec": {
            "chart": "./web", "sourceRef": {"kind": "GitRepository", "name": "fleet"},
        }}},
    })
}

/// Has what happens to Kustomizations of the tenant told.
async fn alert(client: &Client, sink: &MessageSink) -> Result<()> {
    let provider = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
        "metadata": {"name": "sink", "namespace": TENANT},
        "spec": {"type": "generic", "address": sink.url("alerts")},
    });
    let alert = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
        "metadata": {"name": "all", "namespace": TENANT},
        "spec": {"providerRef": {"name": "sink"}, "eventSources": [{"kind": "Kustomization", "name": "*"}]},
    });
    objects::apply(client, &provider).await?;
    objects::apply(client, &alert).await?;
    Ok(())
}

/// Asks for the source by a webhook, and waits until it was asked for.
async fn call(client: &Client, notification: &Controller) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook", "namespace": TENANT},
        "stringData": {"token": "a secret"},
    });
    let receiver = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver",
        "metadata": {"name": "hook", "namespace": TENANT},
        "spec": {
            "type": "generic", "secretRef": {"name": "hook"},
            "resources": [{"kind": "GitRepository", "name": "fleet"}],
        },
    });
    objects::apply(client, &secret).await?;
    objects::apply(client, &receiver).await?;
    let (receivers, name) = objects::api_of(client, &receiver)?;
    let ready = wait_for(&receivers, &name, objects::is_ready, PATIENCE).await?;
    let path = objects::text(&ready, "/status/webhookPath");
    let http = reqwest::Client::builder().no_proxy().build()?;
    let answer = http.post(format!("{}{path}", notification.receiver_url()));
    answer.send().await?.error_for_status()?;
    let sources = objects::api(client, "source.toolkit.fluxcd.io/v1", "GitRepository", TENANT);
    let asked = |source: &DynamicObject| {
        source
            .annotations()
            .contains_key("reconcile.fluxcd.io/requestedAt")
    };
    wait_for(&sources, "fleet", asked, PATIENCE).await?;
    Ok(())
}

/// A namespace with an account that may do everything there, and nothing elsewhere.
async fn create_tenant(client: &Client) -> Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": TENANT}});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "deployer", "namespace": TENANT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": TENANT}],
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}});
    for object in [namespace, account, binding] {
        objects::apply(client, &object).await?;
    }
    Ok(())
}

/// The service accounts of the chart, as files that a process outside of the cluster can use.
struct Accounts<'a> {
    cluster: &'a Cluster,
    directory: TempDir,
}

impl<'a> Accounts<'a> {
    fn new(cluster: &'a Cluster) -> Result<Self> {
        Ok(Self {
            cluster,
            directory: testkit::scratch::directory("accounts")?,
        })
    }

    async fn start_source(&self) -> Result<Controller> {
        let kubeconfig = self.kubeconfig("source-controller").await?;
        Controller::start_source(&kubeconfig, self.in_our_namespace(&[])).await
    }

    fn in_our_namespace(&self, flags: &[&str]) -> ControllerOptions {
        ControllerOptions {
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            namespace: NAMESPACE.to_owned(),
            ..ControllerOptions::default()
        }
    }

    /// With the token that the Pod has from its projected volume.
    async fn options(&self, account: &str, flags: &[&str]) -> Result<ControllerOptions> {
        let path = self.directory.path().join(format!("{account}.token"));
        std::fs::write(&path, self.token(account, Some("windlass-artifact")).await?)?;
        let token = format!("--artifact-token-file={}", path.display());
        Ok(self.in_our_namespace(&[flags, &[&token]].concat()))
    }

    async fn token(&self, account: &str, audience: Option<&str>) -> Result<String> {
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: audience.map(str::to_owned).into_iter().collect(),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client.clone(), NAMESPACE);
        let answer = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await?;
        Ok(answer.status.context("the API server gave no token")?.token)
    }

    /// A kubeconfig with nothing but the account's token.
    async fn kubeconfig(&self, account: &str) -> Result<PathBuf> {
        let token = self.token(account, None).await?;
        let path = self.directory.path().join(format!("{account}.kubeconfig"));
        std::fs::write(
            &path,
            as_account(self.cluster.control_plane.kubeconfig_path(), &token)?,
        )?;
        Ok(path)
    }
}

/// The kubeconfig with another user.
fn as_account(kubeconfig: &Path, token: &str) -> Result<String> {
    let mut config = kube::config::Kubeconfig::read_from(kubeconfig)?;
    for user in &mut config.auth_infos {
        user.auth_info = Some(serde_json::from_value(json!({"token": token}))?);
    }
    Ok(serde_json::to_string(&config)?)
}

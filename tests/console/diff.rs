//! What is desired beside what is there, as its caller may see it, with real controllers and a real Git server.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, apply, is_ready};
use testkit::{ControlPlane, Controller, GitServer, Options, install_all_crds, wait_for};

use crate::world::{ANA, ANA_EVERYWHERE, BOB, BOB_EVERYWHERE, EVE, EVE_EVERYWHERE, PATIENCE};

pub const NAMESPACE: &str = "shop";
pub const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const HELM: &str = "helm.toolkit.fluxcd.io/v2";

fn commit(repository: &Repository, word: &str) -> Result<String> {
    let map = |name: &str, word: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{word: {word}}}\n")
    };
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: keys}}\nstringData: {{password: hunter-{word}}}\n"
    );
    let files = [
        ("deploy/a.yaml", map("a", word)),
        ("deploy/b.yaml", map("b", word)),
        ("deploy/keys.yaml", secret),
        ("production/a.yaml", map("a", "production")),
        ("production/only.yaml", map("only", word)),
        (
            "charts/web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n".to_owned(),
        ),
        (
            "charts/web/templates/map.yaml",
            map("of-chart", "{{ .Values.word | default \"chart\" }}"),
        ),
    ];
    let changes = files.map(|(path, text)| Change::write(path, text));
    repository.commit("main", word, &changes)
}

/// Lets a user do this with these resources of the namespace.
pub async fn grant(client: &Client, user: &str, verbs: &[&str], resources: &[&str]) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let name = format!("{}-{}", user.replace('@', "-"), verbs.join("-"));
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let rule = json!({"apiGroups": ["*"], "resources": resources, "verbs": verbs});
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule]});
    apply(client, &role).await?;
    let subject = json!({"kind": "User", "name": user, "apiGroup": group});
    let binding = json!({
        "apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "subjects": [subject],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
    });
    apply(client, &binding).await.map(drop)
}

struct Asked {
    http: reqwest::Client,
    url: String,
}

impl Asked {
    async fn diff(&self, token: &str, object: &str) -> Result<(StatusCode, Value)> {
        let url = format!("{}/objects/local/{object}", self.url);
        let answer = self.http.get(url).bearer_auth(token).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        Ok((
            status,
            serde_json::from_str(&text).with_context(|| format!("{status}: {text}"))?,
        ))
    }

    /// Compares two sides; the picture follows the API server.
    async fn between(&self, token: &str, sides: &str) -> Result<Value> {
        let asking = async {
            loop {
                let url = format!("{}/diff?{sides}", self.url);
                let answer = self.http.get(url).bearer_auth(token).send().await?;
                let status = answer.status();
                let value: Value = answer.json().await?;
                match status {
                    StatusCode::OK => return Ok(value),
                    StatusCode::NOT_FOUND => {}
                    _ => anyhow::bail!("{sides}: {status} {value}"),
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await; // a list does not tell of changes
            }
        };
        tokio::time::timeout(PATIENCE, asking).await?
    }

    /// Asks until an answer is as it should be: the console's picture follows the API server.
    async fn until(&self, token: &str, object: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let asking = async {
            loop {
                let (status, answer) = self.diff(token, object).await?;
                if status == StatusCode::OK && holds(&answer) {
                    return anyhow::Ok(answer);
                }
                last = answer;
                tokio::time::sleep(std::time::Duration::from_millis(50)).await; // a list does not tell of changes
            }
        };
        match tokio::time::timeout(PATIENCE, asking).await {
            Ok(answer) => answer,
            Err(_) => anyhow::bail!("{object} stays {last:#}"),
        }
    }
}

fn told(answer: &Value) -> Vec<String> {
    let objects = answer["objects"].as_array().into_iter().flatten();
    let mut told: Vec<String> = objects
        .map(|entry| format!("{} {}", entry["action"], entry["object"]).replace('"', ""))
        .collect();
    told.sort();
    told
}

/// Writes as someone who is no controller.
async fn by_hand(client: &Client, name: &str, word: &str) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let parameters = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({"data": {"word": word}}));
    maps.patch(name, &parameters, &patch).await?;
    Ok(())
}

/// The values of an object and their origin. Values from Secrets are masked for every caller.
async fn built_with(client: &Client, asked: &Asked) -> Result<()> {
    let metadata = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("settings"),
        "data": {"values.yaml": "image: {tag: v1, name: web}\nlist: [1]\n", "region": "eu"}});
    let keys = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("given"),
        "stringData": {"values.yaml": "password: hunter2\nimage: {tag: v2}\n", "token": "hunter2"}});
    let from = |key: &str| json!([{"kind": "ConfigMap", "name": "settings"}, {"kind": "Secret", "name": "given", "valuesKey": key}]);
    let release = json!({
        "apiVersion": HELM, "kind": "HelmRelease", "metadata": metadata("given"),
        "spec": {"interval": "1h", "suspend": true, "chart": {"spec": {"chart": "web", "sourceRef": {"kind": "GitRepository", "name": "repo"}}},
            "valuesFrom": from("values.yaml"), "values": {"replicas": 2, "image": {"name": "shop"}}},
    });
    let kustomization = objects::kustomization(NAMESPACE, "given", ("GitRepository", "repo"), "./deploy");
    let variables = json!({"interval": "1h", "suspend": true, "postBuild": {
        "substitute": {"size": "3", "token": "hunter2"},
        "substituteFrom": [{"kind": "ConfigMap", "name": "settings"}, {"kind": "Secret", "name": "given"}],
    }});
    for object in [
        &settings,
        &keys,
        &release,
        &objects::with_spec(kustomization, variables),
    ] {
        apply(client, object).await?;
    }
    let release = format!("hr/{NAMESPACE}/given/values");
    let answer = asked
        .until(ANA, &release, |answer| answer["values"].is_array())
        .await?;
    let (map, secret) = ("ConfigMap/settings: values.yaml", "Secret/given: values.yaml");
    let value =
        |path: &str, value: &str, origin: &str| json!({"path": path, "value": value, "origin": origin});
    let masked = "(from a Secret)";
    let expected = json!([
        value("image.name", "\"shop\"", "spec.values"),
        value("image.tag", masked, secret),
        value("list", "[1]", map),
        value("password", masked, secret),
        value("replicas", "2", "spec.values"),
    ]);
    assert_eq!(answer, json!({"values": expected}));
    let answer = asked
        .until(ANA, &format!("ks/{NAMESPACE}/given/values"), |answer| {
            answer["values"].is_array()
        })
        .await?;
    ensure!(!answer.to_string().contains("hunter2"), "{answer}");
    let of = |name: &str| {
        let values = answer["values"].as_array().into_iter().flatten();
        values.filter(|one| one["path"] == name).collect::<Vec<_>>()
    };
    assert_eq!(of("region"), [&value("region", "\"eu\"", "ConfigMap/settings")]);
    assert_eq!(of("size"), [&value("size", "\"3\"", "spec.postBuild.substitute")]);
    assert_eq!(of("token"), [&value("token", masked, "Secret/given")]);
    // Who may not read them learns which there are, as the object names them.
    let answer = asked
        .until(BOB, &release, |answer| answer["notes"].is_array())
        .await?;
    assert_eq!(answer["notes"].as_array().map(Vec::len), Some(2), "{answer}");
    ensure!(!answer.to_string().contains("v1"), "{answer}");
    let (status, answer) = asked.diff(EVE, &release).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    let (status, answer) = asked.diff(ANA, &format!("git/{NAMESPACE}/repo/values")).await?;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_desired_is_compared_with_what_is_there_as_the_caller_may() -> Result<()> {
    let users = [
        (ANA, ANA_EVERYWHERE, 1),
        (BOB, BOB_EVERYWHERE, 2),
        (EVE, EVE_EVERYWHERE, 3),
    ];
    let options = Options {
        users: users
            .map(|(token, name, uid)| format!("{token},{name},{uid}"))
            .to_vec(),
        ..Options::api_server_only()
    };
    let control_plane = ControlPlane::start(options).await?;
    let client = control_plane.client();
    install_all_crds(&client).await?;
    apply(
        &client,
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
    )
    .await?;
    let kubeconfig = control_plane.kubeconfig_path();
    let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
    let _apply = Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
    let _helm = Controller::start_helm(kubeconfig, &source, ControllerOptions::default()).await?;
    let git = GitServer::start().await?;
    let repository = git.create_repository("app")?;
    commit(&repository, "one")?;
    let kustomization = objects::kustomization(NAMESPACE, "app", ("GitRepository", "repo"), "./deploy");
    let spec = json!({"interval": "1h", "prune": true, "targetNamespace": NAMESPACE});
    let reference = json!({"kind": "GitRepository", "name": "repo"});
    let release = json!({
        "apiVersion": HELM, "kind": "HelmRelease", "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"interval": "1h", "chart": {"spec": {"chart": "./charts/web", "sourceRef": reference}}},
    });
    for object in [
        objects::git_repository(NAMESPACE, "repo", repository.url(), "main"),
        objects::git_repository(NAMESPACE, "other", repository.url(), "main"),
        objects::with_spec(kustomization, spec),
        release,
    ] {
        apply(&client, &object).await?;
    }
    let kustomizations = objects::api(&client, KUSTOMIZE, "Kustomization", NAMESPACE);
    let sources = objects::api(&client, SOURCE, "GitRepository", NAMESPACE);
    let releases = objects::api(&client, HELM, "HelmRelease", NAMESPACE);
    let ready = wait_for(&kustomizations, "app", is_ready, PATIENCE).await?;
    let metadata = &ready.data["status"]["history"][0]["metadata"];
    let step =
        |name: &str| -> Result<jiff::Timestamp> { Ok(metadata[name].as_str().context("no time")?.parse()?) };
    ensure!(
        step("windlass.dev/built")? <= step("windlass.dev/applied")?,
        "{metadata}"
    );
    wait_for(&releases, "web", is_ready, PATIENCE).await?;
    wait_for(&sources, "other", is_ready, PATIENCE).await?;

    let delivery = ["kustomizations", "helmreleases", "gitrepositories", "helmcharts"];
    grant(&client, ANA_EVERYWHERE, &["get"], &delivery).await?;
    grant(
        &client,
        ANA_EVERYWHERE,
        &["get", "list", "create", "patch", "delete"],
        &["configmaps", "secrets"],
    )
    .await?;
    grant(&client, BOB_EVERYWHERE, &["get"], &delivery).await?;
    let options = |actions: &str| ControllerOptions {
        flags: vec![
            format!("--actions={actions}"),
            format!("--source-url={}", source.storage_url()),
        ],
        ..ControllerOptions::default()
    };
    let console = Controller::start_console(kubeconfig, options("impersonated")).await?;
    let asked = Asked {
        http: reqwest::Client::builder().no_proxy().build()?,
        url: console.api_url(),
    };
    let (app, web) = (
        format!("ks/{NAMESPACE}/app/diff"),
        format!("hr/{NAMESPACE}/web/diff"),
    );

    built_with(&client, &asked).await?;

    // Between environments: another path, namespace prefix and word.
    let production =
        objects::kustomization(NAMESPACE, "production", ("GitRepository", "repo"), "./production");
    let spec =
        json!({"interval": "1h", "namePrefix": "prod-", "targetNamespace": NAMESPACE, "suspend": true});
    apply(&client, &objects::with_spec(production, spec)).await?;
    let (from, to) = (
        format!("local/ks/{NAMESPACE}/app"),
        format!("local/ks/{NAMESPACE}/production"),
    );
    let sides = format!("from={from}&to={to}&full=true");
    let answer = asked.between(ANA, &sides).await?;
    let expected = [
        format!("changed ConfigMap/{NAMESPACE}/prod-a"),
        format!("created ConfigMap/{NAMESPACE}/prod-only"),
        format!("pruned ConfigMap/{NAMESPACE}/b"),
        format!("pruned Secret/{NAMESPACE}/keys"),
    ];
    assert_eq!(told(&answer), expected, "{answer:#}");
    ensure!(!answer.to_string().contains("hunter"), "{answer}");

    // Nothing differs.
    for object in [&app, &web] {
        let answer = asked
            .until(ANA, object, |answer| answer["summary"]["unchanged"] != 0)
            .await?;
        assert_eq!(
            (told(&answer), answer.get("reason")),
            (Vec::new(), None),
            "{answer:#}"
        );
        assert_eq!(answer["desired"], answer["applied"]);
    }

    // What was done by hand is told with who did it; nothing is written by asking.
    let suspend = Patch::Merge(json!({"spec": {"suspend": true}}));
    for (api, name) in [(&kustomizations, "app"), (&releases, "web")] {
        api.patch(name, &PatchParams::default(), &suspend).await?;
    }
    by_hand(&client, "a", "edited").await?;
    by_hand(&client, "of-chart", "edited").await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    maps.delete("b", &DeleteParams::default()).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let other = Patch::Merge(json!({"stringData": {"password": "by-hand"}}));
    secrets.patch("keys", &PatchParams::default(), &other).await?;
    let before = maps.get("a").await?.resource_version();
    let full = format!("{app}?full=true");
    let answer = asked
        .until(ANA, &full, |answer| answer["reason"] == "it is suspended")
        .await?;
    let expected = [
        format!("changed ConfigMap/{NAMESPACE}/a"),
        format!("changed Secret/{NAMESPACE}/keys"),
        format!("created ConfigMap/{NAMESPACE}/b"),
    ];
    assert_eq!(told(&answer), expected, "{answer:#}");
    let of_a = answer["objects"].as_array().into_iter().flatten();
    let of_a = of_a.filter(|entry| entry["object"] == format!("ConfigMap/{NAMESPACE}/a"));
    let of_a: Vec<&Value> = of_a.collect();
    let field = &of_a[0]["fields"][0];
    assert_eq!(
        (&field["path"], &field["old"], &field["new"]),
        (&json!("data.word"), &json!("\"edited\""), &json!("\"one\""))
    );
    ensure!(
        field["setBy"]
            .as_str()
            .unwrap_or_default()
            .starts_with("kubectl-edit at "),
        "{field}"
    );
    assert_eq!(of_a[0]["before"]["data"]["word"], "edited");
    assert_eq!(of_a[0]["after"]["data"]["word"], "one");
    let text = answer.to_string();
    ensure!(!text.contains("hunter") && !text.contains("by-hand"), "{text}");
    for secret in ["aHVudGVyLW9uZQ", "YnktaGFuZA"] {
        ensure!(!text.contains(secret), "{text}");
    }
    assert_eq!(maps.get("a").await?.resource_version(), before);
    let answer = asked
        .until(ANA, &web, |answer| answer["reason"] == "it is suspended")
        .await?;
    assert_eq!(
        told(&answer),
        [format!("changed ConfigMap/{NAMESPACE}/of-chart")],
        "{answer:#}"
    );

    // A newer revision that is not applied.
    commit(&repository, "two")?;
    objects::poke(&sources, "repo").await?;
    let answer = asked
        .until(ANA, &app, |answer| answer["desired"] != answer["applied"])
        .await?;
    ensure!(answer.to_string().contains("\\\"two\\\""), "{answer:#}");

    // Between revisions of a release; a revision that is not there, and someone who may not read Helm's records.
    let values = Patch::Merge(json!({"spec": {"suspend": false, "values": {"word": "other"}}}));
    releases.patch("web", &PatchParams::default(), &values).await?;
    let has_two = |object: &kube::api::DynamicObject| {
        is_ready(object)
            && object.data["status"]["history"]
                .as_array()
                .is_some_and(|all| all.len() > 1)
    };
    wait_for(&releases, "web", has_two, PATIENCE).await?;
    let release = format!("local/hr/{NAMESPACE}/web");
    let answer = asked
        .between(ANA, &format!("from={release}@1&to={release}@2"))
        .await?;
    assert_eq!(told(&answer), ["changed ConfigMap/of-chart"], "{answer:#}");
    assert_eq!(answer["objects"][0]["fields"][0]["new"], "\"other\"");
    for (token, sides, problem) in [
        (
            ANA,
            format!("from={release}@1&to={release}@7"),
            "no record of revision 7",
        ),
        (BOB, format!("from={release}@1&to={release}@2"), "cannot get"),
        (ANA, format!("from={from}@1&to={to}"), "only of releases"),
        (ANA, format!("from={from}&to=web"), "write CLUSTER/KIND"),
        (EVE, sides, "may not get"),
    ] {
        let refused = asked.between(token, &sides).await.unwrap_err().to_string();
        ensure!(refused.contains(problem), "{refused}");
    }

    // Who may not read what was applied learns that it cannot be compared, and no value.
    let (status, answer) = asked.diff(BOB, &full).await?;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["summary"]["failed"], 3, "{answer:#}");
    let text = answer.to_string();
    ensure!(
        text.contains("cannot get") || text.contains("cannot patch"),
        "{text}"
    );
    ensure!(!text.contains("edited") && !text.contains("by-hand"), "{text}");
    let (status, answer) = asked.diff(EVE, &app).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    let (status, answer) = asked.diff(ANA, &format!("git/{NAMESPACE}/repo/diff")).await?;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");

    // A status that leads to what another source has, and to another server.
    let artifact = sources.get("other").await?.data["status"]["artifact"].clone();
    let stolen = Patch::Merge(json!({"status": {"artifact": artifact}}));
    sources
        .patch_status("repo", &PatchParams::default(), &stolen)
        .await?;
    let (status, answer) = asked.diff(ANA, &app).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    ensure!(
        answer.to_string().contains("not in the place that is its own"),
        "{answer}"
    );

    // Without the right to ask as someone, nothing is compared.
    let plain = Controller::start_console(kubeconfig, options("fine-grained")).await?;
    let plain = Asked {
        url: plain.api_url(),
        ..asked
    };
    let (status, answer) = plain.diff(ANA, &app).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    Ok(())
}

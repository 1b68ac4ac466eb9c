//! What callers have done to objects: by verbs of RBAC, recorded, and never more than the verb means.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DynamicObject, ListParams};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply};
use testkit::{Controller, Postgres};

use crate::world::{Scene, play};

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";

/// A console that acts, with a ledger of its own.
pub async fn start(scene: &Scene, mode: &str, ledger: Option<String>) -> Result<Controller> {
    // It stays as long as the process does.
    let folder = testkit::scratch::directory("actions")?.keep();
    let ledger = ledger.unwrap_or_else(|| format!("sqlite:{}", folder.join("ledger.db").display()));
    let options = ControllerOptions {
        flags: vec![format!("--actions={mode}"), format!("--ledger-url={ledger}")],
        ..ControllerOptions::default()
    };
    Controller::start_console(scene.world.control_plane.kubeconfig_path(), options).await
}

/// Lets a user of the story's namespace have verbs on a kind there. Their token.
pub async fn grant(scene: &Scene, user: &str, rules: &[(&str, &str, &[&str])]) -> Result<String> {
    let token = scene.user(user, &[]).await?;
    let version = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": format!("{user}-acts"), "namespace": scene.namespace});
    let rules = rules.iter();
    let rules: Vec<Value> = rules
        .map(
            |(group, resource, verbs)| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs}),
        )
        .collect();
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules});
    apply(&scene.client, &role).await?;
    let binding = json!({
        "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
        "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": scene.namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": metadata["name"]},
    });
    apply(&scene.client, &binding).await?;
    Ok(token)
}

/// Has something done: the status, and what is told of each object.
pub async fn act(
    scene: &Scene,
    console: &Controller,
    token: &str,
    wanted: &Value,
) -> Result<(StatusCode, Value)> {
    let url = format!("{}/actions", console.api_url());
    let request = scene.world.http.post(url).bearer_auth(token);
    let request = request
        .header("content-type", "application/json")
        .body(wanted.to_string());
    let answer = request.send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    let told = serde_json::from_str(&text).with_context(|| format!("{status} {text}"))?;
    Ok((status, told))
}

pub async fn get(
    scene: &Scene,
    console: &Controller,
    token: &str,
    path: &str,
) -> Result<(StatusCode, Value)> {
    let url = format!("{}/{path}", console.api_url());
    let answer = scene.world.http.get(url).bearer_auth(token).send().await?;
    let status = answer.status();
    Ok((status, serde_json::from_str(&answer.text().await?)?))
}

pub fn object(scene: &Scene, kind: &str, name: &str) -> Value {
    json!({"cluster": "local", "kind": kind, "namespace": scene.namespace, "name": name})
}

async fn kustomization(scene: &Scene, name: &str) -> Result<DynamicObject> {
    let version = format!("{KUSTOMIZE}/v1");
    let api = objects::api(&scene.client, &version, "Kustomization", &scene.namespace);
    Ok(api.get(name).await?)
}

/// The Events of the console about an object.
async fn events(scene: &Scene, name: &str) -> Result<Vec<Event>> {
    let api: Api<Event> = Api::namespaced(scene.client.clone(), &scene.namespace);
    let fields = format!("involvedObject.name={name},reason=WebAction");
    Ok(api.list(&ListParams::default().fields(&fields)).await?.items)
}

const ACTS: &[&str] = &["get", "reconcile", "suspend", "resume"];

#[test]
fn whoever_has_the_verb_acts_and_is_recorded() {
    play("verbs", async |scene| {
        let console = start(&scene, "fine-grained", None).await?;
        for name in ["web", "api"] {
            scene.kustomization(&scene.namespace, name, "True", &[]).await?;
        }
        // Whoever owns the object does not say who acted.
        let lie = json!({"metadata": {"annotations": {
            "event.toolkit.fluxcd.io/username": "mallory", "event.toolkit.fluxcd.io/action": "nothing"}}});
        let api = objects::api(
            &scene.client,
            &format!("{KUSTOMIZE}/v1"),
            "Kustomization",
            &scene.namespace,
        );
        api.patch(
            "web",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(lie),
        )
        .await?;
        let operator = grant(&scene, "operator", &[(KUSTOMIZE, "kustomizations", ACTS)]).await?;
        let viewer = grant(
            &scene,
            "viewer",
            &[(KUSTOMIZE, "kustomizations", &["get", "patch"])],
        )
        .await?;

        // Without the verb: nothing, and not whether it is there.
        let mut told = Vec::new();
        for name in ["web", "none"] {
            let wanted = json!({"verb": "suspend", "objects": [object(&scene, "ks", name)]});
            let (status, answer) = act(&scene, &console, &viewer, &wanted).await?;
            assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
            told.push(answer["items"][0]["message"].clone());
        }
        assert_eq!(told[0], told[1]);
        ensure!(kustomization(&scene, "web").await?.data["spec"]["suspend"].is_null());

        let reason = "the shop\n is  closed";
        let wanted = json!({
            "verb": "suspend", "reason": reason,
            "objects": [object(&scene, "ks", "web"), object(&scene, "Kustomization", "api"), object(&scene, "ks", "none")],
        });
        let (status, answer) = act(&scene, &console, &operator, &wanted).await?;
        let codes: Vec<_> = answer["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| &item["code"])
            .collect();
        assert_eq!(
            (status.as_u16(), codes),
            (207, vec![&json!(200), &json!(200), &json!(404)]),
            "{answer:#}"
        );
        for name in ["web", "api"] {
            assert_eq!(kustomization(&scene, name).await?.data["spec"]["suspend"], true);
        }
        let username = format!("system:serviceaccount:{}:operator", scene.namespace);
        recorded(&scene, &console, (&operator, &viewer), &username).await?;

        for verb in ["resume", "reconcile"] {
            let wanted = json!({"verb": verb, "objects": [object(&scene, "ks", "web")], "reason": ""});
            let (status, answer) = act(&scene, &console, &operator, &wanted).await?;
            assert_eq!(status, StatusCode::OK, "{answer}");
        }
        let web = kustomization(&scene, "web").await?;
        ensure!(web.data["spec"].get("suspend").is_none());
        ensure!(
            web.metadata
                .annotations
                .unwrap_or_default()
                .contains_key("reconcile.fluxcd.io/requestedAt")
        );
        Ok(())
    });
}

/// What the ledger and the cluster tell of two that were suspended.
async fn recorded(
    scene: &Scene,
    console: &Controller,
    (operator, viewer): (&str, &str),
    username: &str,
) -> Result<()> {
    let path = format!("actions?namespace={}", scene.namespace);
    // Whoever may get the object reads who did what.
    let (status, page) = get(scene, console, viewer, &path).await?;
    assert_eq!(status, StatusCode::OK, "{page}");
    let rows = page["items"].as_array().context("no page")?;
    let row = |name: &str| {
        rows.iter()
            .find(|row| row["name"] == name)
            .context("not recorded")
    };
    for (name, end) in [("web", "Done"), ("api", "Done"), ("none", "Failed")] {
        let row = row(name)?;
        assert_eq!(
            (&row["username"], &row["verb"], &row["end"]),
            (&json!(username), &json!("suspend"), &json!(end))
        );
        assert_eq!(row["reason"], "the shop is closed");
    }
    let (_, mine) = get(
        scene,
        console,
        operator,
        &format!("{path}&username={username}&limit=1"),
    )
    .await?;
    ensure!(
        mine["next"].is_string() && mine["items"][0]["username"] == *username,
        "{mine}"
    );
    let stranger = scene.user("stranger", &[]).await?;
    let (_, nothing) = get(scene, console, &stranger, &path).await?;
    assert_eq!(nothing["items"], json!([]));

    let waiting = async {
        loop {
            if let Some(event) = events(scene, "web").await?.into_iter().next() {
                return anyhow::Ok(event);
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await; // it is sent in the background
        }
    };
    let event = tokio::time::timeout(crate::world::PATIENCE, waiting).await??;
    let annotations: BTreeMap<String, String> = event.metadata.annotations.unwrap_or_default();
    let annotation = |key: &str| {
        annotations
            .get(&format!("event.toolkit.fluxcd.io/{key}"))
            .map(String::as_str)
    };
    assert_eq!(
        (annotation("username"), annotation("action")),
        (Some(username), Some("suspend"))
    );
    let subject = format!("Kustomization/{}/web", scene.namespace);
    assert_eq!(annotation("subject"), Some(subject.as_str()));
    assert_eq!(
        event.message.as_deref(),
        Some(&*format!("suspend by {username}: the shop is closed"))
    );
    Ok(())
}

#[test]
fn sources_are_asked_before_what_is_made_of_them_by_whoever_may() {
    play("with-source", async |scene| {
        let console = start(&scene, "fine-grained", None).await?;
        let source = objects::git_repository(&scene.namespace, "repo", "https://example.com/r", "main");
        apply(&scene.client, &source).await?;
        scene.kustomization(&scene.namespace, "web", "True", &[]).await?;
        let sources = ("source.toolkit.fluxcd.io", "gitrepositories", ACTS);
        let both = grant(&scene, "both", &[(KUSTOMIZE, "kustomizations", ACTS), sources]).await?;
        let one = grant(&scene, "one", &[(KUSTOMIZE, "kustomizations", ACTS)]).await?;
        let blind = grant(&scene, "blind", &[(KUSTOMIZE, "kustomizations", &["reconcile"])]).await?;
        let path = format!("objects/local/ks/{}/web", scene.namespace);
        let known = async {
            while get(&scene, &console, &one, &path).await?.0 != StatusCode::OK {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await; // the picture follows
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(crate::world::PATIENCE, known).await??;
        let wanted = json!({"verb": "reconcile", "withSource": true, "force": true, "objects": [object(&scene, "ks", "web")]});
        let told = |answer: &Value| {
            let items = answer["items"].as_array().into_iter().flatten();
            items
                .map(|item| format!("{} {}", item["kind"].as_str().unwrap_or_default(), item["code"]))
                .collect::<Vec<_>>()
        };
        let (status, answer) = act(&scene, &console, &both, &wanted).await?;
        assert_eq!(
            (status.as_u16(), told(&answer)),
            (
                200,
                vec!["GitRepository 200".to_owned(), "Kustomization 200".to_owned()]
            )
        );
        let (status, answer) = act(&scene, &console, &one, &wanted).await?;
        assert_eq!(
            (status.as_u16(), told(&answer)),
            (
                207,
                vec!["GitRepository 403".to_owned(), "Kustomization 200".to_owned()]
            )
        );
        // Who may not see the object does not learn what it is made of.
        let (status, answer) = act(&scene, &console, &blind, &wanted).await?;
        assert_eq!(
            (status.as_u16(), told(&answer)),
            (200, vec!["Kustomization 200".to_owned()])
        );
        let repo = objects::api(
            &scene.client,
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            &scene.namespace,
        );
        let annotations = repo.get("repo").await?.metadata.annotations.unwrap_or_default();
        ensure!(
            annotations.contains_key("reconcile.fluxcd.io/requestedAt"),
            "{annotations:?}"
        );
        Ok(())
    });
}

#[test]
fn impersonated_callers_need_what_the_api_server_wants_of_them() {
    play("impersonated", async |scene| {
        let console = start(&scene, "impersonated", None).await?;
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": scene.namespace},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
                },
            },
        });
        apply(&scene.client, &deployment).await?;
        let verb = grant(&scene, "verb", &[("apps", "deployments", &["restart"])]).await?;
        let both = grant(&scene, "both", &[("apps", "deployments", &["restart", "patch"])]).await?;
        let wanted = json!({"verb": "restart", "objects": [object(&scene, "Deployment", "web")]});
        let path = format!("objects/local/Deployment/{}/web/verbs", scene.namespace);
        for (token, code, verbs) in [(&verb, 403, json!([])), (&both, 200, json!(["restart"]))] {
            let (status, answer) = act(&scene, &console, token, &wanted).await?;
            assert_eq!(status.as_u16(), code, "{answer}");
            assert_eq!(get(&scene, &console, token, &path).await?.1["verbs"], verbs);
        }
        let api = objects::api(&scene.client, "apps/v1", "Deployment", &scene.namespace);
        let found = api.get("web").await?;
        let annotations = &found.data["spec"]["template"]["metadata"]["annotations"];
        ensure!(
            annotations["kubectl.kubernetes.io/restartedAt"].is_string(),
            "{annotations}"
        );
        let managers = found.metadata.managed_fields.unwrap_or_default();
        ensure!(
            managers
                .iter()
                .any(|one| one.manager.as_deref() == Some("windlass-console"))
        );
        Ok(())
    });
}

#[test]
fn what_cannot_be_recorded_is_not_done() {
    play("unrecorded", async |scene| {
        let postgres = Postgres::start().await?;
        let console = start(&scene, "fine-grained", Some(postgres.url())).await?;
        scene.kustomization(&scene.namespace, "web", "True", &[]).await?;
        let operator = grant(&scene, "operator", &[(KUSTOMIZE, "kustomizations", ACTS)]).await?;
        drop(postgres);
        let wanted = json!({"verb": "suspend", "objects": [object(&scene, "ks", "web")]});
        let (status, answer) = act(&scene, &console, &operator, &wanted).await?;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
        ensure!(kustomization(&scene, "web").await?.data["spec"]["suspend"].is_null());
        Ok(())
    });
}

#[test]
fn what_makes_no_sense_is_told_and_nothing_is_done() {
    play("nonsense", async |scene| {
        let console = start(&scene, "fine-grained", None).await?;
        let operator = grant(&scene, "operator", &[("*", "*", &["*"])]).await?;
        let web = object(&scene, "ks", "web");
        let with = |field: &str, value: Value| {
            let mut object = web.clone();
            object[field] = value;
            json!({"verb": "suspend", "objects": [object]})
        };
        for (wanted, told) in [
            (json!({"verb": "delete", "objects": [web]}), "unknown variant"),
            (json!({"verb": "suspend", "objects": []}), "from 1 to 100"),
            (
                json!({"verb": "suspend", "objects": vec![&web; 101]}),
                "from 1 to 100",
            ),
            (
                json!({"verb": "suspend", "objects": [web], "patch": {}}),
                "unknown field",
            ),
            (
                json!({"verb": "suspend", "objects": [web], "force": true}),
                "are for reconcile",
            ),
            (
                json!({"verb": "suspend", "objects": [web], "reason": "x".repeat(1001)}),
                "longer than 1000",
            ),
            (
                json!({"verb": "restart", "objects": [web]}),
                "means nothing for a Kustomization",
            ),
            (with("kind", json!("Secret")), "nothing to be done to a Secret"),
            (with("name", json!("../../../secrets/x")), "name: it is no name"),
            (with("namespace", json!("a/b")), "namespace: it is no name"),
            (with("name", json!("")), "name: it is no name"),
        ] {
            let (status, answer) = act(&scene, &console, &operator, &wanted).await?;
            ensure!(
                status == StatusCode::BAD_REQUEST && answer.to_string().contains(told),
                "{told}: {status} {answer}"
            );
        }
        // A cluster that nobody named is one where the caller may do nothing.
        let (status, answer) = act(&scene, &console, &operator, &with("cluster", json!("elsewhere"))).await?;
        assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
        let large = json!({"verb": "suspend", "objects": [web], "reason": "x".repeat(100_000)});
        let url = format!("{}/actions", console.api_url());
        let request = scene.world.http.post(url).bearer_auth(&operator);
        let answer = request
            .header("content-type", "application/json")
            .body(large.to_string())
            .send()
            .await?;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        // A console does nothing unless its administrator says so.
        let wanted = json!({"verb": "suspend", "objects": [web]});
        let (status, _) = act(&scene, &scene.world.console, &operator, &wanted).await?;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
        let path = format!("objects/local/ks/{}/web/verbs", scene.namespace);
        assert_eq!(scene.get(&operator, &path).await?["verbs"], json!([]));
        Ok(())
    });
}

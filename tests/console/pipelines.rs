//! Pipelines at the console: who may decide about them, in whose name, and what their board shows.

use anyhow::{Result, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::objects::{self, apply};

use crate::actions::{act, get, grant, object, start};
use crate::world::{Scene, play};

const DELIVERY: &str = "delivery.windlass.dev";
const HOLDS: &str = "delivery.windlass.dev/holds";
const APPROVALS: &str = "delivery.windlass.dev/approvals";

/// A pipeline whose second release waits for approval, as its controller would have left it.
async fn pipeline(scene: &Scene, value: &str) -> Result<()> {
    let version = format!("{DELIVERY}/v1alpha1");
    let target = |namespace: &str| json!([{"namespace": namespace}]);
    let object = json!({
        "apiVersion": version, "kind": "Pipeline", "metadata": {"name": "shop", "namespace": scene.namespace},
        "spec": {
            "apps": [{"kind": "HelmRelease", "name": "shop"}],
            "environments": [
                {"name": "dev", "targets": target("dev")},
                {"name": "production", "targets": target("prod"), "approvals": {"required": 2}},
            ],
        },
    });
    apply(&scene.client, &object).await?;
    let has = |name: &str, release: u64| json!([{"name": name, "release": release, "newest": release, "ready": true}]);
    let status = json!({"status": {
        "observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": value,
            "lastTransitionTime": "2026-11-26T12:00:00Z", "observedGeneration": 1}],
        "releases": [
            {"number": 1, "digest": "sha256:1", "values": {"HelmRelease/shop: chart": "1.0.0"}},
            {"number": 2, "digest": "sha256:2", "values": {"HelmRelease/shop: chart": value}},
        ],
        "environments": [
            {"name": "dev", "release": 2, "passed": [1, 2], "targets": has("dev", 2)},
            {"name": "production", "release": 1, "passed": [1], "targets": has("prod", 1), "waits": [value]},
        ],
    }});
    let api = objects::api(&scene.client, &version, "Pipeline", &scene.namespace);
    api.patch_status("shop", &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(())
}

async fn read(scene: &Scene) -> Result<DynamicObject> {
    let api = objects::api(
        &scene.client,
        &format!("{DELIVERY}/v1alpha1"),
        "Pipeline",
        &scene.namespace,
    );
    Ok(api.get("shop").await?)
}

/// A list of decisions.
fn list(pipeline: &DynamicObject, annotation: &str) -> Value {
    let annotations = pipeline.metadata.annotations.as_ref();
    let list = annotations.and_then(|all| all.get(annotation));
    list.and_then(|list| serde_json::from_str(list).ok())
        .unwrap_or_default()
}

#[test]
fn people_decide_by_verbs_of_their_own_and_in_their_own_name() {
    play("decides", async |scene| {
        let console = start(&scene, "fine-grained", None).await?;
        pipeline(&scene, "2.0.0").await?;
        let rules = |verbs: &'static [&'static str]| [(DELIVERY, "pipelines", verbs)];
        let ana = grant(&scene, "ana", &rules(&["get", "approve"])).await?;
        let ben = grant(&scene, "ben", &rules(&["get", "hold", "promote"])).await?;
        // Neither may patch: the approval of another one cannot be written.
        let blind = grant(&scene, "blind", &rules(&["approve"])).await?;
        let own = object(&scene, "Pipeline", "shop");
        let path = format!("objects/local/Pipeline/{}/shop", scene.namespace);
        let (_, verbs) = get(&scene, &console, &ben, &format!("{path}/verbs")).await?;
        ensure!(
            verbs["verbs"] == json!(["promote", "rollback", "hold", "release"]),
            "{verbs}"
        );
        let (_, verbs) = get(&scene, &console, &ana, &format!("{path}/verbs")).await?;
        ensure!(verbs["verbs"] == json!(["approve"]), "{verbs}");

        let wanted = |verb: &str, more: Value| {
            let mut wanted = json!({"verb": verb, "objects": [own], "environment": "production"});
            let more = more.as_object().cloned().unwrap_or_default();
            wanted
                .as_object_mut()
                .into_iter()
                .for_each(|wanted| wanted.extend(more.clone()));
            wanted
        };
        let approve = wanted("approve", json!({"reason": "looks good"}));
        let (status, told) = act(&scene, &console, &ana, &approve).await?;
        ensure!(status == StatusCode::OK, "{told}");
        let approvals = list(&read(&scene).await?, APPROVALS);
        let name = format!("system:serviceaccount:{}:ana", scene.namespace);
        ensure!(
            approvals[0]["by"] == name.as_str() && approvals[0]["digest"] == "sha256:2",
            "{approvals}"
        );
        let (status, told) = act(&scene, &console, &ana, &approve).await?;
        ensure!(status == StatusCode::CONFLICT, "twice: {told}");
        let query = format!("actions?namespace={}&name=shop", scene.namespace);
        let (_, actions) = get(&scene, &console, &ana, &query).await?;
        let reason = actions["items"][0]["reason"].as_str().unwrap_or_default();
        ensure!(
            reason == format!("release 2 is approved for production by {name}: looks good"),
            "{actions}"
        );

        for (token, verb, more, status) in [
            (&ana, "hold", json!({"reason": "x"}), StatusCode::FORBIDDEN),
            (&ana, "promote", json!({}), StatusCode::FORBIDDEN),
            (&ana, "rollback", json!({"reason": "x"}), StatusCode::FORBIDDEN),
            (&ben, "approve", json!({}), StatusCode::FORBIDDEN),
            (&blind, "approve", json!({}), StatusCode::NOT_FOUND),
            (&ben, "hold", json!({}), StatusCode::CONFLICT),
            (
                &ben,
                "hold",
                json!({"reason": "x", "duration": "soon"}),
                StatusCode::CONFLICT,
            ),
            (
                &ben,
                "hold",
                json!({"reason": "x", "environment": "nowhere"}),
                StatusCode::CONFLICT,
            ),
            // The right to promote is none to approve.
            (&ben, "promote", json!({"number": 2}), StatusCode::CONFLICT),
            (&ben, "rollback", json!({"reason": "x"}), StatusCode::CONFLICT),
            (&ben, "release", json!({}), StatusCode::CONFLICT),
            (&ben, "suspend", json!({}), StatusCode::BAD_REQUEST),
            (
                &ben,
                "promote",
                json!({"duration": "1h"}),
                StatusCode::BAD_REQUEST,
            ),
        ] {
            let before = read(&scene).await?.metadata.resource_version;
            let (given, told) = act(&scene, &console, token, &wanted(verb, more)).await?;
            ensure!(given == status, "{verb}: {given} {told}");
            ensure!(
                read(&scene).await?.metadata.resource_version == before,
                "{verb} wrote"
            );
        }
        let hold = wanted(
            "hold",
            json!({"reason": "incident", "number": 2, "duration": "12h"}),
        );
        let (status, told) = act(&scene, &console, &ben, &hold).await?;
        ensure!(status == StatusCode::OK, "{told}");
        let held = read(&scene).await?;
        let holds = list(&held, HOLDS);
        ensure!(
            holds[0]["release"] == 2 && holds[0]["until"].is_string(),
            "{holds}"
        );
        ensure!(
            list(&held, APPROVALS)[0]["by"] == name.as_str(),
            "the approval is still there"
        );
        Ok(())
    });
}

#[test]
fn a_board_shows_what_tenants_wrote_as_text_and_to_its_readers_alone() {
    play("board", async |scene| {
        let console = start(&scene, "fine-grained", None).await?;
        let hostile = "<script>alert(1)</script>";
        pipeline(&scene, hostile).await?;
        let annotation = json!([{"environment": "production", "reason": hostile, "by": hostile}]).to_string();
        let patch = json!({"metadata": {"annotations": {HOLDS: annotation}}});
        let api = objects::api(
            &scene.client,
            &format!("{DELIVERY}/v1alpha1"),
            "Pipeline",
            &scene.namespace,
        );
        api.patch("shop", &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        let reader = grant(&scene, "reader", &[(DELIVERY, "pipelines", &["get"])]).await?;
        let stranger = scene.user("stranger", &[]).await?;
        let base = console.api_url();
        let base = base.trim_end_matches("/api/v1");
        let page = async |token: &str, path: &str| {
            let answer = scene
                .world
                .http
                .get(format!("{base}{path}"))
                .bearer_auth(token)
                .send()
                .await?;
            anyhow::Ok((answer.status(), answer.text().await?))
        };
        let address = format!("/objects/local/Pipeline/{}/shop", scene.namespace);
        let mut seen = page(&reader, &address).await?;
        // The console hears of the hold a moment later.
        for _ in 0..100 {
            if seen.1.contains("held by") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            seen = page(&reader, &address).await?;
        }
        let (status, board) = seen;
        ensure!(status == StatusCode::OK, "{status}");
        ensure!(
            board.contains("held by &lt;script&gt;") && !board.contains(hostile),
            "{board}"
        );
        ensure!(board.contains("1.0.0 → "), "what changed is named");
        ensure!(
            !board.contains("value=\"hold\""),
            "who may only read is offered no button"
        );
        for path in ["/", "/pipelines"] {
            let (_, page) = page(&reader, path).await?;
            ensure!(
                page.contains(">shop</a>") && !page.contains(hostile),
                "{path}: {page}"
            );
        }
        for path in [address.as_str(), "/", "/pipelines"] {
            let (_, page) = page(&stranger, path).await?;
            ensure!(
                !page.contains(&scene.namespace) || page.contains("stranger"),
                "{path}: {page}"
            );
            ensure!(!page.contains("held by"), "{path}: {page}");
        }
        Ok(())
    });
}

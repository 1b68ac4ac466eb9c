//! Tests of Alert options beyond Flux that need watched facts about objects.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::message_sink::Call;
use testkit::objects;

use crate::alerts::Alerts;
use crate::world::{PATIENCE, Test, run};

/// Applies Kustomizations that no controller touches, each with more of a spec.
async fn untouched(test: &Test, specs: &[(&str, Value)]) -> Result<()> {
    for (name, spec) in specs {
        let object = objects::kustomization(&test.namespace, name, ("GitRepository", "none"), "./");
        let object = objects::with_spec(object, spec.clone());
        test.apply(&test.in_own_shard(object)).await?;
    }
    Ok(())
}

/// Writes the condition Ready of one of them, and its revision.
async fn set_ready(test: &Test, name: &str, ready: &str, message: &str, revision: &str) -> Result<()> {
    let condition = json!({
        "type": "Ready", "status": ready, "reason": "BuildFailed", "message": message,
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    });
    let status = json!({"status": {"conditions": [condition], "lastAttemptedRevision": revision}});
    test.kustomizations()
        .patch_status(name, &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(())
}

/// Waits until statuses are watched, of which no event tells: what fails before that is nothing new.
async fn until_watched(test: &Test, alerts: &Alerts<'_>, path: &str) -> Result<()> {
    untouched(test, &[("canary", json!({}))]).await?;
    let watched = async {
        for number in 0.. {
            set_ready(test, "canary", "True", "", "main@sha1:1").await?;
            set_ready(
                test,
                "canary",
                "False",
                &format!("canary {number}"),
                "main@sha1:1",
            )
            .await?;
            let is_told = |call: &Call| call.json["involvedObject"]["name"] == "canary";
            let told = alerts.sink.until(path, is_told);
            // An event is waited for first, for ten seconds.
            if tokio::time::timeout(Duration::from_secs(15), told).await.is_ok() {
                break;
            }
        }
        Result::<()>::Ok(())
    };
    tokio::time::timeout(PATIENCE, watched).await?
}

#[test]
fn alerts_hold_back_fold_thread_and_word_messages() {
    run("alert-options", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        let base = json!({"dependsOn": [{"name": "base"}]});
        untouched(
            &test,
            &[
                ("base", json!({})),
                ("healed", json!({})),
                ("a", base.clone()),
                ("b", base),
            ],
        )
        .await?;
        set_ready(&test, "healed", "True", "applied", "main@sha1:1").await?;
        let names = [
            ("told", "generic", json!({})),
            ("folded", "generic", json!({"windlass.dev/fold": "true"})),
            ("held", "generic", json!({"windlass.dev/for": "3s"})),
            (
                "worded",
                "generic",
                json!({"windlass.dev/template": "{{ .event.involvedObject.name | upper }}: {{ .event.message }}, {{ .state }} of {{ .alert.name }}"}),
            ),
            ("discord", "discord", json!({"windlass.dev/thread": "true"})),
        ];
        for (name, type_, annotations) in &names {
            alerts.provider(type_, name, None).await?;
            alerts
                .annotated_alert(name, json!({"eventSeverity": "error"}), annotations.clone())
                .await?;
        }
        alerts
            .until_known(&names.each_ref().map(|(name, ..)| *name))
            .await?;

        // No event tells of it, so when it is told, it is known what depends on what.
        set_ready(&test, "base", "False", "base fails", "main@sha1:1").await?;
        alerts.sink.until_message("told", "base fails").await?;
        for (name, message) in [
            ("a", "a fails"),
            ("b", "b fails"),
            ("healed", "passes"),
            ("web", "one"),
            ("web", "end"),
        ] {
            alerts
                .post(&alerts.event("Kustomization", name, "error", message))
                .await?;
        }
        for path in ["told", "folded"] {
            alerts.sink.until_message(path, "end").await?;
        }
        let told = alerts.messages("told");
        ensure!(
            told == ["base fails", "a fails", "b fails", "passes", "one", "end"],
            "{told:?}"
        );
        let folded = alerts.messages("folded");
        ensure!(folded == ["base fails", "passes", "one", "end"], "{folded:?}");

        // Of what web says in this time only the last is told.
        alerts.sink.until_message("held", "end").await?;
        alerts.sink.until_message("held", "b fails").await?;
        let mut held = alerts.messages("held");
        held.sort();
        ensure!(held == ["a fails", "b fails", "base fails", "end"], "{held:?}");

        alerts
            .sink
            .until_message("worded", "WEB: end, Event of worded")
            .await?;
        let says = |text: &'static str| move |call: &Call| call.json["embeds"].to_string().contains(text);
        alerts.sink.until("discord", says("one")).await?;
        // The second message about the object takes the place of the first.
        alerts.sink.until("discord/messages/1", says("end")).await?;
        ensure!(!alerts.sink.said_to("discord").iter().any(says("end")));
        Ok(())
    });
}

#[test]
fn what_is_deleted_while_it_fails_is_told_as_over_also_after_a_restart() {
    run("alert-deleted", |test| async move {
        let mut alerts = Alerts::start(&test, &[]).await?;
        untouched(&test, &[("one", json!({})), ("two", json!({}))]).await?;
        alerts.provider("generic", "told", None).await?;
        alerts
            .annotated_alert("told", json!({}), json!({"windlass.dev/resolve": "true"}))
            .await?;
        alerts.until_known(&["told"]).await?;
        until_watched(&test, &alerts, "told").await?;
        let is_deleted = |name: &'static str| {
            move |call: &Call| {
                let message = call.json["message"].as_str().unwrap_or_default();
                call.json["involvedObject"]["name"] == name
                    && call.json["severity"] == "info"
                    && message == "deleted; it had failed with: broken"
            }
        };
        // No event tells of it, so when it is told, it is known to the watch.
        for name in ["one", "two"] {
            set_ready(&test, name, "False", "broken", "main@sha1:1").await?;
        }
        for name in ["one", "two"] {
            alerts
                .sink
                .until("told", |call| call.json["involvedObject"]["name"] == name)
                .await?;
        }
        test.kustomizations().delete("one", &Default::default()).await?;
        alerts.sink.until("told", is_deleted("one")).await?;
        alerts.controller.terminate(PATIENCE)?;
        test.kustomizations().delete("two", &Default::default()).await?;
        alerts.controller.restart().await?;
        alerts.sink.until("told", is_deleted("two")).await?;
        Ok(())
    });
}

#[test]
fn an_event_whose_count_is_raised_tells_the_revision_of_the_status_and_nothing_twice() {
    run("alert-counted", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        untouched(&test, &[("web", json!({}))]).await?;
        set_ready(&test, "web", "Unknown", "", "main@sha1:2").await?;
        alerts.generic("told", json!({})).await?;
        let events: Api<v1::Event> = Api::namespaced(test.client.clone(), &test.namespace);
        let raise = async |name: &str, message: &str| {
            let patch = json!({"count": 2, "message": message});
            events
                .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
        };
        let first = alerts.event("Kustomization", "web", "error", "broken");
        alerts.record("counted", &first).await?;
        alerts.sink.until_message("told", "broken").await?;
        let mut second = first.clone();
        second["metadata"]["kustomize.toolkit.fluxcd.io/revision"] = json!("main@sha1:2");
        alerts.post(&second).await?;
        // As the recorders of Flux's controllers do it: the annotations are still those of the first.
        raise("counted", "broken").await?;
        raise("counted", "broken otherwise").await?;
        let call = alerts.sink.until_message("told", "broken otherwise").await?;
        ensure!(
            call.json["metadata"]["revision"] == "main@sha1:2",
            "{}",
            call.json
        );
        second["message"] = json!("broken otherwise");
        alerts.post(&second).await?;
        alerts
            .post(&alerts.event("Kustomization", "web", "error", "end"))
            .await?;
        alerts.sink.until_message("told", "end").await?;
        let told: Vec<_> = alerts
            .sink
            .said_to("told")
            .iter()
            .filter(|call| call.json["involvedObject"]["name"] == "web")
            .map(|call| format!("{} {}", call.json["message"], call.json["metadata"]["revision"]))
            .collect();
        let expected = [
            "broken\" \"main@sha1:1",
            "broken\" \"main@sha1:2",
            "broken otherwise\" \"main@sha1:2",
            "end\" \"main@sha1:1",
        ];
        ensure!(told == expected.map(|text| format!("\"{text}\"")), "{told:?}");
        Ok(())
    });
}

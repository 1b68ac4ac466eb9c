//! Tests of the conditions of a Receiver, and of its path meanwhile.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use testkit::objects::{condition, field, is_ready, text};
use testkit::{wait_for, wait_until_gone};

use super::{Receivers, TOKEN};
use crate::world::{PATIENCE, run};

fn resources() -> Value {
    json!([{"kind": "GitRepository", "name": "app"}])
}

#[test]
fn a_new_token_moves_the_path_at_once() {
    run("receivers-token", |test| async move {
        let receivers = Receivers::start(&test, &[]).await?;
        receivers.target(&test.namespace, "app", "a").await?;
        receivers
            .apply("hook", json!({"type": "generic", "resources": resources()}))
            .await?;
        let missing = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(_, reason, _)| reason == "TokenNotFound")
        };
        let object = wait_for(&receivers.api(), "hook", missing, PATIENCE).await?;
        let (_, _, message) = condition(&object, "Ready").context("no condition")?;
        let expected = format!(
            "unable to read token from secret '{}/token' error: secrets \"token\" not found",
            test.namespace
        );
        ensure!(message == expected, "{message}");
        let (status, reason, _) = condition(&object, "Reconciling").context("no condition")?;
        ensure!((status, reason) == ("True", "ProgressingWithRetry"));
        ensure!(field(&object, "/status/webhookPath").is_none());

        receivers.token(TOKEN).await?;
        let object = wait_for(&receivers.api(), "hook", is_ready, PATIENCE).await?;
        let path = text(&object, "/status/webhookPath").to_owned();
        let (_, reason, message) = condition(&object, "Ready").context("no condition")?;
        ensure!(
            reason == "Succeeded" && message == format!("Receiver initialized for path: {path}"),
            "{message}"
        );
        ensure!(condition(&object, "Reconciling").is_none());
        ensure!(object.metadata.finalizers == Some(vec!["finalizers.fluxcd.io".to_owned()]));
        ensure!(receivers.post(&path, &[], "").await? == 200);

        receivers.token("another").await?;
        let moved = |object: &DynamicObject| !["", &path].contains(&text(object, "/status/webhookPath"));
        let object = wait_for(&receivers.api(), "hook", moved, PATIENCE).await?;
        ensure!(receivers.post(&path, &[], "").await? == 404);
        ensure!(
            receivers
                .post(text(&object, "/status/webhookPath"), &[], "")
                .await?
                == 200
        );

        let secrets: Api<Secret> = Api::namespaced(test.client.clone(), &test.namespace);
        secrets.delete("token", &DeleteParams::default()).await?;
        wait_for(&receivers.api(), "hook", missing, PATIENCE).await?;
        ensure!(
            receivers
                .post(text(&object, "/status/webhookPath"), &[], "")
                .await?
                == 404
        );
        Ok(())
    });
}

#[test]
fn a_receiver_of_a_kind_that_is_not_served_says_so_and_wakes_the_others() {
    run("receivers-unserved", |test| async move {
        let receivers = Receivers::start(&test, &[]).await?;
        receivers.target(&test.namespace, "app", "a").await?;
        receivers.token(TOKEN).await?;
        let image = json!({"kind": "ImageRepository", "name": "app"});
        let unserved = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, reason, message)| {
                status == "False"
                    && reason == "KindNotServed"
                    && message.contains("kind ImageRepository of image.toolkit.fluxcd.io is not served")
            })
        };
        let both = json!([{"kind": "GitRepository", "name": "app"}, image]);
        receivers
            .apply("both", json!({"type": "generic", "resources": both}))
            .await?;
        let object = wait_for(&receivers.api(), "both", unserved, PATIENCE).await?;
        let path = text(&object, "/status/webhookPath").to_owned();
        ensure!(receivers.post(&path, &[], "").await? == 200);
        ensure!(!receivers.annotated(&test.namespace, "app").await?.is_empty());

        receivers
            .apply("image", json!({"type": "generic", "resources": [image]}))
            .await?;
        let object = wait_for(&receivers.api(), "image", unserved, PATIENCE).await?;
        let path = text(&object, "/status/webhookPath").to_owned();
        ensure!(receivers.post(&path, &[], "").await? == 503);
        Ok(())
    });
}

#[test]
fn a_suspended_or_deleted_receiver_takes_no_calls() {
    run("receivers-suspended", |test| async move {
        let mut receivers = Receivers::start(&test, &[]).await?;
        receivers.target(&test.namespace, "app", "a").await?;
        let spec = json!({"type": "generic", "resources": resources()});
        let path = receivers.ready("hook", spec).await?;
        let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
        let parameters = PatchParams::default();
        receivers.api().patch("hook", &parameters, &suspend(true)).await?;
        until(&receivers, &path, 503).await?;
        // Still after a restart, which knows it from the status only.
        receivers.controller.restart().await?;
        ensure!(receivers.post(&path, &[], "").await? == 503);
        receivers
            .api()
            .patch("hook", &parameters, &suspend(false))
            .await?;
        until(&receivers, &path, 200).await?;
        receivers.controller.restart().await?;
        ensure!(receivers.post(&path, &[], "").await? == 200);
        receivers.api().delete("hook", &DeleteParams::default()).await?;
        wait_until_gone(&receivers.api(), "hook", PATIENCE).await?;
        ensure!(receivers.post(&path, &[], "").await? == 404);
        Ok(())
    });
}

#[test]
fn an_expression_that_is_none_stalls_a_receiver() {
    run("receivers-stalled", |test| async move {
        let receivers = Receivers::start(&test, &[]).await?;
        receivers.target(&test.namespace, "app", "a").await?;
        let spec =
            |filter: &str| json!({"type": "generic", "resources": resources(), "resourceFilter": filter});
        let path = receivers.ready("hook", spec("true")).await?;
        receivers.apply("hook", spec("claims.a == 'b'")).await?;
        let stalled = |object: &DynamicObject| condition(object, "Stalled").is_some();
        let object = wait_for(&receivers.api(), "hook", stalled, PATIENCE).await?;
        let (status, reason, message) = condition(&object, "Ready").context("no condition")?;
        ensure!((status, reason) == ("False", "InvalidCELExpression"));
        let expected = "Reconciliation failed terminally due to configuration error: invalid resourceFilter expression: failed to parse the CEL expression 'claims.a == 'b''";
        ensure!(message.starts_with(expected), "{message}");
        ensure!(receivers.post(&path, &[], "").await? == 503);
        receivers
            .apply("hook", spec("res.metadata.name == 'app'"))
            .await?;
        until(&receivers, &path, 200).await?;
        let object = wait_for(&receivers.api(), "hook", is_ready, PATIENCE).await?;
        ensure!(condition(&object, "Stalled").is_none());

        let events: Api<Event> = Api::namespaced(test.client.clone(), &test.namespace);
        let finished = |event: &Event| {
            event.reason.as_deref() == Some("Succeeded")
                && event.message.as_deref() == Some("Reconciliation finished, next run in 10m0s")
        };
        let told = |event: &Event| event.reason.as_deref() == Some("InvalidCELExpression");
        for wanted in [finished as fn(&Event) -> bool, told] {
            let deadline = tokio::time::Instant::now() + PATIENCE;
            loop {
                let listed = events.list(&ListParams::default()).await?;
                if listed.iter().any(wanted) {
                    break;
                }
                let names: Vec<_> = listed
                    .iter()
                    .map(|event| (event.name_any(), event.message.clone()))
                    .collect();
                ensure!(tokio::time::Instant::now() < deadline, "{names:?}");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
        Ok(())
    });
}

/// Calls until it is answered so. The spec is watched, so that this is soon.
async fn until(receivers: &Receivers<'_>, path: &str, status: u16) -> Result<()> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answer = receivers.post(path, &[], "").await?.as_u16();
        if answer == status {
            return Ok(());
        }
        ensure!(
            tokio::time::Instant::now() < deadline,
            "{path} is answered {answer}, not {status}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

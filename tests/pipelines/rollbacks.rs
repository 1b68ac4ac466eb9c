//! Environments that go back to an older release: because a person says so, or because the newer one fails.

use anyhow::ensure;
use serde_json::json;
use testkit::MessageSink;
use testkit::git::Change;
use testkit::objects::{apply, field};

use crate::world::{KUSTOMIZE, app, play, release_of, waits};

const TAG: &str = "/spec/images/0/newTag";

#[test]
fn an_environment_goes_back_by_command_and_forward_again() {
    play("back", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        // An Alert that knows the kind.
        let sink = MessageSink::start().await?;
        let notification = "notification.toolkit.fluxcd.io/v1beta3";
        let metadata = json!({"name": "told", "namespace": team});
        let provider = json!({
            "apiVersion": notification, "kind": "Provider", "metadata": metadata,
            "spec": {"type": "generic", "address": sink.url("told")},
        });
        let alert = json!({
            "apiVersion": notification, "kind": "Alert", "metadata": metadata,
            "spec": {"providerRef": {"name": "told"}, "eventSources": [{"kind": "Pipeline", "name": "*"}]},
        });
        apply(&scene.client, &provider).await?;
        apply(&scene.client, &alert).await?;

        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "approvals": {"required": 1}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let rollback = [
            "rollback",
            "pipeline/shop",
            "--env",
            "production",
            "--reason",
            "bad taste",
        ];
        let (ok, said) = scene.windlass(&rollback).await?;
        ensure!(
            !ok && said.contains("no release is older than that of production"),
            "{said}"
        );
        let deploy = |tag: &str| {
            let change = Change::write("dev/shop.yaml", app(&dev, team, tag));
            repository.commit("main", "by a person", &[change])
        };
        deploy("v2")?;
        scene.wait(|pipeline| release_of(pipeline, 0) == Some(2)).await?;
        let promote = ["promote", "pipeline/shop", "--env", "production", "--number", "2"];
        let (ok, said) = scene.windlass(&promote).await?;
        ensure!(
            ok && said.contains("release 2 is approved for production by "),
            "{said}"
        );
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;

        let (ok, said) = scene.windlass(&rollback).await?;
        ensure!(
            ok && said.contains("production goes back to release 1, and release 2 is held back"),
            "{said}"
        );
        scene
            .has((KUSTOMIZE, "Kustomization"), &production, TAG, "v1")
            .await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let message = repository.git(&["log", "-1", "--format=%B", "main"])?;
        let first = format!("Roll back {team}/shop in production to release 1\n\nAsked for by ");
        ensure!(
            message.starts_with(&first) && message.contains(": bad taste\n\n"),
            "{message}"
        );
        sink.until("told", |call| {
            let message = call.json["message"].as_str().unwrap_or_default();
            message.starts_with(&format!(
                "production ({production}) goes back to release 1 by commit "
            ))
        })
        .await?;

        // What was taken back does not come again by itself, nor over the hold.
        let (ok, said) = scene.windlass(&promote).await?;
        ensure!(!ok && said.contains(": bad taste; release it first"), "{said}");
        let (ok, said) = scene.windlass(&["release", "pipeline/shop"]).await?;
        ensure!(ok, "{said}");
        let (ok, said) = scene.windlass(&promote).await?;
        ensure!(
            ok && said.contains("release 2 is promoted to production again"),
            "{said}"
        );
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;

        // And newer releases come as they always do.
        deploy("v3")?;
        scene
            .wait(|pipeline| waits(pipeline, 1) == ["release 3: approval 0 of 1"])
            .await?;
        let (ok, said) = scene.windlass(&["why", "pipeline/shop"]).await?;
        ensure!(ok, "{said}");
        let table: Vec<String> = said
            .lines()
            .skip_while(|line| !line.starts_with("ENVIRONMENT"))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let wanted = [
            "ENVIRONMENT RELEASE WAITS FOR",
            "dev 3 nothing",
            "production 2 release 3: approval 0 of 1",
        ];
        ensure!(table[..3] == wanted, "{said}");
        Ok(())
    });
}

#[test]
fn a_release_that_fails_soon_is_taken_back_where_that_is_wanted() {
    play("autoback", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "rollout": {"rollbackWithin": "10m"}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        // Its objects are forbidden: the account is not there.
        let broken = app(&production, team, "v2")
            .replace("  prune: true\n", "  prune: true\n  serviceAccountName: nobody\n");
        repository.commit(
            "main",
            "it breaks",
            &[Change::write("production/shop.yaml", broken)],
        )?;
        let pipeline = scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        ensure!(field(&pipeline, "/status/environments/1/targets/0/newest") == Some(&json!(2)));
        let log = repository.git(&["log", "-1", "--format=%B", "main"])?;
        let said = format!(
            "Roll back {team}/shop in production to release 1\n\nAsked for by the failure of release 2 in {production}\n"
        );
        ensure!(log.starts_with(&said), "{log}");
        // Mended with the older release: the newer one does not come again.
        let mended = Change::write("production/shop.yaml", app(&production, team, "v1"));
        repository.commit("main", "mended", &[mended])?;
        scene
            .has((KUSTOMIZE, "Kustomization"), &production, TAG, "v1")
            .await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v3"));
        repository.commit("main", "by a person", &[next])?;
        scene
            .has((KUSTOMIZE, "Kustomization"), &production, TAG, "v3")
            .await?;
        let log = repository.git(&["log", "--format=%s", "main", "--", "production"])?;
        let ours = log
            .lines()
            .filter(|line| line.contains(" of ") || line.starts_with("Roll back"));
        ensure!(ours.count() == 3, "{log}");
        Ok(())
    });
}

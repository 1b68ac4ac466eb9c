//! Open pull requests of a real Gitea as inputs, and an environment for each that has a label.

use anyhow::ensure;
use kube::api::DynamicObject;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::objects::{apply, condition, field, text};
use testkit::{Registry, wait_for, wait_until_gone};

use crate::team::Team;
use crate::world::{PATIENCE, config_map, play};

#[test]
fn a_label_gives_a_pull_request_an_environment_until_it_is_closed() {
    play("rset-requests", |scene| async move {
        let team = Team::new(scene).await?;
        let (first, commit) = team.open("feat/one", "One: \"quoted\" #1").await?;
        let (other, _) = team.open("feat/two", "Two").await?;
        let number = |value: u64| value.to_string();
        team.call(
            Method::DELETE,
            &format!("issues/{other}/labels/{}", team.label),
            json!({}),
        )
        .await?;
        team.provider(
            "requests",
            "GiteaPullRequest",
            json!({
                "filter": {"labels": ["deploy"]}, "defaultValues": {"domain": "example.com"},
            }),
        )
        .await?;
        team.scene.set("environments", json!({
            "inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "requests"}],
            "resources": [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("{}-pr-<< inputs.id >>", team.scene.namespace)}},
                {"apiVersion": "v1", "kind": "ResourceQuota",
                    "metadata": {"name": "limits", "namespace": format!("{}-pr-<< inputs.id >>", team.scene.namespace)},
                    "spec": {"hard": {"pods": "5"}}},
                config_map("env-<< inputs.id >>", json!({
                    "sha": "<< inputs.sha >>", "slug": "<< inputs.branch | slugify >>", "title": "<< inputs.title | quote >>",
                    "host": "pr-<< inputs.id >>.<< inputs.domain >>",
                })),
            ],
        })).await?;
        let maps = team.scene.config_maps();
        let name = format!("env-{first}");
        let made = wait_for(&maps, &name, |_| true, PATIENCE).await?;
        ensure!(text(&made, "/data/sha") == commit && text(&made, "/data/slug") == "feat-one");
        ensure!(
            text(&made, "/data/title") == "One: \"quoted\" #1",
            "{}",
            text(&made, "/data/title")
        );
        ensure!(text(&made, "/data/host") == format!("pr-{first}.example.com"));
        let inputs = team.exported("requests", |sets| sets.len() == 1).await?;
        ensure!(
            inputs[0]["id"] == number(first) && inputs[0]["labels"] == json!(["deploy"]),
            "{inputs:?}"
        );

        // Pushed again: the environment follows. Labelled: another one. Closed: it is gone, with its namespace.
        let pushed = team
            .gitea
            .commit(
                &team.bot,
                &format!("{}/shop", team.bot.name),
                "feat/one",
                &[("more", "x")],
            )
            .await?;
        wait_for(&maps, &name, |map| text(map, "/data/sha") == pushed, PATIENCE).await?;
        team.call(
            Method::POST,
            &format!("issues/{other}/labels"),
            json!({"labels": [team.label]}),
        )
        .await?;
        wait_for(&maps, &format!("env-{other}"), |_| true, PATIENCE).await?;
        team.call(
            Method::PATCH,
            &format!("pulls/{first}"),
            json!({"state": "closed"}),
        )
        .await?;
        wait_until_gone(&maps, &name, PATIENCE).await?;
        let namespaces = testkit::objects::api(&team.scene.client, "v1", "Namespace", "");
        let gone = format!("{}-pr-{first}", team.scene.namespace);
        let is_ending = |namespace: &DynamicObject| namespace.metadata.deletion_timestamp.is_some();
        if namespaces.get_opt(&gone).await?.is_some() {
            wait_for(&namespaces, &gone, is_ending, PATIENCE).await?;
        }
        Ok(())
    });
}

#[test]
fn branches_and_tags_are_inputs_too() {
    play("rset-branches", |scene| async move {
        let team = Team::new(scene).await?;
        let (_, commit) = team.open("feat/one", "One").await?;
        for tag in ["v1.2.0", "v1.10.0", "v2.0.0", "nightly"] {
            team.call(
                Method::POST,
                "tags",
                json!({"tag_name": tag, "target": "feat/one"}),
            )
            .await?;
        }
        team.provider(
            "branches",
            "GiteaBranch",
            json!({"filter": {"includeBranch": "^feat/"}}),
        )
        .await?;
        team.provider(
            "tags",
            "GiteaTag",
            json!({"filter": {"semver": "1.x", "limit": 1}}),
        )
        .await?;
        let branches = team.exported("branches", |sets| sets.len() == 1).await?;
        ensure!(
            branches[0]["branch"] == "feat/one" && branches[0]["sha"] == commit,
            "{branches:?}"
        );
        let tags = team.exported("tags", |sets| sets.len() == 1).await?;
        ensure!(
            tags[0]["tag"] == "v1.10.0" && tags[0]["sha"] == commit,
            "{tags:?}"
        );
        Ok(())
    });
}

#[test]
fn tags_of_a_registry_come_with_their_digests() {
    play("rset-registry", |scene| async move {
        let registry = Registry::start().await?;
        for tag in ["1.0.0", "1.1.0", "2.0.0"] {
            registry
                .push_files("team/app", &[tag], tag, &[("a.yaml", tag)])
                .await?;
        }
        let url = registry.url("team/app");
        scene.provider("tags", json!({
            "type": "OCIArtifactTag", "url": url, "insecure": true, "filter": {"semver": ">=1.0.0 <2.0.0"},
        })).await?;
        let has_two = |provider: &DynamicObject| {
            field(provider, "/status/exportedInputs")
                .and_then(Value::as_array)
                .is_some_and(|sets| sets.len() == 2)
        };
        let found = wait_for(&scene.providers(), "tags", has_two, PATIENCE).await?;
        ensure!(text(&found, "/status/exportedInputs/0/tag") == "1.1.0");
        ensure!(text(&found, "/status/exportedInputs/0/digest").starts_with("sha256:"));
        Ok(())
    });
}

#[test]
fn providers_say_what_is_wrong_and_keep_what_they_had() {
    play("rset-broken", |scene| async move {
        let team = Team::new(scene).await?;
        team.open("feat/one", "One").await?;
        team.provider("requests", "GiteaPullRequest", json!({})).await?;
        team.exported("requests", |sets| sets.len() == 1).await?;
        let wrong = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git", "namespace": team.scene.namespace},
            "stringData": {"username": team.bot.name, "password": "not-the-token"}});
        apply(&team.scene.client, &wrong).await?;
        let fails = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, reason, message)| {
                status == "False" && reason == "ReconciliationFailed" && message.contains("401")
            })
        };
        let failed = wait_for(&team.scene.providers(), "requests", fails, PATIENCE).await?;
        ensure!(
            field(&failed, "/status/exportedInputs")
                .and_then(Value::as_array)
                .map(Vec::len)
                == Some(1)
        );
        ensure!(!format!("{failed:?}").contains("not-the-token"));
        for (name, spec, reason) in [
            (
                "aws",
                json!({"type": "AWSCodeCommitBranch", "url": "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/r"}),
                "InvalidSpec",
            ),
            (
                "pattern",
                json!({"type": "GiteaBranch", "url": "https://g.example.com/a/b", "filter": {"includeBranch": "["}}),
                "InvalidSpec",
            ),
            (
                "cron",
                json!({"type": "Static", "schedule": [{"cron": "often"}]}),
                "InvalidSchedule",
            ),
        ] {
            team.scene.provider(name, spec).await?;
            let stalled = |object: &DynamicObject| {
                condition(object, "Stalled").is_some_and(|(_, found, _)| found == reason)
            };
            wait_for(&team.scene.providers(), name, stalled, PATIENCE).await?;
        }
        Ok(())
    });
}

//! EnvironmentPolicies: how many environments there are, for how long, and what pull requests say of them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use aws_lc_rs::hmac;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::objects::{self, apply, condition, field};
use testkit::{MessageSink, wait_for, wait_until_gone};

use crate::team::Team;
use crate::world::{PATIENCE, Scene, config_map, play};

const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
/// Labels of a pull request, in a provider.
const DEPLOY: &str = "deploy";

impl Scene {
    fn policies(&self) -> Api<DynamicObject> {
        objects::api(&self.client, DELIVERY, "EnvironmentPolicy", &self.namespace)
    }

    /// Writes an EnvironmentPolicy of the ResourceSet `environments`.
    async fn policy(&self, more: Value) -> Result<DynamicObject> {
        let mut spec = json!({"resourceSetRef": {"name": "environments"}});
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        let policy = json!({
            "apiVersion": DELIVERY, "kind": "EnvironmentPolicy",
            "metadata": {"name": "environments", "namespace": self.namespace}, "spec": spec,
        });
        apply(&self.client, &policy).await
    }

    /// Waits until the policy says this of a pull request.
    async fn environment(&self, number: u64, is_right: impl Fn(&Value) -> bool) -> Result<Value> {
        let find = |object: &DynamicObject| {
            let all = field(object, "/status/environments").and_then(Value::as_array);
            let mut all = all.cloned().unwrap_or_default().into_iter();
            all.find(|one| one["number"] == number && is_right(one))
        };
        let found = wait_for(
            &self.policies(),
            "environments",
            |object| find(object).is_some(),
            PATIENCE,
        )
        .await;
        match found {
            Ok(object) => find(&object).context("it is there"),
            Err(error) => {
                let now = self.policies().get("environments").await?;
                anyhow::bail!("{error:#}: {}", now.data["status"])
            }
        }
    }

    /// Makes a ServiceAccount with these rules.
    async fn account(&self, name: &str, rules: Value) -> Result<()> {
        const RBAC: &str = "rbac.authorization.k8s.io";
        let metadata = json!({"name": name, "namespace": self.namespace});
        let role = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata, "rules": rules,
        });
        let binding = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
        });
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        for object in [role, binding, account] {
            apply(&self.client, &object).await?;
        }
        Ok(())
    }

    async fn report(&self, (version, kind, name): (&str, &str, &str), status: Value) -> Result<()> {
        let api = objects::api(&self.client, version, kind, &self.namespace);
        let mut status = status;
        status["observedGeneration"] = api.get(name).await?.metadata.generation.into();
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

impl Team {
    async fn requests(&self, more: Value) -> Result<()> {
        let mut spec = json!({"filter": {"labels": [DEPLOY]}});
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        self.provider("requests", "GiteaPullRequest", spec).await
    }

    async fn comments(&self, number: u64) -> Result<Vec<String>> {
        let found = self
            .call(Method::GET, &format!("issues/{number}/comments"), json!({}))
            .await?;
        let found = found.as_array().cloned().unwrap_or_default();
        let texts = found
            .iter()
            .map(|comment| comment["body"].as_str().unwrap_or_default().to_owned());
        Ok(texts.collect())
    }

    /// The one comment on a pull request, without its marker.
    async fn comment(&self, number: u64) -> Result<String> {
        let comments = self.comments(number).await?;
        ensure!(comments.len() == 1, "{comments:#?}");
        let (marker, text) = comments[0].split_once('\n').context("it has a marker")?;
        ensure!(marker.starts_with("<!-- windlass-environment:"), "{marker}");
        Ok(text.to_owned())
    }

    /// Waits until the comment begins with this: Git services have no watch.
    async fn until_comment(&self, number: u64, beginning: &str) -> Result<()> {
        let began = Instant::now();
        while !self.comment(number).await?.starts_with(beginning) {
            ensure!(began.elapsed() < PATIENCE, "{}", self.comment(number).await?);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Waits until a commit status of the policy has this state, and a description that begins so. It is written after the
    /// comment.
    async fn until_status(&self, what: &str, commit: &str, state: &str, beginning: &str) -> Result<()> {
        let name = format!("windlass/{what}/{}/environments", self.scene.namespace);
        let is_so = |status: &&Value| {
            let text = |key: &str| status[key].as_str().unwrap_or_default();
            status["context"] == *name
                && text("status") == state
                && text("description").starts_with(beginning)
        };
        let began = Instant::now();
        loop {
            let found = self
                .call(Method::GET, &format!("commits/{commit}/status"), json!({}))
                .await?;
            let all = found["statuses"].as_array().cloned().unwrap_or_default();
            if all.iter().any(|status| is_so(&status)) {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "no {state} of {name} in {all:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn close(&self, number: u64) -> Result<()> {
        let body = json!({"state": "closed"});
        self.call(Method::PATCH, &format!("pulls/{number}"), body)
            .await
            .map(drop)
    }

    async fn push(&self, branch: &str, text: &str) -> Result<String> {
        let at = format!("{}/shop", self.bot.name);
        self.gitea.commit(&self.bot, &at, branch, &[("more", text)]).await
    }

    /// A ResourceSet that makes a ConfigMap for each pull request.
    async fn environments(&self) -> Result<()> {
        let spec = json!({
            "inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "requests"}],
            "resources": [config_map("env-<< inputs.id >>", json!({"sha": "<< inputs.sha | quote >>"}))],
        });
        self.scene.set("environments", spec).await.map(drop)
    }
}

fn ready(revision: &str) -> Value {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Succeeded", "message": "applied", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    json!({"conditions": [condition], "lastAppliedRevision": revision})
}

#[test]
fn a_pull_request_says_where_its_environment_is_and_how_healthy() {
    play("policy-health", |scene| async move {
        let team = Team::new(scene).await?;
        let scene = &team.scene;
        let (number, commit) = team.open("feat/one", "One").await?;
        team.requests(json!({"defaultValues": {"domain": "preview.example.com"}}))
            .await?;
        scene.set("environments", json!({
            "inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "requests"}],
            "resources": [
                {"apiVersion": SOURCE, "kind": "GitRepository", "metadata": {"name": "pr-<< inputs.id >>"},
                    "spec": {"interval": "1h", "url": "https://git.example.com/shop", "ref": {"commit": "<< inputs.sha | quote >>"}}},
                {"apiVersion": KUSTOMIZE, "kind": "Kustomization", "metadata": {"name": "pr-<< inputs.id >>"},
                    "spec": {"interval": "1h", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "pr-<< inputs.id >>"}}},
            ],
        })).await?;
        scene
            .policy(json!({"address": "https://pr-<< inputs.id >>.<< inputs.domain >>"}))
            .await?;

        let pending = scene
            .environment(number, |one| {
                one["state"] == "Pending" && one["said"] != Value::Null
            })
            .await?;
        let address = format!("https://pr-{number}.preview.example.com/");
        ensure!(
            pending["address"] == *address && pending["commit"] == *commit,
            "{pending}"
        );
        let text = team.comment(number).await?;
        ensure!(
            text == format!(
                "### Environment: being made\n\n<{address}>\n\nCommit `{}` is being deployed.\n",
                &commit[..12]
            ),
            "{text}"
        );
        team.until_status("environment", &commit, "pending", "being made")
            .await?;

        // Its source has the commit. Its Kustomization is Ready, with the commit before.
        let name = format!("pr-{number}");
        let (source, kustomization) = (
            (SOURCE, "GitRepository", name.as_str()),
            (KUSTOMIZE, "Kustomization", name.as_str()),
        );
        wait_for(
            &objects::api(&scene.client, KUSTOMIZE, "Kustomization", &scene.namespace),
            &name,
            |_| true,
            PATIENCE,
        )
        .await?;
        scene.report(source, ready("")).await?;
        scene.report(kustomization, ready("main@sha1:0000")).await?;
        // The policy is asked for it, so that an early Ready would be seen.
        let asked = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
        scene
            .policies()
            .patch("environments", &PatchParams::default(), &Patch::Merge(asked))
            .await?;
        let handled = |object: &DynamicObject| {
            field(object, "/status/lastHandledReconcileAt").is_some_and(|at| at == "now")
        };
        let seen = wait_for(&scene.policies(), "environments", handled, PATIENCE).await?;
        ensure!(field(&seen, "/status/environments/0/state").is_some_and(|state| state == "Pending"));
        scene
            .report(kustomization, ready(&format!("main@sha1:{commit}")))
            .await?;
        let said = |state: &'static str, before: &Value| {
            let before = before["said"].clone();
            move |one: &Value| one["state"] == state && one["said"] != before
        };
        let healthy = scene.environment(number, said("Ready", &pending)).await?;
        let text = team.comment(number).await?;
        ensure!(
            text == format!(
                "### Environment: ready\n\n<{address}>\n\nCommit `{}` is deployed, and all objects are healthy.\n",
                &commit[..12]
            ),
            "{text}"
        );
        team.until_status("environment", &commit, "success", "").await?;

        // A push begins anew, and fails.
        let pushed = team.push("feat/one", "x").await?;
        let again = scene
            .environment(number, |one| {
                one["commit"] == *pushed && one["said"] != healthy["said"]
            })
            .await?;
        ensure!(again["state"] == "Pending", "{again}");
        team.until_status("environment", &pushed, "pending", "").await?;
        scene.report(source, ready("")).await?;
        let mut stalled = ready("main@sha1:0000");
        stalled["conditions"][0]["status"] = "False".into();
        stalled["conditions"].as_array_mut().context("a list")?.push(json!({
            "type": "Stalled", "status": "True", "reason": "BuildFailed", "message": "the password is hunter2",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }));
        stalled["lastAttemptedRevision"] = format!("main@sha1:{pushed}").into();
        scene.report(kustomization, stalled.clone()).await?;
        let failed = scene.environment(number, said("Failed", &again)).await?;
        ensure!(
            failed["message"]
                .as_str()
                .is_some_and(|text| text.contains("hunter2")),
            "{failed}"
        );
        // Anyone may have opened it: the message is for the cluster.
        let text = team.comment(number).await?;
        ensure!(
            text.starts_with("### Environment: failed\n") && !text.contains("hunter2"),
            "{text}"
        );
        team.until_status("environment", &pushed, "failure", "failed")
            .await?;

        // With pull requests of the repository itself only, it is for its readers, too.
        let ours = json!({"metadata": {"annotations": {"windlass.dev/pull-requests-from-forks": "ignore"}}});
        scene
            .providers()
            .patch("requests", &PatchParams::default(), &Patch::Merge(ours))
            .await?;
        let more = team.push("feat/one", "y").await?;
        let pending = scene
            .environment(number, |one| {
                one["commit"] == *more && one["said"] != failed["said"]
            })
            .await?;
        ensure!(pending["state"] == "Pending", "{pending}");
        scene.report(source, ready("")).await?;
        stalled["lastAttemptedRevision"] = format!("main@sha1:{more}").into();
        scene.report(kustomization, stalled).await?;
        team.until_comment(number, "### Environment: failed\n").await?;
        let text = team.comment(number).await?;
        ensure!(text.contains("hunter2"), "{text}");

        team.close(number).await?;
        let gone = |object: &DynamicObject| field(object, "/status/environments").is_none();
        wait_for(&scene.policies(), "environments", gone, PATIENCE).await?;
        wait_until_gone(
            &objects::api(&scene.client, KUSTOMIZE, "Kustomization", &scene.namespace),
            &name,
            PATIENCE,
        )
        .await?;
        team.until_comment(number, "### Environment: removed\n").await?;
        Ok(())
    });
}

#[test]
fn more_pull_requests_than_environments_wait_for_their_turn() {
    play("policy-limit", |scene| async move {
        let team = Team::new(scene).await?;
        let scene = &team.scene;
        let mut numbers = Vec::new();
        for branch in ["feat/one", "feat/two", "feat/three"] {
            numbers.push(team.open(branch, branch).await?.0);
        }
        team.requests(json!({})).await?;
        scene.policy(json!({"maxEnvironments": 1})).await?;
        team.environments().await?;
        let has =
            |state: &'static str| move |one: &Value| one["state"] == state && one["said"] != Value::Null;
        scene.environment(numbers[0], has("Ready")).await?;
        let waits = scene.environment(numbers[2], has("Waiting")).await?;
        ensure!(
            waits["message"] == "1 of 1 environments are there; 1 waits before it",
            "{waits}"
        );
        ensure!(scene.made_by("environments").await? == [format!("env-{}", numbers[0])]);
        ensure!(
            team.comment(numbers[1])
                .await?
                .starts_with("### Environment: waiting\n")
        );
        let summary = scene.policies().get("environments").await?;
        let (_, _, message) = condition(&summary, "Ready").context("Ready")?;
        ensure!(message == "environments: 1 ready, 2 waiting", "{message}");

        team.close(numbers[0]).await?;
        scene.environment(numbers[1], has("Ready")).await?;
        wait_until_gone(&scene.config_maps(), &format!("env-{}", numbers[0]), PATIENCE).await?;
        ensure!(scene.made_by("environments").await? == [format!("env-{}", numbers[1])]);

        // Without the policy, nothing is held back.
        scene
            .policies()
            .delete("environments", &Default::default())
            .await?;
        wait_for(
            &scene.config_maps(),
            &format!("env-{}", numbers[2]),
            |_| true,
            PATIENCE,
        )
        .await?;
        Ok(())
    });
}

#[test]
fn an_environment_ends_with_its_time_and_comes_back_with_a_push() {
    play("policy-expiry", |scene| async move {
        let team = Team::new(scene).await?;
        let scene = &team.scene;
        let (number, _) = team.open("feat/one", "One").await?;
        team.requests(json!({})).await?;
        scene
            .policy(json!({"expiresAfter": "6s", "commitStatus": false}))
            .await?;
        team.environments().await?;
        let name = format!("env-{number}");
        wait_for(&scene.config_maps(), &name, |_| true, PATIENCE).await?;
        scene.environment(number, |one| one["state"] == "Expired").await?;
        wait_until_gone(&scene.config_maps(), &name, PATIENCE).await?;
        team.until_comment(number, "### Environment: removed\n\nIts time is over.")
            .await?;
        let pushed = team.push("feat/one", "x").await?;
        let is_new = |map: &DynamicObject| objects::text(map, "/data/sha") == pushed;
        wait_for(&scene.config_maps(), &name, is_new, PATIENCE).await?;
        Ok(())
    });
}

#[test]
fn a_policy_that_says_nothing_deletes_nothing() {
    play("policy-broken", |scene| async move {
        let team = Team::new(scene).await?;
        let scene = &team.scene;
        let (number, _) = team.open("feat/one", "One").await?;
        team.requests(json!({})).await?;
        team.environments().await?;
        let name = format!("env-{number}");
        wait_for(&scene.config_maps(), &name, |_| true, PATIENCE).await?;
        let permuted = json!({
            "inputStrategy": {"name": "Permute"},
            "inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "requests"}],
            "resources": [config_map("env-<< inputs.requests.id >>", json!({}))],
        });
        scene.set("environments", permuted).await?;
        scene.policy(json!({})).await?;
        let stalled = |object: &DynamicObject| {
            condition(object, "Stalled").is_some_and(|(_, reason, _)| reason == "InvalidSpec")
        };
        wait_for(&scene.policies(), "environments", stalled, PATIENCE).await?;
        let waits = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, _, message)| {
                status == "False" && message.contains("the EnvironmentPolicy 'environments' does not say")
            })
        };
        scene.wait("environments", waits).await?;
        scene.config_maps().get(&name).await?;

        // That of another namespace is about another ResourceSet.
        let other = scene.world.control_plane.namespace("policy-other").await?;
        let foreign = json!({
            "apiVersion": DELIVERY, "kind": "EnvironmentPolicy",
            "metadata": {"name": "foreign", "namespace": other},
            "spec": {"resourceSetRef": {"name": "environments"}, "expiresAfter": "1ms"},
        });
        apply(&scene.client, &foreign).await?;
        let foreign = objects::api(&scene.client, DELIVERY, "EnvironmentPolicy", &other);
        let misses = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(_, reason, message)| {
                reason == "DependencyNotReady"
                    && message == "the ResourceSet 'environments' does not exist in the namespace"
            })
        };
        wait_for(&foreign, "foreign", misses, PATIENCE).await?;

        // One without a status, as a backup brings it back, counts as one that has not spoken yet.
        team.environments().await?;
        scene.environment(number, |one| one["state"] == "Ready").await?;
        let map = scene.config_maps().get(&name).await?;
        let wiped = json!({"status": null});
        scene
            .policies()
            .patch_status("environments", &PatchParams::default(), &Patch::Merge(wiped))
            .await?;
        let asked = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
        scene
            .policies()
            .patch("environments", &PatchParams::default(), &Patch::Merge(asked))
            .await?;
        scene.environment(number, |one| one["state"] == "Ready").await?;
        let after = scene.config_maps().get(&name).await?;
        ensure!(after.metadata.uid == map.metadata.uid);
        Ok(())
    });
}

/// A Job whose Pods fail where the branch is `feat/bad`.
fn job() -> Value {
    let outcome = "<< if eq inputs.branch \"feat/bad\" >>job-failure<< else >>job-success<< end >>";
    json!({
        "backoffLimit": 0,
        "template": {
            "metadata": {"labels": {"testkit.windlass.dev/outcome": outcome, "number": "<< inputs.id | quote >>"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "test", "image": "test"}]},
        },
    })
}

#[test]
fn an_environment_is_tested_once_and_goes() {
    play("policy-test", |scene| async move {
        let team = Team::new(scene).await?;
        let scene = &team.scene;
        let (good, commit) = team.open("feat/good", "Good").await?;
        let (bad, worse) = team.open("feat/bad", "Bad").await?;
        team.requests(json!({})).await?;
        let test = json!({"namespace": scene.namespace, "jobSpec": job(), "removeEnvironment": true});
        scene.policy(json!({"test": test})).await?;
        team.environments().await?;
        let tested = |result: &'static str| {
            move |one: &Value| one["state"] == "Tested" && one["test"]["state"] == result
        };
        scene.environment(good, tested("Passed")).await?;
        let failed = scene.environment(bad, tested("Failed")).await?;
        ensure!(
            failed["test"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("Job/")),
            "{failed}"
        );
        for number in [good, bad] {
            wait_until_gone(&scene.config_maps(), &format!("env-{number}"), PATIENCE).await?;
        }
        team.until_comment(good, "### Environment: removed\n").await?;
        team.until_comment(bad, "### Environment: removed\n").await?;
        ensure!(team.comment(good).await?.ends_with("Its test passed.\n"));
        ensure!(
            team.comment(bad)
                .await?
                .ends_with("Its test failed. The status of the EnvironmentPolicy says why.\n")
        );
        team.until_status("environment-test", &commit, "success", "passed")
            .await?;
        team.until_status("environment-test", &worse, "failure", "failed")
            .await?;
        team.until_status("environment", &commit, "success", "").await?;

        // Once for each commit.
        let pushed = team.push("feat/good", "x").await?;
        scene
            .environment(good, |one| one["commit"] == *pushed && tested("Passed")(one))
            .await?;
        let jobs = objects::api(&scene.client, "batch/v1", "Job", &scene.namespace);
        let label = "delivery.windlass.dev/environment-policy=environments";
        let made = jobs.list(&ListParams::default().labels(label)).await?.items;
        ensure!(made.len() == 3, "{} Jobs", made.len());
        Ok(())
    });
}

#[test]
fn a_test_is_made_as_the_account_of_the_set() {
    play("policy-account", |scene| async move {
        let team = Team::new(scene).await?;
        let scene = &team.scene;
        let (number, _) = team.open("feat/good", "Good").await?;
        team.requests(json!({})).await?;
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
        scene.account("maps", rules).await?;
        scene
            .policy(json!({"test": {"namespace": "kube-system", "jobSpec": job()}}))
            .await?;
        scene
            .set(
                "environments",
                json!({
                    "serviceAccountName": "maps",
                    "inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "requests"}],
                    "resources": [config_map("env-<< inputs.id >>", json!({}))],
                }),
            )
            .await?;
        let failed = |one: &Value| one["test"]["state"] == "Failed";
        let failed = scene.environment(number, failed).await?;
        ensure!(
            failed["state"] == "Ready"
                && failed["test"]["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("cannot create resource \"jobs\"")),
            "{failed}"
        );
        Ok(())
    });
}

#[test]
fn a_ci_system_gets_access_that_ends_and_says_the_result() {
    play("policy-webhook", |scene| async move {
        let team = Team::new(scene).await?;
        let scene = &team.scene;
        let (number, commit) = team.open("feat/good", "Good").await?;
        team.requests(json!({})).await?;
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
        scene.account("tester", rules).await?;
        let ci = MessageSink::start().await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ci", "namespace": scene.namespace},
            "stringData": {"address": ci.url("test"), "token": "key-of-ci"},
        });
        apply(&scene.client, &secret).await?;
        let server = scene.world.control_plane.config().cluster_url.to_string();
        let webhook = json!({
            "secretRef": {"name": "ci"}, "serviceAccountName": "tester", "server": server, "commitStatus": "ci/e2e",
        });
        let test = json!({"namespace": scene.namespace, "webhook": webhook});
        scene.policy(json!({"test": test})).await?;
        team.environments().await?;

        let call = ci.until("test", |call| call.json["number"] == number).await?;
        ensure!(call.json["commit"] == *commit && call.json["commitStatus"] == "ci/e2e");
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"key-of-ci");
        let tag = hmac::sign(&key, &call.body);
        let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        ensure!(call.headers["x-signature"] == format!("sha256={digits}"));

        // It reaches what its account may, and no more.
        let given = call.json["kubeconfig"].as_str().context("no kubeconfig")?;
        let given = Kubeconfig::from_yaml(given)?;
        let given = Config::from_custom_kubeconfig(given, &KubeConfigOptions::default()).await?;
        ensure!(given.default_namespace == scene.namespace);
        let client = Client::try_from(given)?;
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        maps.get(&format!("env-{number}")).await?;
        ensure!(maps.list(&ListParams::default()).await.is_err());
        let secrets: Api<Secret> = Api::default_namespaced(client);
        ensure!(secrets.get("git").await.is_err());

        let running = |one: &Value| one["test"]["state"] == "Running" && one["said"] != Value::Null;
        scene.environment(number, running).await?;
        let body = json!({"context": "ci/e2e", "state": "failure", "description": "2 of 9 failed"});
        let at = format!("statuses/{commit}");
        team.call(Method::POST, &at, body).await?;
        let failed = |one: &Value| one["test"]["state"] == "Failed";
        let failed = scene.environment(number, failed).await?;
        ensure!(
            failed["test"]["message"] == "the commit status 'ci/e2e' is a failure",
            "{failed}"
        );
        // The environment stays, and the CI system is not called again.
        ensure!(failed["state"] == "Ready" && ci.said_to("test").len() == 1);
        let policy = scene.policies().get("environments").await?;
        ensure!(!policy.data.to_string().contains("key-of-ci"));
        Ok(())
    });
}

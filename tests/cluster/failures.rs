//! Tests of broken sources, artifacts and manifests: each gets a clear condition, and nothing is lost.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::git::{self, Change};
use testkit::objects::{self, condition, with_spec};
use testkit::{Controller, registry, wait_for};

use crate::world::{PATIENCE, Test, config_map, deployment, inventory_of, run};

#[test]
fn all_errors_of_a_broken_revision_are_told_with_file_and_line_and_nothing_is_applied() {
    run("broken", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/good.yaml", config_map(ns, "good", "1"))])?;
        test.deliver(&repository, json!({})).await?;

        // The API server refuses two of these, for different reasons.
        let wrong_type = format!(
            "# comment\n---\n{}",
            deployment(ns, "bad", "x", 1).replace("\"replicas\":1", "\"replicas\":\"many\"")
        );
        let changes = [
            Change::write("deploy/good.yaml", config_map(ns, "good", "2")),
            Change::write("deploy/name.yaml", config_map(ns, "Not_Valid", "1")),
            Change::write("deploy/type.yaml", wrong_type),
        ];
        test.push(&repository, &changes).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ReconciliationFailed")
            .await?;
        ensure!(
            message.contains("deploy/name.yaml:1") && message.contains("Not_Valid"),
            "{message}"
        );
        ensure!(
            message.contains("deploy/type.yaml:3") && message.contains("replicas"),
            "{message}"
        );
        test.config_map_has("good", "key", "1").await?;

        // YAML that cannot be read, in two files.
        let changes = [
            Change::delete("deploy/name.yaml"),
            Change::write("deploy/type.yaml", "a: b\n c: [\n"),
            Change::write("deploy/tabs.yaml", "kind: ConfigMap\n\tx: y\n"),
        ];
        test.push(&repository, &changes).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "BuildFailed")
            .await?;
        ensure!(
            message.contains("deploy/type.yaml") && message.contains("deploy/tabs.yaml:2"),
            "{message}"
        );
        test.config_map_has("good", "key", "1").await?;

        let changes = [
            Change::delete("deploy/type.yaml"),
            Change::delete("deploy/tabs.yaml"),
        ];
        let revision = test.push(&repository, &changes).await?;
        test.ready("app", &revision).await?;
        test.config_map_has("good", "key", "2").await.map(drop)
    });
}

#[test]
fn hostile_manifests_are_refused_by_file_and_do_no_harm() {
    run("hostile", |test| async move {
        let ns = &test.namespace;
        let mut aliases = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            aliases.push_str(&format!(
                "a{level}: &a{level} [{}]\n",
                below.trim_end_matches(", ")
            ));
        }
        let repository = test.repository(&[
            (
                "deploy/aliases.yaml",
                format!("{}{aliases}", config_map(ns, "bomb", "1")),
            ),
            (
                "deploy/deep.yaml",
                format!("a: {}{}\n", "[".repeat(20_000), "]".repeat(20_000)),
            ),
        ])?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("app", json!({}))).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "BuildFailed")
            .await?;
        ensure!(
            message.contains("deploy/aliases.yaml") && message.contains("deploy/deep.yaml"),
            "{message}"
        );
        test.world.apply.check_running()?;
        let changes = [
            Change::write("deploy/aliases.yaml", config_map(ns, "good", "1")),
            Change::delete("deploy/deep.yaml"),
        ];
        let revision = test.push(&repository, &changes).await?;
        test.ready("app", &revision).await.map(drop)
    });
}

#[test]
fn unknown_kinds_and_namespaces_are_told_with_the_file() {
    run("unknown-kind", |test| async move {
        let ns = &test.namespace;
        let widget = format!(
            "apiVersion: nowhere.example.com/v1\nkind: Widget\nmetadata: {{name: w, namespace: {ns}}}\n"
        );
        let homeless = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: homeless}\n";
        let lost = config_map(&format!("{ns}-not-there"), "lost", "1");
        let repository = test.repository(&[
            ("deploy/widget.yaml", widget),
            ("deploy/homeless.yaml", homeless.to_owned()),
            ("deploy/lost.yaml", lost),
        ])?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("app", json!({}))).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ReconciliationFailed")
            .await?;
        for part in [
            "deploy/widget.yaml",
            "deploy/homeless.yaml",
            "Widget",
            "namespace",
        ] {
            ensure!(message.contains(part), "{part} is missing in: {message}");
        }
        Ok(())
    });
}

#[test]
fn a_missing_path_a_path_outside_and_a_missing_source() {
    run("missing", |test| async move {
        let ns = &test.namespace;
        test.apply(&test.kustomization("app", json!({"path": "./nowhere"})))
            .await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ArtifactFailed")
            .await?;
        ensure!(
            message == format!("Source 'GitRepository/{ns}/app' not found"),
            "{message}"
        );

        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.git_source(&repository).await?;
        let told =
            |o: &_| condition(o, "Ready").is_some_and(|(_, _, message)| message.contains("path not found"));
        wait_for(&test.kustomizations(), "app", told, PATIENCE).await?;

        // The artifact's root is its own parent, as in Flux: there is no way out, and no /etc in it.
        test.apply(&test.kustomization("outside", json!({"path": "../../etc"})))
            .await?;
        let message = test
            .not_ready(&test.kustomizations(), "outside", "ArtifactFailed")
            .await?;
        ensure!(message.contains("path not found"), "{message}");

        let spec = Patch::Merge(json!({"spec": {"path": "./deploy"}}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &spec)
            .await?;
        test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await
            .map(drop)
    });
}

#[test]
fn git_remotes_that_refuse_fail_or_are_not_there() {
    run("remotes", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        let failed = |name: &'static str, url: String| {
            let object = objects::git_repository(ns, name, &url, "main");
            let test = &test;
            async move {
                test.apply(&object).await?;
                test.not_ready(&test.git_repositories(), name, "GitOperationFailed")
                    .await
            }
        };
        let port = testkit::ports::free_port()?;
        let message = failed("unreachable", format!("http://127.0.0.1:{port}/x.git")).await?;
        ensure!(
            message.contains("connect") || message.contains("refused"),
            "{message}"
        );
        let message = failed("absent", test.world.git.url("nobody-made-this")).await?;
        ensure!(message.contains("not found"), "{message}");

        let name = repository.name();
        let access = git::Access::Basic {
            username: "user".into(),
            password: "right".into(),
        };
        test.world.git.set_access(name, access);
        let secret = |password: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git", "namespace": ns},
                "stringData": {"username": "user", "password": password}})
        };
        test.apply(&secret("wrong-4711")).await?;
        let object = objects::git_repository(ns, "app", repository.url(), "main");
        let object = with_spec(object, json!({"secretRef": {"name": "git"}, "interval": "5s"}));
        test.apply(&object).await?;
        let message = test
            .not_ready(&test.git_repositories(), "app", "GitOperationFailed")
            .await?;
        ensure!(message.contains("auth"), "{message}");
        ensure!(
            !message.contains("4711") && !test.world.source.log().contains("wrong-4711"),
            "a password was told"
        );
        test.apply(&secret("right")).await?;
        objects::poke(&test.git_repositories(), "app").await?;
        wait_for(&test.git_repositories(), "app", objects::is_ready, PATIENCE).await?;

        // A branch that is not there; the artifact of before stays.
        let branch = Patch::Merge(json!({"spec": {"ref": {"branch": "gone"}}}));
        test.git_repositories()
            .patch("app", &PatchParams::default(), &branch)
            .await?;
        let message = test
            .not_ready(&test.git_repositories(), "app", "GitOperationFailed")
            .await?;
        ensure!(message.contains("gone"), "{message}");
        let object = test.git_repositories().get("app").await?;
        ensure!(object.data["status"]["artifact"]["revision"].is_string());
        Ok(())
    });
}

#[test]
fn a_mended_secret_wakes_the_source_that_failed_by_it() {
    run("mended-secret", |test| async move {
        let ns = &test.namespace;
        // Neither the interval nor a retry is to come first.
        let mut options = test.own_shard();
        options.flags.push("--min-retry-delay=10m".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _source = Controller::start_source(kubeconfig, options).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        let access = git::Access::Basic {
            username: "user".into(),
            password: "right".into(),
        };
        test.world.git.set_access(repository.name(), access);
        let secret = |password: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git", "namespace": ns},
                "stringData": {"username": "user", "password": password}})
        };
        let object = objects::git_repository(ns, "app", repository.url(), "main");
        let object = with_spec(object, json!({"secretRef": {"name": "git"}, "interval": "1h"}));
        test.apply(&test.in_own_shard(object)).await?;
        // First there is none, then a wrong one.
        let sources = test.git_repositories();
        test.not_ready(&sources, "app", "AuthenticationFailed").await?;
        test.apply(&secret("wrong")).await?;
        test.not_ready(&sources, "app", "GitOperationFailed").await?;
        test.apply(&secret("right")).await?;
        wait_for(&sources, "app", objects::is_ready, PATIENCE).await?;
        Ok(())
    });
}

#[test]
fn registries_that_refuse_fail_or_lie() {
    run("registries", |test| async move {
        let ns = &test.namespace;
        let registry = &test.world.registry;
        let object = |name: &str, repository: &str| {
            objects::oci_repository(ns, name, &registry.url(repository), "latest")
        };
        test.apply(&object("absent", &format!("{ns}/absent"))).await?;
        let message = test
            .not_ready(&test.oci_repositories(), "absent", "OCIArtifactPullFailed")
            .await?;
        ensure!(
            message.contains("not found") || message.contains("404") || message.contains("unknown"),
            "{message}"
        );

        registry
            .push_files(ns, &["latest"], "r", &[("a.yaml", &config_map(ns, "a", "1"))])
            .await?;
        registry.set_fault(ns, registry::Fault::CorruptBlobs);
        test.apply(&object("app", ns)).await?;
        test.apply(&objects::kustomization(ns, "app", ("OCIRepository", "app"), "./"))
            .await?;
        let message = {
            let refused = |o: &_| condition(o, "Ready").is_some_and(|(status, ..)| status == "False");
            let object = wait_for(&test.oci_repositories(), "app", refused, PATIENCE).await?;
            condition(&object, "Ready")
                .map(|(_, _, message)| message.to_owned())
                .unwrap_or_default()
        };
        ensure!(message.contains("digest"), "{message}");
        ensure!(test.oci_repositories().get("app").await?.data["status"]["artifact"].is_null());
        test.no_config_map("a").await?;

        registry.set_fault(ns, None);
        objects::poke(&test.oci_repositories(), "app").await?;
        test.config_map_has("a", "key", "1").await.map(drop)
    });
}

#[test]
fn what_never_gets_healthy_is_told_with_its_cause() {
    run("unhealthy", |test| async move {
        let ns = &test.namespace;
        // No node has this label, so the scheduler says why the pod waits.
        let mut unschedulable: serde_json::Value =
            serde_json::from_str(&deployment(ns, "web", "example.com/web:1", 1))?;
        unschedulable["spec"]["template"]["spec"]["nodeSelector"] = json!({"no": "such-node"});
        let repository = test.repository(&[("deploy/web.yaml", unschedulable.to_string())])?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization(
            "app",
            json!({"timeout": "3s", "retryInterval": "1h", "interval": "1h"}),
        ))
        .await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "HealthCheckFailed")
            .await?;
        ensure!(message.contains(&format!("Deployment/{ns}/web")), "{message}");
        ensure!(message.contains("node"), "the cause is not told: {message}");
        let object = test.kustomizations().get("app").await?;
        ensure!(condition(&object, "Healthy").is_some_and(|(status, ..)| status == "False"));

        // A new commit ends the failure at once.
        let revision = test
            .push(
                &repository,
                &[Change::write(
                    "deploy/web.yaml",
                    deployment(ns, "web", "example.com/web:1", 1),
                )],
            )
            .await?;
        test.ready("app", &revision).await.map(drop)
    });
}

#[test]
fn a_new_commit_ends_the_wait_for_the_old_one() {
    run("wait-cancel", |test| async move {
        let ns = &test.namespace;
        let mut stuck: serde_json::Value =
            serde_json::from_str(&deployment(ns, "web", "example.com/web:1", 1))?;
        stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({"no": "such-node"});
        let repository = test.repository(&[("deploy/web.yaml", stuck.to_string())])?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("app", json!({"timeout": "10m"})))
            .await?;
        let waiting = |o: &_| {
            condition(o, "Reconciling")
                .is_some_and(|(_, _, message)| message.starts_with("Running health checks"))
        };
        wait_for(&test.kustomizations(), "app", waiting, PATIENCE).await?;
        let fixed = Change::write("deploy/web.yaml", deployment(ns, "web", "example.com/web:1", 1));
        let revision = test.push(&repository, &[fixed]).await?;
        test.ready("app", &revision).await.map(drop)
    });
}

#[test]
fn what_a_gate_keeps_closed_is_refused_by_name() {
    run("refused", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.git_source(&repository).await?;
        let decryption = json!({"provider": "sops", "serviceAccountName": "a"});
        test.apply(&test.kustomization("app", json!({"decryption": decryption})))
            .await?;
        let stalled = |o: &_| condition(o, "Stalled").is_some_and(|(status, ..)| status == "True");
        let object = wait_for(&test.kustomizations(), "app", stalled, PATIENCE).await?;
        let (_, _, message) = condition(&object, "Stalled").unwrap_or_default();
        ensure!(
            message.contains("ObjectLevelWorkloadIdentity feature gate"),
            "{message}"
        );
        test.no_config_map("a").await?;
        let remove = Patch::Merge(json!({"spec": {"decryption": null}}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &remove)
            .await?;
        test.config_map_has("a", "key", "1").await.map(drop)
    });
}

/// Lets the API server refuse every status that says that another revision was applied, and waits until it does.
async fn refuse_successes(test: &Test, revision: &str) -> Result<()> {
    let (ns, version) = (&test.namespace, "admissionregistration.k8s.io/v1");
    let rules = json!([{"apiGroups": ["kustomize.toolkit.fluxcd.io"], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["kustomizations/status"]}]);
    let expression = format!("object.status.lastAppliedRevision == '{revision}'");
    test.apply(
        &json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": ns},
        "spec": {"validations": [{"expression": expression}], "matchConstraints": {"resourceRules": rules,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}}}}}),
    )
    .await?;
    test.apply(
        &json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": ns},
        "spec": {"policyName": ns, "validationActions": ["Deny"]}}),
    )
    .await?;
    // Nothing tells when a policy is in force.
    let parameters = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let another = Patch::Merge(json!({"status": {"lastAppliedRevision": "another"}}));
    let api = test.kustomizations();
    let in_force = async {
        while api.patch_status("app", &parameters, &another).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, in_force)
        .await
        .context("the policy is not in force")
}

#[test]
fn a_run_that_could_not_be_recorded_is_not_trusted() {
    run("unrecorded", |test| async move {
        let ns = &test.namespace;
        let files = ["a", "b"].map(|name| (format!("deploy/{name}.yaml"), config_map(ns, name, "1")));
        let repository = test.repository(&files)?;
        let object = test.deliver(&repository, json!({})).await?;
        ensure!(inventory_of(&object).len() == 2);
        refuse_successes(&test, objects::text(&object, "/status/lastAppliedRevision")).await?;
        let revision = test.push(&repository, &[Change::delete("deploy/b.yaml")]).await?;
        test.config_map_gone("b").await?;
        let unrecorded = |line: &str| line.contains(ns) && line.contains("failed to write the object");
        let refused = async {
            while !test.world.apply.log().lines().any(unrecorded) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, refused)
            .await
            .context("the status was written")?;
        let policies = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": ns}});
        let (policies, name) = objects::api_of(&test.client, &policies)?;
        policies.delete(&name, &Default::default()).await?;
        let object = test.ready("app", &revision).await?;
        let inventory = inventory_of(&object);
        ensure!(inventory == [format!("{ns}_a__ConfigMap")], "{inventory:?}");
        Ok(())
    });
}

//! The `windlass` command against our controllers: what it shows, what it asks for, and with which exit code it ends.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use testkit::controller::program;
use testkit::git::Change;
use testkit::objects;

use crate::helm::{self, chart};
use crate::world::{Test, config_map, run};

#[test]
fn windlass_shows_suspends_and_reconciles_what_is_delivered() {
    run("cli", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;

        let said = windlass.run(&["get", "ks", "app"], 0).await?;
        let commit = repository.resolve("main")?;
        ensure!(
            said.contains(&format!("main@sha1:{}  False      True", &commit[..8])),
            "{said}"
        );
        let said = windlass.run(&["get", "-o", "name"], 0).await?;
        ensure!(said == "gitrepository/app\nkustomization/app\n", "{said}");
        let said = windlass
            .run(&["get", "source", "git", "app", "-o", "json"], 0)
            .await?;
        let object: Value = serde_json::from_str(&said)?;
        ensure!(
            object["kind"] == "GitRepository" && object["metadata"]["managedFields"].is_null(),
            "{said}"
        );
        let said = windlass.run(&["get", "ks", "app", "gone"], 3).await?;
        ensure!(
            said.contains("True") && said.contains(&format!("Kustomization/{ns}/gone does not exist")),
            "{said}"
        );
        let said = windlass
            .run(&["get", "ks", "--status-selector", "ready=false"], 0)
            .await?;
        ensure!(said.contains("nothing found"), "{said}");
        let said = windlass.run(&["tree", "ks/app"], 0).await?;
        ensure!(
            said == format!("Kustomization/{ns}/app Current\n└── ConfigMap/{ns}/a Current\n"),
            "{said}"
        );
        let said = windlass.run(&["why", "ks/app"], 0).await?;
        ensure!(
            said.starts_with(&format!(
                "Kustomization/{ns}/app: ready\n  revision main@sha1:{commit}"
            )),
            "{said}"
        );

        windlass.run(&["suspend", "ks/app", "git/app"], 0).await?;
        let said = windlass.run(&["reconcile", "ks/app"], 3).await?;
        ensure!(
            said.contains("is suspended: `windlass resume kustomization/app"),
            "{said}"
        );
        let commit = repository.commit(
            "main",
            "change",
            &[Change::write("deploy/a.yaml", config_map(ns, "a", "2"))],
        )?;
        windlass.run(&["resume", "git/app", "ks/app"], 0).await?;
        let said = windlass
            .run(&["reconcile", "ks", "app", "--with-source"], 0)
            .await?;
        for object in ["GitRepository", "Kustomization"] {
            ensure!(
                said.contains(&format!("{object}/{ns}/app is ready at main@sha1:{commit}")),
                "{said}"
            );
        }
        test.config_map_has("a", "key", "2").await?;
        let said = windlass.run(&["events", "ks/app"], 0).await?;
        ensure!(
            said.contains("Kustomization/app") && said.contains(&format!("ConfigMap/{ns}/a")),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn windlass_waits_for_a_commit_and_says_why_it_does_not_come() {
    run("cli-wait", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let commit = repository.commit(
            "main",
            "change",
            &[Change::write("deploy/a.yaml", config_map(ns, "a", "2"))],
        )?;
        let said = windlass
            .run(&["wait", "--revision", &commit, "--timeout=2s"], 124)
            .await?;
        ensure!(
            said.contains(&format!(
                "GitRepository/{ns}/app: does not have {commit} but main@sha1:"
            )),
            "{said}"
        );
        let words = ["wait", "--revision", &commit[..10]];
        let poke = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            objects::poke(&test.git_repositories(), "app").await
        };
        let (said, poked) = tokio::join!(windlass.run(&words, 0), poke);
        poked?;
        let said = said?;
        ensure!(
            said.contains(&format!("Kustomization/{ns}/app is ready at")),
            "{said}"
        );

        test.apply(&test.kustomization("db", json!({"path": "./nowhere"})))
            .await?;
        test.apply(&test.kustomization("web", json!({"path": "./web", "dependsOn": [{"name": "db"}]})))
            .await?;
        let said = windlass.run(&["reconcile", "ks/db"], 3).await?;
        ensure!(
            said.contains(&format!("Kustomization/{ns}/db is not ready")),
            "{said}"
        );
        test.not_ready(&test.kustomizations(), "web", "DependencyNotReady")
            .await?;
        let said = windlass.run(&["why", "ks/web"], 3).await?;
        let cause = said
            .lines()
            .find(|line| line.starts_with("cause: "))
            .context("no cause")?;
        ensure!(
            cause.starts_with(&format!("cause: Kustomization/{ns}/db: ")),
            "{said}"
        );
        ensure!(
            cause.contains("kustomization path not found: ./nowhere"),
            "{said}"
        );
        let said = windlass.run(&["why", "ks/web", "-o", "json"], 3).await?;
        ensure!(said.contains("\"because\""), "{said}");
        let said = windlass
            .run(&["wait", "--revision", &commit, "--timeout=2s"], 124)
            .await?;
        ensure!(said.contains(&format!("\n  Kustomization/{ns}/web: ")), "{said}");
        // What is applied and does not get well.
        let broken = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "bad", "namespace": ns},
            "spec": {"selector": {"matchLabels": {"app": "bad"}}, "template": {
                "metadata": {"labels": {"app": "bad", "testkit.windlass.dev/outcome": "image-pull-error"}},
                "spec": {"containers": [{"name": "app", "image": "example.com/bad:1"}]}}},
        });
        let files = [Change::write("broken/bad.yaml", broken.to_string())];
        test.push(&repository, &files).await?;
        let spec = json!({"path": "./broken", "timeout": "5s", "retryInterval": "1h"});
        test.apply(&test.kustomization("broken", spec)).await?;
        test.not_ready(&test.kustomizations(), "broken", "HealthCheckFailed")
            .await?;
        let said = windlass.run(&["why", "ks/broken"], 3).await?;
        ensure!(
            said.contains(&format!("\ncause: Deployment/{ns}/bad: ImagePull: pod bad-")),
            "{said}"
        );
        let said = windlass.run(&["tree", "ks/broken"], 0).await?;
        ensure!(
            said.starts_with(&format!("Kustomization/{ns}/broken Failed: HealthCheckFailed: "))
                && said.contains(&format!("└── Deployment/{ns}/bad InProgress: 0 of 1")),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn windlass_waits_for_those_who_may_look_into_one_namespace_only() {
    run("cli-tenant", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let rbac = "rbac.authorization.k8s.io";
        let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
        test.apply(&json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role",
            "metadata": {"name": "reader", "namespace": ns}, "rules": rules}))
            .await?;
        test.apply(&json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "reader", "namespace": ns},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reader"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": ns}]}))
            .await?;
        let mut kubeconfig = Kubeconfig::read_from(test.world.control_plane.kubeconfig_path())?;
        for user in &mut kubeconfig.auth_infos {
            user.auth_info.get_or_insert_default().impersonate = Some(ns.clone());
        }
        let folder = testkit::scratch::directory("tenant")?;
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, serde_json::to_string(&kubeconfig)?)?;
        let windlass = Windlass { test: &test };
        let path = path.display().to_string();
        let commit = repository.resolve("main")?;
        let words = ["wait", "--revision", &commit, "--kubeconfig", &path];
        let said = windlass.run(&words, 0).await?;
        ensure!(
            said.contains(&format!("Kustomization/{ns}/app is ready")),
            "{said}"
        );
        let said = windlass
            .run(&["get", "ks", "-A", "--kubeconfig", &path], 1)
            .await?;
        ensure!(
            said.contains("failed to list kustomizations: ") && said.contains("forbidden"),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn windlass_looks_into_releases() {
    helm::run("cli-helm", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let digest = test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({"values": {"word": "hello"}})))
            .await?;
        let said = windlass.run(&["wait", "--revision", &digest], 0).await?;
        ensure!(said.contains(&format!("HelmRelease/{ns}/web is ready")), "{said}");
        let said = windlass.run(&["values", "hr/web"], 0).await?;
        let words: Vec<_> = said.split_whitespace().collect();
        ensure!(
            words == ["PATH", "VALUE", "ORIGIN", "word", "\"hello\"", "spec.values"],
            "{said}"
        );
        let said = windlass.run(&["values", "gitrepository/web"], 2).await?;
        ensure!(
            said.contains("only Kustomizations and HelmReleases are built with values"),
            "{said}"
        );
        let said = windlass.run(&["tree", "hr/web"], 0).await?;
        ensure!(
            said.contains(&format!("└── ConfigMap/{ns}/web-map Current")),
            "{said}"
        );
        let said = windlass
            .run(&["reconcile", "hr/web", "--with-source", "--force"], 0)
            .await?;
        ensure!(
            said.contains(&format!("HelmRelease/{ns}/web is ready at 1.0.0")),
            "{said}"
        );
        test.ready_at(2).await?;
        test.delete().await
    });
}

/// The program, in the namespace of the test.
pub struct Windlass<'a> {
    pub test: &'a Test,
}

impl Windlass<'_> {
    /// Runs the command and returns the output of both of its streams; fails if the exit code differs.
    pub async fn run(&self, words: &[&str], code: i32) -> Result<String> {
        let kubeconfig = self.test.world.control_plane.kubeconfig_path();
        let kubeconfig = kubeconfig.display().to_string();
        // Of flags that are given twice, the last counts: words may name another kubeconfig.
        let (verb, words_after) = words.split_first().context("no words")?;
        let ours = [
            verb,
            "--kubeconfig",
            &kubeconfig,
            "--namespace",
            &self.test.namespace,
        ];
        self.run_as_typed(&[&ours[..], words_after].concat(), code).await
    }

    /// The same, for what speaks to no cluster, or to one of its own choice.
    pub async fn run_as_typed(&self, words: &[&str], code: i32) -> Result<String> {
        let mut command = Command::new(program("windlass")?);
        command
            .args(words)
            .env("DOCKER_CONFIG", "/nonexistent")
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let text = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&text).into_owned();
        println!("$ windlass {}\n{said}", words.join(" "));
        ensure!(
            output.status.code() == Some(code),
            "{words:?} ended with {:?}:\n{said}",
            output.status
        );
        Ok(said)
    }
}

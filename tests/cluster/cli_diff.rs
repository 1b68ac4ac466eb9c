//! `windlass diff`: what a checkout would change, and that nothing is changed by asking.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::git::Repository;

use crate::cli::Windlass;
use crate::world::{Test, config_map, run};

/// A checkout of `main`.
pub fn checkout(repository: &Repository) -> Result<TempDir> {
    let folder = testkit::scratch::directory("checkout")?;
    let cloned = Command::new("git")
        .args(["clone", "--quiet", "--branch", "main", repository.url(), "."])
        .current_dir(folder.path())
        .output()?;
    ensure!(
        cloned.status.success(),
        "{}",
        String::from_utf8_lossy(&cloned.stderr)
    );
    Ok(folder)
}

/// Writes a file of a checkout.
pub fn write(checkout: &Path, path: &str, text: &str) -> Result<()> {
    let place = checkout.join(path);
    fs::create_dir_all(place.parent().context("no folder")?)?;
    Ok(fs::write(place, text)?)
}

/// Versions of objects that a test must not change.
async fn versions(test: &Test) -> Result<BTreeMap<String, String>> {
    let mut versions = BTreeMap::new();
    for map in test.config_maps().list(&ListParams::default()).await? {
        versions.insert(map.name_any(), map.resource_version().unwrap_or_default());
    }
    let secrets: Api<Secret> = Api::namespaced(test.client.clone(), &test.namespace);
    for secret in secrets.list(&ListParams::default()).await? {
        versions.insert(
            format!("secret {}", secret.name_any()),
            secret.resource_version().unwrap_or_default(),
        );
    }
    Ok(versions)
}

fn secret(namespace: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": namespace},
        "stringData": {"word": value, "same": "hunter0"}})
    .to_string()
}

#[test]
fn a_checkout_is_compared_and_nothing_is_written() {
    run("cli-diff", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        test.apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vars", "namespace": ns},
            "data": {"color": "blue"}}),
        )
        .await?;
        let repository = test.repository(&[
            ("deploy/a.yaml", config_map(ns, "a", "1 ${color}")),
            ("deploy/b.yaml", config_map(ns, "b", "1")),
            ("deploy/gone.yaml", config_map(ns, "gone", "1")),
            ("deploy/s.yaml", secret(ns, "hunter1")),
        ])?;
        let spec = json!({"prune": true, "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "vars"}]},
            "commonMetadata": {"labels": {"team": "a"}}});
        test.deliver(&repository, spec).await?;
        let local = checkout(&repository)?;
        let root = local.path().display().to_string();
        let said = windlass
            .run(&["diff", "ks/app", "--checkout", &root, "--exit-code"], 0)
            .await?;
        ensure!(said.contains("\n4 unchanged\n"), "{said}");

        write(local.path(), "deploy/a.yaml", &config_map(ns, "a", "2 ${color}"))?;
        write(local.path(), "deploy/new.yaml", &config_map(ns, "new", "1"))?;
        write(local.path(), "deploy/s.yaml", &secret(ns, "hunter2"))?;
        fs::remove_file(local.path().join("deploy/gone.yaml"))?;
        let before = versions(&test).await?;
        let words = ["diff", "ks/app", "--checkout", &root, "--exit-code"];
        let said = windlass.run(&words, 5).await?;
        for line in [
            format!("Kustomization/{ns}/app (from ./deploy)\n"),
            format!(
                "  ~ ConfigMap/{ns}/a changed (deploy/a.yaml:1)\n      data.key: \"1 blue\" → \"2 blue\"\n"
            ),
            format!("  + ConfigMap/{ns}/new created (deploy/new.yaml:1)\n"),
            format!("  - ConfigMap/{ns}/gone pruned\n"),
            format!(
                "  ~ Secret/{ns}/s changed (deploy/s.yaml:1)\n      data.word: *** (before) → *** (after)\n"
            ),
            "\n1 created, 2 changed, 1 pruned, 1 unchanged\n".to_owned(),
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        let said = windlass
            .run(
                &[
                    "diff",
                    "ks/app",
                    "--path",
                    &format!("{root}/deploy"),
                    "-o",
                    "diff",
                ],
                0,
            )
            .await?;
        ensure!(
            said.contains(&format!(
                "--- cluster/ConfigMap/{ns}/a\n+++ local/ConfigMap/{ns}/a\n"
            )) && said.contains("-  key: 1 blue\n+  key: 2 blue\n")
                && said.contains("-  word: '*** (before)'\n+  word: '*** (after)'\n"),
            "{said}"
        );
        ensure!(!said.contains("hunter") && !said.contains("aHVudGVy"), "{said}");
        let said = windlass
            .run(&[&words[..], &["-o", "json", "--quiet"]].concat(), 5)
            .await?;
        let value: Value = serde_json::from_str(&said)?;
        ensure!(
            value["summary"]
                == json!({"created": 1, "changed": 2, "recreated": 0, "pruned": 1, "kept": 0,
                "unchanged": 1, "notCompared": 0, "failed": 0}),
            "{said}"
        );
        ensure!(versions(&test).await? == before, "something was written");

        write(
            local.path(),
            "deploy/bad.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a b\"}\n",
        )?;
        write(
            local.path(),
            "deploy/worse.yaml",
            "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: x}\n",
        )?;
        let said = windlass.run(&words, 1).await?;
        ensure!(
            said.contains(&format!("! ConfigMap/{ns}/new"))
                || said.contains(&format!("+ ConfigMap/{ns}/new created")),
            "{said}"
        );
        ensure!(
            said.contains("no matches for kind") && said.contains("2 failed"),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn what_is_applied_by_what_is_applied_is_followed() {
    run("cli-diff-recursive", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let child = |path: &str, color: &str| {
            test.kustomization("child", json!({"path": path, "prune": true,
                "postBuild": {"substitute": {"color": color}, "substituteFrom": [{"kind": "ConfigMap", "name": "vars"}]}}))
                .to_string()
        };
        let repository = test.repository(&[
            ("deploy/child.yaml", child("./child", "red")),
            ("deploy/vars.yaml", config_map(ns, "vars", "1")),
            ("child/x.yaml", config_map(ns, "x", "${color} ${key}")),
            ("child/old.yaml", config_map(ns, "old", "1")),
        ])?;
        test.deliver(&repository, json!({"prune": true})).await?;
        test.config_map_has("old", "key", "1").await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("child", &revision).await?;
        let local = checkout(&repository)?;
        let root = local.path().display().to_string();
        let words = [
            "diff",
            "ks/app",
            "--checkout",
            &root,
            "--recursive",
            "--exit-code",
        ];
        let said = windlass.run(&words, 0).await?;
        ensure!(
            said.contains(&format!(
                "Kustomization/{ns}/child (from ./child, applied by Kustomization/{ns}/app)\n"
            )),
            "{said}"
        );
        // Variables that the parent would change, a child that is new, and one that leaves with its objects.
        write(local.path(), "deploy/child.yaml", &child("./child", "green"))?;
        write(local.path(), "deploy/vars.yaml", &config_map(ns, "vars", "2"))?;
        fs::remove_file(local.path().join("child/old.yaml"))?;
        let new = test.kustomization("new", json!({"path": "./new"})).to_string();
        write(local.path(), "deploy/new.yaml", &new)?;
        let namespace = format!("{ns}-new");
        write(
            local.path(),
            "deploy/ns.yaml",
            &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"),
        )?;
        write(local.path(), "new/y.yaml", &config_map(&namespace, "y", "1"))?;
        write(local.path(), "new/old.yaml", &config_map(ns, "old", "1"))?;
        let said = windlass.run(&words, 5).await?;
        for line in [
            format!("  ~ Kustomization/{ns}/child changed (deploy/child.yaml:1)\n"),
            "      spec.postBuild.substitute.color: \"red\" → \"green\"\n".to_owned(),
            "      data.key: \"red 1\" → \"green 2\"\n".to_owned(),
            format!("    ConfigMap/{ns}/old left behind: it moves to Kustomization/{ns}/new\n"),
            format!("Kustomization/{ns}/new (from ./new, applied by Kustomization/{ns}/app)\n"),
            format!("  + ConfigMap/{namespace}/y created (new/y.yaml:1)\n"),
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        fs::remove_file(local.path().join("deploy/child.yaml"))?;
        fs::remove_dir_all(local.path().join("new"))?;
        fs::remove_file(local.path().join("deploy/new.yaml"))?;
        let said = windlass.run(&["diff", "ks/app", "--checkout", &root], 0).await?;
        for line in [
            format!("  - Kustomization/{ns}/child pruned\n"),
            format!(
                "Kustomization/{ns}/child (applied by Kustomization/{ns}/app)\n  note: it would be deleted\n"
            ),
            format!("  - ConfigMap/{ns}/x pruned\n"),
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        // All that the repository has a say in, by its address.
        let said = windlass.run(&["diff", "--all", "--checkout", &root], 0).await?;
        ensure!(
            said.contains(&format!("Kustomization/{ns}/app (from ./deploy)")),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

/// A definition of a kind that no other test has.
fn definition(group: &str) -> String {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
    .to_string()
}

#[test]
fn what_came_from_a_secret_is_masked_wherever_it_goes() {
    run("cli-diff-secret", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        test.apply(
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "word", "namespace": ns},
            "stringData": {"word": "hunter2"}}),
        )
        .await?;
        let child = test
            .kustomization("child", json!({"path": "./child", "prune": true, "postBuild": {
                "substitute": {"inline": "${word}"}, "substituteFrom": [{"kind": "ConfigMap", "name": "vars"}]}}))
            .to_string();
        let repository = test.repository(&[
            ("deploy/child.yaml", child),
            ("deploy/vars.yaml", config_map(ns, "vars", "${word}")),
            ("child/x.yaml", config_map(ns, "x", "1 ${inline} ${key}")),
        ])?;
        let spec =
            json!({"prune": true, "postBuild": {"substituteFrom": [{"kind": "Secret", "name": "word"}]}});
        test.deliver(&repository, spec).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("child", &revision).await?;
        test.config_map_has("x", "key", "1 hunter2 hunter2").await?;
        let local = checkout(&repository)?;
        let root = local.path().display().to_string();
        let group = format!("{ns}.example.com");
        write(
            local.path(),
            "child/x.yaml",
            &config_map(ns, "x", "2 ${inline} ${key}"),
        )?;
        write(local.path(), "deploy/definition.yaml", &definition(&group))?;
        let thing = format!(
            "apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: t, namespace: {ns}}}\nspec: {{word: \"${{inline}}\"}}\n"
        );
        write(local.path(), "child/thing.yaml", &thing)?;
        let words = [
            "diff",
            "ks/app",
            "--checkout",
            &root,
            "--recursive",
            "--exit-code",
        ];
        for form in ["table", "diff", "json"] {
            let said = windlass.run(&[&words[..], &["-o", form]].concat(), 5).await?;
            ensure!(!said.contains("hunter2"), "{said}");
        }
        let said = windlass.run(&words, 5).await?;
        for line in [
            "      data.key: *** (before) → *** (after)\n".to_owned(),
            format!("  + Thing/{ns}/t created (child/thing.yaml:1)\n"),
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        test.delete_kustomization("app").await
    });
}

#[test]
fn what_is_taken_over_and_what_is_left_to_others_is_told_as_it_would_be() {
    run("cli-diff-owners", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let map = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns}, "data": data});
        let ours = |key: &str| map("a", json!({"key": key, "scaled": "1"})).to_string();
        let repository = test.repository(&[("deploy/a.yaml", ours("1"))])?;
        test.deliver(&repository, json!({"ignore": [{"paths": ["/data/scaled"]}]}))
            .await?;
        let api = test.config_maps();
        let as_manager = |manager: &str| kube::api::PatchParams {
            field_manager: Some(manager.to_owned()),
            ..Default::default()
        };
        let scaled = kube::api::Patch::Merge(json!({"data": {"scaled": "5"}}));
        api.patch("a", &as_manager("scaler"), &scaled).await?;
        let theirs: ConfigMap = serde_json::from_value(map("b", json!({"key": "1", "extra": "x"})))?;
        let how = kube::api::PostParams {
            field_manager: Some("kubectl-create".to_owned()),
            ..Default::default()
        };
        api.create(&how, &theirs).await?;
        let local = checkout(&repository)?;
        write(local.path(), "deploy/a.yaml", &ours("2"))?;
        write(local.path(), "deploy/b.yaml", &config_map(ns, "b", "1"))?;
        let root = local.path().display().to_string();
        let words = ["diff", "ks/app", "--checkout", &root, "--exit-code"];
        let said = windlass.run(&words, 5).await?;
        for line in [
            "      data.extra: \"x\" → (none)\n",
            "fields of kubectl-create are taken over, and those go that the manifest does not have",
        ] {
            ensure!(said.contains(line), "{line:?} is not in\n{said}");
        }
        let said = windlass.run(&[&words[..], &["-o", "diff"]].concat(), 5).await?;
        ensure!(
            said.contains("-  key: \"1\"\n+  key: \"2\"\n   scaled: \"5\"\n")
                && said.contains("-  extra: x\n"),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn who_may_not_ask_is_told_so_by_object() {
    run("cli-diff-tenant", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let repository = test.repository(&[
            ("deploy/a.yaml", config_map(ns, "a", "1")),
            ("deploy/s.yaml", secret(ns, "hunter1")),
        ])?;
        test.deliver(&repository, json!({})).await?;
        let rbac = "rbac.authorization.k8s.io";
        let rules = json!([
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch", "create"]},
            {"apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": ["*"], "verbs": ["get"]},
        ]);
        test.apply(&json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role",
            "metadata": {"name": "asker", "namespace": ns}, "rules": rules}))
            .await?;
        test.apply(&json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "asker", "namespace": ns},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "asker"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": ns}]}))
            .await?;
        let mut kubeconfig = Kubeconfig::read_from(test.world.control_plane.kubeconfig_path())?;
        for user in &mut kubeconfig.auth_infos {
            user.auth_info.get_or_insert_default().impersonate = Some(ns.clone());
        }
        let local = checkout(&repository)?;
        write(local.path(), "deploy/a.yaml", &config_map(ns, "a", "2"))?;
        let path = local.path().join(".git/kubeconfig").display().to_string();
        fs::write(&path, serde_json::to_string(&kubeconfig)?)?;
        let root = local.path().display().to_string();
        let words = ["diff", "ks/app", "--checkout", &root, "--kubeconfig", &path];
        let said = windlass.run(&words, 1).await?;
        ensure!(said.contains("data.key: \"1\" → \"2\""), "{said}");
        ensure!(
            said.contains(&format!(
                "! Secret/{ns}/s (deploy/s.yaml:1): dry-run failed (Forbidden): "
            )) && said.contains("Error: 1 could not be compared"),
            "{said}"
        );
        let map: ConfigMap = test.config_maps().get("a").await?;
        ensure!(map.data.is_some_and(|data| data["key"] == "1"));
        test.delete_kustomization("app").await
    });
}

/// A file that the real SOPS encrypted.
fn encrypted() -> Result<String> {
    let mut cases = include_str!("../../crates/sops/tests/cases.jsonl").lines();
    let case = cases.find(|line| line.contains("\"name\":\"yaml secret\""));
    let case: Value = serde_json::from_str(case.context("there is no such case")?)?;
    Ok(case["encrypted"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn what_is_encrypted_is_compared_by_who_has_the_keys_and_named_by_others() {
    run("cli-diff-sops", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let keys = |entries: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": ns},
                "stringData": entries})
        };
        let one = include_str!("../../crates/sops/tests/keys/one.agekey");
        test.apply(&keys(json!({"one.agekey": one}))).await?;
        let repository = test.repository(&[
            ("deploy/secret.yaml", encrypted()?),
            ("deploy/a.yaml", config_map(ns, "a", "1")),
        ])?;
        let spec = json!({"targetNamespace": ns, "prune": true,
            "decryption": {"provider": "sops", "secretRef": {"name": "keys"}}});
        test.deliver(&repository, spec).await?;
        let local = checkout(&repository)?;
        let root = local.path().display().to_string();
        let words = ["diff", "ks/app", "--checkout", &root, "--exit-code"];
        let said = windlass.run(&words, 0).await?;
        ensure!(said.contains("\n2 unchanged\n"), "{said}");
        write(local.path(), "deploy/a.yaml", &config_map(ns, "a", "2"))?;
        let api: Api<Secret> = Api::namespaced(test.client.clone(), ns);
        api.delete("keys", &kube::api::DeleteParams::default()).await?;
        let said = windlass.run(&words, 1).await?;
        ensure!(
            said.contains(
                "not compared (deploy/secret.yaml:1): encrypted with SOPS, and cannot be decrypted here: "
            ) && said.contains(&format!("the Secret {ns}/keys is not there"))
                && said.contains("\n1 changed, 1 not compared\n")
                && !said.contains("pruned"),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

//! `windlass export --all --out` of a cluster, and `windlass restore` to an empty one.

use std::fs;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::{ControlPlane, Controller, Options, install_crds, objects, wait_for};

use crate::cli::Windlass;
use crate::world::{KUSTOMIZE, PATIENCE, config_map, run};

async fn controllers(control_plane: &ControlPlane) -> Result<[Controller; 2]> {
    let path = control_plane.kubeconfig_path();
    let source = Controller::start_source(path, ControllerOptions::default()).await?;
    let apply = Controller::start_apply(path, &source, ControllerOptions::default()).await?;
    Ok([source, apply])
}

async fn is_delivered(control_plane: &ControlPlane, namespace: &str) -> Result<()> {
    let client = control_plane.client();
    let all = objects::api(&client, KUSTOMIZE, "Kustomization", namespace);
    wait_for(&all, "shop", objects::is_ready, PATIENCE).await?;
    let maps = objects::api(&client, "v1", "ConfigMap", namespace);
    let delivered = maps.get("a").await?;
    ensure!(
        objects::text(&delivered, "/data/key") == "hunter2",
        "{delivered:?}"
    );
    Ok(())
}

/// The recipient of a key of age that the tests have.
fn recipient(name: &str) -> Result<(String, String)> {
    let root = testkit::tools::repository_root();
    let path = root.join(format!("crates/sops/tests/keys/{name}.agekey"));
    let text = fs::read_to_string(&path)?;
    let recipient = text.lines().find_map(|line| line.strip_prefix("# public key: "));
    Ok((
        recipient.unwrap_or_default().to_owned(),
        path.display().to_string(),
    ))
}

#[test]
fn an_empty_cluster_gets_what_was_exported_with_its_secrets() {
    run("cli-restore", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = "delivery";
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "${word}"))])?;
        let old = ControlPlane::start(Options::api_server_only()).await?;
        install_crds(&old.client()).await?;
        let mut shop = objects::kustomization(ns, "shop", ("GitRepository", "shop"), "./deploy");
        shop["spec"]["postBuild"] = json!({"substituteFrom": [
            {"kind": "Secret", "name": "words"}, {"kind": "ConfigMap", "name": "gone", "optional": true}
        ]});
        let git = objects::git_repository(ns, "shop", repository.url(), "main");
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns, "labels": {"team": "shop"}}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "words", "namespace": ns}, "stringData": {"word": "hunter2"}}),
            // No object of delivery names it.
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": ns}, "stringData": {"a": "b"}}),
            git,
            shop,
        ] {
            objects::apply(&old.client(), &object).await?;
        }
        let of_old = controllers(&old).await?;
        is_delivered(&old, ns).await?;

        let folder = testkit::scratch::directory("restore")?;
        let out = folder.path().join("backup");
        let (to, key) = recipient("one")?;
        let (_, strangers) = recipient("stranger")?;
        let (old_path, out_path) = (
            old.kubeconfig_path().display().to_string(),
            out.display().to_string(),
        );
        let export = [
            "export",
            "--all",
            "--kubeconfig",
            &old_path,
            "--with-credentials",
            "--age",
            &to,
            "--out",
            &out_path,
        ];
        let said = windlass.run_as_typed(&export, 0).await?;
        ensure!(
            said.contains("2 objects, 1 Secrets and ConfigMaps in ")
                && said.contains("ConfigMap/delivery/gone is referenced but does not exist"),
            "{said}"
        );
        let said = windlass.run_as_typed(&export, 2).await?;
        ensure!(said.contains("is not empty"), "{said}");
        let secret = fs::read_to_string(out.join("delivery/secret-words.yaml"))?;
        ensure!(
            secret.contains("word: ENC[") && secret.contains("name: words\n"),
            "{secret}"
        );
        ensure!(!out.join("delivery/secret-other.yaml").exists());
        // The cluster and all that it had are gone.
        drop((of_old, old));

        let new = ControlPlane::start(Options::api_server_only()).await?;
        let new_path = new.kubeconfig_path().display().to_string();
        let restore = |words: &[&str]| {
            let mut all = vec![
                "restore".to_owned(),
                out_path.clone(),
                "--kubeconfig".to_owned(),
                new_path.clone(),
            ];
            all.extend(words.iter().map(|word| (*word).to_owned()));
            all
        };
        let run = async |words: &[&str], code| {
            let words = restore(words);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            windlass.run_as_typed(&words, code).await
        };
        let said = run(&["--identity", &strangers], 2).await?;
        ensure!(
            said.contains("secret-words.yaml: ") && said.contains("no identity matched"),
            "{said}"
        );
        let said = run(&["--identity", &key], 1).await?;
        ensure!(
            said.contains("Secret/delivery/words created\n")
                && said.contains("2 objects were not restored")
                && said.contains("`windlass install` adds missing kinds")
                && !said.contains("hunter2"),
            "{said}"
        );
        install_crds(&new.client()).await?;
        let said = run(&["--identity", &key, "--dry-run"], 0).await?;
        ensure!(
            said.contains("Namespace/delivery unchanged\n")
                && said.contains("Kustomization/delivery/shop would be created\n"),
            "{said}"
        );
        let said = run(&["--identity", &key, "--suspended"], 0).await?;
        ensure!(said.contains("GitRepository/delivery/shop created\n"), "{said}");
        let namespaces: Api<Namespace> = Api::all(new.client());
        let labels = namespaces.get(ns).await?.metadata.labels.unwrap_or_default();
        ensure!(
            labels.get("team").is_some_and(|team| team == "shop"),
            "{labels:?}"
        );

        let _of_new = controllers(&new).await?;
        let kustomizations = objects::api(&new.client(), KUSTOMIZE, "Kustomization", ns);
        let suspended: Value = serde_json::to_value(kustomizations.get("shop").await?)?;
        ensure!(suspended["spec"]["suspend"] == true, "{suspended}");
        let said = run(&["--identity", &key], 0).await?;
        ensure!(
            said.contains("Kustomization/delivery/shop configured\n"),
            "{said}"
        );
        is_delivered(&new, ns).await?;
        let said = run(&["--identity", &key], 0).await?;
        ensure!(
            !said.contains("created") && !said.contains("configured"),
            "{said}"
        );
        Ok(())
    });
}

//! `windlass import argocd` against a cluster with Applications: what it writes delivers the same objects.

use anyhow::ensure;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::{objects, wait_for};

use crate::cli::Windlass;
use crate::world::{PATIENCE, config_map, run};

/// The kinds of Argo CD, as far as they are looked at.
fn definition(plural: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.argoproj.io")},
        "spec": {"group": "argoproj.io", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    })
}

#[test]
fn applications_of_a_cluster_are_imported_and_taken_over() {
    run("argocd-import", |test| async move {
        let ns = &test.namespace;
        for (plural, kind) in [("applications", "Application"), ("appprojects", "AppProject")] {
            let definition = definition(plural, kind);
            test.apply(&definition).await?;
            let (api, name) = objects::api_of(&test.client, &definition)?;
            let is_served = |object: &DynamicObject| {
                objects::condition(object, "Established").is_some_and(|(status, ..)| status == "True")
            };
            wait_for(&api, &name, is_served, PATIENCE).await?;
        }
        let map = config_map(ns, "a", "1");
        let repository = test.repository(&[("deploy/a.yaml", map.clone())])?;
        test.apply(&json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": ns, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {"project": "default",
                "source": {"repoURL": repository.url(), "path": "deploy", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": ns},
                "syncPolicy": {"automated": {"prune": true, "selfHeal": true}}},
        }))
        .await?;
        // What Argo CD has applied.
        for object in manifest::read_objects(&map, "a.yaml")? {
            test.apply(&object.into_value()).await?;
        }
        let before = test.config_maps().get("a").await?;

        let home = testkit::scratch::directory("home")?;
        let folder = home.path().join("imported");
        let windlass = Windlass { test: &test };
        let kubeconfig = test.world.control_plane.kubeconfig_path().display().to_string();
        let to = folder.display().to_string();
        let flags = [
            "--kubeconfig",
            &kubeconfig,
            "--namespace",
            ns,
            "--output-folder",
            &to,
        ];
        let words = [&["import", "argocd"][..], &flags].concat();
        windlass.run_as_typed(&words, 0).await?;
        let mut files = Vec::new();
        for below in ["sources", ""] {
            for entry in std::fs::read_dir(folder.join(below))? {
                let path = entry?.path();
                if path.is_file() {
                    files.push(path);
                }
            }
        }
        ensure!(files.len() == 2, "{files:?}");
        for file in files {
            let text = std::fs::read_to_string(&file)?;
            for object in manifest::read_objects(&text, "imported")? {
                test.apply(&object.into_value()).await?;
            }
        }
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("shop", &revision).await?;
        let after = test.config_maps().get("a").await?;
        ensure!(after.metadata.uid == before.metadata.uid, "it was made anew");
        let labels = after.metadata.labels.unwrap_or_default();
        let owner = labels.get("kustomize.toolkit.fluxcd.io/name").map(String::as_str);
        ensure!(owner == Some("shop"), "{labels:?}");
        Ok(())
    });
}

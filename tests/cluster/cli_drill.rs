//! `windlass drill`: a cluster is compared with one that was made anew from the same repository.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::config::{Kubeconfig, NamedContext};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;

use testkit::{ControlPlane, Controller, Options, install_crds, objects, wait_for};

use crate::cli::Windlass;
use crate::world::{KUSTOMIZE, PATIENCE, commit, config_map, run};

/// A kubeconfig with the contexts `used` and `new`.
fn kubeconfig(folder: &Path, paths: [(&str, &Path); 2]) -> Result<PathBuf> {
    let mut all = Kubeconfig::default();
    for (name, path) in paths {
        let mut one = Kubeconfig::read_from(path)?;
        one.clusters.truncate(1);
        one.auth_infos.truncate(1);
        let cluster = one.clusters.first_mut().context("no cluster")?;
        cluster.name = name.to_owned();
        let user = one.auth_infos.first_mut().context("no user")?;
        user.name = name.to_owned();
        let mut context = one
            .contexts
            .into_iter()
            .next()
            .and_then(|context| context.context);
        if let Some(context) = &mut context {
            context.cluster = name.to_owned();
            context.user = Some(name.to_owned());
        }
        all.clusters.append(&mut one.clusters);
        all.auth_infos.append(&mut one.auth_infos);
        all.contexts.push(NamedContext {
            name: name.to_owned(),
            context,
            other: std::collections::BTreeMap::new(),
        });
    }
    let path = folder.join("kubeconfig");
    std::fs::write(&path, serde_json::to_string(&all)?)?;
    Ok(path)
}

/// Starts the controllers of a cluster, and applies what a bootstrap does: the source, and the Kustomization that delivers itself.
async fn bootstrapped(control_plane: &ControlPlane, url: &str, namespace: &str) -> Result<[Controller; 2]> {
    let client = control_plane.client();
    install_crds(&client).await?;
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    objects::apply(&client, &own).await?;
    let path = control_plane.kubeconfig_path();
    let source = Controller::start_source(path, ControllerOptions::default()).await?;
    let apply = Controller::start_apply(path, &source, ControllerOptions::default()).await?;
    for object in sync(url, namespace) {
        objects::apply(&client, &object).await?;
    }
    let all = objects::api(&client, KUSTOMIZE, "Kustomization", namespace);
    wait_for(&all, "sync", objects::is_ready, PATIENCE).await?;
    Ok([source, apply])
}

fn sync(url: &str, namespace: &str) -> [Value; 2] {
    [
        objects::git_repository(namespace, "sync", url, "main"),
        objects::kustomization(namespace, "sync", ("GitRepository", "sync"), "./deploy"),
    ]
}

#[test]
fn what_git_brings_back_is_told_from_what_would_be_lost() {
    run("cli-drill", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = "delivery";
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        let url = repository.url();
        let [source, sync] = sync(url, ns).map(|object| object.to_string());
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": ns},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
        let files = [
            ("deploy/sync.yaml", format!("{source}\n---\n{sync}\n")),
            ("deploy/web.yaml", service.to_string()),
        ];
        commit(&repository, &files)?;
        let used = ControlPlane::start(Options::api_server_only()).await?;
        let new = ControlPlane::start(Options::api_server_only()).await?;
        let _used = bootstrapped(&used, url, ns).await?;
        let _new = bootstrapped(&new, url, ns).await?;
        let folder = testkit::scratch::directory("drill")?;
        let paths = [("used", used.kubeconfig_path()), ("new", new.kubeconfig_path())];
        let path = kubeconfig(folder.path(), paths)?.display().to_string();
        let drill = [
            "drill",
            "--timeout=4m",
            "--kubeconfig",
            &path,
            "--context",
            "used",
            "--recreated",
        ];
        let said = windlass
            .run_as_typed(&[&drill[..], &["used"]].concat(), 2)
            .await?;
        ensure!(said.contains("both clusters are used"), "{said}");

        // The namespace was made by the bootstrap here, not by Git.
        let said = windlass.run_as_typed(&[&drill[..], &["new"]].concat(), 0).await?;
        for line in [
            "1 Kustomizations, HelmReleases and ResourceSets were ready after ",
            "4 objects the same, 0 different, 0 missing; ",
            "Nothing delivers them: they would be lost\n",
            "Namespace/delivery: nothing says what made it\n",
        ] {
            ensure!(said.contains(line), "{line:?} is not in\n{said}");
        }

        // A person changes the cluster that is in use.
        let maps: Api<ConfigMap> = Api::namespaced(used.client(), ns);
        let by_hand = PatchParams::apply("kubectl").force();
        let own =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}, "data": {"a": "b"}});
        maps.patch("own", &by_hand, &Patch::Apply(own)).await?;
        let more = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"more": "x"}});
        maps.patch("a", &PatchParams::apply("k9s"), &Patch::Apply(more))
            .await?;
        // It would be brought back at once.
        let kustomizations = objects::api(&new.client(), KUSTOMIZE, "Kustomization", ns);
        let suspend = |suspend: Value| Patch::Merge(json!({"spec": {"suspend": suspend}}));
        kustomizations
            .patch("sync", &PatchParams::default(), &suspend(json!(true)))
            .await?;
        let others: Api<ConfigMap> = Api::namespaced(new.client(), ns);
        others.delete("a", &DeleteParams::default()).await?;
        let said = windlass
            .run_as_typed(&[&drill[..], &["new", "--exit-code"]].concat(), 5)
            .await?;
        for line in [
            "Not ready in the new cluster\n  Kustomization/delivery/sync: is suspended\n",
            "Delivered, but not in the new cluster\n  ConfigMap/delivery/a\n",
            "ConfigMap/delivery/own: made by hand (kubectl)\n",
            "ConfigMap/delivery/a: .data.more (k9s, ",
        ] {
            ensure!(said.contains(line), "{line:?} is not in\n{said}");
        }
        kustomizations
            .patch("sync", &PatchParams::default(), &suspend(Value::Null))
            .await?;
        wait_for(&others, "a", |_: &ConfigMap| true, PATIENCE).await?;
        let said = windlass
            .run_as_typed(&[&drill[..], &["new", "-o", "markdown"]].concat(), 0)
            .await?;
        for line in [
            "# Drill: used made anew as new\n",
            "## Different in the new cluster\n\n- `ConfigMap/delivery/a`\n  - `data.more: \"x\" → (none) (was set by k9s at ",
            "## Only in the new cluster\n\nNone.\n",
        ] {
            ensure!(said.contains(line), "{line:?} is not in\n{said}");
        }
        let said = windlass
            .run_as_typed(&[&drill[..], &["new", "-o", "json"]].concat(), 0)
            .await?;
        let json = said
            .rsplit_once('}')
            .map(|(report, _)| format!("{report}}}"))
            .context("a report")?;
        let json = json
            .split_once('{')
            .map(|(_, rest)| format!("{{{rest}"))
            .context("a report")?;
        let report: Value = serde_json::from_str(&json)?;
        ensure!(
            report["equal"] == 3 && report["notReady"] == json!([]),
            "{report}"
        );
        Ok(())
    });
}

//! Tests of a Kustomization whose objects carry annotations of their own.

use anyhow::ensure;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::git::Change;

use crate::world::{config_map, run};

const GROUP: &str = "kustomize.toolkit.fluxcd.io";

/// A ConfigMap with one annotation of Flux's.
fn annotated(namespace: &str, name: &str, value: &str, annotation: &str) -> String {
    let annotations = format!("  namespace: {namespace}\n  annotations: {{{GROUP}/{annotation}}}\n");
    config_map(namespace, name, value).replace(&format!("  namespace: {namespace}\n"), &annotations)
}

#[test]
fn annotations_decide_what_is_applied_recreated_and_pruned() {
    run("annotations", |test| async move {
        let ns = test.namespace.clone();
        let files = |value: &str| {
            [
                ("deploy/never.yaml", annotated(&ns, "never", value, "ssa: Ignore")),
                (
                    "deploy/once.yaml",
                    annotated(&ns, "once", value, "ssa: IfNotPresent"),
                ),
                ("deploy/merge.yaml", annotated(&ns, "merge", value, "ssa: Merge")),
                ("deploy/frozen.yaml", config_map(&ns, "frozen", value)),
                (
                    "deploy/forced.yaml",
                    format!(
                        "{}immutable: true\n",
                        annotated(&ns, "forced", value, "force: enabled")
                    ),
                ),
            ]
        };
        let mut first = files("1").to_vec();
        first.push(("deploy/kept.yaml", annotated(&ns, "kept", "1", "prune: disabled")));
        first.push(("deploy/gone.yaml", config_map(&ns, "gone", "1")));
        let repository = test.repository(&first)?;
        test.deliver(&repository, json!({})).await?;
        test.no_config_map("never").await?;
        let forced = test.config_maps().get("forced").await?;

        // Someone shields one object and edits another.
        let by_kubectl = PatchParams {
            field_manager: Some("kubectl-edit".to_owned()),
            ..PatchParams::default()
        };
        let shield =
            Patch::Merge(json!({"metadata": {"annotations": {format!("{GROUP}/reconcile"): "disabled"}}}));
        test.config_maps().patch("frozen", &by_kubectl, &shield).await?;
        let add = Patch::Merge(json!({"data": {"added": "x"}}));
        test.config_maps().patch("merge", &by_kubectl, &add).await?;

        let mut changes: Vec<_> = files("2")
            .iter()
            .map(|(path, text)| Change::write(path, text.as_bytes()))
            .collect();
        changes.extend(["deploy/kept.yaml", "deploy/gone.yaml"].map(Change::delete));
        let revision = test.push(&repository, &changes).await?;
        test.ready("app", &revision).await?;
        test.config_map_gone("gone").await?;
        test.no_config_map("never").await?;
        for (name, expected) in [
            ("once", "1"),
            ("merge", "2"),
            ("frozen", "1"),
            ("forced", "2"),
            ("kept", "1"),
        ] {
            let data = test.config_maps().get(name).await?.data.unwrap_or_default();
            ensure!(data["key"] == expected, "{name}: {data:?}");
            ensure!(name != "merge" || data.contains_key("added"), "{name}: {data:?}");
        }
        ensure!(test.config_maps().get("forced").await?.metadata.uid != forced.metadata.uid);
        Ok(())
    });
}

//! `windlass logs`: which Pods it reads. That of which is printed is tested beside the code: there are no real nodes here.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::cli::Windlass;
use crate::world::{Test, run};

async fn pod(test: &Test, name: &str, labels: serde_json::Value) -> Result<()> {
    test.apply(&json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": test.namespace, "labels": labels},
        "spec": {"containers": [{"name": "manager", "image": "example.com/a:1"}]}}))
        .await
}

#[test]
fn the_pods_of_controllers_are_found_by_their_labels() {
    run("cli-logs", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let words = ["logs", "--flux-namespace", ns];
        let said = windlass.run(&words, 3).await?;
        ensure!(
            said.contains(&format!("no controllers are in the namespace \"{ns}\"")),
            "{said}"
        );
        pod(&test, "labelled", json!({"app.kubernetes.io/part-of": "flux"})).await?;
        pod(&test, "selected", json!({"app": "source-controller"})).await?;
        pod(&test, "other", json!({"app": "shop"})).await?;
        test.apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "source-controller", "namespace": ns, "labels": {"app.kubernetes.io/part-of": "flux"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "source-controller"}}, "template": {
                "metadata": {"labels": {"app": "source-controller"}},
                "spec": {"containers": [{"name": "manager", "image": "example.com/a:1"}]}}}}))
            .await?;
        // No node answers for them, which is told of each that was asked.
        let said = windlass.run(&words, 1).await?;
        ensure!(
            said.contains(&format!("failed to read the log of Pod/{ns}/labelled: ")),
            "{said}"
        );
        ensure!(!said.contains(&format!("Pod/{ns}/other")), "{said}");
        Ok(())
    });
}

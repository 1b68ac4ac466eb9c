//! The real `flux` command and HelmReleases: what its users see and ask for.

use anyhow::ensure;
use serde_json::json;

use crate::flux_cli::Flux;
use crate::helm::{chart, newest, run};

#[test]
fn flux_shows_reconciles_suspends_and_explains_a_release() {
    run("helm-flux", |test| async move {
        let flux = Flux::start(&test).await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let values = json!({"kind": "ConfigMap", "name": "values"});
        test.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values", "namespace": test.namespace},
            "data": {"values.yaml": "value: from-map\n"},
        }))
        .await?;
        test.apply(&test.release(json!({"valuesFrom": [values], "values": {"more": 1}})))
            .await?;
        test.ready().await?;
        let said = flux.run(&["get", "helmreleases", "web"]).done().await?;
        ensure!(
            said.contains("True") && said.contains("Helm install succeeded for release"),
            "{said}"
        );
        let said = flux
            .run(&["debug", "helmrelease", "web", "--show-values"])
            .done()
            .await?;
        ensure!(
            said.contains("value: from-map") && said.contains("more: 1"),
            "{said}"
        );

        let said = flux.run(&["reconcile", "helmrelease", "web"]).done().await?;
        ensure!(said.contains("applied revision 1.0.0+"), "{said}");
        let said = flux
            .run(&["reconcile", "helmrelease", "web", "--force", "--reset"])
            .done()
            .await?;
        ensure!(said.contains("applied revision 1.0.0+"), "{said}");
        let object = test.ready_at(2).await?;
        ensure!(newest(&object)["status"] == "deployed");
        flux.run(&["suspend", "helmrelease", "web"]).done().await?;
        ensure!(
            flux.run(&["get", "helmreleases", "web"])
                .done()
                .await?
                .contains("True")
        );
        flux.run(&["resume", "helmrelease", "web"]).done().await?;
        test.ready().await?;
        Ok(())
    });
}

//! A real Prometheus reads the console, and answers what its dashboard asks.

use anyhow::ensure;
use serde_json::json;
use testkit::Controller;
use testkit::Prometheus;
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply};

use crate::world::play;

const VERSION: &str = "kustomize.toolkit.fluxcd.io/v1";

#[test]
fn a_real_prometheus_reads_the_console() {
    play("monitoring", async |scene| {
        let namespace = &scene.namespace;
        let object = objects::kustomization(namespace, "web", ("GitRepository", "repo"), "./");
        apply(&scene.client, &object).await?;
        let source = objects::git_repository(namespace, "repo", "https://example.com/r", "main");
        apply(&scene.client, &source).await?;
        let now = jiff::Timestamp::now();
        let ago = |minutes: i64| (now - jiff::SignedDuration::from_mins(minutes)).to_string();
        let artifact = json!({"artifact": {
            "revision": "main@sha1:2", "digest": "sha256:0", "lastUpdateTime": ago(29), "path": "a", "url": "http://a/b",
            "metadata": {"org.opencontainers.image.created": ago(30)},
        }});
        scene
            .status(
                "source.toolkit.fluxcd.io/v1",
                "GitRepository",
                namespace,
                "repo",
                artifact,
            )
            .await?;
        let entry = |number: i64, status: &str, minutes: i64| {
            json!({
                "digest": format!("sha256:{number}"), "firstReconciled": ago(minutes), "lastReconciled": ago(minutes),
                "lastReconciledDuration": "1s", "lastReconciledStatus": status, "totalReconciliations": 1,
                "metadata": {"revision": format!("main@sha1:{number}")},
            })
        };
        let history = json!({"history": [
            entry(2, "ReconciliationSucceeded", 10), entry(2, "HealthCheckFailed", 20), entry(1, "ReconciliationSucceeded", 60),
        ]});
        scene
            .status(VERSION, "Kustomization", namespace, "web", history)
            .await?;
        // One that begins with all of that there: its figures are of the first look at the ledger.
        let folder = testkit::scratch::directory("ledger")?;
        let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
        let options = || ControllerOptions {
            flags: vec![format!("--ledger-url={url}"), "--cluster-name=here".to_owned()],
            ..ControllerOptions::default()
        };
        let kubeconfig = scene.world.control_plane.kubeconfig_path();
        let mut console = Controller::start_console(kubeconfig, options()).await?;
        let token = scene
            .user(
                "ana",
                &[(namespace, &["kustomize.toolkit.fluxcd.io/kustomizations"])],
            )
            .await?;
        let path = format!("{}/deliveries?namespace={namespace}", console.api_url());
        let recorded = async {
            loop {
                let answer = scene.world.http.get(&path).bearer_auth(&token).send().await?;
                let page: serde_json::Value = answer.json().await?;
                if page["items"].as_array().is_some_and(|rows| rows.len() == 3) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await; // the ledger tells nobody
            }
        };
        tokio::time::timeout(crate::world::PATIENCE, recorded).await??;
        console.kill();
        console.restart().await?;
        let answer = scene.world.http.get(&path).bearer_auth(&token).send().await?;
        ensure!(answer.status().is_success());

        let prometheus = Prometheus::start(&[&console]).await?;
        let of = format!("cluster=\"here\",exported_namespace=\"{namespace}\"");
        for (query, expected) in [
            (format!("windlass_dora_deployments{{{of}}}"), 2.0),
            (format!("windlass_dora_changes{{{of}}}"), 2.0),
            (format!("windlass_dora_failed_changes{{{of}}}"), 1.0),
            (format!("windlass_dora_gaps{{{of}}}"), 0.0),
            (
                format!("windlass_dora_time_to_recover_seconds{{{of},quantile=\"0.9\"}}"),
                600.0,
            ),
            (
                format!("round(windlass_dora_lead_time_seconds{{{of},quantile=\"0.5\"}})"),
                1200.0,
            ),
            ("windlass_console_cluster_up{cluster=\"here\"}".to_owned(), 1.0),
            (
                "windlass_console_objects{cluster=\"here\"} > bool 1".to_owned(),
                1.0,
            ),
            ("windlass_console_streams".to_owned(), 0.0),
            (
                "windlass_console_answers_total{path=\"deliveries\",code=\"200\"}".to_owned(),
                1.0,
            ),
            (
                "windlass_console_answer_duration_seconds_count{path=\"deliveries\"}".to_owned(),
                1.0,
            ),
            ("windlass_ledger_failures_total".to_owned(), 0.0),
        ] {
            prometheus.until(&query, expected).await?;
        }
        let asked = prometheus.shows_dashboard("dora", &[]).await?;
        ensure!(asked > 10, "only {asked} expressions were found");
        Ok(())
    });
}

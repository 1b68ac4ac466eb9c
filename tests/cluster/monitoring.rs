//! A real Prometheus scrapes all four controllers and evaluates the rules that the chart ships.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::Change;
use testkit::process::Process;
use testkit::tools::repository_root;
use testkit::{Controller, ports, scratch};
use tokio::time::{sleep, timeout};

use crate::world::{PATIENCE, config_map, run};

const RULES: &str = "charts/windlass/files/monitoring/rules.yaml";

struct Prometheus {
    address: String,
    http: reqwest::Client,
    process: Process,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// Starts one that scrapes these controllers each second.
    async fn start(controllers: &[&Controller]) -> Result<Self> {
        let folder = scratch::directory("prometheus")?;
        let address = format!("127.0.0.1:{}", ports::free_port()?);
        let targets: Vec<Value> = controllers
            .iter()
            .map(|controller| {
                json!({"targets": [controller.metrics_address()], "labels": {"pod": controller.name()}})
            })
            .collect();
        let configuration = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [repository_root().join(RULES)],
            "scrape_configs": [{"job_name": "windlass", "static_configs": targets}],
        });
        let file = folder.path().join("prometheus.yml");
        // JSON is YAML.
        fs::write(&file, configuration.to_string())?;
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"));
        let process = Process::start("prometheus", command, folder.path().join("prometheus.log"))?;
        Ok(Self {
            address,
            http: reqwest::Client::builder().no_proxy().build()?,
            process,
            _folder: folder,
        })
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.process.check_running()?;
        let answer = self
            .http
            .get(format!("http://{}{path}", self.address))
            .send()
            .await?;
        let answer: Value = serde_json::from_slice(&answer.error_for_status()?.bytes().await?)?;
        Ok(answer["data"].clone())
    }

    /// The value of the only series that a query gives.
    async fn value(&self, query: &str) -> Result<Option<f64>> {
        let mut url = reqwest::Url::parse("http://localhost/api/v1/query")?;
        url.query_pairs_mut().append_pair("query", query);
        let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let data = self.get(&path).await?;
        let series = data["result"].as_array().context("the answer has no series")?;
        ensure!(
            series.len() < 2,
            "{query} gives {} series: {series:?}",
            series.len()
        );
        let Some(series) = series.first() else {
            return Ok(None);
        };
        let value = series["value"][1].as_str().context("a series has no value")?;
        Ok(Some(value.parse()?))
    }

    async fn until(&self, query: &str, expected: f64) -> Result<()> {
        let mut last = None;
        let reached = async {
            loop {
                // It may still be starting; what it has is asked for, since it tells nobody by itself.
                last = self.value(query).await.ok().flatten();
                if last == Some(expected) {
                    break;
                }
                sleep(Duration::from_millis(250)).await;
            }
        };
        let reached = timeout(PATIENCE, reached).await;
        reached.with_context(|| {
            format!(
                "{query} is {last:?}, not {expected}: {}",
                self.process.log_tail(5)
            )
        })
    }
}

#[test]
fn a_real_prometheus_reads_all_controllers_and_evaluates_the_rules() {
    run("monitoring", |test| async move {
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let (source, apply) = (&test.world.source, &test.world.apply);
        let helm = Controller::start_helm(kubeconfig, source, test.own_shard()).await?;
        let options = ControllerOptions {
            flags: vec!["--watch-all-namespaces=false".to_owned()],
            namespace: test.namespace.clone(),
            ..ControllerOptions::default()
        };
        let notification = Controller::start_notification(kubeconfig, options).await?;
        let prometheus = Prometheus::start(&[source, apply, &helm, &notification]).await?;

        let map = config_map(&test.namespace, "settings", "first");
        let repository = test.repository(&[("deploy/map.yaml", map)])?;
        test.deliver(&repository, json!({})).await?;
        test.apply(&test.kustomization("lost", json!({"path": "./nowhere"})))
            .await?;

        prometheus.until("sum(up)", 4.0).await?;
        let namespace = &test.namespace;
        let of = |kind: &str, name: &str, ready: &str| {
            format!(
                r#"gotk_resource_info{{customresource_kind="{kind}",exported_namespace="{namespace}",name="{name}",ready="{ready}",suspended="false"}}"#
            )
        };
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        let delivered = of("Kustomization", "app", "True").replace(
            "name=\"app\"",
            &format!("name=\"app\",source_name=\"app\",revision=\"{revision}\""),
        );
        prometheus.until(&delivered, 1.0).await?;
        prometheus.until(&of("GitRepository", "app", "True"), 1.0).await?;
        prometheus
            .until(&of("Kustomization", "lost", "False"), 1.0)
            .await?;
        for (name, result) in [("app", "success"), ("lost", "failure")] {
            // Labels of a target win; what the metric has too is renamed.
            let query = format!(
                r#"windlass_deliveries_total{{kind="Kustomization",namespace="{namespace}",name="{name}",result="{result}"}}"#
            );
            prometheus.until(&query, 1.0).await?;
        }
        let next = config_map(namespace, "settings", "second");
        test.push(&repository, &[Change::write("deploy/map.yaml", next)])
            .await?;
        let object = format!(r#"kind="Kustomization",namespace="{namespace}",name="app""#);
        let delivered = format!(r#"windlass_deliveries_total{{{object},result="success"}}"#);
        prometheus.until(&delivered, 2.0).await?;
        let lead = format!("windlass_delivery_last_lead_time_seconds{{{object}}} < bool 600");
        prometheus.until(&lead, 1.0).await?;
        prometheus.until("count(windlass_build_info)", 4.0).await?;

        let firing = format!(
            r#"ALERTS{{alertname="WindlassObjectNotReady",alertstate="pending",exported_namespace="{namespace}",name="lost"}}"#
        );
        prometheus.until(&firing, 1.0).await?;
        let rules = prometheus.get("/api/v1/rules").await?;
        let groups = rules["groups"].as_array().context("there are no groups")?;
        let rules: Vec<&Value> = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().into_iter().flatten())
            .collect();
        ensure!(rules.len() > 10, "only {} rules were read", rules.len());
        for rule in rules {
            ensure!(rule["health"] == "ok", "{rule:#}");
        }
        Ok(())
    });
}

#[test]
fn every_alert_has_its_runbook() {
    let read = |path: &str| fs::read_to_string(repository_root().join(path)).unwrap();
    let (rules, runbooks) = (read(RULES), read("docs/operations/runbooks.md"));
    let alerts: Vec<_> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() > 5);
    for alert in alerts {
        assert!(
            runbooks.contains(&format!("\n## {alert}\n")),
            "{alert} has no runbook"
        );
        let link = format!("runbook_url: RUNBOOKS#{}", alert.to_lowercase());
        assert!(rules.contains(&link), "{alert} does not link to its runbook");
    }
}

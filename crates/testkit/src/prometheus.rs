//! A real Prometheus that scrapes controllers, evaluates the rules of the chart, and answers its dashboards.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::process::Process;
use crate::tools::repository_root;
use crate::{Controller, ports, scratch};

/// The rules of the chart.
pub const RULES: &str = "charts/windlass/files/monitoring/rules.yaml";
const DASHBOARDS: &str = "charts/windlass/files/monitoring/dashboards";
const PATIENCE: Duration = Duration::from_secs(60);

/// The namespace of the Pods, as a PodMonitor or ServiceMonitor tells it. It takes the place of labels of that name, which
/// are called `exported_namespace` then.
pub const NAMESPACE: &str = "flux-system";

/// A running one.
pub struct Prometheus {
    address: String,
    http: reqwest::Client,
    process: Process,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// Starts one that scrapes these controllers each second.
    pub async fn start(controllers: &[&Controller]) -> Result<Self> {
        let folder = scratch::directory("prometheus")?;
        let address = format!("127.0.0.1:{}", ports::free_port()?);
        let targets: Vec<Value> = controllers
            .iter()
            .map(|controller| {
                let pod = format!("{}-0", controller.name());
                let labels = json!({"pod": pod, "namespace": NAMESPACE});
                json!({"targets": [controller.metrics_address()], "labels": labels})
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

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Calls its API and returns the `data` of the answer.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.process.check_running()?;
        let answer = self
            .http
            .get(format!("http://{}{path}", self.address))
            .send()
            .await?;
        let answer: Value = serde_json::from_slice(&answer.error_for_status()?.bytes().await?)?;
        Ok(answer["data"].clone())
    }

    /// The series that a query gives now.
    pub async fn series(&self, query: &str) -> Result<Vec<Value>> {
        self.process.check_running()?;
        let mut url = reqwest::Url::parse(&format!("http://{}/api/v1/query", self.address))?;
        url.query_pairs_mut().append_pair("query", query);
        let answer = self.http.get(url).send().await?.bytes().await?;
        let answer: Value = serde_json::from_slice(&answer)?;
        // What it has to say about the query is in the body of a refusal.
        ensure!(answer["status"] == "success", "{query}: {}", answer["error"]);
        let series = answer["data"]["result"].as_array();
        Ok(series.context("the answer has no series")?.clone())
    }

    /// Waits until a query gives something; a mistake in it ends that.
    pub async fn until_some(&self, query: &str) -> Result<()> {
        let some = async {
            while self.series(query).await?.is_empty() {
                sleep(Duration::from_millis(250)).await;
            }
            Ok(())
        };
        let some = timeout(PATIENCE, some).await;
        some.with_context(|| format!("{query} gives nothing"))?
    }

    /// The value of the only series that a query gives.
    pub async fn value(&self, query: &str) -> Result<Option<f64>> {
        let series = self.series(query).await?;
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

    /// Waits until a query gives one series of this value.
    pub async fn until(&self, query: &str, expected: f64) -> Result<()> {
        let mut last = None;
        let reached = async {
            loop {
                // It may still be starting; what it has is asked for, since it tells no one by itself.
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

    /// Asks everything that a dashboard of the chart asks, and returns how much that is. Each panel must show something,
    /// except for those that `may_be_empty`.
    pub async fn shows_dashboard(&self, name: &str, may_be_empty: &[&str]) -> Result<usize> {
        let path = repository_root().join(DASHBOARDS).join(format!("{name}.json"));
        let dashboard: Value = serde_json::from_slice(&fs::read(path)?)?;
        let mut asked = 0;
        for (title, expressions) in panels(&dashboard) {
            ensure!(!expressions.is_empty(), "{name}: {title} asks nothing");
            for expression in expressions {
                let mut query = expression.to_owned();
                for (variable, value) in VARIABLES {
                    query = query.replace(variable, value);
                }
                ensure!(
                    !query.contains('$'),
                    "{query} has a variable that this test does not know"
                );
                let told = || format!("{name}, panel {title}");
                if may_be_empty.contains(&title) {
                    self.series(&query).await.with_context(told)?;
                } else {
                    self.until_some(&query).await.with_context(told)?;
                }
                asked += 1;
            }
        }
        Ok(asked)
    }

    /// Checks that it could read and evaluate all rules of the chart, and returns how many there are.
    pub async fn evaluates_rules(&self) -> Result<usize> {
        let rules = self.get("/api/v1/rules").await?;
        let groups = rules["groups"].as_array().context("there are no groups")?;
        let all = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().into_iter().flatten());
        let mut count = 0;
        for rule in all {
            ensure!(rule["health"] == "ok", "{rule:#}");
            count += 1;
        }
        Ok(count)
    }
}

/// Values of Grafana's variables, longer names first.
const VARIABLES: [(&str, &str); 6] = [
    ("$__rate_interval", "1m"),
    ("$__range", "1h"),
    ("$controller", ".*"),
    ("$cluster", ".*"),
    ("$namespace", ".*"),
    ("$kind", ".*"),
];

/// Panels of a dashboard that ask something: title and expressions.
fn panels(dashboard: &Value) -> Vec<(&str, Vec<&str>)> {
    let panels = dashboard["panels"].as_array().into_iter().flatten();
    panels
        .map(|panel| {
            let targets = panel["targets"].as_array().into_iter().flatten();
            let expressions = targets.filter_map(|target| target["expr"].as_str());
            (panel["title"].as_str().unwrap_or_default(), expressions.collect())
        })
        .collect()
}

//! A commit each second, and a watch on its delivery: users should not notice that the controllers are replaced meanwhile.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use testkit::git::{Change, Repository};
use testkit::objects::{self, condition};
use testkit::wait_for;

use crate::cluster::PATIENCE;

const NAMESPACE: &str = "load";
const APPS: usize = 20;
/// Between two commits.
const PACE: Duration = Duration::from_secs(1);

/// What was seen.
pub struct Seen {
    /// Commits that were delivered.
    pub commits: usize,
    /// Kustomizations that were not ready at some time, and what they said.
    pub complaints: Vec<String>,
    /// From commits to their objects, the shortest first.
    pub lags: Vec<Duration>,
}

/// Does something while there is a commit each second, and waits until all of them are delivered.
pub async fn during<T>(
    client: &Client,
    repository: &Repository,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, Seen)> {
    declare(client, repository).await?;
    let kustomizations = kustomizations(client);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let mut work = pin!(work);
    let mut outcome = None;
    let mut reported = pin!(watcher(kustomizations, watcher::Config::default()).applied_objects());
    let mut delivered = pin!(watcher(maps, watcher::Config::default()).applied_objects());
    let mut commits: BTreeMap<usize, Instant> = BTreeMap::new();
    let mut seen = Seen {
        commits: 0,
        complaints: Vec::new(),
        lags: Vec::new(),
    };
    let mut pace = tokio::time::interval(PACE);
    let mut number = 0;
    let mut until = None;
    // A commit stands for all of the same application before it.
    while outcome.is_none() || !commits.is_empty() {
        let late = tokio::time::sleep_until(until.unwrap_or_else(|| tokio::time::Instant::now() + PATIENCE));
        tokio::select! {
            done = &mut work, if outcome.is_none() => {
                outcome = Some(done?);
                until = Some(tokio::time::Instant::now() + PATIENCE);
            }
            _ = pace.tick(), if outcome.is_none() => {
                number += 1;
                repository.commit("main", "more", &[file(number % APPS, number)])?;
                commits.insert(number, Instant::now());
            }
            Some(object) = reported.next() => {
                let object = object?;
                if let Some(("False", reason, message)) = condition(&object, "Ready") {
                    seen.complaints.push(format!("{}: {reason}: {message}", object.name_any()));
                }
            }
            Some(map) = delivered.next() => {
                let map = map?;
                let value = map.data.as_ref().and_then(|data| data.get("number")?.parse::<usize>().ok());
                let Some(value) = value else { continue };
                let app = value % APPS;
                let arrived: Vec<usize> = commits.range(..=value).map(|(number, _)| *number).filter(|number| number % APPS == app).collect();
                for number in arrived {
                    let at = commits.remove(&number).context("it was there")?;
                    seen.commits += 1;
                    seen.lags.push(at.elapsed());
                }
            }
            () = late, if until.is_some() => bail!("{} commits were not delivered: {commits:?}; {:?}", commits.len(), seen.complaints),
        }
    }
    seen.lags.sort();
    seen.complaints.dedup();
    Ok((outcome.context("the work has ended")?, seen))
}

/// Commits once more, and waits until that is delivered.
pub async fn deliver_one(client: &Client, repository: &Repository) -> Result<Duration> {
    let began = Instant::now();
    let last = usize::MAX - APPS;
    let app = last % APPS;
    repository.commit("main", "one more", &[file(app, last)])?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let number = last.to_string();
    let has_come = |map: &ConfigMap| {
        map.data
            .as_ref()
            .is_some_and(|data| data.get("number") == Some(&number))
    };
    wait_for(&maps, &format!("app-{app}"), has_come, PATIENCE).await?;
    Ok(began.elapsed())
}

fn kustomizations(client: &Client) -> Api<DynamicObject> {
    objects::api(
        client,
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        NAMESPACE,
    )
}

/// The value of an application after a commit.
fn file(app: usize, number: usize) -> Change {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("app-{app}")},
        "data": {"number": number.to_string()}});
    Change::write(&format!("load/app-{app}/map.yaml"), map.to_string())
}

/// A repository with the applications, all of them delivered.
async fn declare(client: &Client, repository: &Repository) -> Result<()> {
    let files: Vec<Change> = (0..APPS).map(|app| file(app, 0)).collect();
    repository.commit("main", "first", &files)?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    objects::apply(client, &namespace).await?;
    let source = objects::git_repository(NAMESPACE, "load", repository.url(), "main");
    objects::apply(client, &objects::with_spec(source, json!({"interval": "2s"}))).await?;
    for app in 0..APPS {
        let object = objects::kustomization(
            NAMESPACE,
            &format!("app-{app}"),
            ("GitRepository", "load"),
            &format!("./load/app-{app}"),
        );
        let spec = json!({"targetNamespace": NAMESPACE, "interval": "1h", "retryInterval": "2s"});
        objects::apply(client, &objects::with_spec(object, spec)).await?;
    }
    for app in 0..APPS {
        let name = format!("app-{app}");
        wait_for(&kustomizations(client), &name, objects::is_ready, PATIENCE).await?;
    }
    Ok(())
}

impl Seen {
    /// A line for people.
    pub fn line(&self) -> String {
        let at = |part: usize| {
            let place = (self.lags.len() * part / 100).min(self.lags.len().saturating_sub(1));
            self.lags.get(place).map_or(0.0, Duration::as_secs_f64)
        };
        format!(
            "{} commits; from the commit to the object: median {:.2} s, 9 of 10 {:.2} s, longest {:.2} s; {} complaints",
            self.commits,
            at(50),
            at(90),
            at(100),
            self.complaints.len()
        )
    }
}

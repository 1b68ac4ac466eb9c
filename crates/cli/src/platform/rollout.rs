//! Progress of the controllers' Deployments, reported while a command waits for them.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};

use crate::progress::Progress;

/// Works, and tells meanwhile how the Deployments with these labels are.
pub(crate) async fn telling<T>(
    client: &Client,
    namespace: &str,
    labels: &str,
    work: impl Future<Output = T>,
) -> T {
    let progress = Progress::new(false);
    let report_line = |said: &str| progress.show(said);
    tokio::select! {
        done = work => done,
        never = watch(client, namespace, labels, &report_line) => match never {},
    }
}

async fn watch(
    client: &Client,
    namespace: &str,
    labels: &str,
    report_line: &dyn Fn(&str),
) -> std::convert::Infallible {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let config = watcher::Config::default().labels(labels);
    let changes = watcher(deployments, config).default_backoff().applied_objects();
    let mut changes = pin!(changes.into_stream());
    let mut shown = Shown::default();
    while let Some(change) = changes.next().await {
        // What goes wrong with it is told by whoever waits for more than news.
        if let Ok(deployment) = change {
            shown.show(&deployment, report_line);
        }
    }
    std::future::pending().await
}

/// The message last shown for each Deployment.
#[derive(Default)]
struct Shown(BTreeMap<String, String>);

impl Shown {
    fn show(&mut self, deployment: &Deployment, report_line: &dyn Fn(&str)) {
        let (name, state) = (deployment.name_any(), state(deployment));
        if self.0.get(&name) != Some(&state) {
            report_line(&format!("{name}: {state}"));
            self.0.insert(name, state);
        }
    }
}

/// `1 of 2 ready`. While Pods of the revision before are there, those that are ready may be they.
fn state(deployment: &Deployment) -> String {
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let is_observed = status.observed_generation == deployment.metadata.generation;
    let updated = match is_observed {
        true => status.updated_replicas.unwrap_or(0),
        false => 0,
    };
    match status.replicas.unwrap_or(0).saturating_sub(updated) {
        0 if updated < wanted => format!("{updated} of {wanted} started"),
        0 => format!("{} of {wanted} ready", status.ready_replicas.unwrap_or(0)),
        old => format!("{updated} of {wanted} started, {old} of before"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use serde_json::json;

    fn deployment(updated: i32, ready: i32) -> Deployment {
        serde_json::from_value(json!({"metadata": {"name": "a", "generation": 1},
            "spec": {"replicas": 2, "selector": {}, "template": {}},
            "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": updated, "readyReplicas": ready}}))
        .unwrap()
    }

    #[test]
    fn each_change_is_told_once() {
        let told = RefCell::new(Vec::new());
        let report_line = |line: &str| told.borrow_mut().push(line.to_owned());
        let mut shown = Shown::default();
        for (updated, ready) in [(0, 0), (0, 0), (2, 0), (2, 2), (2, 2)] {
            shown.show(&deployment(updated, ready), &report_line);
        }
        assert_eq!(
            *told.borrow(),
            [
                "a: 0 of 2 started, 2 of before",
                "a: 0 of 2 ready",
                "a: 2 of 2 ready"
            ]
        );
    }
}

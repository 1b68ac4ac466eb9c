//! How long a new cluster takes until all is delivered.

use std::time::Duration;

use delivery_graph::object::{self, list, text};
use delivery_graph::orphans::Maker;
use jiff::Timestamp;
use manifest::ObjectId;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{Cluster, Failure};
use crate::orphans::survey::{Survey, deliverers};

/// What came of waiting.
#[derive(Debug, Default)]
pub(super) struct Waited {
    /// How many Kustomizations, HelmReleases and ResourceSets were expected.
    pub(super) expected: usize,
    /// Those that are not ready in the new cluster, and why.
    pub(super) missing: Vec<(ObjectId, String)>,
    /// From the first of them that was made in the new cluster to the last that became ready.
    pub(super) took: Option<Duration>,
}

/// Waits until all that is delivered, is ready in the cluster in use, and delivers, is ready in the new one.
pub(super) async fn wait(
    before: &Survey,
    used: &Cluster,
    new: &Cluster,
    timeout: Duration,
    report_line: impl Fn(&str),
) -> Result<Waited, Failure> {
    let expected = expected(before, used).await?;
    let until = Instant::now() + timeout;
    let mut waited = Waited {
        expected: expected.len(),
        ..Waited::default()
    };
    for id in expected {
        let left = until.saturating_duration_since(Instant::now());
        let is_over = |found: &Value| (object::is_ready(found) || object::is_suspended(found)).then_some(());
        let now = new.get(&id).await?;
        if now.as_ref().and_then(is_over).is_none() && !left.is_zero() {
            report_line(&format!("waiting for {id}"));
        }
        new.watch_until(&id, left, |found| found.and_then(is_over))
            .await?;
        let why = match new.get(&id).await? {
            Some(found) if object::is_suspended(&found) => "is suspended".to_owned(),
            Some(found) if object::is_ready(&found) => continue,
            Some(found) => object::ready(&found).message.to_owned(),
            None => "is not there".to_owned(),
        };
        waited.missing.push((id, delivery_graph::one_line(&why)));
    }
    if waited.missing.is_empty() {
        waited.took = took(new).await?;
    }
    Ok(waited)
}

/// What a new cluster has to have ready. What is not ready where it is in use will not be ready elsewhere.
async fn expected(before: &Survey, used: &Cluster) -> Result<Vec<ObjectId>, Failure> {
    let is_delivered = |id: &ObjectId| {
        before
            .objects
            .iter()
            .any(|seen| seen.id == *id && seen.maker == Maker::Delivered)
    };
    let mut expected = Vec::new();
    for object in deliverers(used).await? {
        let id = object::id(&object);
        if object::is_ready(&object) && !object::is_suspended(&object) && is_delivered(&id) {
            expected.push(id);
        }
    }
    Ok(expected)
}

async fn took(new: &Cluster) -> Result<Option<Duration>, Failure> {
    let all = deliverers(new).await?;
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let began = all
        .iter()
        .filter_map(|one| time(text(one, "/metadata/creationTimestamp")))
        .min();
    let ready = all.iter().filter_map(|one| {
        let conditions = list(one, "/status/conditions").iter();
        let ready = conditions.filter(|condition| text(condition, "/type") == "Ready");
        ready
            .filter_map(|ready| time(text(ready, "/lastTransitionTime")))
            .next()
    });
    Ok(match (began, ready.max()) {
        (Some(began), Some(ended)) => ended.duration_since(began).try_into().ok(),
        _ => None,
    })
}

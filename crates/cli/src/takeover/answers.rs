//! Asks objects for a reconcile, and waits until the controllers that are there now have answered and the objects are ready.
//!
//! Ready alone says nothing: it is what the controllers before have written.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use delivery_graph::object::{self, ready, text};
use delivery_graph::{kind, one_line};
use futures::TryStreamExt as _;
use futures::stream::{self, SelectAll, StreamExt as _};
use manifest::ObjectId;
use serde_json::{Value, json};

use super::snapshot::Snapshot;
use crate::cluster::{Change, Cluster, Failure};

/// Requests at the same time.
const AT_ONCE: usize = 8;
/// So many are named that have not answered.
const NAMED: usize = 20;

/// The objects that have to be ready again.
pub(crate) fn expected(before: &Snapshot) -> Vec<ObjectId> {
    let wanted = before
        .objects
        .iter()
        .filter(|(_, one)| one.ready && !one.suspended);
    let ids = wanted.filter_map(|(id, _)| ObjectId::parse_inventory_id(id).ok());
    ids.filter(|id| kind::kind_of(id).is_some_and(|kind| kind.answers))
        .collect()
}

/// Asks, and waits. What is gone is not waited for: whoever compares names it.
pub(crate) async fn wait(
    cluster: &Cluster,
    ids: Vec<ObjectId>,
    timeout: Duration,
    report_line: &impl Fn(&str),
) -> Result<usize, Failure> {
    let token = jiff::Timestamp::now().to_string();
    let mut open = ask(cluster, ids, &token).await?;
    let asked = open.len();
    report_line(&format!("asked {asked} objects for a reconcile"));
    let waited = tokio::time::timeout(timeout, answered(cluster, &mut open, &token, report_line)).await;
    match waited {
        Ok(waited) => waited.map(|()| asked),
        Err(_) => Err(Failure::TimedOut(unanswered_message(&open, timeout))),
    }
}

/// Returns those that were asked, and why they are waited for.
async fn ask(
    cluster: &Cluster,
    ids: Vec<ObjectId>,
    token: &str,
) -> Result<BTreeMap<ObjectId, String>, Failure> {
    let patch = json!({"metadata": {"annotations": {api::meta::RECONCILE_REQUEST_ANNOTATION: token}}});
    let asked = stream::iter(ids.into_iter().map(async |id| {
        let Some(object) = cluster.get(&id).await? else {
            return Ok(None);
        };
        if object::is_suspended(&object) || is_static(&object) {
            return Ok(None);
        }
        match cluster.merge(&id, "ask for a reconcile of", &patch).await {
            Ok(()) => Ok(Some((id, "it has not answered".to_owned()))),
            Err(Failure::NotReady(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }));
    let asked: Vec<_> = asked.buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(asked.into_iter().flatten().collect())
}

/// No controller looks at a HelmRepository of OCI.
fn is_static(object: &Value) -> bool {
    text(object, "/kind") == "HelmRepository" && text(object, "/spec/type") == "oci"
}

async fn answered(
    cluster: &Cluster,
    open: &mut BTreeMap<ObjectId, String>,
    token: &str,
    report_line: &impl Fn(&str),
) -> Result<(), Failure> {
    let mut kinds: HashMap<&str, &'static kind::Kind> = HashMap::new();
    kinds.extend(
        open.keys()
            .filter_map(kind::kind_of)
            .map(|kind| (kind.kind, kind)),
    );
    let watches = kinds.values().map(|kind| cluster.watch(kind, None).boxed_local());
    let mut changes: SelectAll<_> = stream::select_all(watches);
    let asked = open.len();
    let mut told = asked;
    while !open.is_empty() {
        match changes.next().await {
            Some(Ok(Some(Change::There(object)))) => note(open, &object, token),
            Some(Ok(Some(Change::Gone(id)))) => drop(open.remove(&id)),
            // The watch begins anew with all that there is; what went in between is looked for.
            Some(Ok(Some(Change::Interrupted))) => forget_absent(cluster, open).await?,
            Some(Ok(None)) => {}
            Some(Err(failure)) => return Err(failure),
            None => {
                return Err(Failure::Request {
                    what: "watch".to_owned(),
                    why: "the watches ended".to_owned(),
                });
            }
        }
        if open.len() < told {
            told = open.len();
            report_line(&format!(
                "{} of {asked} have answered and are ready",
                asked - told
            ));
        }
    }
    Ok(())
}

fn note(open: &mut BTreeMap<ObjectId, String>, object: &Value, token: &str) {
    let id = object::id(object);
    let Some(why) = open.get_mut(&id) else { return };
    if text(object, "/status/lastHandledReconcileAt") != token {
        return;
    }
    if object::is_ready(object) && !object::is_in_progress(object) {
        open.remove(&id);
        return;
    }
    let condition = ready(object);
    *why = one_line(&format!("{} {}", condition.reason, condition.message));
}

async fn forget_absent(cluster: &Cluster, open: &mut BTreeMap<ObjectId, String>) -> Result<(), Failure> {
    for id in open.keys().cloned().collect::<Vec<_>>() {
        if cluster.get(&id).await?.is_none() {
            open.remove(&id);
        }
    }
    Ok(())
}

fn unanswered_message(open: &BTreeMap<ObjectId, String>, timeout: Duration) -> String {
    let timeout = api::meta::Duration::from(timeout);
    let mut text = format!("{} objects that were ready are not after {timeout}", open.len());
    for (id, why) in open.iter().take(NAMED) {
        text.push_str(&format!("\n  {id}: {why}"));
    }
    if open.len() > NAMED {
        text.push_str(&format!("\n  and {} more", open.len() - NAMED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::Declared;
    use super::*;

    #[test]
    fn those_are_asked_that_were_ready_and_have_somebody_who_answers() {
        let declared = |ready, suspended| Declared {
            uid: "u".to_owned(),
            generation: 1,
            ready,
            suspended,
        };
        let id = |name: &str, kind: &str, group: &str| format!("n_{name}_{group}.toolkit.fluxcd.io_{kind}");
        let objects = [
            (id("a", "Kustomization", "kustomize"), declared(true, false)),
            (id("b", "Kustomization", "kustomize"), declared(false, false)),
            (id("c", "Kustomization", "kustomize"), declared(true, true)),
            (id("d", "Alert", "notification"), declared(true, false)),
        ];
        let before = Snapshot {
            objects: objects.into(),
            ..Snapshot::default()
        };
        let names: Vec<String> = expected(&before).into_iter().map(|id| id.name).collect();
        assert_eq!(names, ["a"]);
    }

    #[test]
    fn an_answer_is_of_who_has_seen_the_question() {
        let object = |token: &str, status: &str| {
            json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"name": "a", "namespace": "n", "generation": 1},
                "status": {"observedGeneration": 1, "lastHandledReconcileAt": token,
                    "conditions": [{"type": "Ready", "status": status, "reason": "R", "message": "m"}]}})
        };
        let id = object::id(&object("", ""));
        let mut open = BTreeMap::from([(id.clone(), "it has not answered".to_owned())]);
        note(&mut open, &object("old", "True"), "new");
        assert_eq!(open.len(), 1);
        note(&mut open, &object("new", "False"), "new");
        assert_eq!(open[&id], "R m");
        assert!(unanswered_message(&open, Duration::from_secs(60)).ends_with("\n  Kustomization/n/a: R m"));
        note(&mut open, &object("new", "True"), "new");
        assert!(open.is_empty());
    }
}

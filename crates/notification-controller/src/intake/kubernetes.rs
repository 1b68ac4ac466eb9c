//! Kubernetes Events of the controllers whose names we know: one watch for each name, so that no others reach us.
//!
//! How far they were taken is remembered by resource version, so that after a restart those that came meanwhile are taken, and
//! no others. At the very first start, the past is left alone.

use std::sync::Arc;

use controller_kit::flags::WatchFlags;
use controller_kit::runtime::scoped_api;
use event::{Event, InvolvedObject, Severity};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::oneshot;

use super::limit::Way;
use crate::dispatch::Dispatcher;
use crate::kinds;

/// Events of a list that are taken up; of more, the newest.
const MOST_LISTED: usize = 10_000;
/// What client-go puts before the message of events that are alike.
const COMBINED: &str = "(combined from similar events): ";
/// Reasons that Flux's controllers write down for people only: as Kubernetes Events they look like all others, but they never
/// post them.
const TRACES: [&str; 8] = [
    "ArtifactUpToDate",
    "GarbageCollectionSucceeded",
    "ResolvedDependencies",
    "HelmChartSyncErr",
    "HelmChartInSync",
    "HelmChartCreated",
    "HelmChartConfigured",
    "HelmChartDeleted",
];

/// Takes the Events of one controller, without end. Tells when it is known what was there at the start, or cannot be known.
pub async fn follow(
    client: Client,
    flags: &WatchFlags,
    controller: &str,
    dispatcher: Arc<Dispatcher>,
    begun: oneshot::Sender<()>,
) {
    let mut begun = Some(begun);
    let api: Api<v1::Event> = scoped_api(&client, flags);
    let config = watcher::Config::default().fields(&format!("source={controller}"));
    let mut stream = watcher(api, config).default_backoff().boxed();
    let mut listed = Vec::new();
    let mut failing = false;
    while let Some(event) = stream.next().await {
        let is_begun = matches!(event, Ok(watcher::Event::InitDone) | Err(_));
        match event {
            Ok(event) => {
                failing = false;
                step(event, &mut listed, controller, &dispatcher).await;
            }
            Err(error) if !std::mem::replace(&mut failing, true) => {
                tracing::warn!(controller, %error, "the watch of events failed; it is tried again");
            }
            Err(_) => {}
        }
        if is_begun && let Some(begun) = begun.take() {
            // Who waited may have gone.
            let _ = begun.send(());
        }
    }
}

async fn step(
    event: watcher::Event<v1::Event>,
    listed: &mut Vec<(u64, Event)>,
    controller: &str,
    dispatcher: &Dispatcher,
) {
    match event {
        watcher::Event::Init => listed.clear(),
        watcher::Event::InitApply(event) => {
            let bookmark = dispatcher.desk().bookmarks.get(controller).copied();
            let version = version(&event);
            let event = bookmark
                .filter(|bookmark| version > *bookmark)
                .and_then(|_| convert(event));
            // Without an event it still says how far the list goes.
            listed.push((version, event.unwrap_or_default()));
            if listed.len() > 2 * MOST_LISTED {
                trim(listed);
            }
        }
        watcher::Event::InitDone => {
            let mut listed = std::mem::take(listed);
            trim(&mut listed);
            let highest = listed.last().map_or(0, |(version, _)| *version);
            for (version, event) in listed {
                take(event, version, controller, dispatcher).await;
            }
            let is_first = dispatcher
                .desk()
                .bookmarks
                .insert(controller.to_owned(), highest)
                .is_none();
            if is_first {
                dispatcher.dirty.notify_one();
            }
        }
        watcher::Event::Apply(event) => {
            let version = version(&event);
            take(
                convert(event).unwrap_or_default(),
                version,
                controller,
                dispatcher,
            )
            .await;
        }
        watcher::Event::Delete(_) => {}
    }
}

async fn take(event: Event, version: u64, controller: &str, dispatcher: &Dispatcher) {
    if !event.involved_object.kind.is_empty() {
        dispatcher.take(event, Way::Watched).await;
    }
    let mut desk = dispatcher.desk();
    let bookmark = desk.bookmarks.entry(controller.to_owned()).or_default();
    *bookmark = version.max(*bookmark);
}

/// Puts a list into the order in which things happened, and keeps its end.
fn trim(listed: &mut Vec<(u64, Event)>) {
    listed.sort_by_key(|(version, _)| *version);
    let surplus = listed.len().saturating_sub(MOST_LISTED);
    listed.drain(..surplus);
}

fn version(event: &v1::Event) -> u64 {
    let version = event.metadata.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Reads a Kubernetes Event; None if it is not for alerts.
fn convert(event: v1::Event) -> Option<Event> {
    let object = event.involved_object;
    let object = InvolvedObject {
        kind: object.kind.unwrap_or_default(),
        namespace: object.namespace.unwrap_or_default(),
        name: object.name.unwrap_or_default(),
        uid: object.uid.unwrap_or_default(),
        api_version: object.api_version.unwrap_or_default(),
        resource_version: object.resource_version.unwrap_or_default(),
        field_path: object.field_path.unwrap_or_default(),
    };
    let reason = event.reason.unwrap_or_default();
    if !kinds::is_ours(object.group(), &object.kind) || object.namespace.is_empty() {
        return None;
    }
    let severity = match event.type_.as_deref() {
        Some("Warning") => Severity::Error,
        _ if TRACES.contains(&reason.as_str()) => return None,
        _ => Severity::Info,
    };
    let message = event.message.unwrap_or_default();
    let time = event.last_timestamp.or(event.first_timestamp).map(|time| time.0);
    let source = event.source.unwrap_or_default();
    Some(Event {
        involved_object: object,
        severity,
        timestamp: time.or_else(|| Some(Timestamp::now())),
        message: message.strip_prefix(COMBINED).unwrap_or(&message).to_owned(),
        reason,
        metadata: event.metadata.annotations.unwrap_or_default(),
        reporting_controller: source.component.unwrap_or_default(),
        reporting_instance: source.host.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(kind: &str, type_: &str, reason: &str, message: &str) -> Option<Value> {
        let event = json!({
            "metadata": {
                "name": "e", "namespace": "apps", "resourceVersion": "12",
                "annotations": {"kustomize.toolkit.fluxcd.io/revision": "main@sha1:1"},
            },
            "involvedObject": {
                "kind": kind, "namespace": "apps", "name": "web", "uid": "1",
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            },
            "type": type_, "reason": reason, "message": message, "count": 3,
            "source": {"component": "kustomize-controller"},
            "lastTimestamp": "2026-11-21T10:00:00Z",
        });
        let event: v1::Event = serde_json::from_value(event).unwrap();
        assert_eq!(version(&event), 12);
        convert(event).map(|event| json!(event))
    }

    #[test]
    fn an_event_of_kubernetes_is_the_event_that_is_posted() {
        let event = read("Kustomization", "Warning", "BuildFailed", "broken").unwrap();
        assert_eq!(
            event,
            json!({
                "involvedObject": {
                    "kind": "Kustomization", "namespace": "apps", "name": "web", "uid": "1",
                    "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
                },
                "severity": "error", "reason": "BuildFailed", "message": "broken",
                "timestamp": "2026-11-21T10:00:00Z",
                "metadata": {"kustomize.toolkit.fluxcd.io/revision": "main@sha1:1"},
                "reportingController": "kustomize-controller",
            })
        );
        let combined = read(
            "Kustomization",
            "Normal",
            "Progressing",
            "(combined from similar events): applied",
        )
        .unwrap();
        assert_eq!(
            (&combined["severity"], &combined["message"]),
            (&json!("info"), &json!("applied"))
        );
    }

    #[test]
    fn what_is_not_ours_or_for_people_only_is_left_out() {
        assert_eq!(read("Pod", "Warning", "Failed", "x"), None);
        assert_eq!(
            read("Kustomization", "Normal", "GarbageCollectionSucceeded", "x"),
            None
        );
        assert_ne!(read("Kustomization", "Warning", "HelmChartSyncErr", "x"), None);
    }

    #[test]
    fn the_end_of_a_long_list_is_kept_in_order() {
        let mut listed: Vec<_> = (0..30_000_u64)
            .rev()
            .map(|version| (version, Event::default()))
            .collect();
        trim(&mut listed);
        assert_eq!(
            (listed.len(), listed[0].0, listed[9_999].0),
            (10_000, 20_000, 29_999)
        );
    }
}

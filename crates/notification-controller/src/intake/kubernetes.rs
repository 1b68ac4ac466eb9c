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
/// Prefix that client-go puts before the message of similar events.
const COMBINED: &str = "(combined from similar events): ";
/// Events of Flux's controllers and ours that are for people only, by reason and start of the message: as
/// Kubernetes Events they look like all others, but they are never posted.
const TRACES: [(&str, &str); 25] = [
    // Sources.
    ("ArtifactUpToDate", ""),
    ("AuthenticationFailed", ""),
    ("CacheOperationFailed", ""),
    ("GarbageCollectionSucceeded", ""),
    ("GitOperationSucceeded", "no changes since last reconciliation"),
    ("NoArtifact", ""),
    ("NoSourceArtifact", ""),
    ("NotFound", ""),
    ("ResolvedDependencies", ""),
    ("Succeeded", "verified signature of"),
    ("SymlinkUpdateFailed", ""),
    // ArtifactGenerators.
    ("ReconciliationDisabled", ""),
    ("Ready", "No drift detected"),
    ("Ready", "reconciliation succeeded, generated"),
    ("Ready", "ExternalArtifact/"),
    // Releases.
    ("HelmChartSyncErr", ""),
    ("HelmChartInSync", ""),
    ("HelmChartCreated", ""),
    ("HelmChartConfigured", ""),
    ("HelmChartDeleted", ""),
    // Images.
    ("Succeeded", "next scan in"),
    ("Succeeded", "tags did not change"),
    ("Succeeded", "successful scan, next scan in"),
    ("Succeeded", "no change"),
    ("Succeeded", "repository up-to-date"),
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

/// The resource version of a Kubernetes Event, and what it says if that is for alerts.
type Listed = (u64, Option<(Event, Way)>);

async fn step(
    event: watcher::Event<v1::Event>,
    listed: &mut Vec<Listed>,
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
            listed.push((version, event));
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
            take(convert(event), version, controller, dispatcher).await;
        }
        watcher::Event::Delete(_) => {}
    }
}

async fn take(event: Option<(Event, Way)>, version: u64, controller: &str, dispatcher: &Dispatcher) {
    if let Some((event, way)) = event {
        dispatcher.take(event, way).await;
    }
    let mut desk = dispatcher.desk();
    let bookmark = desk.bookmarks.entry(controller.to_owned()).or_default();
    *bookmark = version.max(*bookmark);
}

/// Puts a list into the order in which things happened, and keeps its end.
fn trim(listed: &mut Vec<Listed>) {
    listed.sort_by_key(|(version, _)| *version);
    let surplus = listed.len().saturating_sub(MOST_LISTED);
    listed.drain(..surplus);
}

fn version(event: &v1::Event) -> u64 {
    let version = event.metadata.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Reads a Kubernetes Event; None if it is not for alerts.
fn convert(event: v1::Event) -> Option<(Event, Way)> {
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
    if !kinds::is_ours(object.group(), &object.kind) || object.namespace.is_empty() {
        return None;
    }
    let reason = event.reason.unwrap_or_default();
    let message = event.message.unwrap_or_default();
    let message = message.strip_prefix(COMBINED).unwrap_or(&message).to_owned();
    let way = match event.count {
        Some(count) if count > 1 => Way::Counted,
        _ => Way::Watched,
    };
    let severity = match event.type_.as_deref() {
        Some("Warning") => Severity::Error,
        _ if is_trace(&object.kind, &reason, &message, way) => return None,
        _ => Severity::Info,
    };
    let time = event.last_timestamp.or(event.first_timestamp).map(|time| time.0);
    let source = event.source.unwrap_or_default();
    let event = Event {
        involved_object: object,
        severity,
        timestamp: time.or_else(|| Some(Timestamp::now())),
        message,
        reason,
        metadata: event.metadata.annotations.unwrap_or_default(),
        reporting_controller: source.component.unwrap_or_default(),
        reporting_instance: source.host.unwrap_or_default(),
    };
    Some((event, way))
}

/// Returns whether a Normal Event is for people only.
fn is_trace(kind: &str, reason: &str, message: &str, way: Way) -> bool {
    // What an ImagePolicy resolved to is posted once, and written down each time that it is found to be the same.
    let is_unchanged_image = kind == "ImagePolicy" && reason == "Succeeded" && way == Way::Counted;
    is_unchanged_image
        || TRACES
            .iter()
            .any(|(of, beginning)| *of == reason && message.starts_with(beginning))
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
        let (event, way) = convert(event)?;
        assert_eq!(way, Way::Counted);
        Some(json!(event))
    }

    #[test]
    fn an_event_is_marked_if_its_annotations_may_be_those_of_an_earlier_one() {
        for (count, way) in [
            (json!(null), Way::Watched),
            (json!(1), Way::Watched),
            (json!(2), Way::Counted),
        ] {
            let object = json!({
                "kind": "Kustomization", "namespace": "apps", "name": "web",
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            });
            let event = json!({"metadata": {}, "involvedObject": object, "type": "Warning", "count": count});
            let (_, marked) = convert(serde_json::from_value(event).unwrap()).unwrap();
            assert_eq!(marked, way, "{count}");
        }
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
        for (reason, message, is_told) in [
            (
                "GitOperationSucceeded",
                "no changes since last reconciliation: observed revision 'main'",
                false,
            ),
            (
                "NoSourceArtifact",
                "no artifact available for HelmRepository source 'x'",
                false,
            ),
            (
                "Succeeded",
                "verified signature of\n\t- commit 'x' with key 'y'",
                false,
            ),
            ("Succeeded", "stored artifact for commit 'x'", true),
            ("Succeeded", "successful scan, next scan in 5m0s", false),
            ("Succeeded", "successful scan: found 3 tags with checksum 1", true),
            (
                "Ready",
                "ExternalArtifact/apps/x reconciled with revision 1",
                false,
            ),
            ("Ready", "external artifacts reconciled: apps/x (1)", true),
        ] {
            let told = read("Kustomization", "Normal", reason, message);
            assert_eq!(told.is_some(), is_told, "{reason} {message}");
        }
        let resolved = |way| {
            is_trace(
                "ImagePolicy",
                "Succeeded",
                "Latest image tag for x resolved to 1",
                way,
            )
        };
        assert!(resolved(Way::Counted) && !resolved(Way::Watched));
    }

    #[test]
    fn the_end_of_a_long_list_is_kept_in_order() {
        let mut listed: Vec<_> = (0..30_000_u64).rev().map(|version| (version, None)).collect();
        trim(&mut listed);
        assert_eq!(
            (listed.len(), listed[0].0, listed[9_999].0),
            (10_000, 20_000, 29_999)
        );
    }
}

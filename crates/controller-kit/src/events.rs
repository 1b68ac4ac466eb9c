//! Kubernetes Events about the objects that a controller reconciles.
//!
//! In: what happened, from anywhere in a reconcile. Out: core/v1 Events as Flux's controllers write them, in
//! the background. Publishing never waits and never fails: when too many events wait for a slow API server,
//! new ones are dropped. Repeats become a count, and an object that fails without end does not flood its
//! namespace (`events/correlator.rs`).
//!
//! Posting to a notification-controller (`--events-addr`) is not done here.

mod correlator;
mod sink;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, ResourceExt as _};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use sink::Sink;

/// Events that may wait, as in client-go.
const QUEUE_LENGTH: usize = 1000;
/// Annotations of an object with this prefix are put on its events (fluxcd/pkg `apis/event`).
const ANNOTATION_PREFIX: &str = "event.toolkit.fluxcd.io/";
/// The longest message; like that of a condition.
const MAX_MESSAGE_LENGTH: usize = 32_768;

/// How bad it is, in Flux's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// For the Event only, never for notifications; an Event of type Normal.
    Trace,
    /// An Event of type Normal.
    Info,
    /// An Event of type Warning.
    Error,
}

impl Severity {
    fn event_type(self) -> &'static str {
        match self {
            Self::Trace | Self::Info => "Normal",
            Self::Error => "Warning",
        }
    }
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq)]
struct Occurrence {
    object: ObjectReference,
    event_type: &'static str,
    reason: String,
    message: String,
    annotations: BTreeMap<String, String>,
}

/// Publishes events. Clones share the queue.
#[derive(Clone, Debug)]
pub struct Recorder {
    queue: mpsc::Sender<Occurrence>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// Starts the background task. `controller` is the reporting component; on cancellation of `token` events
    /// that wait already are still sent, once.
    pub fn new(client: Client, controller: &str, token: CancellationToken) -> Self {
        Self::start(client, controller, token).0
    }

    /// As [`Recorder::new`]; also gives the background task, which ends after shutdown.
    pub(crate) fn start(
        client: Client,
        controller: &str,
        token: CancellationToken,
    ) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        let task = tokio::spawn(Sink::new(client, controller).run(receiver, token));
        let recorder = Self {
            queue: sender,
            dropped: Arc::default(),
        };
        (recorder, task)
    }

    /// Publishes an event about `object`, and returns at once.
    ///
    /// `annotations` go on the event, such as `kustomize.toolkit.fluxcd.io/revision`; the object's own
    /// `event.toolkit.fluxcd.io/…` join them.
    pub fn publish<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        severity: Severity,
        reason: &str,
        message: &str,
        annotations: BTreeMap<String, String>,
    ) {
        let own = object
            .annotations()
            .iter()
            .filter(|(key, _)| key.starts_with(ANNOTATION_PREFIX));
        let mut annotations = annotations;
        annotations.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        self.enqueue(Occurrence {
            object: ObjectReference {
                resource_version: object.resource_version(),
                ..object.object_ref(&())
            },
            event_type: severity.event_type(),
            reason: reason.to_owned(),
            message: message[..message.floor_char_boundary(MAX_MESSAGE_LENGTH)].to_owned(),
            annotations,
        });
    }

    fn enqueue(&self, occurrence: Occurrence) {
        match self.queue.try_send(occurrence) {
            Ok(()) => {}
            Err(TrySendError::Full(lost)) => {
                // One line per thousand is enough to know.
                if self.dropped.fetch_add(1, Ordering::Relaxed).is_multiple_of(1000) {
                    tracing::error!(
                        reason = lost.reason,
                        "events are dropped: too many wait to be written"
                    );
                }
            }
            Err(TrySendError::Closed(lost)) => {
                tracing::debug!(reason = lost.reason, "an event came after shutdown");
            }
        }
    }
}

#[cfg(test)]
mod tests;

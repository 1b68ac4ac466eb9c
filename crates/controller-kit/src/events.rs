//! Kubernetes Events about the objects that a controller reconciles.
//!
//! In: what happened, from anywhere in a reconcile. Out: core/v1 Events as Flux's controllers write them, in
//! the background. Publishing never waits and never fails: when too many events wait for a slow API server,
//! new ones are dropped. Repeats become a count, and an object that fails without end does not flood its
//! namespace (`events/correlator.rs`). With `--events-addr`, each event is also posted to a notification-controller
//! (`events/webhook.rs`).

mod correlator;
mod occurrence;
mod sink;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use event::{Event, InvolvedObject};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, ResourceExt as _};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use occurrence::Occurrence;
use sink::Sink;
use webhook::Notification;
pub use webhook::Webhook;

pub use occurrence::Severity;

/// Events that may wait, as in client-go.
const QUEUE_LENGTH: usize = 1000;
/// Annotations of an object with this prefix are put on its events (fluxcd/pkg `apis/event`).
const ANNOTATION_PREFIX: &str = "event.toolkit.fluxcd.io/";
/// The longest message; like that of a condition.
const MAX_MESSAGE_LENGTH: usize = 32_768;

/// Publishes events. Clones share the queues.
#[derive(Clone, Debug)]
pub struct Recorder {
    queue: mpsc::Sender<Occurrence>,
    dropped: Arc<AtomicU64>,
    controller: Arc<str>,
    /// Where notifications go, if anywhere.
    notify: Option<Notify>,
}

/// The way to a notification-controller.
#[derive(Clone, Debug)]
struct Notify {
    queue: mpsc::Sender<Notification>,
    instance: Arc<str>,
}

impl Recorder {
    /// Starts the background task. `controller` is the reporting component; on cancellation of `token` events
    /// that wait already are still sent, once.
    pub fn new(client: Client, controller: &str, token: CancellationToken) -> Self {
        Self::start(client, controller, None, token).0
    }

    /// As [`Recorder::new`]; events go to the webhook too. Also gives the background task, which ends after shutdown.
    pub(crate) fn start(
        client: Client,
        controller: &str,
        webhook: Option<Webhook>,
        token: CancellationToken,
    ) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        let sink = Sink::new(client, controller).run(receiver, token.clone());
        let (notify, post) = match webhook {
            Some(webhook) => {
                let (queue, receiver) = mpsc::channel(QUEUE_LENGTH);
                let instance = webhook::instance().into();
                (
                    Some(Notify { queue, instance }),
                    Some(webhook.run(receiver, token)),
                )
            }
            None => (None, None),
        };
        let task = tokio::spawn(async move {
            let post = async {
                if let Some(post) = post {
                    post.await;
                }
            };
            tokio::join!(sink, post);
        });
        let recorder = Self {
            queue: sender,
            dropped: Arc::default(),
            controller: controller.into(),
            notify,
        };
        (recorder, task)
    }

    /// A recorder of another reporting component of this process. Notifications take the same way.
    pub fn beside(&self, client: Client, controller: &str, token: CancellationToken) -> Self {
        Self {
            notify: self.notify.clone(),
            ..Self::new(client, controller, token)
        }
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
        let object = ObjectReference {
            resource_version: object.resource_version(),
            ..object.object_ref(&())
        };
        self.publish_about(object, severity, reason, message, annotations);
    }

    /// As [`publish`](Self::publish), about an object of any kind and with no annotations of its own: whoever may write them
    /// has no say in the event.
    pub fn publish_about(
        &self,
        object: ObjectReference,
        severity: Severity,
        reason: &str,
        message: &str,
        annotations: BTreeMap<String, String>,
    ) {
        let occurrence = Occurrence {
            object,
            event_type: severity.event_type(),
            reason: reason.to_owned(),
            message: message[..message.floor_char_boundary(MAX_MESSAGE_LENGTH)].to_owned(),
            annotations,
        };
        self.notify(&occurrence, severity);
        self.enqueue(&self.queue, occurrence, reason);
    }

    /// Has it posted, if it is for notifications. As in Flux, only what is in a namespace is.
    fn notify(&self, occurrence: &Occurrence, severity: Severity) {
        let Some((notify, severity)) = self.notify.as_ref().zip(severity.notified_as()) else {
            return;
        };
        if occurrence
            .object
            .namespace
            .as_deref()
            .unwrap_or_default()
            .is_empty()
        {
            return;
        }
        let event = Event {
            involved_object: involved(&occurrence.object),
            severity,
            timestamp: Some(jiff::Timestamp::now()),
            message: occurrence.message.clone(),
            reason: occurrence.reason.clone(),
            metadata: occurrence.annotations.clone(),
            reporting_controller: self.controller.to_string(),
            reporting_instance: notify.instance.to_string(),
        };
        let notification = Notification {
            event,
            since: tokio::time::Instant::now(),
        };
        self.enqueue(&notify.queue, notification, &occurrence.reason);
    }

    fn enqueue<T>(&self, queue: &mpsc::Sender<T>, event: T, reason: &str) {
        match queue.try_send(event) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                // One line per thousand is enough to know.
                if self.dropped.fetch_add(1, Ordering::Relaxed).is_multiple_of(1000) {
                    tracing::error!(reason, "events are dropped: too many wait to be written");
                }
            }
            Err(TrySendError::Closed(_)) => tracing::debug!(reason, "an event came after shutdown"),
        }
    }
}

fn involved(object: &ObjectReference) -> InvolvedObject {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    InvolvedObject {
        kind: text(&object.kind),
        namespace: text(&object.namespace),
        name: text(&object.name),
        uid: text(&object.uid),
        api_version: text(&object.api_version),
        resource_version: text(&object.resource_version),
        field_path: text(&object.field_path),
    }
}

#[cfg(test)]
mod tests;

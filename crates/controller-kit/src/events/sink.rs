//! The background task that writes events, one after the other.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::correlator::{Correlator, Write};
use super::occurrence::Occurrence;

/// While the API server is away, the event at hand is tried again this often, as in client-go, and the others
/// wait.
const ATTEMPTS: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);
/// A request that takes longer counts as failed: what hangs here would hold all events.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Objects without a namespace have their events here.
const DEFAULT_NAMESPACE: &str = "default";

pub(super) struct Sink {
    client: Client,
    controller: String,
    correlator: Correlator,
    /// True if the last event could not be written: only the first failure in a row is logged.
    failing: bool,
}

/// Why an event was not written.
enum Failure {
    /// The API server does not want it, and will not want it later.
    Refused(kube::Error),
    /// It may work later.
    Unreachable(String),
}

impl Sink {
    pub(super) fn new(client: Client, controller: &str) -> Self {
        Self {
            client,
            controller: controller.to_owned(),
            correlator: Correlator::default(),
            failing: false,
        }
    }

    /// Writes what comes until all recorders are gone, or until shutdown and what waits then is written.
    pub(super) async fn run(mut self, mut queue: Receiver<Occurrence>, token: CancellationToken) {
        loop {
            let occurrence = tokio::select! {
                biased;
                occurrence = queue.recv() => occurrence,
                () = token.cancelled() => break,
            };
            let Some(occurrence) = occurrence else { break };
            self.record(occurrence, &token).await;
        }
        queue.close();
        while let Ok(occurrence) = queue.try_recv() {
            self.record(occurrence, &token).await;
        }
    }

    async fn record(&mut self, occurrence: Occurrence, token: &CancellationToken) {
        let Some(write) = self
            .correlator
            .correlate(occurrence, Instant::now(), Timestamp::now())
        else {
            return;
        };
        for attempt in 1..=ATTEMPTS {
            match self.write(&write).await {
                Ok(name) => {
                    self.correlator.written(&write, name, Instant::now());
                    self.failing = false;
                    return;
                }
                Err(Failure::Refused(error)) => return self.log_once(&write, &error.to_string()),
                Err(Failure::Unreachable(error)) => self.log_once(&write, &error),
            }
            if attempt == ATTEMPTS || token.is_cancelled() {
                return;
            }
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = token.cancelled() => {}
            }
        }
    }

    /// Writes once; gives the name of the event.
    async fn write(&self, write: &Write) -> Result<String, Failure> {
        let request = async {
            if let Some(name) = &write.existing {
                match self.raise_count(write, name).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {} // expired: it is new again
                    result => return result,
                }
            }
            self.create(write).await
        };
        match timeout(REQUEST_TIMEOUT, request).await {
            Ok(Ok(event)) => Ok(event.metadata.name.unwrap_or_default()),
            Ok(Err(error @ kube::Error::Api(_))) => Err(Failure::Refused(error)),
            Ok(Err(error)) => Err(Failure::Unreachable(error.to_string())),
            Err(_) => Err(Failure::Unreachable(
                "the API server did not answer in time".to_owned(),
            )),
        }
    }

    async fn create(&self, write: &Write) -> Result<Event, kube::Error> {
        let event = self.event(write, Timestamp::now());
        self.api(write).create(&PostParams::default(), &event).await
    }

    async fn raise_count(&self, write: &Write, name: &str) -> Result<Event, kube::Error> {
        let patch = json!({
            "count": write.count,
            "lastTimestamp": whole_seconds(Timestamp::now()),
            "message": write.occurrence.message,
        });
        self.api(write)
            .patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
    }

    fn api(&self, write: &Write) -> Api<Event> {
        Api::namespaced(self.client.clone(), namespace(write))
    }

    /// The event as client-go's recorder makes it: named after the object and the time.
    fn event(&self, write: &Write, now: Timestamp) -> Event {
        let Write {
            occurrence,
            count,
            first,
            ..
        } = write;
        let name = occurrence.object.name.clone().unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", now.as_nanosecond())),
                namespace: Some(namespace(write).to_owned()),
                annotations: (!occurrence.annotations.is_empty()).then(|| occurrence.annotations.clone()),
                ..ObjectMeta::default()
            },
            involved_object: occurrence.object.clone(),
            reason: Some(occurrence.reason.clone()),
            message: Some(occurrence.message.clone()),
            type_: Some(occurrence.event_type.to_owned()),
            count: Some(*count),
            first_timestamp: Some(whole_seconds(*first)),
            last_timestamp: Some(whole_seconds(now)),
            source: Some(EventSource {
                component: Some(self.controller.clone()),
                ..EventSource::default()
            }),
            reporting_component: Some(self.controller.clone()),
            ..Event::default()
        }
    }

    fn log_once(&mut self, write: &Write, error: &str) {
        if !std::mem::replace(&mut self.failing, true) {
            let object = write.occurrence.object.name.as_deref().unwrap_or_default();
            let reason = &write.occurrence.reason;
            tracing::error!(
                namespace = namespace(write),
                name = object,
                reason,
                error,
                "failed to write an event"
            );
        }
    }
}

fn namespace(write: &Write) -> &str {
    write
        .occurrence
        .object
        .namespace
        .as_deref()
        .unwrap_or(DEFAULT_NAMESPACE)
}

fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

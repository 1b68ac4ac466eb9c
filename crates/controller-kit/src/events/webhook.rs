//! Posts events to a notification-controller (`--events-addr`), as the recorder of fluxcd/pkg `runtime/events` does: one JSON
//! document per event, tried five times with growing pauses.
//!
//! In the background, one after the other, so that the receiver gets them in the order in which they happened. While the
//! receiver is away, the others wait behind the one at hand; what has waited as long as its own attempts would have taken is
//! then tried once, so that a receiver that stays away costs little.

use std::time::Duration;

use anyhow::Context as _;
use event::{Event, InvolvedObject};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// As go-retryablehttp by default: a first attempt and four more, 1, 2, 4 and 8 s apart.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that the receiver may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// For one attempt, as in Flux.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// All pauses of one event together.
const PATIENCE: Duration = Duration::from_secs(15);

/// An event that is to be posted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Notification {
    pub(super) event: Event,
    pub(super) since: Instant,
}

/// The name of this instance: in a pod, the pod's.
pub(super) fn instance() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim().to_owned()
}

/// Where events are posted to.
#[derive(Debug, Clone)]
pub struct Webhook {
    url: Url,
    http: Client,
    pause: Duration,
}

impl Webhook {
    /// Reads the flag; None if it is empty. A text that is no URL ends the start, as in Flux.
    pub fn from_flag(address: &str) -> anyhow::Result<Option<Self>> {
        if address.is_empty() {
            return Ok(None);
        }
        let url = Url::parse(address).context("--events-addr is no URL")?;
        let http = Client::builder().timeout(REQUEST_TIMEOUT).build();
        Ok(Some(Self {
            url,
            http: http.context("failed to set up the client for --events-addr")?,
            pause: PAUSE,
        }))
    }

    /// Posts what comes until all recorders are gone, or until shutdown and what waits then was tried.
    pub(super) async fn run(self, mut queue: Receiver<Notification>, token: CancellationToken) {
        let mut sink = Sink {
            webhook: self,
            failing: false,
        };
        loop {
            let notification = tokio::select! {
                biased;
                notification = queue.recv() => notification,
                () = token.cancelled() => break,
            };
            let Some(notification) = notification else { break };
            sink.deliver(&notification, &token).await;
        }
        queue.close();
        while let Ok(notification) = queue.try_recv() {
            sink.deliver(&notification, &token).await;
        }
    }

    async fn post(&self, notification: &Notification) -> Answer {
        let body = match serde_json::to_vec(&notification.event) {
            Ok(body) => body,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        let request = self.http.post(self.url.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        match request.send().await {
            Ok(response) => Answer::from_response(&response),
            // The URL may hold a password.
            Err(error) if error.is_builder() || error.is_redirect() => {
                Answer::Refused(error.without_url().to_string())
            }
            Err(error) => Answer::Later {
                problem: error_chain::chain(&error.without_url()),
                pause: None,
            },
        }
    }
}

/// Interpretation of the receiver's answer.
enum Answer {
    Taken,
    /// It will not want it later either.
    Refused(String),
    Later {
        problem: String,
        /// Pause that the receiver asks for.
        pause: Option<Duration>,
    },
}

impl Answer {
    fn from_response(response: &Response) -> Self {
        let status = response.status();
        match status {
            // notification-controller: it was posted already, a short while ago.
            StatusCode::TOO_MANY_REQUESTS => Self::Taken,
            StatusCode::NOT_IMPLEMENTED => Self::Refused(status.to_string()),
            _ if status.is_server_error() => Self::Later {
                problem: status.to_string(),
                pause: retry_after(response),
            },
            _ if status.is_success() => Self::Taken,
            _ => Self::Refused(status.to_string()),
        }
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

struct Sink {
    webhook: Webhook,
    /// The last event was lost: only the first in a row is logged.
    failing: bool,
}

impl Sink {
    async fn deliver(&mut self, notification: &Notification, token: &CancellationToken) {
        let is_late = self.failing && notification.since.elapsed() > PATIENCE;
        let attempts = if is_late || token.is_cancelled() {
            1
        } else {
            ATTEMPTS
        };
        let mut pause = self.webhook.pause;
        for attempt in 1..=attempts {
            let (problem, asked) = match self.webhook.post(notification).await {
                Answer::Taken => {
                    self.failing = false;
                    return;
                }
                Answer::Refused(problem) => return log(notification, &problem),
                Answer::Later { problem, pause } => (problem, pause),
            };
            if attempt == attempts || token.is_cancelled() {
                if !std::mem::replace(&mut self.failing, true) {
                    log(notification, &problem);
                }
                return;
            }
            tokio::select! {
                () = sleep(asked.unwrap_or(pause)) => {}
                () = token.cancelled() => {}
            }
            pause *= 2;
        }
    }
}

fn log(notification: &Notification, error: &str) {
    let InvolvedObject {
        kind,
        namespace,
        name,
        ..
    } = &notification.event.involved_object;
    let reason = &notification.event.reason;
    tracing::error!(kind, namespace, name, reason, error, "unable to record event");
}

#[cfg(test)]
mod tests;

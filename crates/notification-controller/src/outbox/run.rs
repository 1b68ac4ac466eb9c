//! Carries out what is due in the outbox: reads the Provider, words the message, sends it, takes what came of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::notification::Provider;
use controller_kit::ObjectKey;
use jiff::Timestamp;
use kube::ResourceExt as _;
use notifier::{AlertRef, Edge, Notification, Retry, Target};
use serde_json::json;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Delivery, Fate, Outcome};
use crate::alert::rule::Rule;
use crate::dispatch::Dispatcher;
use crate::provider_target;

/// Providers that are spoken to at once.
const MOST_IN_FLIGHT: usize = 32;
/// How long sending may take where the Provider does not say, as in Flux.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The longest that it may take: what is in flight is shared by all.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a text may take to be made.
const TEMPLATE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the Secrets of a Provider are not read again. A refusal has them read at once.
const FRESH: Duration = Duration::from_secs(10);
/// How long what is being sent may take when the process is told to stop.
const LAST_SENDS: Duration = Duration::from_secs(5);

/// Context of sending.
pub struct Sender {
    dispatcher: Arc<Dispatcher>,
    edge: Edge,
    window: Duration,
    targets: Mutex<HashMap<ObjectKey, Cached>>,
}

/// A target, of which version of its Provider, and when its Secrets were read.
struct Cached {
    version: Option<String>,
    since: Instant,
    target: Arc<Target>,
}

/// Result of an attempt, and why it failed.
struct Attempt {
    outcome: Outcome,
    problem: Option<String>,
    provider_type: &'static str,
}

impl Sender {
    /// Sends over this edge, and gives up after the window.
    pub fn new(dispatcher: Arc<Dispatcher>, edge: Edge, window: Duration) -> Self {
        Self {
            dispatcher,
            edge,
            window,
            targets: Mutex::default(),
        }
    }

    /// Works until the token is cancelled, and then until what is being sent is through.
    pub async fn run(self: Arc<Self>, token: CancellationToken) {
        let mut sending = JoinSet::new();
        while !token.is_cancelled() {
            let now = Timestamp::now();
            self.dispatcher.tick(now).await;
            let room = MOST_IN_FLIGHT - sending.len().min(MOST_IN_FLIGHT);
            let due = self.dispatcher.desk().outbox.due(now, room);
            for (provider, delivery) in due {
                let sender = Arc::clone(&self);
                sending.spawn(async move { sender.deliver(provider, delivery).await });
            }
            let deadline = self.deadline(sending.len() < MOST_IN_FLIGHT);
            tokio::select! {
                _ = sending.join_next(), if !sending.is_empty() => {}
                () = self.dispatcher.work.notified() => {}
                () = until(deadline) => {}
                () = token.cancelled() => {}
            }
        }
        let last = async { while sending.join_next().await.is_some() {} };
        if timeout(LAST_SENDS, last).await.is_err() {
            tracing::warn!("what is being sent takes too long: it will be sent again at the next start");
        }
    }

    fn deadline(&self, has_room: bool) -> Option<Timestamp> {
        let desk = self.dispatcher.desk();
        let deliveries = desk.outbox.deadline().filter(|_| has_room);
        deliveries.into_iter().chain(desk.deadline()).min()
    }

    async fn deliver(&self, provider: ObjectKey, delivery: Delivery) {
        let attempt = self.attempt(&provider, &delivery).await;
        let now = Timestamp::now();
        let fate = self
            .dispatcher
            .desk()
            .outbox
            .finish(&provider, attempt.outcome.clone(), now, self.window);
        self.dispatcher.dirty.notify_one();
        let result = match (&attempt.outcome, &fate) {
            (Outcome::Withdrawn, _) => return,
            (_, Fate::Done) => "sent",
            (_, Fate::Waits) => "failed",
            (_, Fate::Dropped(_)) => "dropped",
        };
        self.dispatcher.results.count(attempt.provider_type, result);
        let Some(problem) = attempt.problem else { return };
        match fate {
            Fate::Dropped(delivery) if delivery.attempts > 0 => {
                let why = format!("{problem}; given up after {} attempts", delivery.attempts + 1);
                self.dispatcher.tell_dropped(&delivery, &why);
            }
            // The first failure is told of, as in Flux; what follows is the same again.
            Fate::Dropped(_) => self.dispatcher.tell_dropped(&delivery, &problem),
            Fate::Waits if delivery.attempts == 0 => self.dispatcher.tell_dropped(&delivery, &problem),
            Fate::Waits | Fate::Done => {}
        }
    }

    async fn attempt(&self, key: &ObjectKey, delivery: &Delivery) -> Attempt {
        let provider = self.dispatcher.providers.get(&key.object_ref());
        let rule = self.dispatcher.rule(&delivery.alert);
        let (Some(provider), Some(rule)) = (provider.filter(|provider| !provider.spec.suspend), rule) else {
            return Attempt {
                outcome: Outcome::Withdrawn,
                problem: None,
                provider_type: "",
            };
        };
        let (target, was_cached) = match self.target(key, &provider).await {
            Ok(target) => target,
            Err(problem) => {
                let problem = format!(
                    "failed to initialize notifier for provider '{}': {problem}",
                    key.name
                );
                return Attempt {
                    outcome: Outcome::Failed(Retry::Backoff),
                    problem: Some(problem),
                    provider_type: "",
                };
            }
        };
        let notification = self.notification(key, delivery, &rule, &target).await;
        let limit = limit(&provider);
        let sent = timeout(limit, notifier::send(&self.edge, &target, &notification)).await;
        let provider_type = target.type_.as_str();
        let (problem, retry) = match sent {
            Ok(Ok(sent)) => {
                return Attempt {
                    outcome: Outcome::Said(sent.thread),
                    problem: None,
                    provider_type,
                };
            }
            Ok(Err(error)) => (error.to_string(), error.retry),
            Err(_) => (format!("the provider took longer than {limit:?}"), Retry::Backoff),
        };
        self.forget(key);
        // The Secret may have changed since it was read.
        let retry = if was_cached && retry == Retry::Never {
            Retry::Backoff
        } else {
            retry
        };
        Attempt {
            outcome: Outcome::Failed(retry),
            problem: Some(problem),
            provider_type,
        }
    }

    async fn target(&self, key: &ObjectKey, provider: &Provider) -> Result<(Arc<Target>, bool), String> {
        let version = provider.resource_version();
        let cached = {
            let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = targets
                .get(key)
                .filter(|cached| cached.version == version && cached.since.elapsed() < FRESH);
            fresh.map(|cached| Arc::clone(&cached.target))
        };
        if let Some(target) = cached {
            return Ok((target, true));
        }
        let target = Arc::new(
            provider_target::read(&self.dispatcher.client, provider, &self.dispatcher.policy).await?,
        );
        notifier::check(&target).map_err(|error| error.to_string())?;
        let cached = Cached {
            version,
            since: Instant::now(),
            target: Arc::clone(&target),
        };
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.retain(|_, cached| cached.since.elapsed() < FRESH);
        targets.insert(key.clone(), cached);
        Ok((target, false))
    }

    fn forget(&self, key: &ObjectKey) {
        self.targets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }

    async fn notification(
        &self,
        key: &ObjectKey,
        delivery: &Delivery,
        rule: &Rule,
        target: &Target,
    ) -> Notification {
        let message = &delivery.message;
        let threaded = rule.options.thread && target.type_.can_thread();
        let thread = if threaded {
            self.dispatcher.desk().outbox.thread(key, &message.key)
        } else {
            None
        };
        let alert = AlertRef {
            name: delivery.alert.name.clone(),
            namespace: delivery.alert.namespace.clone(),
            uid: delivery.alert.uid.clone(),
        };
        Notification {
            state: message.state,
            key: message.key.clone(),
            thread,
            threaded,
            deployments: rule.options.deployments,
            text: self.text(delivery, rule, target).await,
            commit_status: delivery.commit_status.clone(),
            ..Notification::new(message.event.clone(), alert)
        }
    }

    /// The text of the Alert's template. Without one, or if it fails, a message looks as in Flux.
    async fn text(&self, delivery: &Delivery, rule: &Rule, target: &Target) -> Option<String> {
        let template = rule.options.template.clone()?;
        let message = &delivery.message;
        let events = if message.events.is_empty() {
            std::slice::from_ref(&message.event)
        } else {
            &message.events
        };
        let data = json!({
            "event": message.event,
            "events": events,
            "state": format!("{:?}", message.state),
            "alert": {
                "name": delivery.alert.name,
                "namespace": delivery.alert.namespace,
                "metadata": {"labels": rule.alert.labels()},
            },
            "provider": {
                "name": target.provider.name,
                "namespace": target.provider.namespace,
                "type": target.type_.as_str(),
                "channel": target.channel,
            },
        });
        let cancelled = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&cancelled);
        let rendered = match timeout(
            TEMPLATE_TIMEOUT,
            spawn_blocking(move || template.render(&data, cancelled)),
        )
        .await
        {
            Ok(Ok(rendered)) => rendered,
            Ok(Err(_)) => Err("it failed".to_owned()),
            Err(_) => {
                stop.store(true, Ordering::Relaxed);
                Err("it takes too long".to_owned())
            }
        };
        rendered
            .inspect_err(|problem| {
                let message = format!("failed to render the annotation windlass.dev/template: {problem}");
                self.dispatcher
                    .warn(rule, "InvalidConfig", &message, std::collections::BTreeMap::new());
            })
            .ok()
    }
}

/// How long sending may take.
fn limit(provider: &Provider) -> Duration {
    let asked = provider.spec.timeout.map_or(TIMEOUT, Duration::from);
    asked.min(LONGEST_TIMEOUT)
}

/// Waits until a time; without one, for ever.
async fn until(time: Option<Timestamp>) {
    match time {
        Some(time) => {
            let left = Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or_default();
            // Rounded up, so that it is due then.
            sleep(left + Duration::from_millis(1)).await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_provider_holds_its_place_for_longer_than_a_minute() {
        for (spec, expected) in [
            (json!({"type": "slack"}), 15),
            (json!({"type": "slack", "timeout": "30s"}), 30),
            (json!({"type": "slack", "timeout": "24h"}), 60),
        ] {
            let provider = json!({"metadata": {"name": "p"}, "spec": spec});
            let limit = limit(&serde_json::from_value(provider).unwrap());
            assert_eq!(limit, Duration::from_secs(expected));
        }
    }
}

//! The way of an event: heard once, wanted by Alerts, worded, put into the outbox. Everything that decides is pure and elsewhere;
//! here it is joined, under one lock that is held only while deciding.

mod desk;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use api::notification::{Alert, Provider};
use controller_kit::ObjectKey;
use controller_kit::events::{Recorder, Severity};
use event::{Event, InvolvedObject};
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::reflector::Store;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::alert::admit::{self, Admission, admit};
use crate::alert::engine::{Engine, Message, Setting};
use crate::alert::rule::{Interest, Problem, Rule};
use crate::alert::{commit_status, metadata};
use crate::flags::Policy;
use crate::intake::clean;
use crate::intake::limit::{Verdict, Way};
use crate::intake::transition::{Observed, Transition, transition};
use crate::kinds;
use crate::objects::{Known, Objects};
use crate::outbox::{self, Delivery};
use crate::results::Results;

pub use desk::{Desk, Saved};

/// How long the labels of an object are waited for, as in Flux.
const LABELS_TIMEOUT: Duration = Duration::from_secs(15);

/// Labels of an object, or why they are not known.
type Labels = Result<BTreeMap<String, String>, String>;

/// Context that all events share.
pub struct Dispatcher {
    /// The cluster.
    pub client: Client,
    /// Publishes Kubernetes Events about Alerts.
    pub events: Recorder,
    /// Policy set by flags.
    pub policy: Policy,
    /// All Providers.
    pub providers: Store<Provider>,
    /// Watched facts about objects.
    pub objects: Objects,
    /// Alerts, read.
    pub rules: RwLock<BTreeMap<ObjectKey, Arc<Rule>>>,
    /// Unfinished work.
    desk: Mutex<Desk>,
    /// Told when there may be something to do.
    pub work: Notify,
    /// Told when there is something to write down.
    pub dirty: Notify,
    /// Counts what became of notifications.
    pub results: Results,
}

impl Dispatcher {
    /// Begins with what is on the desk.
    pub fn new(
        client: Client,
        events: Recorder,
        policy: Policy,
        providers: Store<Provider>,
        desk: Desk,
        results: Results,
    ) -> Self {
        Self {
            client,
            events,
            policy,
            providers,
            objects: Objects::default(),
            rules: RwLock::default(),
            desk: Mutex::new(desk),
            work: Notify::new(),
            dirty: Notify::new(),
            results,
        }
    }

    /// Takes an event, however it came.
    pub async fn take(&self, mut event: Event, way: Way) -> Verdict {
        clean::clean(&mut event);
        if let Some(verdict) = self.hear_again(&event, way) {
            return verdict;
        }
        // It counts as heard only when nothing is left to wait for: a process that ends before has it come again.
        let interested = self.interested(&event);
        let needs_labels = |(_, interest): &(_, Interest)| matches!(interest, Interest::IfLabelled(_));
        let labels = if interested.iter().any(needs_labels) {
            self.labels(&event.involved_object).await
        } else {
            Ok(BTreeMap::new())
        };
        let now = Timestamp::now();
        let verdict = self.desk().hear(&event, way, now);
        if verdict == Verdict::New {
            if way == Way::Counted {
                let current = self.objects.revision(&event.involved_object.to_string());
                clean::correct_revision(&mut event, current.as_deref());
            }
            clean::drop_token(&mut event);
            self.dispatch(&event, &interested, &labels, now);
        }
        self.dirty.notify_one();
        verdict
    }

    /// Hears an event, if that is no news.
    fn hear_again(&self, event: &Event, way: Way) -> Option<Verdict> {
        let now = Timestamp::now();
        let mut desk = self.desk();
        if desk.is_news(event, way, now) {
            return None;
        }
        let verdict = desk.hear(event, way, now);
        self.dirty.notify_one();
        Some(verdict)
    }

    /// Takes what is known of an object now. `is_news` says that a failure is to be told if no event tells of it.
    pub fn observe(&self, known: Known, observed: &Observed, is_news: bool) {
        let object = observed.object.to_string();
        let before = self.objects.set(&object, known);
        match transition(before.as_ref().map(|known| &known.ready), observed) {
            None => {}
            Some(Transition::Ready) => self.is_ready(&object),
            Some(Transition::Failed(event)) => {
                let is_alerted = self.rules().iter().any(|rule| rule.names(&observed.object));
                if is_alerted && is_news {
                    self.desk().suspect(*event, Timestamp::now());
                    self.work.notify_one();
                }
            }
        }
    }

    /// Takes that objects are there no more.
    pub fn forget(&self, is_gone: impl Fn(&str) -> bool) {
        self.desk().clear_suspects(&is_gone);
        self.for_engines(|engine, setting| engine.gone(&is_gone, setting));
    }

    /// Does what is due.
    pub async fn tick(&self, now: Timestamp) {
        let suspects = self.desk().due_suspects(now);
        for event in suspects {
            self.take(event, Way::Watched).await;
        }
        let rules = self.rules();
        for rule in rules.iter().filter(|rule| !rule.options.are_plain()) {
            let Some(setting) = Placed::new(self, rule) else {
                // Without a Provider there is no one to be told, now or later.
                self.desk().drop_engine(&rule.key);
                continue;
            };
            let messages = {
                let mut desk = self.desk();
                desk.engine(&rule.key, |engine| engine.tick(&setting.setting(self, rule, now)))
            };
            self.put(rule, &setting.provider, messages, None, now);
        }
    }

    /// Locks the unfinished work.
    pub fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the Alerts as they are now.
    pub fn set_rules(&self, alerts: &[Arc<Alert>]) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = BTreeMap::new();
        for alert in alerts {
            let key = ObjectKey::from_object(&**alert);
            let same = |rule: &&Arc<Rule>| {
                rule.alert.meta().generation == alert.meta().generation
                    && rule.alert.meta().uid == alert.meta().uid
                    && rule.alert.annotations() == alert.annotations()
            };
            let rule = match rules.get(&key).filter(same) {
                Some(rule) => Arc::clone(rule),
                None => {
                    let rule = Arc::new(Rule::from_alert(Arc::clone(alert)));
                    self.tell_problems(&rule, rule.problems.clone());
                    rule
                }
            };
            next.insert(key, rule);
        }
        let has_engine = |key: &ObjectKey| next.get(key).is_some_and(|rule| !rule.options.are_plain());
        self.desk().keep_engines(has_engine);
        *rules = next;
    }

    /// All Alerts, read.
    pub fn rules(&self) -> Vec<Arc<Rule>> {
        self.rules
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// The Alert of a delivery, if it is still there and wants anything.
    pub fn rule(&self, alert: &outbox::Alert) -> Option<Arc<Rule>> {
        let key = ObjectKey::new(&alert.namespace, &alert.name);
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let rule = rules.get(&key)?;
        let is_same = rule.alert.uid().unwrap_or_default() == alert.uid;
        (is_same && !rule.alert.spec.suspend).then(|| Arc::clone(rule))
    }

    /// Publishes a Kubernetes Event about an Alert that something went wrong.
    pub fn warn(&self, rule: &Rule, reason: &str, message: &str, annotations: BTreeMap<String, String>) {
        self.events
            .publish(&*rule.alert, Severity::Error, reason, message, annotations);
    }

    /// The Alerts that may want an event.
    fn interested(&self, event: &Event) -> Vec<(Arc<Rule>, Interest)> {
        let rules = self.rules().into_iter().map(|rule| {
            let interest = rule.interest(event);
            (rule, interest)
        });
        rules.filter(|(_, interest)| *interest != Interest::No).collect()
    }

    fn dispatch(&self, event: &Event, interested: &[(Arc<Rule>, Interest)], labels: &Labels, now: Timestamp) {
        let mut wanted = 0;
        for (rule, interest) in interested {
            if self.wants(rule, interest, event, labels) {
                wanted += 1;
                self.route(rule, event, now);
            }
        }
        if wanted == 0 {
            tracing::debug!(object = %event.involved_object, "discarding event, no alerts found for the involved object");
        } else {
            tracing::info!(object = %event.involved_object, message = event.message, "dispatching event");
        }
    }

    fn wants(&self, rule: &Rule, interest: &Interest, event: &Event, labels: &Labels) -> bool {
        if let Interest::IfLabelled(wanted) = interest {
            let Ok(labels) = labels else {
                let message = format!("error getting source object {}", event.involved_object);
                self.warn(rule, "SourceFetchFailed", &message, BTreeMap::new());
                return false;
            };
            let matches = |wanted: &BTreeMap<String, String>| {
                wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
            };
            if !wanted.iter().any(matches) {
                return false;
            }
        }
        let (is_let_through, problems) = rule.lets_through(&event.message);
        self.tell_problems(rule, problems);
        is_let_through
    }

    /// Labels of an object: as watched, or else read.
    async fn labels(&self, object: &InvolvedObject) -> Labels {
        if let Some(labels) = self.objects.labels(&object.to_string()) {
            return Ok(labels);
        }
        let read = timeout(LABELS_TIMEOUT, self.read_labels(object)).await;
        read.unwrap_or_else(|_| Err("the API server does not answer".to_owned()))
            .inspect_err(|error| tracing::error!(error, %object, "error getting the involved object"))
    }

    async fn read_labels(&self, object: &InvolvedObject) -> Labels {
        controller_kit::check_name(&object.name)?;
        controller_kit::check_name(&object.namespace)?;
        let resource = kinds::resource(&object.kind).ok_or("its kind is unknown")?;
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &object.namespace, &resource);
        let read = api
            .get_metadata(&object.name)
            .await
            .map_err(|error| error.to_string())?;
        Ok(read.metadata.labels.unwrap_or_default())
    }

    fn route(&self, rule: &Rule, event: &Event, now: Timestamp) {
        let key = provider_key(rule);
        let provider = self.providers.get(&key.object_ref());
        let routed = admit(event, rule, provider.as_deref(), &self.policy).and_then(|admission| match (admission, &provider) {
            (Admission::Send, Some(provider)) => self.word(rule, provider, event).map(Some),
            (Admission::NoCommit, _) => {
                tracing::info!(alert = %rule.key, "event dropped for commit status providers due to missing commit metadata key");
                Ok(None)
            }
            (Admission::NoChangeRequest, _) => {
                tracing::info!(alert = %rule.key, "event dropped for change request providers due to missing change request metadata key");
                Ok(None)
            }
            (Admission::Pass | Admission::Send, _) => Ok(None),
        });
        match routed {
            Ok(Some((event, status))) => self.decide(rule, key, event, status, now),
            Ok(None) => {}
            Err(problem) => {
                let message = format!(
                    "failed to dispatch notification for {}: {problem}",
                    event.involved_object
                );
                tracing::error!(alert = %rule.key, error = problem, "failed to dispatch notification");
                self.warn(rule, "NotificationDispatchFailed", &message, BTreeMap::new());
            }
        }
    }

    /// Builds the message to a Provider, and the status that it sets on a commit.
    fn word(
        &self,
        rule: &Rule,
        provider: &Provider,
        event: &Event,
    ) -> Result<(Event, Option<String>), String> {
        let (combined, conflicts) = metadata::combine(event, &rule.alert.spec);
        if !conflicts.is_empty() {
            let (reason, message) = metadata::CONFLICT;
            self.warn(rule, reason, message, conflicts);
        }
        let event = Event {
            metadata: combined,
            ..event.clone()
        };
        let type_ = admit::type_of(provider)?;
        let status = type_
            .is_commit_status()
            .then(|| commit_status::name(&event, &rule.alert, provider))
            .transpose()?;
        Ok((event, status))
    }

    fn decide(&self, rule: &Rule, provider: ObjectKey, event: Event, status: Option<String>, now: Timestamp) {
        let placed = Placed::new(self, rule).filter(|placed| !placed.is_about_changes);
        let messages = match placed {
            Some(placed) if !rule.options.are_plain() => {
                let mut desk = self.desk();
                desk.engine(&rule.key, |engine| {
                    engine.take(event, &placed.setting(self, rule, now))
                })
            }
            _ => vec![Message::plain(event)],
        };
        self.put(rule, &provider, messages, status, now);
    }

    fn is_ready(&self, object: &str) {
        self.desk().clear_suspect(object);
        self.for_engines(|engine, setting| engine.ready(object, setting));
    }

    /// Lets the engines of all Alerts do something.
    fn for_engines(&self, act: impl Fn(&mut Engine, &Setting<'_>) -> Vec<Message>) {
        let now = Timestamp::now();
        for rule in self.rules().iter().filter(|rule| !rule.options.are_plain()) {
            let Some(placed) = Placed::new(self, rule) else {
                continue;
            };
            let messages = {
                let mut desk = self.desk();
                desk.engine(&rule.key, |engine| act(engine, &placed.setting(self, rule, now)))
            };
            self.put(rule, &placed.provider, messages, None, now);
        }
    }

    /// Puts messages into the outbox.
    fn put(
        &self,
        rule: &Rule,
        provider: &ObjectKey,
        messages: Vec<Message>,
        status: Option<String>,
        now: Timestamp,
    ) {
        if messages.is_empty() {
            return;
        }
        for message in messages {
            let delivery = Delivery {
                alert: outbox::Alert {
                    namespace: rule.key.namespace.clone(),
                    name: rule.key.name.clone(),
                    uid: rule.alert.uid().unwrap_or_default(),
                },
                message,
                commit_status: status.clone(),
                since: now,
                attempts: 0,
                not_before: now,
            };
            let dropped = self.desk().outbox.push(provider, delivery);
            for (provider, delivery) in dropped {
                let provider = self.providers.get(&provider.object_ref());
                let type_ = provider.and_then(|provider| admit::type_of(&provider).ok());
                self.results
                    .count(type_.map_or("", |type_| type_.as_str()), "dropped");
                self.tell_dropped(&delivery, "too many messages wait for the provider");
            }
        }
        self.work.notify_one();
        self.dirty.notify_one();
    }

    /// Tells that something will not be said.
    pub fn tell_dropped(&self, delivery: &Delivery, why: &str) {
        let object = &delivery.message.event.involved_object;
        let message = format!("failed to send notification for {object}: {why}");
        tracing::error!(alert = %format!("{}/{}", delivery.alert.namespace, delivery.alert.name), error = why, "failed to send notification");
        if let Some(rule) = self.rule(&delivery.alert) {
            self.warn(&rule, "NotificationDispatchFailed", &message, BTreeMap::new());
        }
    }

    fn tell_problems(&self, rule: &Rule, problems: Vec<Problem>) {
        for problem in problems {
            tracing::error!(alert = %rule.key, problem.message, "an alert cannot be read");
            self.warn(rule, problem.reason, &problem.message, BTreeMap::new());
        }
    }
}

/// Where the messages of an Alert go, as far as the engine must know.
struct Placed {
    provider: ObjectKey,
    group: String,
    by_object: bool,
    /// Statuses of commits and comments of change requests are about a revision, and replace each other: nothing is to be grouped.
    is_about_changes: bool,
}

impl Placed {
    /// None if there is no such Provider.
    fn new(dispatcher: &Dispatcher, rule: &Rule) -> Option<Self> {
        let key = provider_key(rule);
        let provider = dispatcher.providers.get(&key.object_ref())?;
        let type_ = admit::type_of(&provider).ok()?;
        Some(Self {
            provider: key,
            group: format!("Alert/{}", rule.key),
            by_object: rule.options.resolve && type_.can_resolve(),
            is_about_changes: type_.is_commit_status() || type_.is_change_request(),
        })
    }

    fn setting<'a>(&'a self, dispatcher: &'a Dispatcher, rule: &'a Rule, now: Timestamp) -> Setting<'a> {
        Setting {
            options: &rule.options,
            facts: &dispatcher.objects,
            by_object: self.by_object,
            group: &self.group,
            now,
        }
    }
}

/// The Provider of an Alert, which is in its namespace.
fn provider_key(rule: &Rule) -> ObjectKey {
    ObjectKey::new(&rule.key.namespace, &rule.alert.spec.provider_ref.name)
}

#[cfg(test)]
mod tests;

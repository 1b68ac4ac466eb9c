//! The Freezes of the cluster, as a controller whose objects deliver obeys them.

use std::hash::{Hash as _, Hasher as _};

use api::delivery::{FREEZE_EXCEPTION, Freeze, FreezeKind};
use api::meta::{Condition, Delivers, condition_types, reasons};
use change_window::freeze::{self, InForce, Subject};
use controller_kit::conditions::{self, FALSE, Fact, TRUE, UNKNOWN};
use controller_kit::flags::WatchFlags;
use controller_kit::rules::{Changes, Rules};
use jiff::Timestamp;
use kube::{Client, ResourceExt as _};

use crate::writer::Frame;

/// What Freezes say of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frozen {
    /// One applies to it at some time: what is delivered to it must be known when that comes.
    pub is_covered: bool,
    /// What applies to it now.
    pub now: Option<InForce>,
}

/// The Freezes of the cluster.
pub struct Freezes {
    rules: Rules<Freeze>,
    kind: FreezeKind,
    /// The namespace of this process, whose Freezes reach into others.
    namespace: String,
    accepts_exceptions: bool,
}

impl Freezes {
    /// Watches them. The stream must be polled by [`follow`](Self::follow).
    pub fn new(
        client: &Client,
        flags: &WatchFlags,
        kind: FreezeKind,
        (namespace, accepts_exceptions): (&str, bool),
    ) -> (Self, Changes<Freeze>) {
        let (rules, changes) = Rules::new(client, flags);
        let freezes = Self {
            rules,
            kind,
            namespace: namespace.to_owned(),
            accepts_exceptions,
        };
        (freezes, changes)
    }

    /// Waits until they are known. Where the kind is not installed there are none.
    pub async fn wait_until_ready(&self) {
        self.rules.wait_until_ready("nothing is frozen").await;
    }

    /// Returns what they say of an object at a time.
    pub fn of<K: Delivers>(&self, object: &K, now: Timestamp) -> Frozen {
        let subject = self.subject(object);
        let all = self.rules.all();
        let covering: Vec<&Freeze> = all
            .iter()
            .map(|freeze| &**freeze)
            .filter(|freeze| freeze::covers(freeze, &subject, &self.namespace))
            .collect();
        Frozen {
            is_covered: !covering.is_empty(),
            now: freeze::in_force(covering, &subject, &self.namespace, now),
        }
    }

    /// Returns whether one applies to an object at some time.
    pub fn cover<K: Delivers>(&self, object: &K) -> bool {
        let subject = self.subject(object);
        let all = self.rules.all();
        all.iter()
            .any(|freeze| freeze::covers(freeze, &subject, &self.namespace))
    }

    /// Calls `changed` for each change of a Freeze, with whether it concerns an object.
    pub async fn follow<K: Delivers>(&self, changes: Changes<Freeze>, changed: impl Fn(&dyn Fn(&K) -> bool)) {
        let follow = self.rules.follow(changes, |both| {
            changed(&|object| {
                let subject = self.subject(object);
                both.iter()
                    .any(|freeze| freeze::covers(freeze, &subject, &self.namespace))
            });
        });
        follow.await;
    }

    fn subject<'a, K: Delivers>(&self, object: &'a K) -> Subject<'a> {
        Subject::new(self.kind, object, self.accepts_exceptions)
    }
}

/// How what waits is said behind what Ready says anyway.
const SAID: &str = "; frozen: ";

/// Says in the conditions what waits. Ready stays as it is, since what was delivered is; its message says it as well, for those who
/// look there. Where nothing was delivered yet Ready is False.
pub fn report(conditions: &mut Vec<Condition>, frame: Frame<'_>, message: &str, is_delivered: bool) {
    let ready = conditions::get(conditions, condition_types::READY).filter(|_| is_delivered);
    match ready {
        Some(ready) => {
            let message = format!("{}{SAID}{message}", without(&ready.message));
            say_ready(conditions, message, frame.now);
        }
        None => {
            let fact = Fact::does_not_hold(condition_types::READY, reasons::FROZEN, message);
            conditions::set(conditions, fact, frame.generation, frame.now);
        }
    }
    let fact = Fact::holds(condition_types::FROZEN, reasons::FROZEN, message);
    conditions::set(conditions, fact, frame.generation, frame.now);
}

/// Takes back what was said of a Freeze.
pub fn thawed(conditions: &mut Vec<Condition>, now: Timestamp) {
    conditions::remove(conditions, condition_types::FROZEN);
    let ready = conditions::get(conditions, condition_types::READY);
    let shorter = ready.map(|ready| without(&ready.message).to_owned());
    if let (Some(ready), Some(shorter)) = (ready, shorter)
        && ready.message != shorter
    {
        say_ready(conditions, shorter, now);
    }
}

/// Gives Ready another message, and leaves the rest of it: it is no newer for that.
fn say_ready(conditions: &mut Vec<Condition>, message: String, now: Timestamp) {
    let Some(ready) = conditions
        .iter_mut()
        .find(|ready| ready.type_ == condition_types::READY)
    else {
        return;
    };
    let status = match &*ready.status {
        "True" => TRUE,
        "False" => FALSE,
        _ => UNKNOWN,
    };
    let fact = Fact {
        type_: condition_types::READY.to_owned(),
        status,
        reason: ready.reason.clone(),
        message,
    };
    let generation = ready.observed_generation.unwrap_or_default();
    conditions::set(conditions, fact, generation, now);
}

fn without(message: &str) -> &str {
    message.find(SAID).map_or(message, |at| &message[..at])
}

/// Returns a digest of what decides which Freezes apply to an object and is no part of its spec.
pub fn marks<K: kube::Resource>(object: &K) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    object.labels().hash(&mut hasher);
    object.annotations().get(FREEZE_EXCEPTION).hash(&mut hasher);
    hasher.finish()
}

//! Status conditions: pure functions over a list of [`Condition`], with Flux's rules.
//!
//! In: the previous list, what is now true, the generation and the time. Out: the list in the order and with
//! the transition times that Flux would have written (fluxcd/pkg `runtime/conditions`). Nothing here reads a
//! clock or talks to the API server; `status` sends what came out.

use std::cmp::Ordering;

use api::meta::Condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use api::meta::condition_types::{READY, RECONCILING, STALLED};
pub use api::meta::{FALSE, TRUE, UNKNOWN};

/// The CRDs allow this many characters in a message. Flux counts bytes, and so do we.
pub const MAX_MESSAGE_LENGTH: usize = 32_768;

/// Stands for what was cut off a long message.
const ELLIPSIS: &str = "...";

/// Content of one condition, without the bookkeeping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Condition type, such as "Ready".
    pub type_: String,
    /// "True", "False" or "Unknown".
    pub status: &'static str,
    /// One CamelCase word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Fact {
    /// States that `type_` holds.
    pub fn holds(type_: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(type_, TRUE, reason, message)
    }

    /// States that `type_` does not hold.
    pub fn does_not_hold(type_: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(type_, FALSE, reason, message)
    }

    /// States that nothing is known about `type_`.
    pub fn is_unknown(type_: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(type_, UNKNOWN, reason, message)
    }

    fn new(type_: &str, status: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self {
            type_: type_.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}

/// Sets one condition and sorts the list.
///
/// The transition time moves when status, reason *or message* changes (Flux compares all three, unlike
/// Kubernetes' own helper); the observed generation always moves. A message over [`MAX_MESSAGE_LENGTH`] is cut.
pub fn set(conditions: &mut Vec<Condition>, fact: Fact, generation: i64, now: Timestamp) {
    let message = shortened(fact.message);
    match conditions
        .iter_mut()
        .find(|condition| condition.type_ == fact.type_)
    {
        Some(condition) => {
            let same = condition.status == fact.status
                && condition.reason == fact.reason
                && condition.message == message;
            if !same {
                condition.last_transition_time = whole_seconds(now);
            }
            condition.status = fact.status.to_owned();
            condition.reason = fact.reason;
            condition.message = message;
            condition.observed_generation = Some(generation);
        }
        None => conditions.push(Condition {
            type_: fact.type_,
            status: fact.status.to_owned(),
            observed_generation: Some(generation),
            last_transition_time: whole_seconds(now),
            reason: fact.reason,
            message,
        }),
    }
    sort(conditions);
}

/// Sets `type_` to True. See [`set`].
pub fn mark_true(
    conditions: &mut Vec<Condition>,
    type_: &str,
    reason: &str,
    message: impl Into<String>,
    generation: i64,
    now: Timestamp,
) {
    set(conditions, Fact::holds(type_, reason, message), generation, now);
}

/// Sets `type_` to False. See [`set`].
pub fn mark_false(
    conditions: &mut Vec<Condition>,
    type_: &str,
    reason: &str,
    message: impl Into<String>,
    generation: i64,
    now: Timestamp,
) {
    set(
        conditions,
        Fact::does_not_hold(type_, reason, message),
        generation,
        now,
    );
}

/// Sets `type_` to Unknown. See [`set`].
pub fn mark_unknown(
    conditions: &mut Vec<Condition>,
    type_: &str,
    reason: &str,
    message: impl Into<String>,
    generation: i64,
    now: Timestamp,
) {
    set(
        conditions,
        Fact::is_unknown(type_, reason, message),
        generation,
        now,
    );
}

/// Sets Reconciling to True and removes Stalled: the two exclude each other.
pub fn reconciling(
    conditions: &mut Vec<Condition>,
    reason: &str,
    message: impl Into<String>,
    generation: i64,
    now: Timestamp,
) {
    remove(conditions, STALLED);
    mark_true(conditions, RECONCILING, reason, message, generation, now);
}

/// Sets Stalled to True and removes Reconciling: the two exclude each other.
pub fn stalled(
    conditions: &mut Vec<Condition>,
    reason: &str,
    message: impl Into<String>,
    generation: i64,
    now: Timestamp,
) {
    remove(conditions, RECONCILING);
    mark_true(conditions, STALLED, reason, message, generation, now);
}

/// Removes the condition of this type, if there is one.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|condition| condition.type_ != type_);
}

/// The condition of this type.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns whether the condition exists and is True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == TRUE)
}

/// Returns whether the condition exists and is False.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == FALSE)
}

/// Returns whether the condition is Unknown or not there.
pub fn is_unknown(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_none_or(|condition| condition.status == UNKNOWN)
}

/// Returns whether Ready is True and the object is neither reconciling nor stalled.
pub fn is_ready(conditions: &[Condition]) -> bool {
    !is_stalled(conditions) && !is_reconciling(conditions) && is_true(conditions, READY)
}

/// Returns whether Reconciling is True and Stalled is not.
pub fn is_reconciling(conditions: &[Condition]) -> bool {
    is_true(conditions, RECONCILING) && !is_true(conditions, STALLED)
}

/// Returns whether Stalled is True and Reconciling is not.
pub fn is_stalled(conditions: &[Condition]) -> bool {
    is_true(conditions, STALLED) && !is_true(conditions, RECONCILING)
}

/// Orders conditions as Flux does: Stalled, Reconciling, Ready, then the others by falling observed
/// generation and by name.
pub fn sort(conditions: &mut [Condition]) {
    conditions.sort_by(|left, right| match (weight(left), weight(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => right
            .observed_generation
            .cmp(&left.observed_generation)
            .then_with(|| left.type_.cmp(&right.type_)),
    });
}

fn weight(condition: &Condition) -> Option<u8> {
    match condition.type_.as_str() {
        STALLED => Some(0),
        RECONCILING => Some(1),
        READY => Some(2),
        _ => None,
    }
}

/// Cuts a message to what the CRDs allow, never inside a character.
fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_LENGTH {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_LENGTH - ELLIPSIS.len()));
        message.push_str(ELLIPSIS);
    }
    message
}

/// Kubernetes writes times to the second; keeping more would make every status look changed.
fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

#[cfg(test)]
mod tests;

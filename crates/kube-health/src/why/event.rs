//! Finding the Event that matters among those on an object.

use jiff::Timestamp;
use serde_json::Value;

use super::detail::DETAIL_LIMIT;
use crate::fields::text_or;
use crate::text::one_line;

/// Which Warnings tell more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// One of these reasons; any when there are none.
    pub(super) reasons: &'static [&'static str],
    /// Words of the message.
    pub(super) containing: &'static str,
}

impl Filter {
    /// All Warnings.
    pub(super) const ANY: Self = Self {
        reasons: &[],
        containing: "",
    };

    fn matches(&self, event: &Value) -> bool {
        text_or(event, "type", "") == "Warning"
            && (self.reasons.is_empty() || self.reasons.contains(&text_or(event, "reason", "")))
            && text_or(event, "message", "").contains(self.containing)
    }
}

/// Returns the last Warning on an object that a filter lets through.
pub(super) fn last_warning<'a>(events: &'a [Value], object: &Value, filter: &Filter) -> Option<&'a Value> {
    newest(on(events, object).filter(|event| filter.matches(event)))
}

/// Returns the last of the Warnings that are not older than this.
pub(super) fn last_warning_since(events: &[Value], since: Timestamp) -> Option<&Value> {
    let is_fresh = |event: &&Value| time(event).parse::<Timestamp>().is_ok_and(|at| at >= since);
    newest(
        events
            .iter()
            .filter(|event| Filter::ANY.matches(event))
            .filter(is_fresh),
    )
}

/// Returns the last event of any type on an object.
pub(super) fn last<'a>(events: &'a [Value], object: &Value) -> Option<&'a Value> {
    newest(on(events, object))
}

/// Writes `Reason: message`.
pub(super) fn reason_and_message(event: &Value) -> String {
    let reason = text_or(event, "reason", "");
    format!(
        "{reason}: {}",
        one_line(text_or(event, "message", ""), DETAIL_LIMIT)
    )
}

fn on<'a>(events: &'a [Value], object: &Value) -> impl Iterator<Item = &'a Value> {
    let uid = text_or(object, "metadata.uid", "").to_owned();
    events
        .iter()
        .filter(move |event| !uid.is_empty() && text_or(event, "involvedObject.uid", "") == uid)
}

fn newest<'a>(events: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    events.max_by_key(|event| time(event))
}

/// Events have had three fields for their time; RFC 3339 texts in UTC sort as times do, to the second.
fn time(event: &Value) -> &str {
    let fields = [
        "series.lastObservedTime",
        "lastTimestamp",
        "eventTime",
        "metadata.creationTimestamp",
    ];
    fields
        .iter()
        .map(|field| text_or(event, field, ""))
        .find(|time| !time.is_empty())
        .unwrap_or_default()
}

//! Manifests that run at a point of a release's life instead of belonging to it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::head::Head;
use helm_chart::{Helm, Warning};

/// The annotation that makes a manifest a hook: events, comma-separated.
pub(super) const EVENTS: &str = "helm.sh/hook";
const WEIGHT: &str = "helm.sh/hook-weight";
const DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
const OUTPUT_LOG_POLICY: &str = "helm.sh/hook-output-log-policy";

/// A manifest with the annotation `helm.sh/hook`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// `metadata.name`.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The template that it came from.
    pub path: Arc<str>,
    /// The document, as rendered.
    pub content: String,
    /// When it runs.
    pub events: Vec<HookEvent>,
    /// Hooks of an event run in the order of their weights; 0 where the annotation is none or no number.
    pub weight: i64,
    /// When it is deleted, as written but in lower case: `hook-succeeded`, `hook-failed`, `before-hook-creation`.
    pub delete_policies: Vec<String>,
    /// When its output is logged, as written but in lower case.
    pub output_log_policies: Vec<String>,
}

/// A point of a release's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are Helm's
pub enum HookEvent {
    PreInstall,
    PostInstall,
    PreDelete,
    PostDelete,
    PreUpgrade,
    PostUpgrade,
    PreRollback,
    PostRollback,
    Test,
}

const NAMES: [(HookEvent, &str); 10] = [
    (HookEvent::PreInstall, "pre-install"),
    (HookEvent::PostInstall, "post-install"),
    (HookEvent::PreDelete, "pre-delete"),
    (HookEvent::PostDelete, "post-delete"),
    (HookEvent::PreUpgrade, "pre-upgrade"),
    (HookEvent::PostUpgrade, "post-upgrade"),
    (HookEvent::PreRollback, "pre-rollback"),
    (HookEvent::PostRollback, "post-rollback"),
    (HookEvent::Test, "test"),
    // Helm 2 told tests that were to succeed from those that were to fail.
    (HookEvent::Test, "test-success"),
];

impl HookEvent {
    /// Returns the event's name in annotations.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(event, _)| *event == self)
            .map_or("", |(_, name)| name)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HookEvent {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let known = NAMES.iter().find(|(_, known)| *known == name);
        known.map(|(event, _)| *event).ok_or(())
    }
}

impl Hook {
    /// Makes a hook of a manifest; one of whose events is unknown gives its list of events back.
    pub(super) fn new(head: Head, path: &Arc<str>, content: String) -> Result<Self, String> {
        let events = head.annotations.get(EVENTS).cloned().unwrap_or_default();
        let parsed: Result<_, ()> = words(&events).map(|name| name.parse()).collect();
        let list = |annotation| {
            let values = head.annotations.get(annotation);
            values.map_or_else(Vec::new, |values| words(values).collect())
        };
        let weight = head.annotations.get(WEIGHT);
        Ok(Self {
            events: parsed.map_err(|()| events)?,
            weight: weight.and_then(|weight| weight.parse().ok()).unwrap_or(0),
            delete_policies: list(DELETE_POLICY),
            output_log_policies: list(OUTPUT_LOG_POLICY),
            name: head.name,
            kind: head.kind,
            path: path.clone(),
            content,
        })
    }

    /// Returns whether it runs when the release is tested.
    pub fn is_test(&self) -> bool {
        self.events.contains(&HookEvent::Test)
    }
}

fn words(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(|word| word.trim().to_lowercase())
}

/// Words what Helm logs about a hook that it leaves out.
pub(super) fn unknown(events: &str, helm: Helm) -> Warning {
    Warning::new(match helm {
        Helm::V3 => format!("info: skipping unknown hook: {events:?}"),
        Helm::V4 => format!("level=INFO msg=\"skipping unknown hooks\" hookTypes={events:?}"),
    })
}

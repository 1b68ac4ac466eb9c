//! What the status says while a revision is held, and the last one that was healthy is applied.

use api::kustomize::{KustomizationStatus, ResourceInventory};
use api::meta::{condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;
use reconcile_kit::writer::Frame;

use super::{Entry, Health, go, remember, set, whole_seconds};

/// Objects that a message names.
const MAX_NAMED: usize = 20;

/// Names the first of several objects, and counts the rest.
pub fn named(objects: &[String]) -> String {
    let shown = objects.len().min(MAX_NAMED);
    let more = match objects.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", objects[..shown].join(", "))
}

/// How a revision is held.
#[derive(Debug, Clone, PartialEq)]
pub struct RolledBack {
    /// Revision that is applied.
    pub revision: String,
    /// Revision at the origin of that.
    pub origin_revision: Option<String>,
    /// Revision that is held.
    pub held: String,
    /// What was not healthy, or what the person says who went back.
    pub why: String,
    /// Whether a person went back.
    pub by_hand: bool,
    /// Since when it is held.
    pub since: Option<Timestamp>,
    /// The command that releases it.
    pub release: String,
    /// Objects that stay as the held revision has them.
    pub stays: Vec<String>,
    /// Objects that are managed now.
    pub inventory: ResourceInventory,
    /// Health of what is applied.
    pub health: Health,
    /// Entry for the history; None if nothing was changed.
    pub history: Option<Entry>,
}

impl RolledBack {
    /// Message of Ready.
    pub fn message(&self) -> String {
        let since = self.since.map(whole_seconds);
        let stays = match self.stays.as_slice() {
            [] => String::new(),
            stays => format!(" These objects stayed as they were: {}.", named(stays)),
        };
        if self.by_hand {
            let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
            return format!(
                "rolled back by hand to revision {}{since}: {}. The source has revision {}, which is not applied until it \
                 is released ({}).{stays}",
                self.revision, self.why, self.held, self.release
            );
        }
        let held = since.map_or_else(
            || "is held".to_owned(),
            |since| format!("has been held since {since}"),
        );
        format!(
            "revision {} {held}: {}. Revision {}, the last that was healthy, is applied instead, until there is a newer \
             one or this one is released ({}).{stays}",
            self.held, self.why, self.revision, self.release
        )
    }
}

pub(super) fn rolled_back(status: &mut KustomizationStatus, frame: Frame<'_>, rolled_back: RolledBack) {
    let message = rolled_back.message();
    for gone in [condition_types::STALLED, condition_types::RECONCILING] {
        conditions::remove(&mut status.conditions, gone);
    }
    let is_healthy = conditions::is_true(&status.conditions, condition_types::HEALTHY);
    if let (Health::Passed(after), false) = (rolled_back.health, is_healthy) {
        let message = format!("Health check passed in {}", go(after));
        set(
            status,
            frame,
            Fact::holds(condition_types::HEALTHY, reasons::SUCCEEDED, message),
        );
    }
    // Without going back, Ready would say that what failed failed.
    let reason = match rolled_back.by_hand {
        true => reasons::ROLLED_BACK,
        false => reasons::HEALTH_CHECK_FAILED,
    };
    set(
        status,
        frame,
        Fact::does_not_hold(condition_types::READY, reason, message.clone()),
    );
    set(
        status,
        frame,
        Fact::holds(condition_types::HELD, reasons::ROLLED_BACK, message),
    );
    if let Some(entry) = rolled_back.history {
        remember(status, frame, entry, reasons::ROLLED_BACK);
    }
    status.inventory = Some(rolled_back.inventory);
    status.last_attempted_revision = Some(rolled_back.held);
    status.last_applied_revision = Some(rolled_back.revision);
    status.last_applied_origin_revision = rolled_back.origin_revision;
    status.observed_generation = Some(frame.generation);
}

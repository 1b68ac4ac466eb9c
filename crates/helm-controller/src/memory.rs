//! Memory that the process keeps of each HelmRelease between two reconciles.
//!
//! Nothing here must survive a restart: what is forgotten is found out again by one run that changes nothing.

use controller_kit::ObjectKey;
use helm_release::Status;
use helm_release::history::Revision;
use jiff::Timestamp;
use reconcile_kit::fights::Fights;
pub use reconcile_kit::memory::Inputs;
use tokio_util::sync::CancellationToken;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The release is as it should be.
    Succeeded,
    /// It is not, and is tried again when the time has come.
    Failed,
    /// It is not, and nothing is done before something changes.
    Stalled,
}

/// The newest run.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Inputs of the run.
    pub inputs: Inputs,
    /// How it ended.
    pub outcome: Outcome,
    /// When the next one is due, if nothing changes before.
    pub next: Timestamp,
    /// The rollback that it carried out, as a person asked for it.
    pub back: Option<Wish>,
}

/// A rollback that a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The revision.
    pub to: i64,
    /// Why, in the person's words.
    pub why: String,
}

/// State of a release as the watch of Helm's records knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Seen {
    /// Nothing yet, or it is in a cluster that is not watched.
    #[default]
    Nothing,
    /// The newest record.
    Newest(Revision),
    /// The newest record was deleted.
    Deleted(i64),
}

impl Seen {
    /// Takes in that a record was written.
    pub fn written(&mut self, revision: Revision) {
        let known = match self {
            Self::Newest(newest) => newest.version,
            Self::Nothing | Self::Deleted(_) => 0,
        };
        if revision.version >= known {
            *self = Self::Newest(revision);
        }
    }

    /// Takes in that a record was deleted. Old ones go as new ones come.
    pub fn deleted(&mut self, version: i64) {
        if !matches!(self, Self::Newest(newest) if newest.version > version) {
            *self = Self::Deleted(version);
        }
    }

    /// Returns whether it is something else than the newest snapshot of the status tells: version and status.
    pub fn differs(&self, latest: Option<(i64, &str)>) -> bool {
        match (self, latest) {
            (Self::Nothing, _) | (Self::Deleted(_), None) => false,
            (Self::Deleted(version), Some((latest, _))) => *version == latest,
            // What an uninstall left behind is no release.
            (Self::Newest(newest), None) => newest.status != Status::Uninstalled,
            (Self::Newest(newest), Some((version, status))) => {
                newest.version > version || (newest.version == version && newest.status.as_str() != status)
            }
        }
    }
}

/// Events that end the waits of a run.
#[derive(Debug, Clone)]
pub struct Ends {
    /// All but those of hooks: there is something newer.
    pub cancelled: CancellationToken,
    /// All: the object is to go, or the process.
    pub stopped: CancellationToken,
}

impl Ends {
    /// Neither, until the process is told to end.
    pub fn new(shutdown: &CancellationToken) -> Self {
        let stopped = shutdown.child_token();
        Self {
            cancelled: stopped.child_token(),
            stopped,
        }
    }
}

/// Memory of one object.
#[derive(Debug, Default)]
pub struct Entry {
    /// The newest run.
    pub attempt: Option<Attempt>,
    /// Objects of the release were changed or deleted by someone else since the newest run began.
    pub drifted: bool,
    /// Objects that someone else changes again and again.
    pub fights: Fights,
    /// A source of values or of a kubeconfig has changed since the newest run began.
    pub inputs_touched: bool,
    /// Something waits for the end of a Freeze.
    pub waits: bool,
    /// Helm's newest record.
    pub seen: Seen,
    /// How many runs have failed in a row.
    pub failures: u32,
    /// Since when it waits for another object.
    pub blocked_since: Option<Timestamp>,
    /// Since when the artifact that the source names is not there.
    pub missing_since: Option<Timestamp>,
    /// Ends the waits of the run that is under way.
    pub running: Option<Ends>,
    /// The newest run has read what the spec takes values from, so that the watches tell of every change of it.
    pub has_read_values: bool,
}

/// The entries of all objects.
pub type Memory = reconcile_kit::memory::Memory<Entry>;

/// Ends the waits of an object's run, if one is under way, but not those of hooks.
pub fn cancel(memory: &Memory, key: &ObjectKey) {
    memory.peek(key, |entry| {
        entry
            .running
            .iter()
            .for_each(|running| running.cancelled.cancel());
    });
}

/// Ends all waits of an object's run, if one is under way.
pub fn stop(memory: &Memory, key: &ObjectKey) {
    memory.peek(key, |entry| {
        entry.running.iter().for_each(|running| running.stopped.cancel());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(version: i64, status: &str) -> Revision {
        Revision {
            version,
            status: Status::from_text(status),
        }
    }

    #[test]
    fn only_what_others_did_to_a_release_matters() {
        let mut seen = Seen::default();
        assert!(!seen.differs(None) && !seen.differs(Some((1, "deployed"))));
        seen.written(revision(2, "deployed"));
        seen.written(revision(1, "superseded"));
        assert!(!seen.differs(Some((2, "deployed"))));
        assert!(
            seen.differs(Some((2, "failed"))) && seen.differs(Some((1, "deployed"))) && seen.differs(None)
        );
        // A newer one of ours, which the watch has not told yet.
        assert!(!seen.differs(Some((3, "deployed"))));
        seen.deleted(1);
        assert!(!seen.differs(Some((2, "deployed"))));
        seen.deleted(2);
        assert!(seen.differs(Some((2, "deployed"))) && !seen.differs(None));
        seen.written(revision(1, "uninstalled"));
        assert!(!seen.differs(None));
    }
}

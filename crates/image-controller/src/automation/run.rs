//! What came of a run.

use std::collections::BTreeMap;

use git_client::ObjectId;
use jiff::Timestamp;

use super::update::Tally;

/// Characters of a commit that are shown.
const SHOWN: usize = 7;
/// Bytes of a message that are shown in an event.
const MAX_SHOWN: usize = 16 << 10;

/// A run that came to its end.
#[derive(Default)]
pub(crate) struct Run {
    /// Of the branch that was edited, as it is now.
    pub(crate) revision: String,
    pub(crate) pushed: Option<Pushed>,
    /// Commits that were pushed, the last one of which that is.
    pub(crate) commits: u64,
    /// Pull requests that are open now.
    pub(crate) open: usize,
    /// Markers without effect; None if the repository was not looked at.
    pub(crate) notes: Option<Vec<String>>,
    /// What was found in the files of the base; None if the repository was not looked at.
    pub(crate) looked: Option<Looked>,
    /// Choices that were held back, in a line each.
    pub(crate) held: Vec<String>,
    /// With pull requests: where each group of changes stands.
    pub(crate) proposed: Vec<Proposed>,
}

/// What was found in the files of a commit.
pub(crate) struct Looked {
    /// The commit.
    pub(crate) base: String,
    /// What became of the markers of each policy, by `namespace:name`.
    pub(crate) tallies: BTreeMap<String, Tally>,
}

/// A commit that was pushed.
pub(crate) struct Pushed {
    pub(crate) commit: ObjectId,
    pub(crate) message: String,
}

/// What became of a group of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proposed {
    /// Where it stands, in a line; empty if there is nothing to propose.
    pub(crate) line: String,
    /// Reason of the condition.
    pub(crate) reason: &'static str,
    /// What happened in this run.
    pub(crate) event: Option<String>,
    /// When it is worth another look, before the interval is over.
    pub(crate) again: Option<Timestamp>,
}

impl Run {
    /// What happened, for people.
    pub(super) fn events(&self) -> Vec<String> {
        let events = self.proposed.iter().filter_map(|proposed| proposed.event.clone());
        let mut events: Vec<_> = self.held.iter().cloned().chain(events).collect();
        if let (Some(pushed), true) = (&self.pushed, self.proposed.is_empty()) {
            let branch = self.revision.split('@').next().unwrap_or_default();
            let commit = pushed.commit.to_string();
            let (short, message) = (&commit[..SHOWN], &pushed.message);
            let shown = &message[..message.floor_char_boundary(MAX_SHOWN)];
            events.push(format!("pushed commit '{short}' to branch '{branch}'\n{shown}"));
        }
        events
    }
}

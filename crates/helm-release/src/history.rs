//! The revisions of a release: which one counts, and which may go. Known from labels alone.

use crate::record::Labels;
use crate::release::Status;

/// A revision, as the labels of its Secret tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Which.
    pub version: i64,
    /// Its status.
    pub status: Status,
}

/// The revisions of one release, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(Vec<Revision>);

impl Revision {
    /// Reads the labels of a Secret. None if they are not those of a record.
    #[must_use]
    pub fn from_labels(labels: &Labels) -> Option<Self> {
        Some(Self {
            version: labels.get("version")?.parse().ok()?,
            status: Status::from_text(labels.get("status")?),
        })
    }
}

impl FromIterator<Revision> for History {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        let mut revisions: Vec<_> = revisions.into_iter().collect();
        revisions.sort_by_key(|revision| revision.version);
        Self(revisions)
    }
}

impl History {
    /// All, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Revision> {
        self.0.iter()
    }

    /// The newest.
    #[must_use]
    pub fn last(&self) -> Option<&Revision> {
        self.0.last()
    }

    /// The newest that is deployed. There should be one at most; a crash of Helm may have left more.
    #[must_use]
    pub fn deployed(&self) -> Option<&Revision> {
        self.0
            .iter()
            .rev()
            .find(|revision| revision.status == Status::Deployed)
    }

    /// The number of the next revision.
    #[must_use]
    pub fn next_version(&self) -> i64 {
        self.last().map_or(1, |last| last.version.saturating_add(1))
    }

    /// The oldest revisions, which go so that one more makes no more than `max`; all stay when it is 0. The deployed one
    /// always stays.
    #[must_use]
    pub fn in_the_way(&self, max: usize) -> Vec<i64> {
        let Some(room) = max.checked_sub(1) else {
            return Vec::new();
        };
        let deployed = self.deployed().map(|revision| revision.version);
        let others = self
            .0
            .iter()
            .filter(|revision| Some(revision.version) != deployed);
        others
            .take(self.0.len().saturating_sub(room))
            .map(|revision| revision.version)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(statuses: &[&str]) -> History {
        let revision = |(index, status): (usize, &&str)| {
            let version = (index + 1).to_string();
            let labels = [
                ("version".to_owned(), version),
                ("status".to_owned(), (*status).to_owned()),
            ];
            Revision::from_labels(&Labels::from(labels)).unwrap()
        };
        // A list of the API server is sorted by name: v10 stands before v9.
        statuses.iter().enumerate().rev().map(revision).collect()
    }

    #[test]
    fn the_newest_and_the_deployed_one_are_found() {
        let history = history(&["superseded", "deployed", "deployed", "failed"]);
        assert_eq!(history.last().unwrap().version, 4);
        assert_eq!(history.deployed().unwrap().version, 3);
        assert_eq!(history.next_version(), 5);
        assert_eq!(History::default().next_version(), 1);
        assert_eq!(History::default().deployed(), None);
    }

    #[test]
    fn the_oldest_make_room_and_the_deployed_one_stays() {
        for (statuses, max, gone) in [
            (&["superseded", "superseded", "deployed"][..], 3, &[1][..]),
            (&["superseded", "superseded", "deployed"], 4, &[]),
            (&["superseded", "superseded", "deployed"], 0, &[]),
            (&["superseded", "superseded", "deployed"], 1, &[1, 2]),
            (&["deployed", "failed", "failed", "failed"], 2, &[2, 3, 4]),
            (&["failed", "failed"], 1, &[1, 2]),
            (&[], 5, &[]),
        ] {
            assert_eq!(history(statuses).in_the_way(max), gone, "{statuses:?} {max}");
        }
    }

    #[test]
    fn other_secrets_are_no_revisions() {
        for labels in [
            vec![],
            vec![("version", "1")],
            vec![("version", "x"), ("status", "deployed")],
        ] {
            let labels = labels
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(Revision::from_labels(&labels.collect()), None);
        }
    }
}

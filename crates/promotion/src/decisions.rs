//! What people decided about a pipeline: holds and approvals, in two of its annotations.
//!
//! Each is a JSON list. What cannot be read holds everything and approves nothing.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Annotation with the holds of a pipeline: a JSON list of [`Hold`].
pub const HOLDS: &str = "delivery.windlass.dev/holds";
/// Annotation with the approvals of a pipeline: a JSON list of [`Approval`].
pub const APPROVALS: &str = "delivery.windlass.dev/approvals";

/// Entries of one list.
const MAX_ENTRIES: usize = 200;
/// Characters of a reason or a name that are shown.
const MAX_SHOWN: usize = 200;

/// Nothing that it names is promoted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// The environment that is held; every one if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// The release that is held; every one if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    /// Why, in the words of who held it.
    #[serde(default)]
    pub reason: String,
    /// Who held it.
    #[serde(default)]
    pub by: String,
    /// When it ends by itself; never if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Hold {
    /// Returns whether it holds a release back from an environment at a time.
    pub fn holds(&self, environment: &str, release: u64, now: Timestamp) -> bool {
        (self.environment.is_empty() || self.environment == environment)
            && self.release.is_none_or(|held| held == release)
            && self.until.is_none_or(|until| now < until)
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by.is_empty() {
            true => "someone".to_owned(),
            false => shown(&self.by),
        };
        write!(formatter, "held by {by}")?;
        match self.reason.is_empty() {
            true => Ok(()),
            false => write!(formatter, ": {}", shown(&self.reason)),
        }
    }
}

/// One person agrees that one release enters one environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The environment.
    pub environment: String,
    /// Digest of the release: an approval is for what it carries.
    pub digest: String,
    /// Who agrees.
    pub by: String,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// An annotation that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the annotation {annotation} cannot be read: {problem}")]
pub struct Error {
    annotation: &'static str,
    problem: String,
}

/// What people decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decisions {
    /// The holds.
    pub holds: Vec<Hold>,
    /// The approvals.
    pub approvals: Vec<Approval>,
}

impl Decisions {
    /// Reads both annotations.
    ///
    /// # Errors
    /// When one of them is not such a list. Then nothing may be promoted: it may have been a hold.
    pub fn parse(holds: Option<&str>, approvals: Option<&str>) -> Result<Self, Error> {
        Ok(Self {
            holds: list(HOLDS, holds)?,
            approvals: list(APPROVALS, approvals)?,
        })
    }

    /// Returns the hold that keeps a release out of an environment.
    pub fn hold(&self, environment: &str, release: u64, now: Timestamp) -> Option<&Hold> {
        let mut holds = self.holds.iter();
        holds.find(|hold| hold.holds(environment, release, now))
    }

    /// Returns who agrees that a release enters an environment, in the order of their names.
    pub fn approvers(&self, environment: &str, digest: &str) -> BTreeSet<&str> {
        let approvals = self.approvals.iter();
        approvals
            .filter(|one| one.environment == environment && one.digest == digest && !one.by.is_empty())
            .map(|one| one.by.as_str())
            .collect()
    }
}

fn list<T: for<'de> Deserialize<'de>>(annotation: &'static str, text: Option<&str>) -> Result<Vec<T>, Error> {
    let wrong = |problem: String| Error { annotation, problem };
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    let list: Vec<T> = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if list.len() > MAX_ENTRIES {
        return Err(wrong(format!("it has more than {MAX_ENTRIES} entries")));
    }
    Ok(list)
}

/// Text of a person, fit to stand in a message.
pub(crate) fn shown(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_hold_is_as_wide_as_it_says_and_ends() {
        let text = r#"[
            {"environment": "production", "release": 5, "reason": "bad", "by": "ana"},
            {"environment": "staging", "until": "2026-11-26T12:00:00Z"}
        ]"#;
        let decisions = Decisions::parse(Some(text), None).unwrap();
        let held = |environment, release, now: &str| {
            let hold = decisions.hold(environment, release, at(now));
            hold.map(ToString::to_string)
        };
        let before = "2026-11-26T11:59:59Z";
        assert_eq!(held("production", 5, before).unwrap(), "held by ana: bad");
        assert_eq!(held("production", 6, before), None);
        assert_eq!(held("staging", 6, before).unwrap(), "held by someone");
        assert_eq!(held("staging", 6, "2026-11-26T12:00:00Z"), None);
        let all = Decisions::parse(Some("[{}]"), None).unwrap();
        assert!(all.hold("any", 1, at(before)).is_some());
    }

    #[test]
    fn people_count_once_and_for_what_they_saw() {
        let text = r#"[
            {"environment": "p", "digest": "d", "by": "ana"},
            {"environment": "p", "digest": "d", "by": "ana"},
            {"environment": "p", "digest": "d", "by": ""},
            {"environment": "p", "digest": "other", "by": "ben"},
            {"environment": "q", "digest": "d", "by": "eve"}
        ]"#;
        let decisions = Decisions::parse(None, Some(text)).unwrap();
        assert_eq!(
            decisions.approvers("p", "d").into_iter().collect::<Vec<_>>(),
            ["ana"]
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = Decisions::parse(Some("{"), None).unwrap_err().to_string();
        assert!(
            error.starts_with("the annotation delivery.windlass.dev/holds cannot be read: "),
            "{error}"
        );
        let many = format!("[{}]", vec!["{}"; MAX_ENTRIES + 1].join(","));
        assert!(Decisions::parse(Some(&many), None).is_err());
        assert_eq!(shown("a\nb"), "a b");
    }
}

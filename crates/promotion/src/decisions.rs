//! What people decided about a pipeline: holds, approvals and promotions by hand, in annotations.
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
/// Annotation with what people promote by hand: a JSON list of [`Promotion`].
pub const PROMOTIONS: &str = "delivery.windlass.dev/promotions";
/// All annotations with decisions.
pub const ANNOTATIONS: [&str; 3] = [HOLDS, APPROVALS, PROMOTIONS];

/// Entries of one list.
pub(crate) const MAX_ENTRIES: usize = 200;
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
        write!(formatter, "held by {}", by(&self.by))?;
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
    /// The group of theirs for which they agree, where the environment names groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// A release goes into an environment that has had it, or a newer one: back after a rollback, or again. Carried out
/// once in each target, without windows, approvals and gates. The last one of an environment counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Promotion {
    /// The environment.
    pub environment: String,
    /// Number of the release.
    pub release: u64,
    /// Why, in the words of who promotes.
    #[serde(default)]
    pub reason: String,
    /// Who promotes.
    #[serde(default)]
    pub by: String,
    /// When. It is not due before. Two with the same second are one.
    pub at: Timestamp,
}

impl fmt::Display for Promotion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&by(&self.by))?;
        match self.reason.is_empty() {
            true => Ok(()),
            false => write!(formatter, ": {}", shown(&self.reason)),
        }
    }
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
    /// What people promote by hand.
    pub promotions: Vec<Promotion>,
}

impl Decisions {
    /// Reads the annotations of a pipeline.
    ///
    /// # Errors
    /// When one of them is not such a list. Then nothing may be promoted: it may have been a hold.
    pub fn parse<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Result<Self, Error> {
        Ok(Self {
            holds: list(HOLDS, annotation(HOLDS))?,
            approvals: list(APPROVALS, annotation(APPROVALS))?,
            promotions: list(PROMOTIONS, annotation(PROMOTIONS))?,
        })
    }

    /// Returns what was promoted by hand into an environment last.
    pub fn promotion(&self, environment: &str) -> Option<&Promotion> {
        let promotions = self.promotions.iter();
        promotions
            .filter(|one| one.environment == environment)
            .max_by_key(|one| one.at)
    }

    /// Returns the hold that keeps a release out of an environment.
    pub fn hold(&self, environment: &str, release: u64, now: Timestamp) -> Option<&Hold> {
        let mut holds = self.holds.iter();
        holds.find(|hold| hold.holds(environment, release, now))
    }

    /// Returns who agrees that a release enters an environment, in the order of their names. Where groups are named, only
    /// people who agree for one of them count.
    pub fn approvers(&self, environment: &str, digest: &str, groups: &[String]) -> BTreeSet<&str> {
        let approvals = self.approvals.iter();
        approvals
            .filter(|one| one.environment == environment && one.digest == digest && !one.by.is_empty())
            .filter(|one| groups.is_empty() || groups.contains(&one.group))
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

fn by(name: &str) -> String {
    match name.is_empty() {
        true => "someone".to_owned(),
        false => shown(name),
    }
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

    fn read(annotation: &str, text: &str) -> Result<Decisions, Error> {
        Decisions::parse(|name| (name == annotation).then_some(text))
    }

    #[test]
    fn a_hold_is_as_wide_as_it_says_and_ends() {
        let text = r#"[
            {"environment": "production", "release": 5, "reason": "bad", "by": "ana"},
            {"environment": "staging", "until": "2026-11-26T12:00:00Z"}
        ]"#;
        let decisions = read(HOLDS, text).unwrap();
        let held = |environment, release, now: &str| {
            let hold = decisions.hold(environment, release, at(now));
            hold.map(ToString::to_string)
        };
        let before = "2026-11-26T11:59:59Z";
        assert_eq!(held("production", 5, before).unwrap(), "held by ana: bad");
        assert_eq!(held("production", 6, before), None);
        assert_eq!(held("staging", 6, before).unwrap(), "held by someone");
        assert_eq!(held("staging", 6, "2026-11-26T12:00:00Z"), None);
        let all = read(HOLDS, "[{}]").unwrap();
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
        let decisions = read(APPROVALS, text).unwrap();
        assert_eq!(
            decisions.approvers("p", "d", &[]).into_iter().collect::<Vec<_>>(),
            ["ana"]
        );
    }

    #[test]
    fn the_last_promotion_of_an_environment_counts() {
        let text = r#"[
            {"environment": "p", "release": 3, "at": "2026-11-26T12:00:00Z", "by": "ana", "reason": "crash"},
            {"environment": "p", "release": 2, "at": "2026-11-26T11:00:00Z"},
            {"environment": "q", "release": 1, "at": "2026-11-26T13:00:00Z"}
        ]"#;
        let decisions = read(PROMOTIONS, text).unwrap();
        let last = decisions.promotion("p").unwrap();
        assert_eq!((last.release, last.to_string().as_str()), (3, "ana: crash"));
        assert_eq!(decisions.promotion("r"), None);
        let timeless = r#"[{"environment": "p", "release": 3}]"#;
        assert!(read(PROMOTIONS, timeless).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = read(HOLDS, "{").unwrap_err().to_string();
        assert!(
            error.starts_with("the annotation delivery.windlass.dev/holds cannot be read: "),
            "{error}"
        );
        let many = format!("[{}]", vec!["{}"; MAX_ENTRIES + 1].join(","));
        assert!(read(HOLDS, &many).is_err());
        assert_eq!(shown("a\nb"), "a b");
    }
}

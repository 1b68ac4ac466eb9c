//! Rules that a user gives as CEL expressions, per kind or for all kinds of a group (Flux's RFC 0009).

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cel_expression::Expression;
use jiff::Timestamp;
use manifest::GroupVersionKind;
use serde_json::Value;

use crate::kinds::pod;
use crate::verdict::{Rule, Status, Verdict};

/// The expressions for a kind, as a spec gives them.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// Only its group matters.
    pub api_version: &'a str,
    /// None is all kinds of the group that have no check of their own.
    pub kind: Option<&'a str>,
    /// True while a controller is at work.
    pub in_progress: Option<&'a str>,
    /// True when the object has failed.
    pub failed: Option<&'a str>,
    /// True when the object is as it should be.
    pub current: &'a str,
}

/// Checks that cannot be used; the words are Flux's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// Two checks for the same kind.
    #[error("duplicate custom health check for GroupKind {kind} at healthchecks[{index}]")]
    Duplicate {
        /// `Kind.group`, or `.group`.
        kind: String,
        /// Which of them.
        index: usize,
    },
    /// An expression that is none.
    #[error(
        "failed to create custom status evaluator for healthchecks[{index}]: failed to parse the expression {name}: {source}"
    )]
    Parse {
        /// Of which check.
        index: usize,
        /// Which expression of it.
        name: &'static str,
        /// The problem. Already part of the message.
        source: cel_expression::Error,
    },
}

/// The checks of one wait. Kinds without one go by kstatus.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    by_kind: Arc<HashMap<(String, String), Arc<Custom>>>,
}

impl Checks {
    /// Understands the checks.
    pub fn new<'a>(checks: impl IntoIterator<Item = Check<'a>>) -> Result<Self, CheckError> {
        let mut by_kind = HashMap::new();
        for (index, check) in checks.into_iter().enumerate() {
            let kind = check.kind.unwrap_or_default();
            let group = GroupVersionKind::new(check.api_version, kind).group;
            let custom = Arc::new(Custom::new(index, &check)?);
            let name = format!("{kind}.{group}");
            if by_kind.insert((group, kind.to_owned()), custom).is_some() {
                return Err(CheckError::Duplicate { kind: name, index });
            }
        }
        Ok(Self {
            by_kind: Arc::new(by_kind),
        })
    }

    /// Adds a check for a kind that has none.
    ///
    /// # Errors
    /// When the check cannot be used.
    pub fn or(self, check: Check<'_>) -> Result<Self, CheckError> {
        let kind = check.kind.unwrap_or_default();
        let group = GroupVersionKind::new(check.api_version, kind).group;
        if self.covers(&group, kind) {
            return Ok(self);
        }
        let mut by_kind = (*self.by_kind).clone();
        let custom = Custom::new(by_kind.len(), &check)?;
        by_kind.insert((group, kind.to_owned()), Arc::new(custom));
        Ok(Self {
            by_kind: Arc::new(by_kind),
        })
    }

    /// The same checks for hooks of Helm, which run to their end: a Pod without a check is Current when it has succeeded
    /// and Failed when it has failed.
    #[must_use]
    pub fn for_hooks(&self) -> Self {
        if self.covers("", "Pod") {
            return self.clone();
        }
        let mut by_kind = HashMap::clone(&self.by_kind);
        let pods = Custom {
            expressions: Vec::new(),
            is_end_of_pod: true,
        };
        by_kind.insert((String::new(), "Pod".to_owned()), Arc::new(pods));
        Self {
            by_kind: Arc::new(by_kind),
        }
    }

    /// Returns whether a kind has a check.
    pub fn covers(&self, group: &str, kind: &str) -> bool {
        let find = |kind: &str| self.by_kind.contains_key(&(group.to_owned(), kind.to_owned()));
        find(kind) || find("")
    }

    pub(crate) fn check_of(&self, gvk: &GroupVersionKind) -> Option<&Arc<Custom>> {
        let find = |kind: &str| self.by_kind.get(&(gvk.group.clone(), kind.to_owned()));
        find(&gvk.kind).or_else(|| find(""))
    }
}

/// One check. Two of the same text are the same, so that waits share watches.
#[derive(Debug)]
pub(crate) struct Custom {
    /// In the order in which they are asked.
    expressions: Vec<(Status, Expression)>,
    /// There are no expressions, but the rule for Pods that are hooks.
    is_end_of_pod: bool,
}

impl Custom {
    fn new(index: usize, check: &Check<'_>) -> Result<Self, CheckError> {
        let asked = [
            ("InProgress", Status::InProgress, check.in_progress),
            ("Failed", Status::Failed, check.failed),
            ("Current", Status::Current, Some(check.current)),
        ];
        let given = asked
            .into_iter()
            .filter_map(|(name, status, text)| Some((name, status, text?)));
        let expressions = given.map(|(name, status, text)| {
            let parsed = Expression::parse(text);
            let expression = parsed.map_err(|source| CheckError::Parse { index, name, source })?;
            Ok((status, expression))
        });
        Ok(Self {
            expressions: expressions.collect::<Result<_, CheckError>>()?,
            is_end_of_pod: false,
        })
    }

    fn texts(&self) -> impl Iterator<Item = (Status, &str)> {
        self.expressions
            .iter()
            .map(|(status, expression)| (*status, expression.text()))
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        self.is_end_of_pod == other.is_end_of_pod && self.texts().eq(other.texts())
    }
}

impl Eq for Custom {}

impl Hash for Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_end_of_pod.hash(state);
        self.texts().for_each(|text| text.hash(state));
    }
}

impl Rule for Custom {
    /// A generation that was not observed yet is in progress, before any expression is asked. An expression without an
    /// answer leaves the object Unknown: a field may not be there yet.
    fn verdict(&self, object: &Value, _now: Timestamp) -> Verdict {
        if self.is_end_of_pod {
            return pod::end(object);
        }
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        if let (Some(generation), Some(observed)) = (
            number("/metadata/generation"),
            number("/status/observedGeneration"),
        ) && generation != observed
        {
            return Verdict::in_progress(format!(
                "generation {generation} is not yet observed, the last observed is {observed}"
            ));
        }
        for (status, expression) in &self.expressions {
            match expression.evaluate_boolean(object) {
                Ok(true) => return Verdict::new(*status, format!("'{}' is true", expression.text())),
                Ok(false) => {}
                Err(error) => return Verdict::new(Status::Unknown, error.to_string()),
            }
        }
        Verdict::in_progress("no health check expression is true")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHECK: Check<'static> = Check {
        api_version: "example.com/v1",
        kind: Some("Thing"),
        in_progress: Some("status.phase == 'Working'"),
        failed: Some("status.phase == 'Broken'"),
        current: "status.phase == 'Done'",
    };

    #[test]
    fn expressions_are_asked_in_order() {
        let checks = Checks::new([CHECK]).expect("good checks");
        let rule = checks
            .check_of(&GroupVersionKind::new("example.com/v2", "Thing"))
            .expect("the version does not matter");
        let check = |object: Value, status: Status, message: &str| {
            let verdict = rule.verdict(&object, Timestamp::UNIX_EPOCH);
            assert_eq!((verdict.status, verdict.message.as_str()), (status, message));
        };
        let with = |phase: &str| json!({"status": {"phase": phase}});
        check(
            with("Working"),
            Status::InProgress,
            "'status.phase == 'Working'' is true",
        );
        check(
            with("Broken"),
            Status::Failed,
            "'status.phase == 'Broken'' is true",
        );
        check(with("Done"), Status::Current, "'status.phase == 'Done'' is true");
        check(
            with("Other"),
            Status::InProgress,
            "no health check expression is true",
        );
        check(
            json!({"status": {}}),
            Status::Unknown,
            "failed to evaluate the CEL expression 'status.phase == 'Working'': no such key: phase",
        );
        check(
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "phase": "Done"}}),
            Status::InProgress,
            "generation 2 is not yet observed, the last observed is 1",
        );
        // As in Flux, a generation of another type is left to the expressions.
        check(
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": "1", "phase": "Done"}}),
            Status::Current,
            "'status.phase == 'Done'' is true",
        );
    }

    #[test]
    fn a_check_of_the_kind_goes_before_one_of_its_group() {
        let group = Check { kind: None, ..CHECK };
        let checks = Checks::new([group, CHECK]).expect("good checks");
        let of = |kind| checks.check_of(&GroupVersionKind::new("example.com/v1", kind));
        assert!(of("Thing").is_some() && of("Other").is_some());
        assert!(
            checks
                .check_of(&GroupVersionKind::new("apps/v1", "Thing"))
                .is_none()
        );
        assert!(!Arc::ptr_eq(
            of("Thing").expect("there"),
            of("Other").expect("there")
        ));
    }

    #[test]
    fn a_pod_that_is_a_hook_runs_to_its_end_unless_there_is_a_check_for_it() {
        let pod = GroupVersionKind::new("v1", "Pod");
        let checks = Checks::new([CHECK]).expect("good checks").for_hooks();
        let rule = checks.check_of(&pod).expect("Pods are covered");
        let verdict = |status: Value| rule.verdict(&json!({"status": status}), Timestamp::UNIX_EPOCH);
        let is = |status: Value, expected: Status, message: &str| {
            let verdict = verdict(status);
            assert_eq!((verdict.status, verdict.message.as_str()), (expected, message));
        };
        is(json!({}), Status::InProgress, "not yet observed by a kubelet");
        is(json!({"phase": "Pending"}), Status::InProgress, "pending");
        let ready = json!([{"type": "Ready", "status": "True"}]);
        is(
            json!({"phase": "Running", "conditions": ready}),
            Status::InProgress,
            "running",
        );
        is(json!({"phase": "Succeeded"}), Status::Current, "succeeded");
        is(json!({"phase": "Failed"}), Status::Failed, "failed");
        is(
            json!({"phase": "Failed", "reason": "Evicted"}),
            Status::Failed,
            "failed: Evicted",
        );
        let own = Check {
            api_version: "v1",
            kind: None,
            ..CHECK
        };
        let own = Checks::new([own]).expect("good checks");
        assert!(
            own.for_hooks()
                .check_of(&pod)
                .is_some_and(|rule| !rule.is_end_of_pod)
        );
        assert_ne!(rule, own.check_of(&pod).expect("it covers the group"));
    }

    #[test]
    fn checks_that_cannot_be_used_are_named() {
        let error = |checks: &[Check<'_>]| {
            Checks::new(checks.iter().copied())
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(
            error(&[CHECK, CHECK]),
            "duplicate custom health check for GroupKind Thing.example.com at healthchecks[1]"
        );
        let broken = Check {
            current: "status.",
            ..CHECK
        };
        let error = error(&[broken]);
        assert!(error.starts_with(
            "failed to create custom status evaluator for healthchecks[0]: failed to parse the expression Current: \
             failed to parse the CEL expression 'status.': "
        ), "{error}");
    }
}

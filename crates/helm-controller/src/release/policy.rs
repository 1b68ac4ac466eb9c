//! Failure policy and time limits of the spec, with defaults.

use api::helm::{ActionStrategyName, HelmRelease, HelmReleaseStatus, ReleaseAction, RemediationStrategy};
use api::meta::Duration;

use super::action::Action;

/// How long to wait before an action that failed is tried again, if the spec does not say.
const RETRY_INTERVAL: Duration = Duration::from_secs(300);

/// Remediation of a failed action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remediation {
    action: ReleaseAction,
    retries: i64,
    ignores_test_failures: Option<bool>,
    /// True if the last failure is remedied too.
    pub(super) remedies_last_failure: bool,
    /// By what.
    pub(super) strategy: RemediationStrategy,
}

impl Remediation {
    /// Of an install.
    pub(super) fn of_install(object: &HelmRelease) -> Self {
        let install = object.spec.install.as_ref();
        let given = install.and_then(|install| install.remediation.as_ref());
        Self {
            action: ReleaseAction::Install,
            retries: given.map_or(0, |given| given.retries),
            ignores_test_failures: given.and_then(|given| given.ignore_test_failures),
            remedies_last_failure: given
                .and_then(|given| given.remediate_last_failure)
                .unwrap_or(false),
            strategy: RemediationStrategy::Uninstall,
        }
    }

    /// Of an upgrade.
    pub(super) fn of_upgrade(object: &HelmRelease) -> Self {
        let upgrade = object.spec.upgrade.as_ref();
        let given = upgrade.and_then(|upgrade| upgrade.remediation.as_ref());
        let retries = given.map_or(0, |given| given.retries);
        let last = given.and_then(|given| given.remediate_last_failure);
        Self {
            action: ReleaseAction::Upgrade,
            retries,
            ignores_test_failures: given.and_then(|given| given.ignore_test_failures),
            remedies_last_failure: last.unwrap_or(retries > 0),
            strategy: given.and_then(|given| given.strategy).unwrap_or_default(),
        }
    }

    /// Of the action that was tried last. None before the first.
    pub(super) fn active(object: &HelmRelease, status: &HelmReleaseStatus) -> Option<Self> {
        Some(match status.last_attempted_release_action? {
            ReleaseAction::Install => Self::of_install(object),
            ReleaseAction::Upgrade => Self::of_upgrade(object),
        })
    }

    /// How often the action failed.
    pub(super) fn failures(&self, status: &HelmReleaseStatus) -> i64 {
        match self.action {
            ReleaseAction::Install => status.install_failures,
            ReleaseAction::Upgrade => status.upgrade_failures,
        }
    }

    /// Counts a failure of the action.
    pub(super) fn count_failure(&self, status: &mut HelmReleaseStatus) {
        let failures = match self.action {
            ReleaseAction::Install => &mut status.install_failures,
            ReleaseAction::Upgrade => &mut status.upgrade_failures,
        };
        *failures = failures.saturating_add(1);
    }

    /// Returns whether it failed more often than it is to be tried again.
    pub(super) fn is_exhausted(&self, status: &HelmReleaseStatus) -> bool {
        self.retries >= 0 && self.failures(status) > self.retries
    }

    /// Returns whether failing tests are no failure.
    pub(super) fn ignores_test_failures(&self, object: &HelmRelease) -> bool {
        self.ignores_test_failures
            .unwrap_or_else(|| tests_may_fail(object))
    }

    /// Returns whether an upgrade that failed is undone by an uninstall, after which comes an install.
    pub(super) fn uninstalls_after_upgrade(&self) -> bool {
        self.action == ReleaseAction::Upgrade && self.strategy == RemediationStrategy::Uninstall
    }
}

/// After how long the action is simply tried again, if that is its strategy.
pub(super) fn retry(object: &HelmRelease, action: ReleaseAction, by_default: bool) -> Option<Duration> {
    let strategy = match action {
        ReleaseAction::Install => {
            let install = object.spec.install.as_ref();
            let strategy = install.and_then(|install| install.strategy.as_ref());
            strategy.map(|strategy| (strategy.name, strategy.retry_interval))
        }
        ReleaseAction::Upgrade => {
            let upgrade = object.spec.upgrade.as_ref();
            let strategy = upgrade.and_then(|upgrade| upgrade.strategy.as_ref());
            strategy.map(|strategy| (strategy.name, strategy.retry_interval))
        }
    };
    match strategy {
        None => by_default.then_some(RETRY_INTERVAL),
        Some((ActionStrategyName::RetryOnFailure, interval)) => Some(interval.unwrap_or(RETRY_INTERVAL)),
        Some((ActionStrategyName::RemediateOnFailure, _)) => None,
    }
}

/// [`retry`] of the action that was tried last.
pub(super) fn active_retry(
    object: &HelmRelease,
    status: &HelmReleaseStatus,
    by_default: bool,
) -> Option<Duration> {
    retry(object, status.last_attempted_release_action?, by_default)
}

/// Returns whether the chart's tests are run.
pub(super) fn tests(object: &HelmRelease) -> bool {
    object.spec.test.as_ref().is_some_and(|test| test.enable)
}

/// Returns whether failing tests are no failure, unless install or upgrade say otherwise.
pub(super) fn tests_may_fail(object: &HelmRelease) -> bool {
    object.spec.test.as_ref().is_some_and(|test| test.ignore_failures)
}

/// How long an action may take.
pub fn timeout(object: &HelmRelease, action: &Action) -> Duration {
    let spec = &object.spec;
    let own = match action {
        Action::Install => spec.install.as_ref().and_then(|install| install.timeout),
        Action::Upgrade => spec.upgrade.as_ref().and_then(|upgrade| upgrade.timeout),
        Action::Test => spec.test.as_ref().and_then(|test| test.timeout),
        Action::RollBack(_) => spec.rollback.as_ref().and_then(|rollback| rollback.timeout),
        Action::UninstallRemediation | Action::FinishUninstall | Action::Uninstall => {
            spec.uninstall.as_ref().and_then(|uninstall| uninstall.timeout)
        }
        Action::Unlock(_) | Action::CorrectDrift(_) => None,
    };
    own.unwrap_or_else(|| object.timeout())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::object;
    use super::*;

    #[test]
    fn the_last_failure_of_an_upgrade_is_remedied_if_there_are_retries() {
        let of = |remediation: serde_json::Value| {
            let object = object(&json!({
                "install": {"remediation": remediation}, "upgrade": {"remediation": remediation},
            }));
            let (install, upgrade) = (Remediation::of_install(&object), Remediation::of_upgrade(&object));
            (install.remedies_last_failure, upgrade.remedies_last_failure)
        };
        assert_eq!(of(json!({})), (false, false));
        assert_eq!(of(json!({"retries": 1})), (false, true));
        assert_eq!(of(json!({"retries": -1})), (false, false));
        assert_eq!(
            of(json!({"retries": 1, "remediateLastFailure": false})),
            (false, false)
        );
        assert_eq!(of(json!({"remediateLastFailure": true})), (true, true));
    }

    #[test]
    fn retries_are_exhausted_by_one_failure_more_and_never_if_negative() {
        let status = HelmReleaseStatus {
            upgrade_failures: 3,
            ..HelmReleaseStatus::default()
        };
        for (retries, exhausted) in [(0, true), (2, true), (3, false), (-1, false)] {
            let object = object(&json!({"upgrade": {"remediation": {"retries": retries}}}));
            assert_eq!(
                Remediation::of_upgrade(&object).is_exhausted(&status),
                exhausted,
                "{retries}"
            );
        }
    }

    #[test]
    fn the_gate_counts_only_where_no_strategy_is_named() {
        let none = object(&json!({}));
        assert_eq!(retry(&none, ReleaseAction::Install, false), None);
        assert_eq!(
            retry(&none, ReleaseAction::Upgrade, true),
            Some(Duration::from_secs(300))
        );
        let named = object(&json!({
            "install": {"strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}},
            "upgrade": {"strategy": {"name": "RemediateOnFailure"}},
        }));
        assert_eq!(
            retry(&named, ReleaseAction::Install, false),
            Some(Duration::from_secs(30))
        );
        assert_eq!(retry(&named, ReleaseAction::Upgrade, true), None);
    }
}

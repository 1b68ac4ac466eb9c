//! The history in the status: one snapshot of each revision that the controller made, newest first, back to the last good one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use api::helm::{Snapshot, TestFilter, TestHookStatus};
use helm_release::{HookPhase, Release, Time as HelmTime, observation, values};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Which way of computing the digest is in use: that of Helm 4.
pub(super) const SNAPSHOT_VERSION: &str = "v2";
/// How many snapshots stay when none of them is good.
const MAX_SNAPSHOTS: usize = 5;
/// Where Go's clock begins, in seconds: what it writes for a time that is not set.
const GO_ZERO: i64 = -62_135_596_800;

/// Phase of a test that failed, in Helm's words.
const FAILED: &str = "Failed";
/// Phase of a test that succeeded, in Helm's words.
const SUCCEEDED: &str = "Succeeded";

/// The newest snapshot.
pub fn latest(history: &[Snapshot]) -> Option<&Snapshot> {
    history.iter().max_by_key(|snapshot| snapshot.version)
}

/// Operations on a history. It stays in order, the newest first.
pub trait Snapshots {
    /// The newest good snapshot before the newest: what can be rolled back to.
    fn previous(&self, ignore_tests: bool) -> Option<&Snapshot>;
    /// Drops what is older than the previous good one; without one, all but the newest few.
    fn truncate_to_previous(&mut self, ignore_tests: bool);
    /// Drops all but the newest few.
    fn truncate_to_newest(&mut self);
    /// Puts the snapshots in order.
    fn sort_by_version(&mut self);
    /// The snapshot of this very revision.
    fn find_mut(&mut self, release: &Release) -> Option<&mut Snapshot>;
}

impl Snapshots for Vec<Snapshot> {
    fn previous(&self, ignore_tests: bool) -> Option<&Snapshot> {
        let newest = latest(self)?.version;
        let good = self
            .iter()
            .filter(|snapshot| snapshot.version != newest && is_good(snapshot, ignore_tests));
        good.max_by_key(|snapshot| snapshot.version)
    }

    fn truncate_to_previous(&mut self, ignore_tests: bool) {
        self.sort_by_version();
        let previous = self
            .iter()
            .skip(1)
            .position(|snapshot| is_good(snapshot, ignore_tests));
        self.truncate(previous.map_or(MAX_SNAPSHOTS, |position| position + 2));
    }

    fn truncate_to_newest(&mut self) {
        self.sort_by_version();
        self.truncate(MAX_SNAPSHOTS);
    }

    fn sort_by_version(&mut self) {
        self.sort_by_key(|snapshot| Reverse(snapshot.version));
    }

    fn find_mut(&mut self, release: &Release) -> Option<&mut Snapshot> {
        self.iter_mut().find(|snapshot| targets(snapshot, release))
    }
}

/// Returns whether it can be rolled back to.
fn is_good(snapshot: &Snapshot, ignore_tests: bool) -> bool {
    matches!(snapshot.status.as_str(), "deployed" | "superseded")
        && (ignore_tests || !has_failed_test(snapshot))
}

/// Returns whether the snapshot is one of this very revision.
pub(super) fn targets(snapshot: &Snapshot, release: &Release) -> bool {
    snapshot.name == release.name
        && snapshot.namespace == release.namespace
        && snapshot.version == release.version
}

/// Name of the revision, for people.
pub(super) fn full_name(snapshot: &Snapshot) -> String {
    format!("{}/{}.v{}", snapshot.namespace, snapshot.name, snapshot.version)
}

/// Name and version of its chart.
pub(super) fn versioned_chart(snapshot: &Snapshot) -> String {
    format!("{}@{}", snapshot.chart_name, snapshot.chart_version)
}

/// Returns whether its tests came to an end: one failed, or all succeeded, or there are none.
pub(super) fn has_been_tested(snapshot: &Snapshot) -> bool {
    let Some(tests) = &snapshot.test_hooks else {
        return false;
    };
    let phase = |test: &TestHookStatus, phase| test.phase.as_deref() == Some(phase);
    tests.values().any(|test| phase(test, FAILED)) || tests.values().all(|test| phase(test, SUCCEEDED))
}

/// Returns whether one of its tests failed.
pub(super) fn has_failed_test(snapshot: &Snapshot) -> bool {
    let mut tests = snapshot.test_hooks.iter().flat_map(BTreeMap::values);
    tests.any(|test| test.phase.as_deref() == Some(FAILED))
}

/// The snapshot of a revision as it was written to Helm's storage.
pub(super) fn snapshot(release: &Release, action: Option<&str>, oci_digest: Option<&str>) -> Snapshot {
    let chart = release.chart.as_ref();
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Snapshot {
        api_version: Some(SNAPSHOT_VERSION.to_owned()),
        digest: observation::digest(release, oci_digest),
        action: action.map(str::to_owned),
        name: release.name.clone(),
        namespace: release.namespace.clone(),
        version: release.version,
        status: release.info.status.to_string(),
        chart_name: chart.map(|chart| chart.name().to_owned()).unwrap_or_default(),
        chart_version: chart.map(|chart| chart.version().to_owned()).unwrap_or_default(),
        app_version: chart.and_then(|chart| text(chart.app_version())),
        config_digest: values::digest(&release.config),
        first_deployed: time(release.info.first_deployed.as_ref()).unwrap_or_else(zero),
        last_deployed: time(release.info.last_deployed.as_ref()).unwrap_or_else(zero),
        deleted: time(release.info.deleted.as_ref()),
        test_hooks: None,
        oci_digest: oci_digest.and_then(text),
    }
}

/// The snapshot of a revision that was written again: what only the snapshot knows stays.
///
/// A rollback that fails has Helm call the revision that failed before it superseded, as if it had been a good one.
pub(super) fn renewed(old: &Snapshot, release: &Release) -> Snapshot {
    let mut new = snapshot(release, old.action.as_deref(), old.oci_digest.as_deref());
    new.test_hooks.clone_from(&old.test_hooks);
    if old.status == "failed" && new.status == "superseded" {
        new.status.clone_from(&old.status);
    }
    new
}

/// Takes a revision for ours that someone else, or a process that was killed, wrote last.
pub(super) fn adopt(history: &mut Vec<Snapshot>, release: &Release) {
    if let Some(known) = history.find_mut(release) {
        *known = renewed(known, release);
    } else {
        history.clear();
        history.push(snapshot(release, None, None));
    }
}

/// How the tests of a revision went that the filters select.
pub(super) fn tests_of(release: &Release, filters: &[TestFilter]) -> BTreeMap<String, TestHookStatus> {
    let tests = release.hooks.iter().filter(|hook| hook.runs_at("test"));
    tests
        .filter(|hook| is_selected(&hook.name, filters))
        .map(|hook| {
            let run = &hook.last_run;
            let status = TestHookStatus {
                last_started: time(run.started_at.as_ref()),
                last_completed: time(run.completed_at.as_ref()),
                phase: phase(run.phase).map(str::to_owned),
            };
            (hook.name.clone(), status)
        })
        .collect()
}

/// An exclusion wins; without inclusions, all else is selected.
fn is_selected(name: &str, filters: &[TestFilter]) -> bool {
    let named = |filter: &&TestFilter| filter.name == name;
    let mut included = filters.iter().filter(|filter| !filter.exclude).peekable();
    let excluded = filters
        .iter()
        .filter(|filter| filter.exclude)
        .any(|filter| named(&filter));
    !excluded && (included.peek().is_none() || included.any(|filter| named(&filter)))
}

fn phase(phase: HookPhase) -> Option<&'static str> {
    match phase {
        HookPhase::Never => None,
        HookPhase::Unknown => Some("Unknown"),
        HookPhase::Running => Some("Running"),
        HookPhase::Succeeded => Some(SUCCEEDED),
        HookPhase::Failed => Some(FAILED),
    }
}

/// Kubernetes writes times to the second.
fn time(time: Option<&HelmTime>) -> Option<Time> {
    let at = time?.at();
    Some(Time(Timestamp::from_second(at.as_second()).unwrap_or(at)))
}

fn zero() -> Time {
    Time(Timestamp::from_second(GO_ZERO).unwrap_or(Timestamp::MIN))
}

#[cfg(test)]
mod tests {
    use super::super::testing::record;
    use super::*;

    fn history(statuses: &[&str]) -> Vec<Snapshot> {
        let versions = (1..=i64::try_from(statuses.len()).unwrap()).rev();
        let releases = versions
            .zip(statuses)
            .map(|(version, status)| record(version, status));
        releases.map(|release| snapshot(&release, None, None)).collect()
    }

    fn versions(history: &[Snapshot]) -> Vec<i64> {
        history.iter().map(|snapshot| snapshot.version).collect()
    }

    fn tested(phase: &str) -> Option<BTreeMap<String, TestHookStatus>> {
        let status = TestHookStatus {
            phase: Some(phase.to_owned()),
            ..TestHookStatus::default()
        };
        Some(BTreeMap::from([("t".to_owned(), status)]))
    }

    #[test]
    fn the_previous_one_is_the_newest_good_one_before_the_newest() {
        for (statuses, previous) in [
            (&[][..], None),
            (&["deployed"][..], None),
            (&["failed", "failed", "superseded", "deployed"], Some(2)),
            (&["deployed", "superseded"], Some(1)),
            (&["failed", "uninstalled", "pending-upgrade"], None),
        ] {
            let history = history(statuses);
            assert_eq!(
                history.previous(true).map(|snapshot| snapshot.version),
                previous,
                "{statuses:?}"
            );
        }
        let mut history = history(&["failed", "superseded", "superseded"]);
        history[1].test_hooks = tested("Failed");
        assert_eq!(history.previous(false).unwrap().version, 1);
        assert_eq!(history.previous(true).unwrap().version, 2);
    }

    #[test]
    fn what_is_older_than_the_previous_one_goes() {
        let mut long = history(&["failed", "failed", "superseded", "superseded", "failed"]);
        long.truncate_to_previous(true);
        assert_eq!(versions(&long), [5, 4, 3]);
        let mut failed = history(&["failed"; 7]);
        failed.truncate_to_previous(true);
        assert_eq!(versions(&failed), [7, 6, 5, 4, 3]);
        let mut superseded = history(&["superseded"; 7]);
        superseded.reverse();
        superseded.truncate_to_newest();
        assert_eq!(versions(&superseded), [7, 6, 5, 4, 3]);
        let mut one = history(&["deployed"]);
        one.truncate_to_previous(false);
        assert_eq!(versions(&one), [1]);
    }

    #[test]
    fn tests_came_to_an_end_when_one_failed_or_all_succeeded() {
        let mut snapshot = history(&["deployed"]).remove(0);
        assert!(!has_been_tested(&snapshot));
        for (phase, done) in [
            ("Succeeded", true),
            ("Failed", true),
            ("Running", false),
            ("", false),
        ] {
            snapshot.test_hooks = tested(phase);
            assert_eq!(has_been_tested(&snapshot), done, "{phase}");
        }
        snapshot.test_hooks = Some(BTreeMap::new());
        assert!(has_been_tested(&snapshot));
    }

    #[test]
    fn an_exclusion_wins_over_an_inclusion() {
        let filters = |filters: &[(&str, bool)]| {
            let filter = |(name, exclude): &(&str, bool)| TestFilter {
                name: (*name).to_owned(),
                exclude: *exclude,
            };
            filters.iter().map(filter).collect::<Vec<_>>()
        };
        for (given, selected) in [
            (&[][..], true),
            (&[("a", false)][..], true),
            (&[("b", false)], false),
            (&[("b", true)], true),
            (&[("a", true)], false),
            (&[("a", false), ("a", true)], false),
        ] {
            assert_eq!(is_selected("a", &filters(given)), selected, "{given:?}");
        }
    }
}

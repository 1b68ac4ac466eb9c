//! A world for tests: records in memory, and actions that end as a script says and write what Helm would write.
//!
//! The same world is in hack/oracle/helm-state, where Flux's own code goes through it. This one can also be killed.

use std::collections::{BTreeMap, VecDeque};

use api::helm::{HelmRelease, HelmReleaseStatus};
use helm_release::{ApplyMethod, Chart, Hook, HookPhase, HookRun, Info, Release, Status, Time};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::action::Action;
use super::desired::Desired;
use super::drift::{Change, Drift};
use super::events::Event;
use super::perform::Perform;
use super::performed::{Failure, FailureKind, Performed};
use super::{history, verify};

/// `HelmRelease` web in namespace apps.
pub(super) fn object(spec: &Value) -> HelmRelease {
    let mut filled = json!({"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": "app"}});
    filled
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "apps", "generation": 1},
        "spec": filled,
    }))
    .unwrap()
}

/// Chart app 1.0.0 with these values.
pub(super) fn desired(values: &Value) -> Desired {
    Desired::new("app", "1.0.0", "9", values.as_object().unwrap())
}

/// A revision of web with chart app 1.0.0.
pub(super) fn record(version: i64, status: &str) -> Release {
    made(
        "web",
        "apps",
        version,
        status,
        &ChartOf::default(),
        &Map::new(),
        &[],
        "done",
    )
}

/// A status that knows these revisions.
pub(super) fn status_of(releases: &[&Release]) -> HelmReleaseStatus {
    HelmReleaseStatus {
        history: releases
            .iter()
            .map(|release| history::snapshot(release, None, None))
            .collect(),
        ..HelmReleaseStatus::default()
    }
}

/// Fields that name a chart.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChartOf {
    pub(super) name: String,
    pub(super) version: String,
    #[serde(default)]
    pub(super) app_version: String,
}

impl Default for ChartOf {
    fn default() -> Self {
        Self {
            name: "app".to_owned(),
            version: "1.0.0".to_owned(),
            app_version: "9".to_owned(),
        }
    }
}

/// A moment that a number stands for.
fn at(number: i64) -> Option<Time> {
    let begin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    Some(Time::from_timestamp(
        Timestamp::from_second(begin.as_second() + number).unwrap(),
    ))
}

#[expect(clippy::too_many_arguments, reason = "so many parts has a release")]
fn made(
    name: &str,
    namespace: &str,
    version: i64,
    status: &str,
    chart: &ChartOf,
    values: &Map<String, Value>,
    tests: &[String],
    description: &str,
) -> Release {
    let app_version = if chart.app_version.is_empty() {
        String::new()
    } else {
        format!(r#","appVersion":"{}""#, chart.app_version)
    };
    let metadata = format!(
        r#"{{"metadata":{{"name":"{}","version":"{}","apiVersion":"v2"{app_version}}}}}"#,
        chart.name, chart.version
    );
    let hook = |name: &String| Hook {
        name: name.clone(),
        kind: "Pod".to_owned(),
        path: "t.yaml".to_owned(),
        manifest: "kind: Pod".to_owned(),
        events: vec!["test".to_owned()],
        ..Hook::default()
    };
    Release {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        version,
        info: Info {
            first_deployed: at(1),
            last_deployed: at(version),
            status: Status::from_text(status),
            description: description.to_owned(),
            ..Info::default()
        },
        chart: Some(Chart::read(serde_json::value::RawValue::from_string(metadata).unwrap()).unwrap()),
        config: values.clone(),
        manifest: format!("# {}@{}\n", chart.name, chart.version),
        hooks: tests.iter().map(hook).collect(),
        apply_method: Some(ApplyMethod::ServerSide),
    }
}

/// The world.
#[derive(Debug, Default)]
pub(super) struct World {
    /// Name and namespace of the release.
    pub(super) place: (String, String),
    pub(super) chart: ChartOf,
    pub(super) values: Map<String, Value>,
    /// The chart's tests.
    pub(super) tests: Vec<String>,
    pub(super) keeps_history: bool,
    /// True if actions are refused where Helm refuses them.
    pub(super) refuses: bool,
    /// True if records say what was rolled back to, as Helm's do. The recorded world's do not.
    pub(super) names_rollbacks: bool,
    /// Helm's storage.
    pub(super) records: BTreeMap<i64, Release>,
    /// How actions end, the next one first. What it does not say ends well.
    pub(super) script: BTreeMap<String, VecDeque<String>>,
    pub(super) performed: Vec<String>,
    pub(super) events: Vec<Event>,
    /// Status that was saved last.
    pub(super) saved: HelmReleaseStatus,
    pub(super) saves: usize,
    /// How often the storage was read.
    pub(super) reads: usize,
    /// After how many effects the process is killed.
    pub(super) dies_after: Option<usize>,
    /// An action that is broken off, not by a kill.
    pub(super) cancels: Option<&'static str>,
    pub(super) cancelled: bool,
    pub(super) seconds: std::cell::Cell<i64>,
}

impl World {
    /// An effect is about to happen. Not if the process was killed.
    pub(super) fn lives(&mut self) -> bool {
        match &mut self.dies_after {
            None => true,
            Some(0) => {
                self.cancelled = true;
                false
            }
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Starts again after a kill.
    pub(super) fn revive(&mut self) {
        self.dies_after = None;
        self.cancelled = false;
        self.cancels = None;
    }

    pub(super) fn next_version(&self) -> i64 {
        self.records
            .last_key_value()
            .map_or(1, |(version, _)| version + 1)
    }

    pub(super) fn release(&self, status: &str, description: &str) -> Release {
        let (name, namespace) = &self.place;
        let version = self.next_version();
        made(
            name,
            namespace,
            version,
            status,
            &self.chart,
            &self.values,
            &self.tests,
            description,
        )
    }

    fn ending(&mut self, name: &str) -> String {
        let queue = self.script.get_mut(name);
        let how = queue
            .and_then(VecDeque::pop_front)
            .unwrap_or_else(|| "ok".to_owned());
        if name != "drift" {
            self.performed.push(format!("{name} {how}"));
        }
        how
    }

    fn write(&mut self, performed: &mut Performed, release: Release) -> Result<(), Failure> {
        if !self.lives() {
            return Err(killed());
        }
        self.records.insert(release.version, release.clone());
        performed.written.insert(release.version, release);
        Ok(())
    }

    fn end(&mut self, performed: &mut Performed, mut release: Release, how: &str) -> Result<(), Failure> {
        match how {
            "ok" => {
                release.info.status = Status::Deployed;
                release.info.description = "done".to_owned();
                self.write(performed, release)
            }
            "failed" => {
                release.info.status = Status::Failed;
                release.info.description = "failed".to_owned();
                self.write(performed, release)?;
                Err(Failure::new("boom"))
            }
            "cancelled" => {
                release.info.status = Status::Failed;
                self.write(performed, release)?;
                Err(killed())
            }
            _ => Err(Failure::new("stuck")),
        }
    }

    fn supersede(&mut self, performed: &mut Performed) -> Result<(), Failure> {
        let deployed = self
            .records
            .values()
            .filter(|release| release.info.status == Status::Deployed);
        let deployed: Vec<_> = deployed.cloned().collect();
        for mut release in deployed {
            release.info.status = Status::Superseded;
            self.write(performed, release)?;
        }
        Ok(())
    }

    fn make(&mut self, performed: &mut Performed, name: &str, pending: &str) -> Result<(), Failure> {
        let how = self.ending(name);
        if how == "early" {
            return Err(Failure::new("early"));
        }
        if self.refuses {
            self.check(name)?;
        }
        let release = self.release(pending, "begun");
        self.write(performed, release.clone())?;
        if how == "ok" && name == "upgrade" {
            self.supersede(performed)?;
        }
        self.end(performed, release, &how)
    }

    /// Helm installs where nothing is, or over what was uninstalled, if that may be replaced; and upgrades what is deployed or
    /// failed.
    fn check(&self, name: &str) -> Result<(), Failure> {
        let last = self
            .records
            .values()
            .next_back()
            .map(|release| &release.info.status);
        let is_deployed = |release: &Release| release.info.status == Status::Deployed;
        let refusal = match (name, last) {
            ("install", None | Some(Status::Uninstalled)) => return Ok(()),
            ("install", Some(_)) => "cannot reuse a name that is still in use",
            (_, Some(Status::Failed | Status::Superseded)) => return Ok(()),
            _ if self.records.values().any(is_deployed) => return Ok(()),
            _ => "\"web\" has no deployed releases",
        };
        Err(Failure::new(refusal))
    }

    fn roll_back(&mut self, performed: &mut Performed, version: i64) -> Result<(), Failure> {
        let how = self.ending("rollback");
        if how == "early" {
            return Err(Failure::new("early"));
        }
        let mut last = self.records.values().next_back().unwrap().clone();
        let mut release = self
            .records
            .get(&version)
            .cloned()
            .ok_or_else(|| Failure::new("release: not found"))?;
        release.version = last.version + 1;
        release.info = Info {
            first_deployed: at(1),
            last_deployed: at(release.version),
            status: Status::PendingRollback,
            description: "begun".to_owned(),
            ..Info::default()
        };
        self.write(performed, release.clone())?;
        if how == "ok" {
            self.supersede(performed)?;
        } else if how == "failed" {
            last.info.status = Status::Superseded;
            self.write(performed, last)?;
        }
        self.end(performed, release.clone(), &how)?;
        if self.names_rollbacks
            && let Some(made) = self.records.get_mut(&release.version)
        {
            made.info.description = helm_release::description::rollback_to(version);
            performed.written.insert(made.version, made.clone());
        }
        Ok(())
    }

    fn uninstall(&mut self, performed: &mut Performed) -> Result<(), Failure> {
        let how = self.ending("uninstall");
        if how == "early" {
            return Err(Failure::new("early"));
        }
        let name = self.place.0.clone();
        let Some(mut last) = self.records.values().next_back().cloned() else {
            return Err(Failure {
                kind: FailureKind::NotFound,
                message: format!("uninstall: Release not loaded: {name}: release: not found"),
            });
        };
        if last.info.status == Status::Uninstalled {
            if self.keeps_history {
                return Err(Failure {
                    kind: FailureKind::AlreadyUninstalled,
                    message: format!("the release named \"{name}\" is already deleted"),
                });
            }
            return self.purge();
        }
        last.info.status = Status::Uninstalling;
        last.info.description = "Deletion in progress (or silently failed)".to_owned();
        last.info.deleted = at(3600);
        self.write(performed, last.clone())?;
        if how == "failed" {
            return Err(Failure::new(format!("failed to delete release: {name}")));
        }
        if self.keeps_history {
            last.info.status = Status::Uninstalled;
            last.info.description = "Uninstallation complete".to_owned();
            self.write(performed, last)?;
            self.supersede(performed)?;
        } else {
            self.purge()?;
        }
        if how == "errors" {
            return Err(Failure::new("uninstallation completed with 1 error(s): boom"));
        }
        Ok(())
    }

    fn purge(&mut self) -> Result<(), Failure> {
        while let Some((version, _)) = self.records.first_key_value() {
            let version = *version;
            if !self.lives() {
                return Err(killed());
            }
            self.records.remove(&version);
        }
        Ok(())
    }

    fn test(&mut self, performed: &mut Performed) -> Result<(), Failure> {
        let how = self.ending("test");
        if how == "early" {
            return Err(Failure::new("early"));
        }
        let mut last = self.records.values().next_back().unwrap().clone();
        for hook in &mut last.hooks {
            hook.last_run = HookRun {
                started_at: at(last.version + 10),
                completed_at: at(last.version + 20),
                phase: if how != "ok" {
                    HookPhase::Failed
                } else {
                    HookPhase::Succeeded
                },
            };
        }
        self.write(performed, last)?;
        match how.as_str() {
            "failed" => Err(Failure::new("boom")),
            "cancelled" => Err(killed()),
            _ => Ok(()),
        }
    }
}

fn killed() -> Failure {
    Failure {
        kind: FailureKind::Cancelled,
        message: "killed".to_owned(),
    }
}

impl Perform for World {
    async fn last(&mut self) -> Result<Option<Release>, Failure> {
        self.reads += 1;
        Ok(self.records.values().next_back().cloned())
    }

    async fn get(&mut self, version: i64) -> Result<Option<Release>, Failure> {
        Ok(self.records.get(&version).cloned())
    }

    async fn drift(&mut self, _: &Release) -> Result<Vec<Drift>, Failure> {
        let change = match self.ending("drift").as_str() {
            "changed" => Change::Changed {
                additions: 1,
                changes: 2,
                removals: 1,
            },
            "removed" => Change::Removed,
            "excluded" => Change::Excluded,
            "error" => return Err(Failure::new("boom")),
            _ => return Ok(Vec::new()),
        };
        Ok(vec![Drift {
            kind: "ConfigMap".to_owned(),
            namespace: Some("apps".to_owned()),
            name: "a".to_owned(),
            change,
        }])
    }

    async fn perform(&mut self, action: &Action) -> Performed {
        let mut performed = Performed::default();
        if self.cancels == Some(action.name()) {
            self.cancelled = true;
        }
        let result = match action {
            Action::Install => self.make(&mut performed, "install", "pending-install"),
            Action::Upgrade => self.make(&mut performed, "upgrade", "pending-upgrade"),
            Action::RollBack(to) => {
                assert!(verify::is_intact(to, &self.records[&to.version]));
                self.roll_back(&mut performed, to.version)
            }
            Action::UninstallRemediation | Action::FinishUninstall | Action::Uninstall => {
                self.uninstall(&mut performed)
            }
            Action::Test => self.test(&mut performed),
            Action::Unlock(release) => self.write(&mut performed, (**release).clone()),
            Action::CorrectDrift(drift) => {
                if self.ending("correct") == "failed" {
                    Err(Failure::new("boom"))
                } else {
                    let lines = drift.iter().map(|_| "ConfigMap/apps/a configured".to_owned());
                    performed.corrected = lines.collect();
                    Ok(())
                }
            }
        };
        performed.result = result;
        performed
    }

    async fn save(&mut self, status: &HelmReleaseStatus) -> Result<(), Failure> {
        if !self.lives() {
            return Err(killed());
        }
        self.saves += 1;
        self.saved = status.clone();
        Ok(())
    }

    fn publish(&mut self, event: Event) {
        self.events.push(event);
    }

    fn now(&self) -> Timestamp {
        self.seconds.set(self.seconds.get() + 1);
        Timestamp::from_second(1_767_225_600 + self.seconds.get()).unwrap()
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled
    }
}

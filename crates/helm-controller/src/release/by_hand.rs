//! Back to an earlier revision because a person says so, and what keeps the release there: the newest record says what it was rolled
//! back to, in Helm's own words.

use api::helm::{DriftDetectionMode, HelmRelease, HelmReleaseStatus, Snapshot};
use api::meta::condition_types::{HELD, READY, REMEDIATED, STALLED};
use api::meta::reasons as common;
use controller_kit::conditions::Fact;
use controller_kit::events::Severity;
use helm_release::{Release, Status, description};

use super::action::Action;
use super::drift::Drift;
use super::drive::Ended;
use super::events::{Event, with_log};
use super::history::{full_name, versioned_chart};
use super::ledger::Ledger;
use super::next::{Stall, drifted};
use super::outcome;
use super::perform::Perform;
use super::performed::{Failure, FailureKind, Performed};
use super::state::drift_mode;
use super::unlock::unlocked;
use super::{policy, reasons, verify};

/// A rollback that a person asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// The revision.
    pub to: i64,
    /// Why, in the person's words.
    pub why: String,
    /// The command that ends it.
    pub release: String,
    /// Whether a Freeze is in force.
    pub is_frozen: bool,
}

/// Brings a release back to a revision, unless it is there, and corrects drift from it.
pub async fn go_back(
    world: &mut impl Perform,
    object: &HelmRelease,
    status: &mut HelmReleaseStatus,
    back: &Back,
) -> Ended {
    let mut run = Run {
        world,
        object,
        status,
        back,
    };
    match run.go().await {
        Ok(ended) => ended,
        Err(failure) if failure.kind == FailureKind::Cancelled => Ended::Cancelled,
        Err(failure) => {
            let message = run.failed(&failure.to_string());
            run.write(|ledger| ledger.state(Fact::does_not_hold(READY, reasons::ROLLBACK_FAILED, message)));
            Ended::Failed(failure)
        }
    }
}

struct Run<'a, W> {
    world: &'a mut W,
    object: &'a HelmRelease,
    status: &'a mut HelmReleaseStatus,
    back: &'a Back,
}

impl<W: Perform> Run<'_, W> {
    async fn go(&mut self) -> Result<Ended, Failure> {
        let to = self.back.to;
        let Some(mut last) = self.world.last().await? else {
            return Ok(self.cannot("there is no release"));
        };
        if last.info.status.is_pending() {
            if self.back.is_frozen {
                return Ok(Ended::Frozen);
            }
            last = self.unlock(last).await?;
        }
        if matches!(last.info.status, Status::Uninstalling | Status::Uninstalled) {
            return Ok(self.cannot("the release was uninstalled"));
        }
        if !is_there(self.status, &last, to) {
            if self.back.is_frozen {
                return Ok(Ended::Frozen);
            }
            // Who writes Secrets must not choose what is released.
            let Some(snapshot) = self
                .status
                .history
                .iter()
                .find(|known| known.version == to)
                .cloned()
            else {
                return Ok(self.cannot(&self.unknown()));
            };
            let stored = self.world.get(to).await?;
            if !stored.is_some_and(|stored| verify::is_intact(&snapshot, &stored)) {
                return Ok(self.cannot("its record is not there any more, or was changed"));
            }
            last = match self.roll_back(&snapshot).await? {
                Ok(last) => last,
                Err(ended) => return Ok(ended),
            };
        }
        if let Some(ended) = self.correct(&last).await? {
            return Ok(ended);
        }
        let message = self.message(&last);
        self.write(|ledger| {
            ledger.at_rest();
            ledger.remove(STALLED);
            ledger.state(Fact::does_not_hold(READY, common::ROLLED_BACK, message.clone()));
            ledger.state(Fact::holds(HELD, common::ROLLED_BACK, message));
        });
        Ok(Ended::Done)
    }

    fn failed(&self, why: &str) -> String {
        format!(
            "failed to roll back to revision {}: {why}. Nothing newer is released until the rollback is ended ({})",
            self.back.to, self.back.release
        )
    }

    /// It is not tried again before someone changes something: each attempt makes a revision, and Helm drops the oldest.
    fn cannot(&mut self, why: &str) -> Ended {
        let message = self.failed(why);
        self.write(|ledger| {
            ledger.state(Fact::does_not_hold(READY, reasons::ROLLBACK_FAILED, message));
            ledger.remove(HELD);
            Stall::RollbackFailed.record(ledger);
        });
        Ended::Stalled(Stall::RollbackFailed)
    }

    fn message(&self, last: &Release) -> String {
        let chart = last
            .chart
            .as_ref()
            .map(|chart| format!("{}@{}", chart.name(), chart.version()));
        let since = last.info.last_deployed.as_ref().map(helm_release::Time::at);
        let since = since.and_then(|at| at.round(jiff::Unit::Second).ok());
        format!(
            "rolled back by hand to revision {} (chart {}){}: {}. What the source has is not released until the rollback is \
             ended ({})",
            self.back.to,
            chart.unwrap_or_default(),
            since.map(|at| format!(" since {at}")).unwrap_or_default(),
            self.back.why,
            self.back.release
        )
    }

    fn unknown(&self) -> String {
        let known: Vec<_> = self
            .status
            .history
            .iter()
            .map(|known| known.version.to_string())
            .collect();
        format!("the status knows no such revision, only {}", known.join(", "))
    }

    /// Ends an action that a crash has broken off.
    async fn unlock(&mut self, pending: Release) -> Result<Release, Failure> {
        let record = unlocked(&pending);
        let action = Action::Unlock(Box::new(record.clone()));
        self.world.perform(&action).await.result?;
        Ok(record)
    }

    /// Rolls back; gives the record that it made, or how the run ended.
    async fn roll_back(&mut self, snapshot: &Snapshot) -> Result<Result<Release, Ended>, Failure> {
        let action = Action::RollBack(Box::new(snapshot.clone()));
        let timeout = policy::timeout(self.object, &action);
        let message = format!("Running 'rollback' action with timeout of {timeout}");
        self.write(|ledger| {
            ledger.reconciling(common::PROGRESSING, message.clone());
            ledger.state(Fact::is_unknown(READY, common::PROGRESSING, message));
        });
        self.world.save(self.status).await?;
        let mut performed = self.world.perform(&action).await;
        if let Some(inventory) = &performed.inventory {
            self.status.inventory = Some(inventory.clone());
        }
        self.write(|ledger| outcome::gone_back(ledger, snapshot, &performed));
        let (name, chart) = (full_name(snapshot), versioned_chart(snapshot));
        let what = format!("Helm rollback by hand to release {name} with chart {chart}");
        let made = performed.written.pop_last().map(|(_, release)| release);
        match (&performed.result, made) {
            (Ok(()), Some(made)) => {
                let message = format!("{what} succeeded");
                self.write(|ledger| {
                    let reason = reasons::ROLLBACK_SUCCEEDED;
                    ledger.state(Fact::holds(REMEDIATED, reason, message.clone()));
                    let event = Event::of_snapshot(Severity::Info, reason, message, snapshot);
                    ledger.events.push(event);
                });
                Ok(Ok(made))
            }
            (Ok(()), None) => Err(Failure::new("the rollback made no revision")),
            (Err(failure), _) if failure.kind == FailureKind::Cancelled => Err(failure.clone()),
            (Err(failure), made) => {
                let failure = failure.clone();
                let message = format!("{what} failed: {failure}");
                self.write(|ledger| {
                    let reason = reasons::ROLLBACK_FAILED;
                    ledger.state(Fact::does_not_hold(REMEDIATED, reason, message.clone()));
                    let message = with_log(&message, &performed);
                    let event = Event::of_snapshot(Severity::Error, reason, message, snapshot);
                    ledger.events.push(event);
                });
                match made {
                    Some(_) => Ok(Err(self.cannot(&failure.to_string()))),
                    // Nothing was done.
                    None => Err(failure),
                }
            }
        }
    }

    /// Corrects drift, if that is wanted. Some when the run ends with it.
    async fn correct(&mut self, last: &Release) -> Result<Option<Ended>, Failure> {
        let mode = drift_mode(self.object);
        if mode == DriftDetectionMode::Disabled {
            return Ok(None);
        }
        let drift = self.world.drift(last).await?;
        if !drift.iter().any(|drift: &Drift| drift.change.is_drift()) {
            return Ok(None);
        }
        let (event, fact) = drifted(self.status, &drift);
        self.world.publish(event);
        self.write(|ledger| ledger.state(fact));
        let action = Action::CorrectDrift(drift);
        if mode != DriftDetectionMode::Enabled || !self.world.permits(&action) {
            return Ok(None);
        }
        let performed: Performed = self.world.perform(&action).await;
        self.write(|ledger| outcome::corrected(ledger, &performed));
        performed.result.map(|()| None)
    }

    fn write<T>(&mut self, write: impl FnOnce(&mut Ledger<'_>) -> T) -> T {
        let mut ledger = Ledger::new(self.object, self.status, self.world.now());
        let written = write(&mut ledger);
        for event in ledger.events {
            self.world.publish(event);
        }
        written
    }
}

/// Returns whether the newest record is this revision, or was made by going back to it, and is as we have left it.
fn is_there(status: &HelmReleaseStatus, last: &Release, to: i64) -> bool {
    let is_one = last.version == to || last.info.description == description::rollback_to(to);
    let known = status.history.iter().find(|known| known.version == last.version);
    let is_ours = known.is_some_and(|known| verify::is_ours(known, last).is_ok());
    last.info.status == Status::Deployed && is_one && is_ours
}

#[cfg(test)]
mod tests {
    use controller_kit::conditions;
    use serde_json::json;

    use super::super::testing::{World, desired, object};
    use super::super::{begin, drive};
    use super::*;

    /// Two revisions of a release, of chart 1.0.0 and 2.0.0.
    async fn two(spec: &serde_json::Value) -> (World, HelmRelease, HelmReleaseStatus) {
        let mut world = World {
            place: ("web".to_owned(), "apps".to_owned()),
            names_rollbacks: true,
            ..World::default()
        };
        let (object, mut status) = (object(spec), HelmReleaseStatus::default());
        for version in ["1.0.0", "2.0.0"] {
            let mut desired = desired(&json!({}));
            version.clone_into(&mut desired.chart_version);
            version.clone_into(&mut world.chart.version);
            begin(&object, &mut status, &desired);
            assert_eq!(
                drive(&mut world, &object, &mut status, &desired).await,
                Ended::Done
            );
        }
        world.performed.clear();
        (world, object, status)
    }

    fn back(to: i64) -> Back {
        Back {
            to,
            why: "carts are empty".to_owned(),
            release: "windlass release helmrelease/web".to_owned(),
            is_frozen: false,
        }
    }

    fn said<'a>(status: &'a HelmReleaseStatus, type_: &str) -> (&'a str, &'a str) {
        let found = conditions::get(&status.conditions, type_);
        found.map_or(("", ""), |found| (&found.reason, &found.message))
    }

    #[tokio::test]
    async fn it_is_rolled_back_once_and_upgraded_when_that_ends() {
        let (mut world, object, mut status) = two(&json!({})).await;
        for _ in 0..3 {
            let ended = go_back(&mut world, &object, &mut status, &back(1)).await;
            assert_eq!(ended, Ended::Done);
        }
        assert_eq!(world.performed, ["rollback ok"]);
        let (reason, message) = said(&status, READY);
        assert_eq!(reason, "RolledBack");
        assert_eq!(
            message,
            "rolled back by hand to revision 1 (chart app@1.0.0) since 2026-01-01T00:00:03Z: carts are empty. What the source \
             has is not released until the rollback is ended (windlass release helmrelease/web)"
        );
        assert_eq!(said(&status, HELD), (reason, message));
        let mut desired = desired(&json!({}));
        "2.0.0".clone_into(&mut desired.chart_version);
        assert_eq!(
            drive(&mut world, &object, &mut status, &desired).await,
            Ended::Done
        );
        assert_eq!(said(&status, READY).0, "UpgradeSucceeded");
        assert_eq!(world.performed, ["rollback ok", "upgrade ok"]);
    }

    #[tokio::test]
    async fn what_fails_is_not_tried_again_and_uses_up_no_revisions() {
        let (mut world, object, mut status) = two(&json!({})).await;
        world
            .script
            .insert("rollback".to_owned(), ["failed".to_owned()].into());
        let ended = go_back(&mut world, &object, &mut status, &back(1)).await;
        assert_eq!(ended, Ended::Stalled(Stall::RollbackFailed));
        let (reason, message) = said(&status, READY);
        assert_eq!(reason, "RollbackFailed");
        assert!(
            message.starts_with("failed to roll back to revision 1: boom"),
            "{message}"
        );
        assert!(conditions::is_stalled(&status.conditions));
        world
            .script
            .insert("rollback".to_owned(), ["early".to_owned()].into());
        let ended = go_back(&mut world, &object, &mut status, &back(1)).await;
        assert!(matches!(ended, Ended::Failed(_)), "nothing was done: {ended:?}");
        assert_eq!(world.records.len(), 3);
    }

    #[tokio::test]
    async fn only_what_we_have_left_is_gone_back_to() {
        let refused = async |to: i64, forge: &dyn Fn(&mut World)| {
            let (mut world, object, mut status) = two(&json!({})).await;
            forge(&mut world);
            let ended = go_back(&mut world, &object, &mut status, &back(to)).await;
            assert_eq!(ended, Ended::Stalled(Stall::RollbackFailed));
            assert!(world.performed.is_empty(), "{:?}", world.performed);
            said(&status, READY).1.to_owned()
        };
        let unknown = refused(7, &|_| {}).await;
        assert!(
            unknown.contains("the status knows no such revision, only 2, 1"),
            "{unknown}"
        );
        let gone = refused(1, &|world| drop(world.records.remove(&1))).await;
        assert!(gone.contains("is not there any more, or was changed"), "{gone}");
        let forged = refused(1, &|world| {
            "# forged".clone_into(&mut world.records.get_mut(&1).unwrap().manifest);
        });
        assert_eq!(forged.await, gone);
        // A record that claims to be there already is nothing to keep applied.
        let (mut world, object, mut status) = two(&json!({})).await;
        world
            .records
            .insert(3, world.release("deployed", "Rollback to 1"));
        assert_eq!(
            go_back(&mut world, &object, &mut status, &back(1)).await,
            Ended::Done
        );
        assert_eq!(world.performed, ["rollback ok"]);
    }

    #[tokio::test]
    async fn nothing_is_rolled_back_while_frozen() {
        let (mut world, object, mut status) = two(&json!({})).await;
        let frozen = |to| Back {
            is_frozen: true,
            ..back(to)
        };
        assert_eq!(
            go_back(&mut world, &object, &mut status, &frozen(1)).await,
            Ended::Frozen
        );
        assert!(world.performed.is_empty());
        assert_eq!(
            go_back(&mut world, &object, &mut status, &back(1)).await,
            Ended::Done
        );
        assert_eq!(
            go_back(&mut world, &object, &mut status, &frozen(1)).await,
            Ended::Done
        );
    }

    #[tokio::test]
    async fn a_process_that_is_killed_goes_on() {
        for effects in 0..8 {
            let (mut world, object, status) = two(&json!({})).await;
            world.dies_after = Some(effects);
            world.saved = status.clone();
            go_back(&mut world, &object, &mut status.clone(), &back(1)).await;
            world.revive();
            let mut status = world.saved.clone();
            let ended = go_back(&mut world, &object, &mut status, &back(1)).await;
            assert_eq!(ended, Ended::Done, "after {effects} effects");
            let (_, last) = world.records.last_key_value().unwrap();
            assert_eq!(last.info.description, "Rollback to 1");
            assert_eq!(last.chart.as_ref().unwrap().version(), "1.0.0");
        }
    }
}

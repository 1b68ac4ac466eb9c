//! Writes the results of a reconcile: the status, the finalizer, events and log lines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::kustomize::{Kustomization, KustomizationStatus, ResourceInventory};
use api::meta::{KUSTOMIZE_GROUP, StatusObject as _, condition_types, reasons};
use controller_kit::events::Severity;
use controller_kit::queue::Outcome as Next;
use controller_kit::{ObjectKey, conditions};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube_apply::{Applied, Pruned, SkipReason};
use manifest::ObjectId;
use reconcile_kit::fights;
use reconcile_kit::writer::Writer;

use super::plan::{Content, Plan};
use super::report::Reports;
use super::status::{self, Entry, Failure, Health, Report, RolledBack, Success};
use super::{Failed, progress, why};
use crate::context::Context;
use crate::error::Error;
use crate::good::Held;
use crate::memory::Run;

/// Reasons of events only.
const NOT_KEPT: &str = "RevisionNotKept";
const ROLLING_BACK: &str = "RollingBack";

/// Records what becomes of one object.
pub struct Recorder<'a> {
    context: &'a Context,
    writer: Writer<'a, Kustomization>,
}

impl<'a> Recorder<'a> {
    /// Starts from the object as it was observed.
    pub fn new(context: &'a Context, object: Arc<Kustomization>) -> Self {
        Self {
            context,
            writer: Writer::new(&context.base, object),
        }
    }

    /// Returns whether the object has our finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.writer.has_finalizer()
    }

    /// Adds our finalizer, if it is not there.
    pub async fn ensure_finalizer(&mut self) -> Result<(), Error> {
        let added = self.writer.ensure_finalizer().await;
        added.map_err(|error| self.failed(Error::Finalizer(error)))
    }

    /// Removes our finalizer; the object goes when it was the last.
    pub async fn remove_finalizer(&mut self) -> Result<(), Error> {
        let removed = self.writer.remove_finalizer().await;
        removed.map_err(|error| self.failed(Error::Finalizer(error)))
    }

    /// Writes the status that follows from a report. Returns whether it differed.
    pub async fn report(&mut self, report: Report) -> Result<bool, Error> {
        let unwritten = KustomizationStatus::default();
        let status = self.object().status.as_ref().unwrap_or(&unwritten);
        let next = status::next(status, self.writer.frame(), report);
        let context = self.context;
        let written = self
            .writer
            .write(&next, |before| count(context, before, &next))
            .await;
        written.map_err(|error| self.failed(Error::Record(error)))
    }

    fn object(&self) -> &Kustomization {
        self.writer.object()
    }

    /// Records that nothing can be done before the spec changes.
    pub async fn stalled(&mut self, reason: &'static str, message: String) -> Next {
        match self
            .report(Report::Stalled {
                reason,
                message: message.clone(),
            })
            .await
        {
            Ok(true) => {
                self.event(None, Severity::Error, reason, &message);
                Next::Terminal
            }
            Ok(false) => Next::Terminal,
            Err(_) => Next::Backoff,
        }
    }

    /// Records what is waited for.
    pub async fn blocked(&mut self, reason: &'static str, message: String) -> Next {
        match self
            .report(Report::Blocked {
                reason,
                message: message.clone(),
            })
            .await
        {
            Ok(true) => {
                self.event(None, Severity::Info, reason, &message);
                Next::Done
            }
            Ok(false) => Next::Done,
            Err(_) => Next::Backoff,
        }
    }

    /// Records the inventory before anything is applied. Nothing is written if it names all that is to be, and the
    /// status does not call the object stalled.
    pub async fn applying(&mut self, plan: &Plan, inventory: ResourceInventory) -> Result<(), Error> {
        let known = self.object().status.as_ref().and_then(|s| s.inventory.as_ref()) == Some(&inventory);
        if known && !conditions::is_stalled(self.conditions()) {
            return Ok(());
        }
        let (revision, timeout) = (plan.revision().to_owned(), self.object().timeout().into());
        self.report(Report::Applying {
            revision,
            attempted: plan.attempted().to_owned(),
            inventory,
            timeout,
            is_frozen: plan.is_frozen(),
        })
        .await
        .map(drop)
    }

    /// Records that health is being waited for, and what for, if that is known already.
    pub async fn waiting(&mut self, run: &Run, present: Option<String>) -> Result<(), Error> {
        let (revision, timeout) = (run.plan.revision().to_owned(), self.object().timeout().into());
        self.report(Report::Waiting {
            revision,
            attempted: run.plan.attempted().to_owned(),
            inventory: run.inventory.clone(),
            timeout,
            present,
            is_frozen: run.plan.is_frozen(),
        })
        .await
        .map(drop)
    }

    /// Tells that a wait for health was given up; in the status only if nothing else will be written there.
    pub async fn health_canceled(&mut self, plan: &Plan, trigger: &str, in_status: bool) {
        tracing::info!(trigger, "new reconciliation triggered, canceling health checks");
        let message = format!("Health checks canceled due to new reconciliation triggered by {trigger}");
        self.event(
            Some(plan),
            Severity::Info,
            reasons::HEALTH_CHECK_CANCELED,
            &message,
        );
        if in_status {
            let report = Report::Blocked {
                reason: reasons::HEALTH_CHECK_CANCELED,
                message: format!("New reconciliation triggered by {trigger}"),
            };
            // Logged where it fails; the next status says it anew.
            let _ = self.report(report).await;
        }
    }

    /// Records a success.
    pub async fn succeeded(
        &mut self,
        run: &Run,
        health: Health,
        rivals: Option<String>,
        interval: Duration,
    ) -> Result<(), Error> {
        let was_unhealthy = conditions::is_false(self.conditions(), condition_types::HEALTHY);
        let took = Timestamp::now().duration_since(run.began).unsigned_abs();
        let report = Report::Succeeded(Success {
            revision: run.plan.inputs.revision.clone(),
            origin_revision: run.plan.origin_revision.clone(),
            inventory: Some(run.inventory.clone()),
            health,
            history: entry(&run.plan, run.checksum.clone(), took).with(run.reports.clone()),
            rivals,
            quiet: run.quiet(),
        });
        let differed = self.report(report).await?;
        if let Health::Passed(after) = health
            && was_unhealthy
        {
            let message = format!("Health check passed in {}", api::meta::Duration::from(after));
            self.event(
                Some(&run.plan),
                Severity::Info,
                reasons::RECONCILIATION_SUCCEEDED,
                &message,
            );
        }
        if differed {
            let (took, next) = (
                api::meta::Duration::from(took),
                api::meta::Duration::from(interval),
            );
            let message = format!("Reconciliation finished in {took}, next run in {next}");
            tracing::info!(revision = run.plan.inputs.revision, trigger = ?run.plan.trigger, "{message}");
            // Asks for an update of the commit's status, where a provider of notifications keeps one.
            let update = (format!("{KUSTOMIZE_GROUP}/commit_status"), "update".to_owned());
            self.publish(
                Some(&run.plan),
                Severity::Info,
                reasons::RECONCILIATION_SUCCEEDED,
                &message,
                Some(update),
            );
        }
        Ok(())
    }

    /// Reports that others change objects again and again, which are corrected less often from now on.
    pub fn fights(&self, plan: &Plan, objects: &[String]) {
        let message = fights::message(&status::named(objects));
        tracing::warn!("{message}");
        self.event(Some(plan), Severity::Error, fights::REASON, &message);
    }

    /// Reports images that do not meet a policy and are delivered.
    pub fn images(&self, plan: &Plan, message: &str) {
        tracing::warn!("{message}");
        self.event(
            Some(plan),
            Severity::Error,
            reasons::IMAGE_VERIFICATION_FAILED,
            message,
        );
    }

    /// Reports that a revision cannot be kept, and why.
    pub fn cannot_be_kept(&self, plan: &Plan, why: &str) {
        let message = format!(
            "revision {} cannot be kept, and a later one that is not healthy cannot be rolled back to it: {why}",
            plan.revision()
        );
        tracing::error!("{message}");
        self.event(Some(plan), Severity::Error, NOT_KEPT, &message);
    }

    /// Reports that the last healthy revision is about to be applied, and which objects stay as they are.
    pub fn goes_back(&self, plan: &Plan, stays: &BTreeSet<ObjectId>) {
        let names: Vec<_> = stays.iter().map(ToString::to_string).collect();
        let mut message = format!(
            "revision {} is held; rolling back to revision {}",
            plan.inputs.revision,
            plan.revision()
        );
        if !names.is_empty() {
            message = format!(
                "{message}; these objects stay as they are: {}",
                status::named(&names)
            );
        }
        tracing::warn!("{message}");
        self.event(Some(plan), Severity::Error, ROLLING_BACK, &message);
    }

    /// Records that the last revision that was healthy is applied.
    pub async fn rolled_back(&mut self, run: &Run, health: Health, held: Option<&Held>) -> Result<(), Error> {
        let plan = &run.plan;
        let took = Timestamp::now().duration_since(run.began).unsigned_abs();
        let history =
            (!run.quiet()).then(|| entry(plan, run.checksum.clone(), took).with(run.reports.clone()));
        let object = format!("kustomization/{}", self.object().name_any());
        let namespace = self.object().namespace().unwrap_or_default();
        let rolled_back = RolledBack {
            revision: plan.revision().to_owned(),
            origin_revision: plan.origin().cloned(),
            held: plan.inputs.revision.clone(),
            why: held.map(|held| held.why.clone()).unwrap_or_default(),
            by_hand: held.is_some_and(|held| held.by_hand),
            since: held.map(|held| held.since),
            release: format!("windlass release {object} -n {namespace}"),
            stays: run.stays.clone(),
            inventory: run.inventory.clone(),
            health,
            history,
        };
        let message = rolled_back.message();
        if self.report(Report::RolledBack(Box::new(rolled_back))).await? {
            tracing::warn!(
                revision = plan.revision(),
                held = plan.inputs.revision,
                "rolled back"
            );
            self.event(Some(plan), Severity::Error, reasons::ROLLED_BACK, &message);
        }
        Ok(())
    }

    /// Records what waits for the end of a Freeze.
    pub async fn frozen(&mut self, message: String) -> Result<(), Error> {
        let before = conditions::get(self.conditions(), condition_types::FROZEN);
        let is_news = before.is_none_or(|before| before.message != message);
        let told = message.clone();
        if self.report(Report::Frozen { message }).await? && is_news {
            tracing::info!("{told}");
            self.event(None, Severity::Info, reasons::FROZEN, &told);
        }
        Ok(())
    }

    /// Records a failure.
    pub async fn failed_run(
        &mut self,
        plan: &Plan,
        failed: &Failed,
        statement: Option<(String, String)>,
        began: Timestamp,
    ) -> Result<(), Error> {
        let reason = failed.error.reason();
        let message = match &plan.content {
            Content::Source | Content::Delivered(_) => failed.error.message(),
            Content::Good(kept) => format!(
                "failed to roll back to revision {}, since revision {} is held: {}",
                kept.revision,
                plan.inputs.revision,
                failed.error.message()
            ),
        };
        let took = Timestamp::now().duration_since(began).unsigned_abs();
        tracing::error!(
            revision = plan.inputs.revision,
            reason,
            error = message,
            "Reconciliation failed"
        );
        let reached = !matches!(failed.error, Error::FetchArtifact { .. });
        let report = Report::Failed(Failure {
            reason,
            message: message.clone(),
            revision: reached.then(|| plan.attempted().to_owned()),
            inventory: failed.inventory.clone(),
            is_held: plan.content != Content::Source || plan.guard.is_some(),
            is_frozen: plan.is_frozen(),
            history: failed.checksum.clone().map(|checksum| {
                let why = why::list(&failed.error).map(|list| (why::KEY.to_owned(), list));
                entry(plan, checksum, took).with(why.into_iter().chain(statement).collect())
            }),
        });
        self.event(Some(plan), Severity::Error, reason, &message);
        self.report(report).await.map(drop)
    }

    /// Tells of what an apply changed: object by object as Flux does, then field by field.
    pub fn changes(&self, plan: &Plan, applied: &Applied, fields: Option<&str>) {
        let lines: Vec<_> = applied
            .changed()
            .map(|change| format!("{} {}", change.id, change.action))
            .collect();
        if !lines.is_empty() {
            tracing::info!(
                revision = plan.inputs.revision,
                changes = lines.join(", "),
                fields,
                "server-side apply completed"
            );
            let mut message = lines.join("\n");
            if let Some(fields) = fields {
                message = format!("{message}\n\n{fields}");
            }
            self.event(Some(plan), Severity::Info, reasons::PROGRESSING, &message);
        }
    }

    /// Tells of what was deleted; `plan` is None at the end of the object.
    pub fn pruned(&self, plan: Option<&Plan>, pruned: &Pruned) {
        // At the end nothing progresses: as in Flux, the reason is that of the last condition.
        let ready = self.object().condition(condition_types::READY);
        let reason = match (plan, ready) {
            (None, Some(ready)) => ready.reason.as_str(),
            _ => reasons::PROGRESSING,
        };
        let lines: Vec<_> = pruned.deleted.iter().map(|id| format!("{id} deleted")).collect();
        if !lines.is_empty() {
            tracing::info!(changes = lines.join(", "), "garbage collection completed");
            self.event(plan, Severity::Info, reason, &lines.join("\n"));
        }
        let left: Vec<String> = pruned
            .skipped
            .iter()
            .filter_map(|(id, reason)| match reason {
                SkipReason::OwnedBy(owner) => Some(format!(
                    "{id} left to Kustomization/{}/{}",
                    owner.namespace, owner.name
                )),
                _ => None,
            })
            .collect();
        if !left.is_empty() {
            tracing::info!(objects = left.join(", "), "objects were left to their new owners");
            self.event(plan, Severity::Info, reason, &left.join("\n"));
        }
        let errors: Vec<_> = pruned.failed.iter().map(|(_, error)| error.clone()).collect();
        let errors = kube_apply::summarize(&errors);
        errors
            .iter()
            .for_each(|error| tracing::error!(error, "failed to delete"));
        if plan.is_none() && !errors.is_empty() {
            // A run that fails tells this in its status; an object that is being deleted has only events.
            let message = format!("pruning for deleted resource failed:\n{}", errors.join("\n"));
            self.event(None, Severity::Error, reasons::PRUNE_FAILED, &message);
        }
    }

    /// Records that an object which is being deleted waits for a confirmation, and what is left of it.
    pub async fn prune_refused(&mut self, message: String, left: ResourceInventory) -> Result<(), Error> {
        let report = Report::Failed(Failure {
            reason: reasons::PRUNE_REFUSED,
            message: message.clone(),
            revision: None,
            inventory: Some(left),
            is_held: false,
            is_frozen: false,
            history: None,
        });
        if self.report(report).await? {
            tracing::error!(error = message, "refused to prune");
            self.event(None, Severity::Error, reasons::PRUNE_REFUSED, &message);
        }
        Ok(())
    }

    /// Tells of objects that stay when their Kustomization goes, because the account that could delete them is gone.
    pub fn left_behind(&self, objects: &[(ObjectId, String)]) {
        let names: Vec<_> = objects.iter().map(|(id, _)| id.to_string()).collect();
        let message = format!(
            "unable to prune objects, the service account to impersonate is gone:\n{}",
            names.join("\n")
        );
        tracing::error!(
            objects = names.join(", "),
            "failed to find the account to impersonate, skipping pruning"
        );
        self.event(None, Severity::Error, reasons::PRUNE_FAILED, &message);
    }

    /// Tells that nothing can be deleted now.
    pub fn cannot_prune(&self, error: &str) {
        tracing::error!(error, "failed to prune");
        let message = format!("pruning for deleted resource failed: {error}");
        self.event(None, Severity::Error, reasons::PRUNE_FAILED, &message);
    }

    fn event(&self, plan: Option<&Plan>, severity: Severity, reason: &str, message: &str) {
        self.publish(plan, severity, reason, message, None);
    }

    fn publish(
        &self,
        plan: Option<&Plan>,
        severity: Severity,
        reason: &str,
        message: &str,
        more: Option<(String, String)>,
    ) {
        let status = self.object().status.as_ref();
        let applied = status.and_then(|s| s.last_applied_revision.as_ref());
        let origin = status.and_then(|s| s.last_applied_origin_revision.as_ref());
        let (revision, origin) = match plan {
            // What went wrong is about the revision that is held: the status of the good one's commit must stay as it is.
            Some(plan) if severity == Severity::Error => {
                (Some(plan.attempted()), plan.origin_revision.as_ref())
            }
            Some(plan) => (Some(plan.revision()), plan.origin()),
            None => (applied.map(String::as_str), origin),
        };
        let annotation =
            |key: &str, value: Option<&str>| Some((format!("{KUSTOMIZE_GROUP}/{key}"), value?.to_owned()));
        let annotations: BTreeMap<_, _> = [
            annotation("revision", revision),
            annotation("originRevision", origin.map(String::as_str)),
            more,
        ]
        .into_iter()
        .flatten()
        .collect();
        self.writer.event(severity, reason, message, annotations);
    }

    fn conditions(&self) -> &[api::meta::Condition] {
        let status = self.object().status.as_ref();
        status.map_or(&[], |status| &status.conditions)
    }

    fn failed(&self, error: Error) -> Error {
        tracing::error!(error = error.message(), "failed to write the object");
        error
    }
}

fn entry(plan: &Plan, checksum: String, duration: Duration) -> Entry {
    Entry {
        checksum,
        duration,
        reports: Reports::new(),
        revision: plan.revision().to_owned(),
        origin_revision: plan.origin().cloned(),
    }
}

/// Counts what a status that was written says of delivery.
fn count(context: &Context, object: &Kustomization, next: &KustomizationStatus) {
    let made_at = || {
        let revision = next.last_applied_revision.as_deref()?;
        progress::made_at(&context.sources, object, revision)
    };
    context.base.metrics.progressed(
        "Kustomization",
        &ObjectKey::from_object(object),
        &progress::delivery_progress(object.status.as_ref()),
        &progress::delivery_progress(Some(next)),
        made_at,
    );
}

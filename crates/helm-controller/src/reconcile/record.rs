//! What is written of a reconcile: the status, the finalizer, events and log lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::helm::{HelmRelease, HelmReleaseStatus};
use api::meta::RECONCILE_REQUEST_ANNOTATION;
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::queue::Outcome as Next;
use controller_kit::{finalizer, status as status_patch};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::progress;
use super::status::{self, Frame, Report};
use crate::controller::Context;
use crate::error::Error;
use crate::flags::NAME;

/// Writes about one object, each time from the newest version of it.
pub struct Recorder<'a> {
    context: &'a Context,
    object: Arc<HelmRelease>,
    /// The request that the object had when it was observed. One that came since is left for the next run.
    requested_at: Option<String>,
}

impl<'a> Recorder<'a> {
    /// Starts from the object as it was observed.
    pub fn new(context: &'a Context, object: Arc<HelmRelease>) -> Self {
        let requested_at = object.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned();
        Self {
            context,
            object,
            requested_at,
        }
    }

    /// Says whether the object has our finalizer.
    pub fn has_finalizer(&self) -> bool {
        finalizer::is_set(&*self.object)
    }

    /// Adds our finalizer, if it is not there.
    pub async fn ensure_finalizer(&mut self) -> Result<(), Error> {
        if self.has_finalizer() {
            return Ok(());
        }
        let changed = finalizer::add(&self.context.client, &*self.object, NAME).await;
        self.advance(changed.map_err(Error::Finalizer)?);
        Ok(())
    }

    /// Removes our finalizer; the object goes when it was the last.
    pub async fn remove_finalizer(&mut self) -> Result<(), Error> {
        let changed = finalizer::remove(&self.context.client, &*self.object, NAME).await;
        changed.map_err(Error::Finalizer)?;
        Ok(())
    }

    /// The status as it was written last.
    pub fn status(&self) -> HelmReleaseStatus {
        self.object.status.clone().unwrap_or_default()
    }

    /// The value of the annotation that asks for a reconcile, as it was observed.
    pub fn requested_at(&self) -> Option<&str> {
        self.requested_at.as_deref()
    }

    /// Writes the status that follows from a report. Returns whether it differed.
    pub async fn report(&mut self, report: Report) -> Result<bool, Error> {
        let frame = Frame {
            generation: self.object.metadata.generation.unwrap_or_default(),
            requested_at: self.requested_at(),
            now: Timestamp::now(),
        };
        let next = status::next(&self.status(), frame, report);
        self.write(&next).await
    }

    /// Writes a status. Returns whether it differed.
    pub async fn write(&mut self, status: &HelmReleaseStatus) -> Result<bool, Error> {
        let written = status_patch::patch_status(&self.context.client, &*self.object, status, NAME).await;
        match written {
            Ok(changed) => {
                let differed = changed.is_some();
                if differed {
                    self.count(status);
                }
                self.advance(changed);
                Ok(differed)
            }
            // The object is gone; there is nobody left to tell.
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(Error::Record(error)),
        }
    }

    /// Counts what a status that was written says of delivery.
    fn count(&self, next: &HelmReleaseStatus) {
        let (context, object) = (self.context, &*self.object);
        context.metrics.progressed(
            "HelmRelease",
            &ObjectKey::of(object),
            &progress::of(object.status.as_ref()),
            &progress::of(Some(next)),
            || progress::made_at(&context.caches, object, next),
        );
    }

    /// Records that nothing can be done before the spec changes.
    pub async fn stalled(&mut self, reason: &'static str, message: String) -> Next {
        let report = Report::Stalled {
            reason,
            message: message.clone(),
        };
        self.told(report, Severity::Error, reason, &message, Next::Terminal)
            .await
    }

    /// Records what is waited for.
    pub async fn blocked(&mut self, reason: &'static str, message: String) -> Next {
        let report = Report::Blocked {
            reason,
            message: message.clone(),
        };
        self.told(report, Severity::Info, reason, &message, Next::Done)
            .await
    }

    /// Records what could not be had, and is tried again.
    pub async fn failed(&mut self, reason: &'static str, message: String) -> Next {
        tracing::error!(reason, error = message, "Reconciliation failed");
        let report = Report::Failed {
            reason,
            message: message.clone(),
        };
        self.told(report, Severity::Error, reason, &message, Next::Backoff)
            .await
    }

    /// Writes a report, and publishes it if it is news.
    async fn told(
        &mut self,
        report: Report,
        severity: Severity,
        reason: &str,
        message: &str,
        next: Next,
    ) -> Next {
        match self.report(report).await {
            Ok(differed) => {
                if differed {
                    self.event(severity, reason, message, BTreeMap::new());
                }
                next
            }
            Err(error) => self.unwritten(&error),
        }
    }

    /// Logs that something could not be written, which is tried again.
    pub fn unwritten(&self, error: &Error) -> Next {
        tracing::error!(error = error.message(), "failed to write the object");
        Next::Backoff
    }

    /// Publishes an event about the object.
    pub fn event(
        &self,
        severity: Severity,
        reason: &str,
        message: &str,
        annotations: BTreeMap<String, String>,
    ) {
        self.context
            .events
            .publish(&*self.object, severity, reason, message, annotations);
    }

    /// Goes on from the answer to our own write, which is newer than what the watch has seen.
    fn advance(&mut self, changed: Option<HelmRelease>) {
        if let Some(changed) = changed {
            self.object = Arc::new(changed.clone());
            self.context.caches.releases.remember(changed);
        }
    }
}

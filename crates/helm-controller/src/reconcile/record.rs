//! Writes the results of a reconcile: the status, the finalizer, events and log lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::helm::{HelmRelease, HelmReleaseStatus};
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::queue::Outcome as Next;
use reconcile_kit::writer::{Frame, Writer};

use super::progress;
use super::status::{self, Report};
use crate::context::Context;
use crate::error::Error;

/// Records what becomes of one object.
pub struct Recorder<'a> {
    context: &'a Context,
    writer: Writer<'a, HelmRelease>,
}

impl<'a> Recorder<'a> {
    /// Starts from the object as it was observed.
    pub fn new(context: &'a Context, object: Arc<HelmRelease>) -> Self {
        Self {
            context,
            writer: Writer::new(&context.base, object),
        }
    }

    /// Adds our finalizer, if it is not there.
    pub async fn ensure_finalizer(&mut self) -> Result<(), Error> {
        self.writer.ensure_finalizer().await.map_err(Error::Finalizer)
    }

    /// Removes our finalizer; the object goes when it was the last.
    pub async fn remove_finalizer(&mut self) -> Result<(), Error> {
        self.writer.remove_finalizer().await.map_err(Error::Finalizer)
    }

    /// The status as it was written last.
    pub fn status(&self) -> HelmReleaseStatus {
        self.writer.object().status.clone().unwrap_or_default()
    }

    /// What the next report acknowledges.
    pub fn frame(&self) -> Frame<'_> {
        self.writer.frame()
    }

    /// The value of the annotation that asks for a reconcile, as it was observed.
    pub fn requested_at(&self) -> Option<&str> {
        self.writer.frame().requested_at
    }

    /// Writes the status that follows from a report. Returns whether it differed.
    pub async fn report(&mut self, report: Report) -> Result<bool, Error> {
        let next = status::next(&self.status(), self.writer.frame(), report);
        self.write(&next).await
    }

    /// Writes a status. Returns whether it differed.
    pub async fn write(&mut self, status: &HelmReleaseStatus) -> Result<bool, Error> {
        let context = self.context;
        let written = self.writer.write(status, |before| count(context, before, status));
        written.await.map_err(Error::Record)
    }

    /// Records that nothing can be done before the spec changes.
    pub async fn stalled(&mut self, reason: &'static str, message: String) -> Next {
        let report = Report::Stalled {
            reason,
            message: message.clone(),
        };
        self.report_news(report, Severity::Error, reason, &message, Next::Terminal)
            .await
    }

    /// Records what is waited for.
    pub async fn blocked(&mut self, reason: &'static str, message: String) -> Next {
        let report = Report::Blocked {
            reason,
            message: message.clone(),
        };
        self.report_news(report, Severity::Info, reason, &message, Next::Done)
            .await
    }

    /// Records what could not be had, and is tried again.
    pub async fn failed(&mut self, reason: &'static str, message: String) -> Next {
        tracing::error!(reason, error = message, "Reconciliation failed");
        let report = Report::Failed {
            reason,
            message: message.clone(),
        };
        self.report_news(report, Severity::Error, reason, &message, Next::Backoff)
            .await
    }

    /// Writes a report, and publishes it if it is news.
    async fn report_news(
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
        self.writer.event(severity, reason, message, annotations);
    }
}

/// Counts what a status that was written says of delivery.
fn count(context: &Context, object: &HelmRelease, next: &HelmReleaseStatus) {
    context.base.metrics.progressed(
        "HelmRelease",
        &ObjectKey::from_object(object),
        &progress::delivery_progress(object.status.as_ref()),
        &progress::delivery_progress(Some(next)),
        || progress::made_at(&context.sources, object, next),
    );
}

//! Telling of a wait that goes on: when to look for causes, and whether there is anything new.

use std::cmp::Reverse;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::report::{ObjectReport, Report};
use crate::verdict::Status;

/// Most waits are over sooner.
const FIRST: Duration = Duration::from_secs(5);
/// Each look costs a few requests; a wait of an hour makes some sixty of them.
const PAUSE_LIMIT: Duration = Duration::from_secs(60);

/// Event that woke a wait.
pub(super) enum Woken {
    /// A watch has news.
    News,
    /// The time until which it was to sleep.
    Time,
    /// It is time to look for causes.
    ToLook,
    /// Causes were looked for.
    Looked(Report),
}

/// The telling of one wait. Looking goes on beside the wait, which must not be late for it.
pub(super) struct Telling {
    at: Instant,
    pause: Duration,
    looking: Option<BoxFuture<'static, Report>>,
    told: String,
}

impl Telling {
    pub(super) fn start() -> Self {
        Self {
            at: Instant::now() + FIRST,
            pause: FIRST,
            looking: None,
            told: String::new(),
        }
    }

    /// Sleeps until there is something to do. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Woken {
        match &mut self.looking {
            Some(looking) => Woken::Looked(looking.await),
            None => {
                tokio::time::sleep_until(self.at).await;
                Woken::ToLook
            }
        }
    }

    /// Takes over a look that has begun.
    pub(super) fn looks(&mut self, looking: BoxFuture<'static, Report>) {
        self.looking = Some(looking);
    }

    /// Takes in what a look found; returns it if it is new.
    pub(super) fn looked(&mut self, report: Report) -> Option<Report> {
        self.looking = None;
        self.pause = PAUSE_LIMIT.min(self.pause * 2);
        self.at = Instant::now() + self.pause;
        let text = report.to_string();
        (text != self.told).then(|| {
            self.told = text;
            report
        })
    }
}

/// Of many objects those that explain most come first: few are looked at while the wait goes on.
pub(super) fn worst_first(mut objects: Vec<ObjectReport>) -> Vec<ObjectReport> {
    let tells = |status| match status {
        Status::Failed => 3,
        Status::InProgress | Status::Terminating => 2,
        Status::NotFound => 1,
        Status::Unknown | Status::Current => 0,
    };
    objects.sort_by_key(|object| Reverse(tells(object.status)));
    objects
}

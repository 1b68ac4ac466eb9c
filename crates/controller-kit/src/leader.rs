//! Leader election on a Lease, with client-go's algorithm.
//!
//! In: the flags and the name of the Lease. Out: leadership, when it is this process' turn, and word when it is
//! lost. How long a Lease still holds is measured from when *this* process saw it change, on its monotonic
//! clock: times written by others are never compared with ours, so clocks may differ. All writes carry the
//! resource version of what they build on, so of two candidates one fails.

mod announcement;
mod elector;

use std::time::Duration;

use kube::Client;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::flags::LeaderElectionFlags;
use crate::jitter;
use crate::metrics::Metrics;
use elector::{Attempt, Elector, Seat};

pub use announcement::{Announcement, Candidacy, Fitness, Leader};

/// Candidates wait up to this much longer than the retry period, so that they do not ask in step. From client-go.
const JITTER_FACTOR: f64 = 1.2;

/// Error of leader election.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// With these durations a leader could lose the Lease without noticing.
    #[error(
        "failed to set up leader election: the lease duration must be longer than the renew deadline, and that \
         longer than the retry period by a fifth"
    )]
    Durations,
}

/// Leadership, until it is lost or given up. Without leader election it is never lost.
#[derive(Debug)]
pub struct Leadership {
    token: CancellationToken,
    lost: CancellationToken,
    stop: CancellationToken,
    renewal: Option<JoinHandle<()>>,
}

/// Waits until this process leads. None if `token` was cancelled before that.
pub async fn run(
    client: Client,
    flags: &LeaderElectionFlags,
    lease: &str,
    namespace: &str,
    token: CancellationToken,
    metrics: &Metrics,
) -> Result<Option<Leadership>, Error> {
    let silent = Announcement::default();
    run_announcing(client, flags, (lease, namespace), token, metrics, silent).await
}

/// As [`run`]; the Lease says where this process serves once it leads.
pub async fn run_announcing(
    client: Client,
    flags: &LeaderElectionFlags,
    (lease, namespace): (&str, &str),
    token: CancellationToken,
    metrics: &Metrics,
    announcement: Announcement,
) -> Result<Option<Leadership>, Error> {
    let (lost, stop) = (CancellationToken::new(), CancellationToken::new());
    let child = token.child_token();
    if !flags.enable_leader_election {
        return Ok(Some(Leadership {
            token: child,
            lost,
            stop,
            renewal: None,
        }));
    }
    check(flags)?;
    metrics.set_leader(lease, false);
    let duration = flags.leader_election_lease_duration;
    let mut elector = Elector::new(client, lease, namespace, duration, metrics.slow_renewals(lease));
    elector.announcement = announcement;
    tracing::info!(
        lease,
        namespace,
        identity = elector.identity(),
        "attempting to acquire leader lease"
    );
    if !acquire(&mut elector, flags, &token).await {
        return Ok(None);
    }
    tracing::info!(lease, namespace, "successfully acquired lease");
    metrics.set_leader(lease, true);
    let renewal = Renewal {
        elector,
        flags: flags.clone(),
        lease: lease.to_owned(),
        metrics: metrics.clone(),
    };
    let leadership = Leadership {
        token: child,
        lost: lost.clone(),
        stop: stop.clone(),
        renewal: None,
    };
    let renewal = tokio::spawn(renewal.run(leadership.token.clone(), lost, stop));
    Ok(Some(Leadership {
        renewal: Some(renewal),
        ..leadership
    }))
}

impl Leadership {
    /// Cancelled when leadership is lost, and when the token given to [`run`] is.
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Ends when leadership is lost. Then another process may lead already: stop at once.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Cancelled when leadership is lost.
    pub(crate) fn lost_token(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Gives the Lease up, if the flags ask for it. To be called when no work is going on any more.
    pub async fn release(self) {
        self.stop.cancel();
        if let Some(renewal) = self.renewal
            && let Err(error) = renewal.await
        {
            tracing::error!(%error, "failed to end leader election");
        }
    }
}

/// client-go refuses the same settings.
fn check(flags: &LeaderElectionFlags) -> Result<(), Error> {
    let shortest_deadline = flags.leader_election_retry_period.mul_f64(JITTER_FACTOR);
    let good = flags.leader_election_lease_duration > flags.leader_election_renew_deadline
        && flags.leader_election_renew_deadline > shortest_deadline
        && flags.leader_election_lease_duration >= Duration::from_secs(1)
        && !flags.leader_election_retry_period.is_zero();
    good.then_some(()).ok_or(Error::Durations)
}

/// Retry periods for which a candidate that is not fit leaves a vacant Lease to others. Each of them looks within 2.2 periods.
const COURTESY: u32 = 3;

/// Returns when this process may try to lead: at once if it is fit. Others get some time to be quicker.
async fn wait_until_fit(
    elector: &mut Elector,
    flags: &LeaderElectionFlags,
    token: &CancellationToken,
) -> bool {
    let period = flags.leader_election_retry_period;
    let mut vacant_since = None;
    loop {
        let patience = match elector.announcement.candidacy.fitness() {
            Fitness::Fit => return true,
            Fitness::Successor => Duration::ZERO,
            Fitness::Behind => period * COURTESY,
        };
        let limit = Instant::now() + flags.leader_election_renew_deadline;
        let seat = tokio::select! {
            seat = timeout_at(limit, elector.look()) => seat,
            () = token.cancelled() => return false,
        };
        vacant_since = match seat {
            Ok(Ok(Seat::Missing)) => return true,
            Ok(Ok(Seat::Vacant)) => Some(vacant_since.unwrap_or_else(Instant::now)),
            Ok(Ok(Seat::Taken)) => None,
            Ok(Err(error)) => {
                tracing::error!(%error, "failed to look at the leader lease");
                vacant_since
            }
            Err(_) => vacant_since,
        };
        if vacant_since.is_some_and(|since| since.elapsed() >= patience) {
            tracing::warn!("no process leads: taking the lead without having caught up");
            return true;
        }
        let candidacy = elector.announcement.candidacy.clone();
        tokio::select! {
            () = sleep(period) => {}
            () = candidacy.until_fit() => {}
            () = elector.until_given_up() => {}
            () = token.cancelled() => return false,
        }
    }
}

/// Tries until this process leads; false if it shall stop.
async fn acquire(elector: &mut Elector, flags: &LeaderElectionFlags, token: &CancellationToken) -> bool {
    let mut known_holder = String::new();
    loop {
        if !wait_until_fit(elector, flags, token).await {
            return false;
        }
        let limit = Instant::now() + flags.leader_election_renew_deadline;
        let attempt = tokio::select! {
            attempt = timeout_at(limit, elector.try_acquire_or_renew()) => attempt,
            () = token.cancelled() => return false,
        };
        match attempt {
            Ok(Ok(Attempt::Leads)) => return true,
            Ok(Ok(Attempt::HeldBy(holder))) if holder != known_holder => {
                tracing::info!(holder, "another process leads");
                known_holder = holder;
            }
            Ok(Ok(Attempt::HeldBy(_))) => {}
            Ok(Err(error)) => tracing::error!(%error, "failed to acquire the leader lease"),
            Err(_) => tracing::error!("failed to acquire the leader lease: no answer in time"),
        }
        let wait = flags
            .leader_election_retry_period
            .mul_f64(1.0 + JITTER_FACTOR * jitter::random());
        tokio::select! {
            () = sleep(wait) => {}
            () = elector.until_given_up() => {}
            () = token.cancelled() => return false,
        }
    }
}

/// The background task of a leader.
struct Renewal {
    elector: Elector,
    flags: LeaderElectionFlags,
    lease: String,
    metrics: Metrics,
}

impl Renewal {
    async fn run(mut self, token: CancellationToken, lost: CancellationToken, stop: CancellationToken) {
        let kept = self.keep_renewing(&stop).await;
        self.metrics.set_leader(&self.lease, false);
        if !kept {
            tracing::error!(lease = self.lease, "leader election lost");
            lost.cancel();
            token.cancel();
        } else if self.flags.leader_election_release_on_cancel {
            self.release().await;
        }
    }

    /// Renews until told to stop (true) or until it failed for as long as the deadline (false).
    ///
    /// The deadline counts from the start of the last renewal that succeeded: the server may have written at
    /// any moment after that.
    async fn keep_renewing(&mut self, stop: &CancellationToken) -> bool {
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = sleep(self.flags.leader_election_retry_period) => {}
                () = stop.cancelled() => return true,
            }
            let (began, deadline) = (
                Instant::now(),
                renewed + self.flags.leader_election_renew_deadline,
            );
            match timeout_at(deadline, self.elector.try_acquire_or_renew()).await {
                Ok(Ok(Attempt::Leads)) => renewed = began,
                Ok(Ok(Attempt::HeldBy(holder))) => {
                    tracing::error!(holder, "another process took the leader lease");
                    return false;
                }
                Ok(Err(error)) => tracing::warn!(%error, "failed to renew the leader lease"),
                Err(_) => return false,
            }
            if Instant::now() >= deadline {
                return false;
            }
        }
    }

    async fn release(&mut self) {
        let limit = Instant::now() + self.flags.leader_election_renew_deadline;
        match timeout_at(limit, self.elector.release()).await {
            Ok(Ok(())) => tracing::info!(lease = self.lease, "released the leader lease"),
            Ok(Err(error)) => tracing::error!(%error, "failed to release the leader lease"),
            Err(_) => tracing::error!("failed to release the leader lease: no answer in time"),
        }
    }
}

#[cfg(test)]
mod tests;

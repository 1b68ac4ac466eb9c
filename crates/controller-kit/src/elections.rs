//! Further Leases of a process that does the work of several controllers.
//!
//! A program that takes the place of two controllers of Flux holds the Lease of each, so that neither of them is at work at
//! the same time, and the half whose Lease is free begins at once. Losing any of them ends the process, as losing the first
//! does: what was in memory may be someone else's by then.

use std::sync::{Arc, Mutex};

use kube::Client;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::client;
use crate::flags::{ClientFlags, LeaderElectionFlags, WatchFlags};
use crate::leader::{self, Leadership};
use crate::metrics::Metrics;

/// Further elections in which a process stands.
#[derive(Clone)]
pub struct Elections(Arc<Shared>);

struct Shared {
    /// The runtime of what must go on whatever the work does.
    vital: Handle,
    name: &'static str,
    connect: ClientFlags,
    flags: LeaderElectionFlags,
    watch: WatchFlags,
    namespace: String,
    metrics: Metrics,
    token: CancellationToken,
    lost: CancellationToken,
    won: Mutex<Vec<Leadership>>,
}

impl Elections {
    pub(crate) fn new(
        vital: Handle,
        app: &crate::App,
        namespace: &str,
        metrics: &Metrics,
        token: CancellationToken,
    ) -> Self {
        Self(Arc::new(Shared {
            vital,
            name: app.name,
            connect: app.client.clone(),
            flags: app.leader.clone(),
            watch: app.watch.clone(),
            namespace: namespace.to_owned(),
            metrics: metrics.clone(),
            token,
            lost: CancellationToken::new(),
            won: Mutex::default(),
        }))
    }

    /// Waits until this process leads under the name of another controller, too. False if it shall end before that.
    ///
    /// # Errors
    /// When there is no way to the API server, or the flags make no election.
    pub async fn win(&self, name: &str) -> anyhow::Result<bool> {
        if !self.0.flags.enable_leader_election {
            return Ok(true);
        }
        let (shared, lease) = (Arc::clone(&self.0), self.0.watch.lease_name(name));
        let stand = async move {
            // Connections are kept alive by the runtime that made them.
            let client: Client = client::connect(shared.name, &shared.connect, shared.metrics.rest()).await?;
            let token = shared.token.clone();
            let namespace = &shared.namespace;
            let won = leader::run(client, &shared.flags, &lease, namespace, token, &shared.metrics).await?;
            let Some(leadership) = won else {
                return anyhow::Ok(false);
            };
            let (ended, lost) = (leadership.lost_token(), shared.lost.clone());
            tokio::spawn(async move {
                ended.cancelled().await;
                lost.cancel();
            });
            lock(&shared.won).push(leadership);
            Ok(true)
        };
        self.0.vital.spawn(stand).await?
    }

    /// Ends when one of them is lost.
    pub(crate) async fn lost(&self) {
        self.0.lost.cancelled().await;
    }

    /// Gives all of them up.
    pub(crate) async fn release(&self) {
        let won = std::mem::take(&mut *lock(&self.0.won));
        for leadership in won {
            leadership.release().await;
        }
    }
}

/// A panic leaves the list as it was before or after a change.
fn lock(won: &Mutex<Vec<Leadership>>) -> std::sync::MutexGuard<'_, Vec<Leadership>> {
    won.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

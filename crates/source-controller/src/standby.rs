//! A replica that does not lead: it keeps its store equal to the leader's, and serves it.

use std::time::Duration;

use controller_kit::Standby;
use controller_kit::leader::Fitness;
use tokio::sync::watch;

use crate::flags::{Flags, Settings};
use crate::garbage;
use crate::replica;
use crate::serve::plane::{Around, FETCH_DIRECTORY, Plane, STORAGE_CHECK, end};

/// How long a process that takes the leader's place tries to copy what that stores.
const HANDOVER_PATIENCE: Duration = Duration::from_secs(180);
/// Keeps the store of this replica equal to the leader's and serves it, until it leads. Does nothing where replicas share a volume.
///
/// It says at once whether it may lead, before the first wait.
pub(crate) fn stand_by(
    flags: Flags,
    standby: Standby,
) -> impl Future<Output = anyhow::Result<Option<Plane>>> {
    let settings = Settings::from_flags(&flags);
    let copies = settings.as_ref().ok().and_then(|settings| settings.copies);
    standby.candidacy.set(copies.unwrap_or(Fitness::Fit));
    async move {
        let settings = settings?;
        match copies {
            Some(before) => copy_until_leading(settings, before, standby).await.map(Some),
            None => Ok(None),
        }
    }
}

/// `before` is how fit this replica is until it has caught up.
async fn copy_until_leading(settings: Settings, before: Fitness, standby: Standby) -> anyhow::Result<Plane> {
    let Standby {
        client,
        metrics,
        ready,
        namespace,
        leader,
        candidacy,
        token,
        shutdown,
    } = standby;
    let around = Around {
        client: &client,
        namespace: &namespace,
        metrics: &metrics,
    };
    let spool = settings.storage_path.join(FETCH_DIRECTORY);
    let (access, keep_trust) =
        replica::Access::new(&settings.artifact_service, client.clone(), &namespace, spool);
    let mut plane = Plane::start(settings, true, &around).await?;
    // What was copied before a restart is enough to go on with.
    if !plane.store.current_records().is_empty() {
        candidacy.set(Fitness::Fit);
    }
    let synced = watch::Sender::new(false);
    let (mut is_synced, meters) = (synced.subscribe(), plane.meters.clone());
    let tell = async {
        // The sender is there as long as this is waited for.
        while is_synced.changed().await.is_ok() {
            let is_synced = *is_synced.borrow_and_update();
            candidacy.set(if is_synced { Fitness::Fit } else { before });
            meters.synced(is_synced);
            ready.set(STORAGE_CHECK, is_synced);
        }
    };
    let retention = plane.settings.retention.retention_ttl;
    tokio::select! {
        () = replica::follow(&plane.store, &access, leader, &synced, &token) => {}
        Some(ended) = plane.servers.join_next() => ended??,
        // They never end by themselves.
        () = tell => {}
        () = keep_trust => {}
        () = go_without_copy(before, &synced) => {}
        () = garbage::collect(plane.store.clone(), retention, &plane.meters, token.clone()) => {}
    }
    plane.is_copy.send_replace(false);
    if shutdown.is_cancelled() {
        ready.set(STORAGE_CHECK, false);
        end(true, &plane.stop, &mut plane.servers).await;
    }
    Ok(plane)
}

/// A successor that cannot reach the leader takes its place all the same after some time, and fetches everything: the leader would never
/// end otherwise. One of several replicas leaves the lead to the others. Never ends.
async fn go_without_copy(before: Fitness, synced: &watch::Sender<bool>) {
    if before == Fitness::Successor {
        tokio::time::sleep(HANDOVER_PATIENCE).await;
        if !synced.send_replace(true) {
            tracing::warn!(
                logger = "replica",
                "the leader's artifacts could not be copied in time: this process takes its place without them"
            );
        }
    }
    std::future::pending::<()>().await;
}

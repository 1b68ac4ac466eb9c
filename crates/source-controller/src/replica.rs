//! A replica that does not lead: it keeps its store equal to the leader's and serves it.
//!
//! The leader says on its Lease where it is. Its artifact service tells what changes, and each artifact is copied and verified as any other
//! client would do it. What the leader says is gone is removed; what it merely does not have stays, since a leader that came back
//! with an empty volume has to fetch all that the others still hold.
//!
//! A replica is ready, and fit to lead, once it has all that the leader has, or the leader has nothing to copy: it is another program, or
//! one without replicas, which waits to be replaced. It stays so when the leader is gone, and does not when it
//! fails itself: its volume is full, or its token is refused.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use artifact::client::{self, Changes, ClientOptions, Offer, Peer, PeerChange, Supply};
use artifact::store::{ObjectKey, Store};
use controller_kit::credentials;
use controller_kit::leader::Leader;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::flags::artifact_service::{ArtifactService, CertificateFrom, service_name};

/// Key of the certificates in the ConfigMap of our own authority.
const CERTIFICATES_KEY: &str = "ca.crt";
/// Copies at a time.
const COPIES: usize = 8;
/// Wait before the leader is asked again, doubled up to the longest. One that starts again has the same address, of which nothing tells.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest after a failure of our own, which costs a download each time.
const LONGEST_OWN_PAUSE: Duration = Duration::from_secs(30);

/// How the leader's artifact service is called.
pub(crate) struct Access {
    options: ClientOptions,
    is_encrypted: bool,
}

impl Access {
    /// The options, and work that keeps the trusted authority newest. It never ends.
    pub(crate) fn new(
        service: &ArtifactService,
        client: Client,
        namespace: &str,
        spool_folder: PathBuf,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let mut keep = None;
        let mut options = ClientOptions {
            cache_bytes: 0,
            spool_folder: Some(spool_folder),
            ..ClientOptions::default()
        };
        if let Some(protection) = &service.protection {
            options.authority = match &protection.certificate {
                CertificateFrom::Files(..) => service.ca_file.clone().map_or(Supply::Nothing, Supply::File),
                CertificateFrom::Authority { secret, .. } => {
                    let (newest, work) =
                        credentials::config_map_key(client, namespace, secret, CERTIFICATES_KEY);
                    keep = Some(work);
                    Supply::Watched(newest)
                }
            };
            options.server_name = Some(match &protection.certificate {
                CertificateFrom::Files(..) => service.host.clone(),
                CertificateFrom::Authority { .. } => service_name(namespace),
            });
            options.token = service.token_file.clone().map_or(Supply::Nothing, Supply::File);
        }
        let is_encrypted = service.protection.is_some();
        let keep = async move {
            match keep {
                Some(keep) => keep.await,
                None => std::future::pending().await,
            }
        };
        let access = Self {
            options,
            is_encrypted,
        };
        (access, keep)
    }

    fn peer(&self, address: SocketAddr) -> client::Result<Peer> {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        Peer::new(ClientOptions {
            grpc_endpoint: Some(format!("{scheme}://{address}")),
            ..self.options.clone()
        })
    }
}

/// Follows the leader, whoever that is, until the token is cancelled. `synced` says whether the store has all that the leader has.
pub(crate) async fn follow(
    store: &Store,
    access: &Access,
    mut leader: watch::Receiver<Leader>,
    synced: &watch::Sender<bool>,
    token: &CancellationToken,
) {
    let mut pause = PAUSE;
    loop {
        let known = leader.borrow_and_update().clone();
        let address = known.addresses().first().copied();
        if known == Leader::Silent && !synced.send_replace(true) {
            tracing::info!(
                logger = "replica",
                "the leader has nothing to copy: this replica can take its place"
            );
        }
        let following = async {
            match address {
                Some(address) => follow_one(store, access, address, synced, &mut pause).await,
                None => std::future::pending().await,
            }
        };
        let failed = tokio::select! {
            () = token.cancelled() => return,
            Ok(()) = leader.changed() => None,
            error = following => Some(error),
        };
        let Some(error) = failed else {
            pause = PAUSE;
            continue;
        };
        let is_ours = is_ours(&error);
        if is_ours && synced.send_replace(false) {
            tracing::error!(
                logger = "replica",
                "this replica is not ready until it has caught up again"
            );
        }
        let error = error_chain::chain(&error);
        if pause > PAUSE {
            tracing::warn!(logger = "replica", leader = ?address, error, "failed to follow the leader");
        } else {
            tracing::info!(logger = "replica", leader = ?address, error, "the leader is followed no more: trying again");
        }
        tokio::select! {
            () = token.cancelled() => return,
            Ok(()) = leader.changed() => pause = PAUSE,
            () = tokio::time::sleep(pause) => {
                let longest = if is_ours { LONGEST_OWN_PAUSE } else { LONGEST_PAUSE };
                pause = (pause * 2).min(longest);
            }
        }
    }
}

/// Returns whether the leader may go on without us: others have what this replica does not get.
fn is_ours(error: &client::Error) -> bool {
    use client::Error::{Refused, Spool, Store, Token};
    matches!(error, Store(_) | Spool { .. } | Refused { .. } | Token(_))
}

/// Follows the process at an address until that fails.
async fn follow_one(
    store: &Store,
    access: &Access,
    address: SocketAddr,
    synced: &watch::Sender<bool>,
    pause: &mut Duration,
) -> client::Error {
    let run = async {
        let peer = access.peer(address)?;
        let changes = peer.watch().await?;
        let following = Following {
            store,
            peer: peer.into(),
            changes,
            is_listed: false,
            waiting: BTreeMap::new(),
            running: JoinSet::new(),
            busy: HashSet::new(),
        };
        following
            .run(|| {
                *pause = PAUSE;
                if !synced.send_replace(true) {
                    tracing::info!(logger = "replica", leader = %address, "has all that the leader has");
                }
            })
            .await
    };
    match run.await {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

/// What is to be done about an object.
enum Wanted {
    Copy(Box<Offer>),
    Remove,
}

struct Following<'a> {
    store: &'a Store,
    peer: std::sync::Arc<Peer>,
    changes: Changes,
    /// Whether the leader has said all that it has.
    is_listed: bool,
    /// The newest of what is to be done about each object.
    waiting: BTreeMap<ObjectKey, Wanted>,
    running: JoinSet<(ObjectKey, client::Result<()>)>,
    busy: HashSet<ObjectKey>,
}

impl Following<'_> {
    async fn run(mut self, mut is_equal: impl FnMut()) -> client::Result<std::convert::Infallible> {
        loop {
            self.begin();
            if self.is_listed && self.running.is_empty() {
                is_equal();
            }
            tokio::select! {
                change = self.changes.next() => self.note(change?),
                Some(done) = self.running.join_next() => {
                    let Ok((key, outcome)) = done else { continue };
                    self.busy.remove(&key);
                    match outcome {
                        // It was replaced meanwhile, which is the next change.
                        Err(client::Error::NotFound { .. }) => {}
                        outcome => outcome?,
                    }
                }
            }
        }
    }

    fn note(&mut self, change: PeerChange) {
        match change {
            PeerChange::Stored(offer) => {
                let key = ObjectKey::from_record(&offer.record);
                self.waiting.insert(key, Wanted::Copy(offer.into()));
            }
            PeerChange::Removed(key) => drop(self.waiting.insert(key, Wanted::Remove)),
            PeerChange::Synced => self.is_listed = true,
        }
    }

    /// Begins what is waiting, as far as there is room. There is one at a time for each object.
    fn begin(&mut self) {
        let mut left = std::mem::take(&mut self.waiting);
        while let Some((key, wanted)) = left.pop_first() {
            if self.busy.contains(&key) || self.running.len() >= COPIES {
                self.waiting.insert(key, wanted);
                continue;
            }
            if let Wanted::Copy(offer) = &wanted
                && self.store.current(&key.kind, &key.namespace, &key.name).as_ref() == Some(&offer.record)
            {
                continue;
            }
            self.busy.insert(key.clone());
            let (store, peer) = (self.store.clone(), self.peer.clone());
            self.running.spawn(async move {
                let outcome = match wanted {
                    Wanted::Copy(offer) => peer.copy(*offer, &store).await.map(drop),
                    Wanted::Remove => remove(key.clone(), store).await,
                };
                (key, outcome)
            });
        }
    }
}

async fn remove(key: ObjectKey, store: Store) -> client::Result<()> {
    let removing =
        tokio::task::spawn_blocking(move || store.remove_object(&key.kind, &key.namespace, &key.name));
    match removing.await {
        Ok(removed) => Ok(removed.map(drop)?),
        // The process ends.
        Err(_) => Ok(()),
    }
}

//! The process: the picture is filled, and the API answers from it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use access_review::{Caller, Reviews};
use anyhow::Context as _;
use controller_kit::Context as Kit;
use fleet::picture::Picture;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::api;
use crate::flags::Flags;

/// Queries that are worked on at a time; they take processor time, and others wait.
const MAX_QUERIES: usize = 4;
/// Streams that are open at a time, and those of one caller.
const MAX_STREAMS: usize = 2000;
const MAX_STREAMS_OF_ONE: usize = 50;

/// What all requests share.
#[derive(Clone)]
pub struct Console {
    pub picture: Picture,
    pub reviews: Arc<Reviews>,
    /// Turns for queries.
    pub queries: Arc<Semaphore>,
    /// Room for streams.
    pub streams: Rooms,
    /// Cancelled when the process ends: streams do.
    pub ending: tokio_util::sync::CancellationToken,
}

/// Streams that are open, by caller. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Rooms(Arc<Mutex<HashMap<Arc<Caller>, usize>>>);

/// Room for one stream, until it is dropped.
pub struct Room {
    rooms: Rooms,
    caller: Arc<Caller>,
}

impl Rooms {
    /// Takes room for a stream; None if there is none, for this caller or at all.
    pub fn enter(&self, caller: &Arc<Caller>) -> Option<Room> {
        let mut open = self.locked();
        let own = open.get(caller).copied().unwrap_or_default();
        if own >= MAX_STREAMS_OF_ONE || open.values().sum::<usize>() >= MAX_STREAMS {
            return None;
        }
        open.insert(caller.clone(), own + 1);
        Some(Room {
            rooms: self.clone(),
            caller: caller.clone(),
        })
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Arc<Caller>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut open = self.rooms.locked();
        if let Some(own) = open.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

/// Watches and serves until the token is cancelled.
pub async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let picture = Picture::default();
    let console = Console {
        picture: picture.clone(),
        reviews: Arc::new(Reviews::for_users(kit.client.clone())),
        queries: Arc::new(Semaphore::new(MAX_QUERIES)),
        streams: Rooms::default(),
        ending: kit.token.clone(),
    };
    let listener = TcpListener::bind(flags.api_addr).await;
    let listener = listener.with_context(|| format!("failed to listen at {}", flags.api_addr))?;
    let ending = kit.token.clone();
    let serving = axum::serve(listener, api::routes(console))
        .with_graceful_shutdown(async move { ending.cancelled().await });
    let filling = fleet::watch::fill(&picture, flags.cluster_name.as_str().into(), kit.client.clone());
    let completing = async {
        let mut changes = picture.subscribe();
        // A cluster without any object tells of no change.
        let mut tick = tokio::time::interval(std::time::Duration::from_millis(50));
        while !picture.clusters().iter().all(|cluster| cluster.complete) || picture.clusters().is_empty() {
            tokio::select! {
                _ = changes.changed() => {}
                _ = tick.tick() => {}
            }
        }
        kit.ready.set(crate::PICTURE, true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        served = serving => served.context("failed to serve the API"),
        () = filling => anyhow::bail!("the watches ended"),
        () = completing => Ok(()),
    }
}

//! Where an action works, as whom, and what goes with one action. Plain data; decides nothing.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{Error, ErrorKind, Log, Storage};

/// Where actions work, and as whom.
#[derive(Clone)]
pub struct Cluster {
    /// Sends all requests; impersonates someone where that was asked for.
    pub client: kube::Client,
    /// Resolves kinds, writes, and keeps the index of what is managed. It writes as `client`.
    pub engine: kube_apply::Engine,
    /// Waits by watching, as `client`.
    pub hub: kube_health::Hub,
    /// Under which name fields are owned: Flux's is `helm-controller`.
    pub field_manager: String,
}

/// Context of one action.
pub struct Context<'a> {
    /// Where it works.
    pub cluster: &'a Cluster,
    /// Where its records are.
    pub storage: &'a Storage,
    /// Gives the worker's slot away while it only waits.
    pub pace: &'a dyn Pace,
    /// Ends its waits at once, those of hooks aside; the record is then written as failed.
    pub cancelled: CancellationToken,
    /// Ends the waits of hooks. It is not `cancelled` that does, which a newer revision may set off: a migration that runs is
    /// not to be taken for failed, and replaced, because someone has pushed a commit.
    pub stopped: CancellationToken,
    /// Hears now and then, in one line, what a wait that lasts waits for.
    pub tell: &'a Tell,
    /// Lines for people.
    pub log: &'a Log,
}

/// Takes what is told while an action waits. It must not block.
pub type Tell = dyn Fn(String) + Send + Sync;

/// A wait holds no worker: the slot is given back for as long as an action only waits.
pub trait Pace: Send + Sync {
    /// Gives the slot away.
    fn pause(&self);
    /// Takes one again, when there is one.
    fn resume(&self) -> BoxFuture<'_, ()>;
}

/// Holds no slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpaced;

impl Pace for Unpaced {
    fn pause(&self) {}

    fn resume(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

impl Context<'_> {
    /// Waits without a slot, until what is waited for is there or the action is cancelled.
    ///
    /// # Errors
    /// When it was cancelled.
    pub async fn wait_for<T>(&self, what: impl Future<Output = T>) -> Result<T, Error> {
        if self.cancelled.is_cancelled() {
            return Err(cancelled());
        }
        self.pace.pause();
        let done = tokio::select! {
            done = what => Ok(done),
            () = self.cancelled.cancelled() => Err(cancelled()),
        };
        self.pace.resume().await;
        done
    }

    /// Returns whether the action is to go on.
    ///
    /// # Errors
    /// When it was cancelled.
    pub fn go_on(&self) -> Result<(), Error> {
        if self.cancelled.is_cancelled() {
            Err(cancelled())
        } else {
            Ok(())
        }
    }
}

/// In Go's words, which stand in the records of Flux.
fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "context canceled")
}

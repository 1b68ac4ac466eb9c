//! Commits that were fetched: asked for again after a while, and received again only when they are others.

use std::sync::{Mutex, MutexGuard, PoisonError};

use git_client::pack::Pack;
use tokio::time::Instant;

/// How many are kept, of how many bytes (in files), with how many objects (32 bytes of memory each).
const MAX: usize = 32;
const MAX_BYTES: u64 = 512 << 20;
const MAX_OBJECTS: usize = 500_000;

/// A commit that was fetched.
#[derive(Clone)]
pub(crate) struct Commit {
    /// What was asked for: the address with its credentials, and the name of the commit.
    pub(crate) asked: (String, String),
    /// `<ref>@sha1:<commit>`, or `sha1:<commit>`.
    pub(crate) revision: String,
    pub(crate) pack: Pack,
    /// When the server said last that this is it; None if it failed to since.
    pub(crate) at: Option<Instant>,
}

/// The commits that are kept, those used last at the end.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<Commit>>);

impl Kept {
    pub(crate) fn get(&self, asked: &(String, String)) -> Option<Commit> {
        let mut all = self.lock();
        let at = all.iter().position(|known| known.asked == *asked)?;
        let found = all.remove(at);
        all.push(found.clone());
        Some(found)
    }

    /// Keeps one, in place of what was known of it, and drops those that were not used for longest.
    pub(crate) fn put(&self, commit: Commit) {
        let mut all = self.lock();
        all.retain(|known| known.asked != commit.asked);
        all.push(commit);
        let (mut bytes, mut objects) = (0, 0);
        let fits = |known: &&Commit| {
            bytes += known.pack.bytes();
            objects += known.pack.objects();
            bytes <= MAX_BYTES && objects <= MAX_OBJECTS
        };
        let fitting = all.iter().rev().take(MAX).take_while(fits).count();
        let superfluous = all.len() - fitting;
        all.drain(..superfluous);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Commit>> {
        // A panic while the lock is held leaves a list of commits, each of which is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

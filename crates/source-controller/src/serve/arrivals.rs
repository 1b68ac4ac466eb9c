//! Artifacts that a replica does not have yet.
//!
//! The leader says in a status what it has stored in that moment, and whoever reads it may ask a replica that is still copying it.
//! Such a question waits a little instead of being answered with "not found".

use std::sync::Arc;
use std::time::Duration;

use artifact::store::Store;
use tokio::sync::watch;

/// How long an artifact is waited for that may be on its way.
const PATIENCE: Duration = Duration::from_secs(3);

/// Finds what is in the store, or comes into it soon.
#[derive(Debug, Clone)]
pub struct Arrivals {
    store: Arc<Store>,
    /// Whether the store is a copy of the leader's.
    is_copy: watch::Receiver<bool>,
}

impl Arrivals {
    /// For a store that is a copy as long as the channel says so.
    pub fn new(store: Arc<Store>, is_copy: watch::Receiver<bool>) -> Self {
        Self { store, is_copy }
    }

    /// For a store into which nothing is copied.
    #[cfg(test)]
    pub fn none(store: Arc<Store>) -> Self {
        Self::new(store, watch::channel(false).1)
    }

    /// The store itself.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns whether something that is missing may be on its way.
    pub fn are_possible(&self) -> bool {
        *self.is_copy.borrow()
    }

    /// What `find` finds, now or soon. It is called again whenever something has come.
    pub async fn find<T>(&self, find: impl Fn(&Store) -> Option<T>) -> Option<T> {
        if let Some(found) = find(&self.store) {
            return Some(found);
        }
        if !self.are_possible() {
            return None;
        }
        // From here on nothing is missed.
        let mut changes = self.store.subscribe();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(found) = find(&self.store) {
                return Some(found);
            }
            let change = tokio::time::timeout_at(deadline, changes.recv()).await;
            if change.is_err() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artifact::store::{Options, RecordMeta};

    fn stored(store: &Store) {
        let mut ingest = store.ingest();
        ingest.add_file("a", false, &b"a"[..]).unwrap();
        let meta = RecordMeta {
            kind: "GitRepository".to_owned(),
            namespace: "apps".to_owned(),
            name: "app".to_owned(),
            revision: "main@sha1:1".to_owned(),
            filename: "1.tar.gz".to_owned(),
            ..RecordMeta::default()
        };
        ingest.finish(meta).unwrap();
    }

    #[tokio::test]
    async fn a_copy_waits_for_what_is_on_its_way_and_the_leader_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
        let find = |store: &Store| store.current("GitRepository", "apps", "app");
        let leader = Arrivals::none(Arc::new(store.clone()));
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        assert!(leader.find(find).await.is_none());
        assert!(began.elapsed().is_zero());

        let (is_copy, receiver) = watch::channel(true);
        let copy = Arrivals::new(Arc::new(store.clone()), receiver);
        assert!(copy.find(find).await.is_none());
        let waited = began.elapsed();
        assert!(waited >= PATIENCE && waited < PATIENCE * 2, "{waited:?}");
        tokio::time::resume();

        let waiting = tokio::spawn({
            let copy = copy.clone();
            async move { copy.find(find).await }
        });
        tokio::task::yield_now().await;
        stored(&store);
        assert!(waiting.await.unwrap().is_some());
        is_copy.send(false).unwrap();
        assert!(!copy.are_possible());
    }
}

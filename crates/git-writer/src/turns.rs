//! One writer for each repository and branch: those that push to one branch wait for each other instead of racing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Turns at branches. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Writers(Arc<Mutex<Turns>>);

/// By repository and branch.
type Turns = HashMap<(String, String), Weak<Turn<()>>>;

impl Writers {
    /// Waits for the turn at a branch of a repository.
    pub async fn turn(&self, url: &str, branch: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, turn| turn.strong_count() > 0);
            let key = (url.to_owned(), branch.to_owned());
            let known = all.get(&key).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::default();
                all.insert(key, Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn one_branch_has_one_writer_and_others_do_not_wait() {
        let writers = Writers::default();
        let first = writers.turn("u", "main").await;
        let limit = Duration::from_secs(1);
        assert!(
            tokio::time::timeout(limit, writers.turn("u", "main"))
                .await
                .is_err()
        );
        drop(writers.turn("u", "other").await);
        drop(first);
        drop(writers.turn("u", "main").await);
    }
}

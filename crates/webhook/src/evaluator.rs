//! Where expressions are evaluated: beside the threads that serve calls, and few at once.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Number of concurrent evaluations. Each is bounded, but callers decide how often they happen: they may keep
/// this many cores busy.
const AT_ONCE: usize = 2;

/// Evaluates expressions. Clones share the places.
#[derive(Debug, Clone)]
pub struct Evaluator(Arc<Semaphore>);

impl Default for Evaluator {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Evaluator {
    /// Does the work once there is a place for it. None if it panicked.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let place = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            // Taken until the work ends, even if no one waits for it any more.
            let _place = place;
            work()
        });
        done.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn few_are_at_work_at_once_even_if_nobody_waits_for_them() {
        let (evaluator, busy) = (Evaluator::default(), Arc::new(AtomicUsize::new(0)));
        let work = |busy: Arc<AtomicUsize>| {
            move || {
                let before = busy.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                busy.fetch_sub(1, Ordering::SeqCst);
                before < AT_ONCE
            }
        };
        for _ in 0..AT_ONCE {
            let impatient = evaluator.run(work(Arc::clone(&busy)));
            assert!(
                tokio::time::timeout(Duration::from_millis(5), impatient)
                    .await
                    .is_err()
            );
        }
        for _ in 0..3 {
            assert_eq!(evaluator.run(work(Arc::clone(&busy))).await, Some(true));
        }
        assert_eq!(evaluator.run(|| panic!("an expression")).await, None::<()>);
        assert_eq!(evaluator.run(|| 1).await, Some(1));
    }
}

//! Counts received bytes for the kind whose reconcile asked for them.
//!
//! Readers of bodies are many and know nothing of kinds, so the counter goes along with the task, as a span does. Work
//! that moves to a thread takes it along by [`Received::here`] and [`Received::within`].

use prometheus_client::metrics::counter::Counter;

tokio::task_local! {
    static RECEIVED: Counter;
}

/// The counter of a task, for a thread that works for it.
#[derive(Clone)]
pub struct Received(Option<Counter>);

/// Has the counter count what arrives in a future.
pub async fn counting<T>(counter: Counter, work: impl Future<Output = T>) -> T {
    RECEIVED.scope(counter, work).await
}

/// Counts bytes that arrived. Outside of any reconcile no one counts them.
pub fn add(bytes: usize) {
    // An error means that there is no counter.
    let _ = RECEIVED.try_with(|counter| counter.inc_by(bytes as u64));
}

impl Received {
    /// That of the task or thread which calls.
    pub fn here() -> Self {
        Self(RECEIVED.try_with(Counter::clone).ok())
    }

    /// Has it count what arrives meanwhile on this thread.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(counter) => RECEIVED.sync_scope(counter.clone(), work),
            None => work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_counts_for_the_task_that_it_works_for() {
        let (counter, other) = (Counter::default(), Counter::default());
        add(1); // for nobody
        let work = async {
            add(2);
            let received = Received::here();
            let thread = tokio::task::spawn_blocking(move || {
                add(4); // this thread does not know yet
                received.within(|| add(8));
            });
            thread.await.unwrap();
        };
        let beside = async { add(16) };
        tokio::join!(counting(counter.clone(), work), counting(other.clone(), beside));
        let counts: [u64; 2] = [counter.get(), other.get()];
        assert_eq!(counts, [10, 16]);
    }
}

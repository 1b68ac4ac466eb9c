//! The work queue of a controller: which key is worked on next, and when.
//!
//! In: keys, from watches, timers and failed attempts. Out: calls of a handler, never two at once for one key,
//! in the order in which the keys came, with the lanes (namespaces) taking turns. The rules are those of client-go's work queue with
//! controller-runtime's use of it, the turns, and one rule that differs (see [`Queue::add_after`]). While nothing is due,
//! nothing runs: there is one sleep, until the next deadline.
//!
//! The queue knows keys only. It does not read objects and does not decide whether there is something to do.

mod backoff;
mod lanes;
mod slot;
mod state;

use std::any::Any;
use std::fmt::Debug;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

pub use backoff::Backoff;
pub use lanes::Lane;
pub use slot::Slot;
use slot::Slots;

use crate::metrics::{Metrics, QueueMetrics};
use state::State;

/// How long work in progress may take to end after cancellation, as in controller-runtime.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// When the queue should call the handler again with this key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded; nothing until the key is added again.
    Done,
    /// It succeeded; again after this time.
    After(Duration),
    /// It failed; again after the backoff of this key, which doubles with each failure in a row.
    Backoff,
    /// It failed, and trying again is no use until something changes and the key is added again.
    Terminal,
}

/// A work queue. Clones are the same queue.
pub struct Queue<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    controller: String,
    backoff: Backoff,
    metrics: QueueMetrics,
    state: Mutex<State<K>>,
    changed: Arc<Notify>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<K: Hash + Eq + Clone + Debug + Lane + Send + Sync + 'static> Queue<K> {
    /// Makes an empty queue. `controller` names it in metrics and logs: with Flux it is the kind in lower case
    /// ("kustomization").
    pub fn new(controller: &str, backoff: impl Into<Backoff>, metrics: &Metrics) -> Self {
        let inner = Arc::new(Inner {
            controller: controller.to_owned(),
            backoff: backoff.into(),
            metrics: metrics.queue(controller),
            state: Mutex::new(State::default()),
            changed: Arc::default(),
        });
        let probed = Arc::downgrade(&inner);
        inner.metrics.probe(move || {
            probed
                .upgrade()
                .map(|inner| inner.state().snapshot(Instant::now()))
                .unwrap_or_default()
        });
        Self { inner }
    }

    /// Has the key worked on as soon as there is a worker.
    ///
    /// A key that waits already keeps its place. A key that is being worked on comes once more afterwards,
    /// however often it is added meanwhile.
    pub fn add(&self, key: K) {
        if self.inner.state().add(key, Instant::now()) {
            self.inner.metrics.adds.inc();
            self.inner.changed.notify_one();
        }
    }

    /// Has the key worked on after `delay`.
    ///
    /// Of several deadlines of a key the earliest holds, as in client-go. Unlike there, a run that begins
    /// takes the place of all deadlines set before it: a run looks at everything and says itself when the next
    /// is due, and an interval should count from the last run.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        // A deadline beyond the clock's range never comes.
        if let Some(deadline) = Instant::now().checked_add(delay) {
            self.inner.state().add_at(key, deadline);
            self.inner.changed.notify_one();
        }
    }

    /// Counts a failure of the key and has it worked on after the backoff that follows from the count.
    pub fn add_rate_limited(&self, key: K) {
        let failures = self.inner.state().fail(key.clone());
        self.inner.metrics.retries.inc();
        self.add_after(key, self.inner.backoff.delay(failures));
    }

    /// Forgets the failures of the key, so that the next one waits the shortest time again.
    pub fn forget(&self, key: &K) {
        self.inner.state().forget(key);
    }

    /// Failures in a row of the key.
    pub fn failures(&self, key: &K) -> u32 {
        self.inner.state().failures(key)
    }

    /// Returns whether the key waits for a worker: a handler that asks for its own key learns that something changed
    /// since it began.
    pub fn is_waiting(&self, key: &K) -> bool {
        self.inner.state().is_waiting(key)
    }

    /// Number of keys that wait for a worker.
    pub fn len(&self) -> usize {
        self.inner.state().snapshot(Instant::now()).depth
    }

    /// Returns whether no key waits for a worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Works on keys, `concurrency` of them at once (more only where one lane would hold up the others), until `token` is cancelled; then waits for what is in
    /// progress, at most half a minute, and returns. To be called once per queue.
    ///
    /// The handler runs in a task of its own. A panic in it is logged and counted, and the key is tried again
    /// with backoff; other keys are not touched by it. The handler is not cancelled with the token: one that
    /// may take long must listen to it.
    pub async fn run<H, F>(&self, concurrency: usize, token: CancellationToken, handler: H)
    where
        H: Fn(K) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        // The slot is held as long as the run lasts.
        let handler = move |key, slot: Slot| {
            let run = handler(key);
            async move {
                let outcome = run.await;
                drop(slot);
                outcome
            }
        };
        self.run_in_slots(concurrency, DRAIN_TIMEOUT, token, handler)
            .await;
    }

    /// As [`Queue::run`], for runs that may wait for long: each gets its slot, which it can give back while it waits.
    /// What is in progress at the end gets so much time.
    pub async fn run_in_slots<H, F>(
        &self,
        concurrency: usize,
        drain: Duration,
        token: CancellationToken,
        handler: H,
    ) where
        H: Fn(K, Slot) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        self.inner
            .metrics
            .max_concurrent
            .set(i64::try_from(concurrency).unwrap_or(i64::MAX));
        let (slots, handler) = (Slots::new(concurrency), Arc::new(handler));
        let mut tasks = JoinSet::new();
        loop {
            let deadline = self.start_due(&slots, &handler, &mut tasks);
            tokio::select! {
                biased;
                () = token.cancelled() => break,
                Some(finished) = tasks.join_next() => self.settle_joined(finished),
                () = self.inner.changed.notified() => {}
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {}
            }
        }
        self.drain(tasks, drain).await;
    }

    /// Starts what is due, as far as there are workers; gives the time at which more will be due.
    fn start_due<H, F>(
        &self,
        slots: &Slots,
        handler: &Arc<H>,
        tasks: &mut JoinSet<Finished<K>>,
    ) -> Option<Instant>
    where
        H: Fn(K, Slot) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let now = Instant::now();
        let mut state = self.inner.state();
        for _ in 0..state.promote(now) {
            self.inner.metrics.adds.inc();
        }
        while let Some((key, waited, slot)) = self.next_run(slots, &mut state, now) {
            self.inner.metrics.queue_duration.observe(waited.as_secs_f64());
            tasks.spawn(work(Arc::clone(handler), key, slot));
        }
        state.next_deadline()
    }

    /// The next key, with a slot for it. A lane that would only be held up by another's long runs gets a spare one.
    fn next_run(&self, slots: &Slots, state: &mut State<K>, now: Instant) -> Option<(K, Duration, Slot)> {
        let freed = &self.inner.changed;
        let ((key, waited), slot) = match Slot::take(&slots.usual, freed) {
            Some(slot) => (state.take(now)?, slot),
            None => {
                let slot = Slot::take(&slots.spare, freed)?;
                (state.take_held_up(now)?, slot)
            }
        };
        Some((key, waited, slot))
    }

    async fn drain(&self, mut tasks: JoinSet<Finished<K>>, patience: Duration) {
        let in_progress = tasks.len();
        let drained = timeout(patience, async {
            while let Some(finished) = tasks.join_next().await {
                self.settle_joined(finished);
            }
        });
        if drained.await.is_err() {
            let left = tasks.len();
            tracing::error!(
                controller = self.inner.controller,
                in_progress,
                left,
                "work was cut off at shutdown"
            );
        }
    }

    fn settle_joined(&self, finished: Result<Finished<K>, tokio::task::JoinError>) {
        match finished {
            Ok(finished) => self.settle(finished),
            // The task catches panics of the handler, and nothing aborts it before the queue itself ends.
            Err(error) => {
                tracing::error!(controller = self.inner.controller, %error, "failed to join a worker");
            }
        }
    }

    /// Books the outcome of one run and plans the next.
    fn settle(&self, finished: Finished<K>) {
        let Finished { key, outcome } = finished;
        let outcome = outcome.unwrap_or_else(|panic| {
            tracing::error!(controller = self.inner.controller, ?key, %panic, "the reconciler panicked");
            self.inner.metrics.panics.inc();
            Outcome::Backoff
        });
        let elapsed = self.inner.state().finish(&key, Instant::now());
        self.count(outcome, elapsed);
        match outcome {
            Outcome::Done | Outcome::Terminal => self.forget(&key),
            Outcome::After(delay) => {
                self.forget(&key);
                self.add_after(key, delay);
            }
            Outcome::Backoff => self.add_rate_limited(key),
        }
    }

    fn count(&self, outcome: Outcome, elapsed: Duration) {
        let metrics = &self.inner.metrics;
        metrics.work_duration.observe(elapsed.as_secs_f64());
        metrics.time.observe(elapsed.as_secs_f64());
        match outcome {
            Outcome::Done => metrics.success.inc(),
            Outcome::After(delay) if delay.is_zero() => metrics.requeue.inc(),
            Outcome::After(_) => metrics.requeue_after.inc(),
            Outcome::Backoff => metrics.errors.inc() + metrics.error.inc(),
            Outcome::Terminal => metrics.terminal_errors.inc() + metrics.errors.inc() + metrics.error.inc(),
        };
    }
}

impl<K> Inner<K> {
    /// Nothing panics while the lock is held, and every change is whole, so a poisoned state is still good.
    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run of the handler; an Err is the message of its panic.
struct Finished<K> {
    key: K,
    outcome: Result<Outcome, String>,
}

async fn work<K, H, F>(handler: Arc<H>, key: K, slot: Slot) -> Finished<K>
where
    K: Clone,
    H: Fn(K, Slot) -> F,
    F: Future<Output = Outcome>,
{
    let argument = key.clone();
    let outcome = AssertUnwindSafe(async move { handler(argument, slot).await })
        .catch_unwind()
        .await;
    Finished {
        key,
        outcome: outcome.map_err(|payload| panic_message(payload.as_ref())),
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests;

//! Answers that are kept for a while: bounded in number and age, and asked for once however many wait for them.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

/// The cache.
#[derive(Debug)]
pub(super) struct Cache<K, V> {
    most: usize,
    /// An answer of this age takes the place of one that cannot be had.
    oldest: Duration,
    entries: Mutex<HashMap<K, Entry<V>>>,
}

#[derive(Debug)]
struct Entry<V> {
    began: Instant,
    cell: Arc<OnceCell<Kept<V>>>,
    /// The answer before, until there is a new one.
    last: Option<Kept<V>>,
}

/// An answer and how long it holds.
#[derive(Debug, Clone)]
struct Kept<V> {
    value: V,
    until: Instant,
}

impl<V: Clone> Entry<V> {
    /// Not answered yet counts: someone is asking.
    fn is_usable(&self, now: Instant) -> bool {
        self.cell.get().is_none_or(|kept| now < kept.until)
    }

    fn newest(&self) -> Option<Kept<V>> {
        self.cell.get().or(self.last.as_ref()).cloned()
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            oldest: Duration::ZERO,
            entries: Mutex::default(),
        }
    }

    /// Has answers that ended less than this ago take the place of those that cannot be had.
    pub(super) fn with_last_answers(self, oldest: Duration) -> Self {
        Self { oldest, ..self }
    }

    /// The answer that is kept, or that of `ask` with the time that it may be kept. Of several callers one asks; a failure
    /// is told to that one alone, and the next one tries.
    pub(super) async fn get<E>(
        &self,
        key: K,
        ask: impl Future<Output = Result<(V, Duration), E>>,
    ) -> Result<V, E> {
        let cell = self.cell(key.clone());
        let asked = cell
            .get_or_try_init(|| async {
                let (value, holds) = ask.await?;
                let until = Instant::now() + holds;
                Ok(Kept { value, until })
            })
            .await;
        match asked {
            Ok(kept) => Ok(kept.value.clone()),
            Err(error) => self.last(&key).ok_or(error),
        }
    }

    /// The last answer, if it is not too old.
    fn last(&self, key: &K) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let last = entries.get(key)?.newest()?;
        (Instant::now() < last.until + self.oldest).then_some(last.value)
    }

    fn cell(&self, key: K) -> Arc<OnceCell<Kept<V>>> {
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&key).filter(|entry| entry.is_usable(now)) {
            return entry.cell.clone();
        }
        if entries.len() >= self.most {
            make_room(&mut entries, self.most, now);
        }
        let last = entries.get(&key).and_then(Entry::newest);
        let entry = Entry {
            began: now,
            cell: Arc::default(),
            last: last.filter(|last| now < last.until + self.oldest),
        };
        let cell = entry.cell.clone();
        entries.insert(key, entry);
        cell
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.lock().unwrap().len()
    }
}

/// Drops what does not hold any more and, if that is not enough, the older half.
fn make_room<K, V: Clone>(entries: &mut HashMap<K, Entry<V>>, most: usize, now: Instant) {
    entries.retain(|_, entry| entry.is_usable(now));
    if entries.len() < most {
        return;
    }
    let mut ages: Vec<Instant> = entries.values().map(|entry| entry.began).collect();
    let half = ages.len() / 2;
    let (_, middle, _) = ages.select_nth_unstable(half);
    let middle = *middle;
    entries.retain(|_, entry| entry.began > middle);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn many_who_ask_at_once_cause_one_question() {
        let cache = Arc::new(Cache::<&str, usize>::new(8));
        let asked = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (cache, asked) = (cache.clone(), asked.clone());
                tokio::spawn(async move {
                    let ask = async {
                        tokio::task::yield_now().await;
                        Ok::<_, ()>((asked.fetch_add(1, Ordering::SeqCst), LONG))
                    };
                    cache.get("key", ask).await
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(0));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_answer_holds_as_long_as_it_may_and_a_failure_not_at_all() {
        let cache = Cache::<u8, u8>::new(8);
        assert_eq!(cache.get(1, async { Err("down") }).await, Err("down"));
        let short = Duration::from_millis(20);
        assert_eq!(cache.get(1, async { Ok::<_, &str>((1, short)) }).await, Ok(1));
        assert_eq!(cache.get(1, async { Ok::<_, &str>((2, LONG)) }).await, Ok(1));
        tokio::time::sleep(short).await;
        assert_eq!(cache.get(1, async { Ok::<_, &str>((3, LONG)) }).await, Ok(3));
    }

    #[tokio::test]
    async fn the_last_answer_takes_the_place_of_one_that_cannot_be_had() {
        let keeping = |oldest| Cache::<u8, u8>::new(8).with_last_answers(oldest);
        let down = async |cache: &Cache<u8, u8>| cache.get(1, async { Err("down") }).await;
        for (oldest, expected) in [(LONG, Ok(1)), (Duration::ZERO, Err("down"))] {
            let cache = keeping(oldest);
            assert_eq!(down(&cache).await, Err("down"), "nothing was ever answered");
            let gone = async { Ok::<_, &str>((1, Duration::ZERO)) };
            assert_eq!(cache.get(1, gone).await, Ok(1));
            for _ in 0..3 {
                assert_eq!(down(&cache).await, expected, "kept for {oldest:?}");
            }
            assert_eq!(cache.get(1, async { Ok::<_, &str>((2, LONG)) }).await, Ok(2));
        }
    }

    #[tokio::test]
    async fn no_more_are_kept_than_there_may_be() {
        let cache = Cache::<usize, usize>::new(100);
        for key in 0..1000 {
            let holds = if key % 2 == 0 { Duration::ZERO } else { LONG };
            let _ = cache.get(key, async { Ok::<_, ()>((key, holds)) }).await;
            assert!(cache.len() <= 100);
        }
        // What was asked last is there.
        assert_eq!(cache.get(999, async { Ok::<_, ()>((0, LONG)) }).await, Ok(999));
    }
}

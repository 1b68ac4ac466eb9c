//! Shrinks state that is too large to store: drops the oldest messages of the namespaces that use most. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::dispatch::Saved;

/// Summary of what was dropped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shed {
    /// Messages that wait.
    pub messages: usize,
    /// Alerts of which it is forgotten what they began.
    pub alerts: usize,
}

/// How many bytes a namespace has to give.
type Excess = BTreeMap<String, usize>;

/// Drops what makes a state of `total` bytes longer than `most`, measured as JSON. Each namespace may keep the same, and who
/// needs less leaves the rest to others.
pub(super) fn shrink(saved: &mut Saved, total: usize, most: usize) -> Shed {
    let messages: Vec<Vec<usize>> = saved
        .outbox
        .iter()
        .map(|queue| queue.waiting.iter().map(bytes).collect())
        .collect();
    let mut sums = BTreeMap::<String, usize>::new();
    for (queue, messages) in saved.outbox.iter().zip(&messages) {
        let sum = sums.entry(queue.namespace.clone()).or_default();
        *sum += messages.iter().sum::<usize>() + bytes(&queue.threads);
    }
    for (namespace, _, engine) in &saved.engines {
        *sums.entry(namespace.clone()).or_default() += bytes(engine);
    }
    let all: usize = sums.values().sum();
    let level = level(
        sums.values().copied().collect(),
        all.saturating_sub(total.saturating_sub(most)),
    );
    let mut excess: Excess = sums
        .into_iter()
        .filter(|(_, sum)| *sum > level)
        .map(|(namespace, sum)| (namespace, sum - level))
        .collect();
    let messages = drop_messages(saved, &messages, &mut excess);
    let alerts = drop_engines(saved, &mut excess);
    drop_threads(saved, &mut excess);
    Shed { messages, alerts }
}

/// Bytes that each may keep, so that together they keep `most`.
fn level(mut sums: Vec<usize>, most: usize) -> usize {
    sums.sort_unstable();
    let (mut left, mut others) = (most, sums.len());
    for sum in sums {
        let share = left / others;
        if sum > share {
            return share;
        }
        left -= sum;
        others -= 1;
    }
    usize::MAX
}

fn drop_messages(saved: &mut Saved, sizes: &[Vec<usize>], excess: &mut Excess) -> usize {
    let mut oldest = Vec::new();
    for (number, (queue, sizes)) in saved.outbox.iter().zip(sizes).enumerate() {
        // A clock that was set back does not change the order of a queue.
        let mut newest = None;
        for (delivery, size) in queue.waiting.iter().zip(sizes) {
            newest = newest.max(Some(delivery.since));
            oldest.push((newest, number, *size));
        }
    }
    oldest.sort_by_key(|(since, _, _)| *since);
    let mut dropped = vec![0; saved.outbox.len()];
    for (_, number, size) in oldest {
        if give(excess, &saved.outbox[number].namespace, size) {
            dropped[number] += 1;
        }
    }
    for (queue, dropped) in saved.outbox.iter_mut().zip(&dropped) {
        queue.waiting.drain(..*dropped);
    }
    dropped.iter().sum()
}

fn drop_engines(saved: &mut Saved, excess: &mut Excess) -> usize {
    let before = saved.engines.len();
    saved.engines.retain(|(namespace, _, engine)| {
        !excess.contains_key(namespace) || !give(excess, namespace, bytes(engine))
    });
    before - saved.engines.len()
}

fn drop_threads(saved: &mut Saved, excess: &mut Excess) {
    for queue in &mut saved.outbox {
        if excess.contains_key(&queue.namespace) && give(excess, &queue.namespace, bytes(&queue.threads)) {
            queue.threads.clear();
        }
    }
}

/// Returns whether a namespace has to give something of this size.
fn give(excess: &mut Excess, namespace: &str, size: usize) -> bool {
    let Some(left) = excess.get_mut(namespace) else {
        return false;
    };
    *left = left.saturating_sub(size);
    if *left == 0 {
        excess.remove(namespace);
    }
    true
}

fn bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |text| text.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_less_leaves_the_rest_to_others() {
        assert_eq!(level(vec![10, 20, 30], 60), usize::MAX);
        assert_eq!(level(vec![10, 100, 100], 100), 45);
        assert_eq!(level(vec![100, 100], 0), 0);
        assert_eq!(level(Vec::new(), 0), usize::MAX);
    }
}

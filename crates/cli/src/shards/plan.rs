//! Spreads objects over shards: the busiest go first, each to where it is if there is room, or else to the least busy shard.

use std::collections::BTreeMap;

/// An object to be placed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    /// Each shard has one process of each: they are balanced apart.
    pub(super) controller: &'a str,
    pub(super) namespace: &'a str,
    /// Where it is; None: in a shard that is not among them.
    pub(super) shard: Option<usize>,
    /// Share of the time in which it is reconciled.
    pub(super) busy: f64,
    /// True if it does not move. Its shard counts it.
    pub(super) stays: bool,
}

/// What a plan keeps to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Number of shards.
    pub(super) shards: usize,
    /// How much more than the average a shard may have before something moves: 0.1 is 10 %.
    pub(super) tolerance: f64,
    /// Objects of one namespace go together.
    pub(super) by_namespace: bool,
}

/// Returns for each item the shard it should be in; None for what stays outside of them.
pub(super) fn plan(items: &[Item<'_>], limits: Limits) -> Vec<Option<usize>> {
    let mut to: Vec<Option<usize>> = items.iter().map(|item| item.shard).collect();
    if limits.shards == 0 {
        return to;
    }
    if limits.by_namespace {
        // One decision for all controllers: what matters is their sum.
        let together = |_: &Item<'_>| "";
        balance(items, &mut to, limits, together, |item, _| {
            item.namespace.to_owned()
        });
    } else {
        balance(
            items,
            &mut to,
            limits,
            |item| item.controller,
            |_, index| format!("{index:09}"),
        );
    }
    to
}

/// Items that go together.
#[derive(Default)]
struct Group {
    members: Vec<usize>,
    busy: f64,
    /// What they take in each shard where some are now.
    now: BTreeMap<usize, f64>,
}

fn balance<'a>(
    items: &[Item<'a>],
    to: &mut [Option<usize>],
    limits: Limits,
    pool: impl Fn(&Item<'a>) -> &'a str,
    group: impl Fn(&Item<'a>, usize) -> String,
) {
    let mut pools: BTreeMap<&str, (Vec<f64>, BTreeMap<String, Group>)> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let (loads, groups) = pools
            .entry(pool(item))
            .or_insert_with(|| (vec![0.0; limits.shards], BTreeMap::new()));
        if item.stays {
            if let Some(shard) = item.shard {
                loads[shard] += item.busy;
            }
            continue;
        }
        let group = groups.entry(group(item, index)).or_default();
        group.members.push(index);
        group.busy += item.busy;
        if let Some(shard) = item.shard {
            *group.now.entry(shard).or_default() += item.busy;
        }
    }
    for (mut loads, groups) in pools.into_values() {
        let mut groups: Vec<Group> = groups.into_values().collect();
        // Stable: equal ones stay in the order of their names.
        groups.sort_by(|one, other| other.busy.total_cmp(&one.busy));
        let total = loads.iter().sum::<f64>() + groups.iter().map(|group| group.busy).sum::<f64>();
        #[expect(clippy::cast_precision_loss, reason = "there are few shards")]
        let limit = total / limits.shards as f64 * (1.0 + limits.tolerance);
        let mut homeless = Vec::new();
        for group in groups {
            match group.home().filter(|home| fits(loads[*home], group.busy, limit)) {
                Some(home) => group.put(home, &mut loads, to),
                None => homeless.push(group),
            }
        }
        for group in homeless {
            let least = (0..limits.shards).min_by(|one, other| loads[*one].total_cmp(&loads[*other]));
            group.put(least.unwrap_or_default(), &mut loads, to);
        }
    }
}

/// One that is larger than the limit fits where nothing else is: it has to be somewhere.
fn fits(load: f64, busy: f64, limit: f64) -> bool {
    // Sums of many small numbers are not exact.
    load + busy <= limit * (1.0 + 1e-9) || load <= 0.0
}

impl Group {
    /// The shard that has most of it now.
    fn home(&self) -> Option<usize> {
        let most = self
            .now
            .iter()
            .max_by(|(_, one), (_, other)| one.total_cmp(other));
        most.map(|(shard, _)| *shard)
    }

    fn put(self, shard: usize, loads: &mut [f64], to: &mut [Option<usize>]) {
        loads[shard] += self.busy;
        for member in self.members {
            to[member] = Some(shard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(shard: Option<usize>, busy: f64) -> Item<'static> {
        Item {
            controller: "c",
            namespace: "n",
            shard,
            busy,
            stays: false,
        }
    }

    fn limits(shards: usize) -> Limits {
        Limits {
            shards,
            tolerance: 0.1,
            by_namespace: false,
        }
    }

    fn moved(items: &[Item<'_>], to: &[Option<usize>]) -> usize {
        items
            .iter()
            .zip(to)
            .filter(|(item, to)| item.shard != **to)
            .count()
    }

    #[test]
    fn what_is_balanced_stays() {
        let items = [1.0, 2.0, 3.0].map(|busy| [item(Some(0), busy), item(Some(1), busy)]);
        let items = items.concat();
        assert_eq!(moved(&items, &plan(&items, limits(2))), 0);
    }

    #[test]
    fn a_new_shard_takes_its_part_and_no_more_than_that_moves() {
        let items: Vec<_> = (0..100).map(|_| item(Some(0), 0.01)).collect();
        let to = plan(&items, limits(2));
        assert_eq!(moved(&items, &to), 45, "55 fit into the first one");
    }

    #[test]
    fn no_shard_is_busier_than_the_average_and_one_object() {
        // Weights of a fixed sequence, all in one shard.
        let mut seed = 28_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            #[expect(clippy::cast_precision_loss, reason = "any number is good")]
            let number = (seed >> 40) as f64 / 1e6;
            number
        };
        for shards in 1..8 {
            let items: Vec<_> = (0..200).map(|_| item(Some(0), next())).collect();
            let to = plan(&items, limits(shards));
            let mut loads = vec![0.0; shards];
            for (item, to) in items.iter().zip(&to) {
                loads[to.unwrap()] += item.busy;
            }
            let total: f64 = loads.iter().sum();
            let largest = items.iter().map(|item| item.busy).fold(0.0, f64::max);
            #[expect(clippy::cast_precision_loss, reason = "there are few")]
            let average = total / shards as f64;
            for load in loads {
                assert!(load <= average * 1.1 + largest, "{load} of {average}");
            }
        }
    }

    #[test]
    fn what_is_drained_goes_and_what_stays_counts() {
        let staying = Item {
            stays: true,
            ..item(Some(0), 5.0)
        };
        let outside = Item {
            stays: true,
            ..item(None, 100.0)
        };
        let items = [staying, outside, item(None, 1.0), item(None, 1.0)];
        assert_eq!(plan(&items, limits(2)), [Some(0), None, Some(1), Some(1)]);
    }

    #[test]
    fn controllers_are_balanced_apart() {
        let of = |controller| Item {
            controller,
            ..item(Some(0), 1.0)
        };
        let items = [of("a"), of("a"), of("b"), of("b")];
        let to = plan(&items, limits(2));
        assert_ne!(to[0], to[1]);
        assert_ne!(to[2], to[3]);
    }

    #[test]
    fn namespaces_stay_together() {
        let of = |namespace, controller, shard| Item {
            namespace,
            controller,
            ..item(Some(shard), 1.0)
        };
        let items = [of("x", "a", 0), of("x", "b", 1), of("x", "a", 1), of("y", "a", 0)];
        let limits = Limits {
            by_namespace: true,
            ..limits(2)
        };
        assert_eq!(plan(&items, limits), [Some(1), Some(1), Some(1), Some(0)]);
    }

    #[test]
    fn objects_that_take_nothing_stay() {
        let items = [item(Some(1), 0.0), item(Some(1), 0.0), item(None, 0.0)];
        assert_eq!(plan(&items, limits(2)), [Some(1), Some(1), Some(0)]);
    }
}

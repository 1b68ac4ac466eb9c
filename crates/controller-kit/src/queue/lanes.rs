//! Keys that wait, in lines that take turns: one per lane, which is a namespace for objects. Within a line, first come, first
//! served. So a thousand objects of one tenant delay another's one by one object, not by a thousand.

use std::collections::{HashMap, VecDeque};

use crate::ObjectKey;

/// Says which line a key waits in.
pub trait Lane {
    /// The name of the line.
    fn lane(&self) -> &str;
}

impl Lane for ObjectKey {
    fn lane(&self) -> &str {
        &self.namespace
    }
}

#[cfg(test)]
impl Lane for &'static str {
    fn lane(&self) -> &str {
        ""
    }
}

pub(super) struct Lanes<K> {
    /// None of them is empty.
    lines: HashMap<String, VecDeque<K>>,
    /// The lanes in the order in which they are served.
    turns: VecDeque<String>,
    len: usize,
}

impl<K> Default for Lanes<K> {
    fn default() -> Self {
        Self {
            lines: HashMap::new(),
            turns: VecDeque::new(),
            len: 0,
        }
    }
}

impl<K> Lanes<K> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0 && self.lines.is_empty() && self.turns.is_empty()
    }
}

impl<K: Lane> Lanes<K> {
    /// Puts the key at the end of its line.
    pub(super) fn push(&mut self, key: K) {
        self.len += 1;
        if let Some(line) = self.lines.get_mut(key.lane()) {
            return line.push_back(key);
        }
        let lane = key.lane().to_owned();
        self.turns.push_back(lane.clone());
        self.lines.insert(lane, VecDeque::from([key]));
    }

    /// Takes the first key of the line whose turn it is, of those that are admitted; the line's next turn comes after all
    /// others.
    pub(super) fn pop(&mut self, admitted: impl Fn(&str) -> bool) -> Option<K> {
        let turn = self.turns.iter().position(|lane| admitted(lane))?;
        let lane = self.turns.remove(turn)?;
        let line = self.lines.get_mut(&lane)?;
        let key = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        self.len -= usize::from(key.is_some());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lanes: &mut Lanes<ObjectKey>) -> Vec<String> {
        std::iter::from_fn(|| lanes.pop(|_| true))
            .map(|key| key.to_string())
            .collect()
    }

    #[test]
    fn lanes_take_turns_and_each_is_first_come_first_served() {
        let mut lanes = Lanes::default();
        for (namespace, name) in [
            ("a", "1"),
            ("a", "2"),
            ("a", "3"),
            ("b", "1"),
            ("c", "1"),
            ("b", "2"),
        ] {
            lanes.push(ObjectKey::new(namespace, name));
        }
        assert_eq!(lanes.len(), 6);
        assert_eq!(taken(&mut lanes), ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
        assert!(lanes.is_empty());
    }

    #[test]
    fn who_comes_last_waits_for_one_of_each_and_not_for_all() {
        let mut lanes = Lanes::default();
        (0..1000).for_each(|number| lanes.push(ObjectKey::new("large", number.to_string())));
        lanes.pop(|_| true);
        lanes.push(ObjectKey::new("small", "only"));
        lanes.push(ObjectKey::new("tiny", "only"));
        let next: Vec<_> = (0..4)
            .filter_map(|_| lanes.pop(|_| true))
            .map(|key| key.to_string())
            .collect();
        assert_eq!(next, ["large/1", "small/only", "tiny/only", "large/2"]);
    }

    #[test]
    fn who_is_not_admitted_keeps_its_turn() {
        let mut lanes = Lanes::default();
        for (namespace, name) in [("a", "1"), ("b", "1"), ("c", "1")] {
            lanes.push(ObjectKey::new(namespace, name));
        }
        let next = lanes.pop(|lane| lane != "a").map(|key| key.to_string());
        assert_eq!(next.as_deref(), Some("b/1"));
        assert_eq!(lanes.pop(|_| false), None);
        assert_eq!(taken(&mut lanes), ["a/1", "c/1"]);
    }

    #[test]
    fn a_lane_that_comes_again_and_again_gets_one_turn_in_each_round() {
        let mut lanes = Lanes::default();
        lanes.push(ObjectKey::new("a", "0"));
        (0..3).for_each(|number| lanes.push(ObjectKey::new("b", number.to_string())));
        let mut order = Vec::new();
        for number in 1..4 {
            order.extend(lanes.pop(|_| true));
            lanes.push(ObjectKey::new("a", number.to_string()));
            order.extend(lanes.pop(|_| true));
        }
        let order: Vec<_> = order.iter().map(ToString::to_string).collect();
        assert_eq!(order, ["a/0", "b/0", "a/1", "b/1", "a/2", "b/2"]);
    }
}

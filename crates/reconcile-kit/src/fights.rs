//! Objects that someone else changes again and again after they were corrected, and how the corrections are slowed down.

use std::collections::BTreeMap;

use api::meta::{Condition, FALSE, condition_types};
use jiff::{SignedDuration, Timestamp};
use kube_apply::{Action, Applied, Change, SetBy};
use manifest::ObjectId;

/// So many corrections are made at once; they may be a person who tries something.
const FEW: u32 = 5;
/// The time before the next one, which doubles each time.
const FIRST: SignedDuration = SignedDuration::from_secs(5);
const LONGEST: SignedDuration = SignedDuration::from_mins(10);
/// After so long without a correction, and twice what it waits, a fight is over.
const QUIET: SignedDuration = SignedDuration::from_mins(5);
/// Objects of one Kustomization that are counted, and that are named.
const MOST: usize = 100;
const NAMED: usize = 3;

/// How it is said behind what Ready says anyway.
pub const SAID: &str = "; changed by others again and again: ";
/// Reason of the event about it.
pub const REASON: &str = "DriftRepeats";
/// Characters of a path that are shown.
const MAX_PATH: usize = 200;

/// Corrections of drift, by object.
#[derive(Debug, Default)]
pub struct Fights {
    objects: BTreeMap<ObjectId, Fight>,
    /// When the next one is due that was put off.
    pub due: Option<Timestamp>,
}

#[derive(Debug)]
struct Fight {
    since: Timestamp,
    last: Timestamp,
    times: u32,
    /// What the others do.
    what: String,
}

impl Fight {
    fn new(now: Timestamp) -> Self {
        Self {
            since: now,
            last: now,
            times: 0,
            what: String::new(),
        }
    }

    /// The time between two corrections.
    fn rest(&self) -> SignedDuration {
        match self.times.checked_sub(FEW) {
            None => SignedDuration::ZERO,
            Some(more) => FIRST.saturating_mul(1 << more.min(16)).min(LONGEST),
        }
    }

    fn next(&self) -> Timestamp {
        self.last.checked_add(self.rest()).unwrap_or(Timestamp::MAX)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.last) > QUIET + self.rest().saturating_mul(2)
    }
}

/// The objects that an application has corrected, and what others had done to them, as far as it is known.
pub fn corrections(applied: &Applied) -> impl Iterator<Item = (ObjectId, String)> {
    applied
        .changed()
        .map(|change| (change.id.clone(), what_was_done(change)))
}

fn what_was_done(change: &Change) -> String {
    let known = change.fields.fields.iter();
    let mut known = known.filter_map(|field| Some((field, field.set_by.as_ref()?)));
    match (known.next(), change.fields.fields.first()) {
        (Some((field, SetBy { manager, .. })), _) => format!("{}, set by {manager}", path(&field.path)),
        (None, Some(field)) => path(&field.path),
        (None, None) if change.action == Action::Created => "deleted".to_owned(),
        (None, None) => "changed".to_owned(),
    }
}

fn path(path: &str) -> String {
    path.chars().take(MAX_PATH).collect()
}

/// Message of the event about fights that have begun.
pub fn message(objects: &str) -> String {
    format!(
        "others change what is corrected again and again; it is corrected less often from now on: {objects}"
    )
}

/// Says it behind what Ready says, instead of what was said before. A failure is of more weight.
pub fn say(conditions: &mut [Condition], suffix: Option<&str>) {
    let Some(ready) = conditions
        .iter_mut()
        .find(|condition| condition.type_ == condition_types::READY && condition.status != FALSE)
    else {
        return;
    };
    let end = ready.message.find(SAID).unwrap_or(ready.message.len());
    ready.message.truncate(end);
    ready.message.push_str(suffix.unwrap_or_default());
}

impl Fights {
    /// Returns until when the correction of an object waits; None if it need not.
    pub fn wait(&mut self, object: &ObjectId, now: Timestamp) -> Option<Timestamp> {
        let next = self.objects.get(object).map(Fight::next)?;
        let next = (next > now).then_some(next)?;
        self.due = Some(self.due.map_or(next, |due| due.min(next)));
        Some(next)
    }

    /// Notes that objects were corrected, and what others had done to them. Returns those of which that is a fight from now on, and
    /// when they are corrected next.
    pub fn corrected(
        &mut self,
        objects: impl IntoIterator<Item = (ObjectId, String)>,
        now: Timestamp,
    ) -> Vec<String> {
        self.objects.retain(|_, fight| !fight.is_over(now));
        let mut begun = Vec::new();
        for (id, what) in objects {
            if self.objects.len() >= MOST && !self.objects.contains_key(&id) {
                continue;
            }
            let fight = self.objects.entry(id.clone()).or_insert_with(|| Fight::new(now));
            (fight.last, fight.what) = (now, what);
            fight.times = fight.times.saturating_add(1);
            if fight.times == FEW {
                begun.push(format!("{id} {}", fight.what));
            }
        }
        begun
    }

    /// Addition to the message of Ready; None without fights.
    pub fn ready_suffix(&self, now: Timestamp) -> Option<String> {
        let fights = || {
            let fights = self.objects.iter();
            fights.filter(|(_, fight)| fight.times >= FEW && !fight.is_over(now))
        };
        let named = fights().take(NAMED).map(|(id, fight)| {
            format!(
                "{id} {} ({} times since {}; the next correction waits until {})",
                fight.what,
                fight.times,
                whole_seconds(fight.since),
                whole_seconds(fight.next()),
            )
        });
        let named: Vec<String> = named.collect();
        let more = match fights().count() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!named.is_empty()).then(|| format!("{SAID}{}{more}", named.join(", ")))
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(name: &str) -> ObjectId {
        ObjectId {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: "ns".into(),
            name: name.into(),
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn correct(fights: &mut Fights, seconds: i64) -> Vec<String> {
        fights.corrected([(id("a"), "data.key, set by bot".to_owned())], at(seconds))
    }

    #[test]
    fn who_changes_it_again_and_again_waits_longer_each_time() {
        let mut fights = Fights::default();
        for second in 0..4 {
            assert!(correct(&mut fights, second).is_empty());
            assert_eq!(fights.wait(&id("a"), at(second)), None);
        }
        assert_eq!(fights.ready_suffix(at(4)), None);
        assert_eq!(correct(&mut fights, 4), ["ConfigMap/ns/a data.key, set by bot"]);
        assert_eq!(fights.wait(&id("a"), at(4)), Some(at(9)));
        assert_eq!(fights.due, Some(at(9)));
        assert_eq!(fights.wait(&id("b"), at(4)), None);
        assert_eq!(
            fights.ready_suffix(at(4)).unwrap(),
            "; changed by others again and again: ConfigMap/ns/a data.key, set by bot (5 times since 1970-01-01T00:00:00Z; the \
             next correction waits until 1970-01-01T00:00:09Z)"
        );
        let mut now = 9;
        for rest in [10, 20, 40, 80, 160, 320, 600, 600] {
            assert!(correct(&mut fights, now).is_empty());
            assert_eq!(fights.wait(&id("a"), at(now)), Some(at(now + rest)));
            now += rest;
        }
    }

    #[test]
    fn a_fight_is_over_when_it_is_quiet() {
        let mut fights = Fights::default();
        for second in 0..5 {
            correct(&mut fights, second);
        }
        assert!(fights.ready_suffix(at(300)).is_some());
        assert_eq!(fights.ready_suffix(at(320)), None);
        assert_eq!(correct(&mut fights, 320), [""; 0]);
        assert_eq!(fights.wait(&id("a"), at(320)), None);
    }

    #[test]
    fn only_so_many_are_counted_and_named() {
        let mut fights = Fights::default();
        for second in 0..5 {
            let objects = (0..MOST + 10).map(|number| (id(&format!("m{number:03}")), String::new()));
            fights.corrected(objects, at(second));
        }
        assert_eq!(fights.objects.len(), MOST);
        assert!(fights.ready_suffix(at(5)).unwrap().ends_with(" and 97 more"));
    }

    #[test]
    fn it_is_said_behind_what_ready_says_unless_that_is_a_failure() {
        let condition = |status: &str| -> Condition {
            let condition = json!({"type": "Ready", "status": status, "reason": "Any", "message": "done",
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            serde_json::from_value(condition).unwrap()
        };
        let mut all = [condition("True")];
        say(&mut all, Some(&format!("{SAID}a")));
        say(&mut all, Some(&format!("{SAID}b")));
        assert_eq!(all[0].message, format!("done{SAID}b"));
        say(&mut all, None);
        assert_eq!(all[0].message, "done");
        let mut failed = [condition("False")];
        say(&mut failed, Some(SAID));
        assert_eq!(failed[0].message, "done");
    }
}

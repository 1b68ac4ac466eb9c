//! Which rows an object's history adds or moves. Pure: folded twice, it changes nothing.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::delivery::{Delivery, Outcome, Trigger};
use crate::read::{Subject, Told};

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A new row.
    Insert(Box<Delivery>),
    /// The end of a row moves, and what is said of it.
    Move(Box<Delivery>),
}

/// Folds what an object tells into its last rows, which come newest first.
pub fn fold(known: &[Delivery], subject: &Subject) -> Vec<Change> {
    // Oldest first, so that the newest is at the end.
    let mut rows: Vec<Delivery> = known.iter().rev().cloned().collect();
    let mut changes = Vec::new();
    if let Some(gap) = gap(&rows, subject) {
        rows.push(gap.clone());
        changes.push(Change::Insert(Box::new(gap)));
    }
    for told in &subject.told {
        let same = |row: &Delivery| is_same(row, told);
        match rows.iter().rposition(same) {
            Some(at) if at + 1 == rows.len() || told.last <= rows[at].last => {
                if let Some(moved) = moved(&rows[at], told, before(&rows, told, Some(at))) {
                    changes.push(Change::Move(Box::new(moved.clone())));
                    rows[at] = moved;
                }
            }
            // It came back after another, or is there for the first time.
            found => {
                let row = new_row(subject, told, &rows, found.is_some());
                changes.push(Change::Insert(Box::new(row.clone())));
                rows.push(row);
            }
        }
    }
    changes
}

/// What an entry of a history is known by. A Helm release may still change its status, and what was read off conditions, before
/// there was a history, has no digest.
fn is_same(row: &Delivery, told: &Told) -> bool {
    let is_release = row.kind == "HelmRelease";
    row.outcome != Outcome::Gap
        && (row.digest == told.digest || row.digest.is_empty())
        && row.revision == told.revision
        && if is_release {
            row.began == told.first
        } else {
            row.reason == told.reason
        }
}

/// Reconciliations of the same entry of a history that belong to other rows: those of an earlier revision.
fn before(rows: &[Delivery], told: &Told, but: Option<usize>) -> i64 {
    let others = rows
        .iter()
        .enumerate()
        .filter(|(index, row)| Some(*index) != but && row.digest == told.digest && row.reason == told.reason);
    others.map(|(_, row)| row.attempts).sum()
}

fn moved(row: &Delivery, told: &Told, elsewhere: i64) -> Option<Delivery> {
    let keep = |new: &str, old: &str| {
        if new.is_empty() {
            old.to_owned()
        } else {
            new.to_owned()
        }
    };
    let moved = Delivery {
        digest: told.digest.clone(),
        outcome: told.outcome,
        reason: told.reason.clone(),
        message: keep(&told.message, &row.message),
        last: told.last.max(row.last),
        attempts: (told.total - elsewhere).max(row.attempts),
        changes: keep(&told.changes, &row.changes),
        causes: keep(&told.causes, &row.causes),
        attestation: keep(&told.attestation, &row.attestation),
        ..row.clone()
    };
    (moved != *row).then_some(moved)
}

fn new_row(subject: &Subject, told: &Told, rows: &[Delivery], came_back: bool) -> Delivery {
    let newest = rows.iter().rev().find(|row| row.outcome != Outcome::Gap);
    // An entry that has counted others, too, does not say when this began; its last time is what is known.
    let was_known = came_back || before(rows, told, None) > 0;
    let ended = if was_known { told.last } else { told.first };
    let trigger = match newest {
        None => Trigger::First,
        Some(newest) if newest.revision != told.revision => Trigger::Revision,
        Some(newest) if newest.digest != told.digest => Trigger::Change,
        Some(_) => Trigger::Retry,
    };
    let is_release = subject.kind == "HelmRelease";
    let began = match is_release {
        true => told.first,
        false => ended.checked_sub(told.took).unwrap_or(ended),
    };
    Delivery {
        trigger,
        outcome: told.outcome,
        reason: told.reason.clone(),
        message: told.message.clone(),
        revision: told.revision.clone(),
        origin: told.origin.clone(),
        digest: told.digest.clone(),
        built: step(told.built, began, ended),
        applied: step(told.applied, began, ended),
        began,
        ended,
        last: told.last,
        attempts: if was_known { 1 } else { told.total },
        changes: told.changes.clone(),
        causes: told.causes.clone(),
        attestation: told.attestation.clone(),
        ..empty(
            subject,
            &format!("{}\n{}\n{}", told.digest, told.reason, told.revision),
            ended,
        )
    }
}

/// Returns the time of a step if it lies within this delivery. A history entry keeps the time of the last run that changed something,
/// which may be an earlier one. History times are whole seconds, hence the tolerance. A hostile cluster may send any time: adding to
/// the earliest or latest one would overflow, durations do not.
fn step(at: Option<Timestamp>, began: Timestamp, ended: Timestamp) -> Option<Timestamp> {
    const TOLERANCE: SignedDuration = SignedDuration::from_secs(1);
    at.filter(|at| began.duration_since(*at) <= TOLERANCE && at.duration_since(ended) <= TOLERANCE)
}

/// A row for the time in which more was delivered than the object still tells.
fn gap(rows: &[Delivery], subject: &Subject) -> Option<Delivery> {
    let newest = rows.last()?;
    let oldest = subject.told.first()?;
    let is_missed = match subject.kind.as_str() {
        "HelmRelease" => {
            let number = |digest: &str| digest.strip_prefix('v')?.parse::<i64>().ok();
            let (known, told) = (number(&newest.digest)?, number(&oldest.digest)?);
            told > known.saturating_add(1)
        }
        _ => {
            let any_known = |told: &Told| rows.iter().any(|row| is_same(row, told));
            subject.is_cut && !oldest.digest.is_empty() && !subject.told.iter().any(any_known)
        }
    };
    let is_later = oldest.first > newest.last;
    (is_missed && is_later).then(|| Delivery {
        outcome: Outcome::Gap,
        trigger: Trigger::Retry,
        began: newest.last,
        ended: oldest.first,
        last: oldest.first,
        ..empty(subject, "gap", oldest.first)
    })
}

fn empty(subject: &Subject, key: &str, at: Timestamp) -> Delivery {
    Delivery {
        id: id(subject, key, at),
        cluster: subject.cluster.clone(),
        kind: subject.kind.clone(),
        namespace: subject.namespace.clone(),
        name: subject.name.clone(),
        outcome: Outcome::Gap,
        reason: String::new(),
        message: String::new(),
        trigger: Trigger::First,
        source: subject.source.clone(),
        revision: String::new(),
        origin: String::new(),
        digest: String::new(),
        author: String::new(),
        subject: String::new(),
        committed: None,
        seen: None,
        built: None,
        applied: None,
        began: at,
        ended: at,
        last: at,
        attempts: 1,
        changes: String::new(),
        causes: String::new(),
        attestation: String::new(),
        labels: subject.labels.clone(),
    }
}

/// The same for the same visit of the same outcome, whoever writes it.
fn id(subject: &Subject, key: &str, at: Timestamp) -> String {
    let mut hash = Sha256::new();
    let Subject {
        cluster,
        kind,
        namespace,
        name,
        uid,
        ..
    } = subject;
    for part in [
        cluster,
        kind,
        namespace,
        name,
        uid,
        key,
        &at.as_millisecond().to_string(),
    ] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
    }

    fn told(digest: &str, revision: &str, outcome: Outcome, (first, last): (i64, i64), total: i64) -> Told {
        let reason = if outcome == Outcome::Succeeded {
            "ReconciliationSucceeded"
        } else {
            "HealthCheckFailed"
        };
        Told {
            digest: digest.to_owned(),
            outcome,
            reason: reason.to_owned(),
            message: String::new(),
            revision: revision.to_owned(),
            origin: String::new(),
            first: at(first),
            last: at(last),
            took: SignedDuration::from_secs(30),
            built: Some(at(first) - SignedDuration::from_secs(20)),
            applied: None,
            total,
            changes: String::new(),
            causes: String::new(),
            attestation: String::new(),
        }
    }

    fn subject(kind: &str, told: Vec<Told>, is_cut: bool) -> Subject {
        Subject {
            cluster: "here".to_owned(),
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
            source: "GitRepository/shop/repo".to_owned(),
            labels: BTreeMap::new(),
            told,
            is_cut,
        }
    }

    /// Folds into the rows, newest first.
    fn apply(rows: &mut Vec<Delivery>, subject: &Subject) -> usize {
        let changes = fold(rows, subject);
        let count = changes.len();
        for change in changes {
            match change {
                Change::Insert(row) => rows.insert(0, *row),
                Change::Move(row) => {
                    let known = rows.iter_mut().find(|known| known.id == row.id);
                    *known.unwrap() = *row;
                }
            }
        }
        assert_eq!(fold(rows, subject), [], "folded twice");
        count
    }

    fn shown(rows: &[Delivery]) -> Vec<(&str, &str, &str, i64)> {
        let rows = rows.iter().rev();
        rows.map(|row| {
            (
                row.revision.as_str(),
                row.outcome.word(),
                row.trigger.word(),
                row.attempts,
            )
        })
        .collect()
    }

    use Outcome::{Failed, Succeeded};

    #[test]
    fn each_visit_of_an_outcome_is_a_row() {
        let mut rows = Vec::new();
        let web = |told| subject("Kustomization", told, false);
        assert_eq!(
            apply(&mut rows, &web(vec![told("a", "1", Succeeded, (0, 0), 1)])),
            1
        );
        assert_eq!(rows[0].began, at(0) - SignedDuration::from_secs(30));
        assert_eq!(
            apply(&mut rows, &web(vec![told("a", "1", Succeeded, (0, 9), 3)])),
            1,
            "it lasts"
        );
        // A new revision fails, and is mended by a third.
        apply(
            &mut rows,
            &web(vec![
                told("a", "1", Succeeded, (0, 9), 3),
                told("b", "2", Failed, (10, 10), 1),
            ]),
        );
        // Back to the first: Flux counts on in its first entry.
        apply(
            &mut rows,
            &web(vec![
                told("b", "2", Failed, (10, 12), 2),
                told("a", "1", Succeeded, (0, 15), 4),
            ]),
        );
        assert_eq!(
            shown(&rows),
            [
                ("1", "Succeeded", "First", 3),
                ("2", "Failed", "Revision", 2),
                ("1", "Succeeded", "Revision", 1)
            ]
        );
        assert_eq!((rows[0].ended, rows[0].last), (at(15), at(15)));
        assert_eq!(rows[1].last, at(12));
        // A revision that builds the same moves on in the same entry.
        apply(
            &mut rows,
            &web(vec![
                told("b", "2", Failed, (10, 12), 2),
                told("a", "3", Succeeded, (0, 20), 5),
            ]),
        );
        assert_eq!(shown(&rows)[3], ("3", "Succeeded", "Revision", 1));
        // Another value of the same revision.
        apply(
            &mut rows,
            &web(vec![
                told("a", "3", Succeeded, (0, 20), 5),
                told("c", "3", Succeeded, (25, 25), 1),
            ]),
        );
        assert_eq!(shown(&rows)[4], ("3", "Succeeded", "Change", 1));
    }

    #[test]
    fn what_was_missed_is_added_and_more_than_that_is_a_gap() {
        let histories = |from: i64| {
            let entries = (from..from + 5).map(|number| {
                let name = number.to_string();
                told(&name, &name, Succeeded, (number, number), 1)
            });
            subject("Kustomization", entries.collect(), true)
        };
        let mut rows = Vec::new();
        apply(&mut rows, &histories(0));
        assert_eq!(
            apply(&mut rows, &histories(4)),
            4,
            "one is known, four were missed"
        );
        assert_eq!(rows.len(), 9);
        assert_eq!(apply(&mut rows, &histories(20)), 6);
        let gap = &rows[5];
        assert_eq!((gap.outcome, gap.began, gap.ended), (Outcome::Gap, at(8), at(20)));
        assert_eq!(apply(&mut rows, &histories(20)), 0);
        assert_eq!(apply(&mut rows, &histories(3)), 0, "old news");
    }

    #[test]
    fn what_conditions_told_goes_on_in_the_history() {
        let mut rows = Vec::new();
        let web = |told| subject("Kustomization", told, false);
        apply(&mut rows, &web(vec![told("", "1", Succeeded, (0, 0), 1)]));
        apply(&mut rows, &web(vec![told("a", "1", Succeeded, (0, 5), 2)]));
        assert_eq!(shown(&rows), [("1", "Succeeded", "First", 2)]);
        assert_eq!(rows[0].digest, "a");
    }

    #[test]
    fn steps_of_another_run_are_not_those_of_this_delivery() {
        let mut entry = told("a", "1", Succeeded, (10, 10), 1);
        let steps = |entry: &Told| {
            let row = new_row(&subject("Kustomization", Vec::new(), false), entry, &[], false);
            (row.built.is_some(), row.applied.is_some())
        };
        assert_eq!(steps(&entry), (true, false));
        entry.applied = Some(at(10));
        assert_eq!(steps(&entry), (true, true));
        (entry.built, entry.applied) = (Some(at(9)), Some(at(11)));
        assert_eq!(
            steps(&entry),
            (false, false),
            "before it began, and after it ended"
        );
        (entry.built, entry.applied) = (Some(Timestamp::MIN), Some(Timestamp::MAX));
        assert_eq!(steps(&entry), (false, false));
        (entry.first, entry.last) = (Timestamp::MIN, Timestamp::MIN);
        assert_eq!(steps(&entry), (true, false));
        (entry.first, entry.last) = (Timestamp::MAX, Timestamp::MAX);
        assert_eq!(steps(&entry), (false, true));
    }

    #[test]
    fn a_release_is_known_by_its_number_and_may_change_its_status() {
        let mut rows = Vec::new();
        let number = |number: i64, outcome, reason: &str| Told {
            reason: reason.to_owned(),
            ..told(&format!("v{number}"), "web@1", outcome, (number, number), 1)
        };
        let web = |told| subject("HelmRelease", told, false);
        apply(&mut rows, &web(vec![number(1, Succeeded, "deployed")]));
        let next = vec![number(1, Succeeded, "superseded"), number(2, Failed, "failed")];
        apply(&mut rows, &web(next));
        assert_eq!(rows.len(), 2);
        assert_eq!((&*rows[1].reason, &*rows[0].reason), ("superseded", "failed"));
        assert_eq!(rows[0].trigger, Trigger::Change);
        apply(&mut rows, &web(vec![number(5, Succeeded, "deployed")]));
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[1].outcome, Outcome::Gap);
    }

    #[test]
    fn another_object_of_the_same_name_has_rows_of_its_own() {
        let first = fold(
            &[],
            &subject("Kustomization", vec![told("a", "1", Succeeded, (0, 0), 1)], false),
        );
        let second = Subject {
            uid: "v".to_owned(),
            ..subject("Kustomization", vec![told("a", "1", Succeeded, (0, 0), 1)], false)
        };
        assert_ne!(first, fold(&[], &second));
    }
}

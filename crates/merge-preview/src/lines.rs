//! Two texts that were changed from the same one, merged line by line as Git does it: changes that touch each other conflict, unless
//! they are the same.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A change: these lines of the old text are replaced by those of the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// Merges two texts; None where they conflict.
pub(crate) fn merge(old: &str, ours: &str, theirs: &str) -> Option<String> {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let (old, ours, theirs) = (lines(old), lines(ours), lines(theirs));
    let (our_changes, their_changes) = (changes(&old, &ours), changes(&old, &theirs));
    let (mut left, mut right) = (our_changes.iter().peekable(), their_changes.iter().peekable());
    let (mut merged, mut at) = (String::new(), 0);
    let mut take = |change: &Change, lines: &[&str]| {
        merged.extend(old[at..change.old.start].iter().copied());
        merged.extend(lines[change.new.clone()].iter().copied());
        at = change.old.end;
    };
    loop {
        match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(change), None) => {
                take(change, &ours);
                left.next();
            }
            (None, Some(change)) => {
                take(change, &theirs);
                right.next();
            }
            (Some(one), Some(other)) if one.old.end < other.old.start => {
                take(one, &ours);
                left.next();
            }
            (Some(one), Some(other)) if other.old.end < one.old.start => {
                take(other, &theirs);
                right.next();
            }
            (Some(one), Some(other)) => {
                let is_same = one.old == other.old && ours[one.new.clone()] == theirs[other.new.clone()];
                if !is_same {
                    return None;
                }
                take(one, &ours);
                left.next();
                right.next();
            }
        }
    }
    merged.extend(old[at..].iter().copied());
    Some(merged)
}

fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let operations = capture_diff_slices(Algorithm::Histogram, old, new);
    let changed = operations
        .into_iter()
        .filter(|one| !matches!(one, DiffOp::Equal { .. }));
    changed
        .map(|one| Change {
            old: one.old_range(),
            new: one.new_range(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_are_apart_are_both_taken() {
        let old = "a\nb\nc\nd\ne\n";
        for (ours, theirs, expected) in [
            ("a\nB\nc\nd\ne\n", "a\nb\nc\nD\ne\n", Some("a\nB\nc\nD\ne\n")),
            ("a\nc\nd\ne\n", "a\nb\nc\nd\ne\nf\n", Some("a\nc\nd\ne\nf\n")),
            ("a\nB\nc\nd\ne\n", "a\nB\nc\nd\ne\n", Some("a\nB\nc\nd\ne\n")),
            (old, "x\n", Some("x\n")),
            ("a\nB\nc\nd\ne\n", "a\nX\nc\nd\ne\n", None),
            ("a\nB\nc\nd\ne\n", "a\nb\nC\nd\ne\n", None),
            ("1\na\nb\nc\nd\ne\n", "2\na\nb\nc\nd\ne\n", None),
            ("", "a\nb\nc\nd\nE\n", None),
            ("a\nb\nc\nd\ne", "A\nb\nc\nd\ne\n", Some("A\nb\nc\nd\ne")),
        ] {
            assert_eq!(
                merge(old, ours, theirs).as_deref(),
                expected,
                "{ours:?} {theirs:?}"
            );
        }
    }
}

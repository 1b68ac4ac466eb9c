//! Changes that could not be made a moment ago: an application that flaps must not have a repository fetched each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// A change that could not be made is tried again after this.
pub(crate) const AGAIN: Duration = Duration::from_secs(60);

/// UID of the pipeline, and what its answer depends on: generation, and the request for a reconcile.
pub(crate) type Owner = (String, Option<i64>, Option<String>);
/// The environment, the target, the release, and when it was asked for by hand.
pub(crate) type Change = (usize, usize, u64, Option<Timestamp>);

/// What is remembered. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<HashMap<Owner, Known>>>);

type Known = HashMap<Change, (Instant, String)>;

impl Failures {
    /// Why a change could not be made a moment ago.
    pub(crate) fn get(&self, owner: &Owner, change: Change) -> Option<String> {
        let all = self.locked();
        let (at, problem) = all.get(owner)?.get(&change)?;
        (at.elapsed() < AGAIN).then(|| problem.clone())
    }

    /// Remembers a failure, and forgets those of older generations.
    pub(crate) fn put(&self, owner: &Owner, change: Change, problem: &str) {
        let mut all = self.locked();
        all.retain(|known, _| known.0 != owner.0 || known == owner);
        let known = all.entry(owner.clone()).or_default();
        known.retain(|_, (at, _)| at.elapsed() < AGAIN);
        known.insert(change, (Instant::now(), problem.to_owned()));
    }

    /// Forgets a pipeline.
    pub(crate) fn forget(&self, uid: &str) {
        self.locked().retain(|known, _| known.0 != uid);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Owner, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_until_the_pipeline_is_another() {
        let failures = Failures::default();
        let owner = |generation, request: Option<&str>| {
            ("uid".to_owned(), Some(generation), request.map(str::to_owned))
        };
        failures.put(&owner(1, None), (0, 1, 2, None), "away");
        assert_eq!(
            failures.get(&owner(1, None), (0, 1, 2, None)).as_deref(),
            Some("away")
        );
        assert_eq!(failures.get(&owner(1, None), (0, 1, 3, None)), None);
        assert_eq!(failures.get(&owner(2, None), (0, 1, 2, None)), None);
        assert_eq!(failures.get(&owner(1, Some("now")), (0, 1, 2, None)), None);
        failures.put(&owner(2, None), (0, 0, 2, None), "away");
        assert_eq!(failures.get(&owner(1, None), (0, 1, 2, None)), None);
        failures.forget("uid");
        assert_eq!(failures.get(&owner(2, None), (0, 0, 2, None)), None);
    }
}

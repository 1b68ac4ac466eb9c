//! What others say of a commit: builds, tests, statuses.

/// One check of a commit, in its newest state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name: the context of a status, the name of a check run or job.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// What it says, in a line.
    pub description: String,
}

/// How a check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is not over.
    Pending,
    /// It passed, or was skipped on purpose.
    Success,
    /// It failed, was cancelled or timed out.
    Failure,
}

/// A status to set on a commit.
#[derive(Debug, Clone, Copy)]
pub struct Status<'a> {
    /// The commit.
    pub commit: &'a str,
    /// Which distinguishes it from other statuses of the commit.
    pub name: &'a str,
    /// How it stands.
    pub state: State,
    /// Why, in a line.
    pub description: &'a str,
    /// A page that tells more; may be empty.
    pub url: &'a str,
}

/// The verdict over all checks that count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All that are wanted passed, and there is one at least.
    Passed,
    /// These are missing or not over.
    Waiting(Vec<String>),
    /// These failed.
    Failed(Vec<String>),
}

/// Judges checks. With names only these count, and each must be there; without, all count, and one must be there.
pub fn judge(checks: &[Check], names: &[String]) -> Verdict {
    let counts = |check: &&Check| names.is_empty() || names.contains(&check.name);
    let named = |state: State| -> Vec<String> {
        let checks = checks.iter().filter(counts).filter(|check| check.state == state);
        checks.map(|check| check.name.clone()).collect()
    };
    let failed = named(State::Failure);
    if !failed.is_empty() {
        return Verdict::Failed(failed);
    }
    let mut waiting = named(State::Pending);
    let is_missing = |name: &&String| checks.iter().all(|check| check.name != **name);
    waiting.extend(names.iter().filter(is_missing).cloned());
    if waiting.is_empty() && !checks.iter().any(|check| counts(&check)) {
        waiting.push("a first check".to_owned());
    }
    if waiting.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Waiting(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, state: State) -> Check {
        Check {
            name: name.to_owned(),
            state,
            description: String::new(),
        }
    }

    #[test]
    fn a_merge_waits_for_what_is_wanted() {
        use State::{Failure, Pending, Success};
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let (build, lint) = (check("build", Success), check("lint", Failure));
        let cases = [
            (vec![], names(&[]), Verdict::Waiting(names(&["a first check"]))),
            (vec![build.clone()], names(&[]), Verdict::Passed),
            (
                vec![build.clone(), check("e2e", Pending)],
                names(&[]),
                Verdict::Waiting(names(&["e2e"])),
            ),
            (
                vec![build.clone(), lint.clone()],
                names(&[]),
                Verdict::Failed(names(&["lint"])),
            ),
            (vec![build.clone(), lint], names(&["build"]), Verdict::Passed),
            (
                vec![build],
                names(&["build", "e2e"]),
                Verdict::Waiting(names(&["e2e"])),
            ),
        ];
        for (checks, names, expected) in cases {
            assert_eq!(judge(&checks, &names), expected, "{checks:?} {names:?}");
        }
    }
}

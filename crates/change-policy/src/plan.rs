//! What is done with a branch and its pull requests so that they propose a change.

use forge::pull_request::{PullRequest, State};

use crate::mark::{self, Change};

/// What there is.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    /// The change that the base lacks; None if it has everything.
    pub wanted: Option<&'a Change>,
    /// Digest of the files that the change is made over.
    pub base: Option<&'a Change>,
    /// The branch of the change.
    pub branch: Branch,
    /// Pull requests from that branch to the base.
    pub requests: &'a [PullRequest],
    /// Whether one more may be opened.
    pub may_open: bool,
    /// Whether what is not wanted may be taken back: a policy that has no choice yet may want it in a moment.
    pub is_settled: bool,
}

/// A branch that holds a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branch {
    /// It is not there.
    Missing,
    /// Its commit is ours, on top of the base as it was.
    Ours {
        /// The change that it holds.
        change: Change,
        /// Digest of the files that it was made over.
        base: Change,
    },
    /// Someone else has committed to it.
    Foreign,
}

/// What is done with the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Push {
    /// Nothing.
    Leave,
    /// It is made.
    Create,
    /// Our commit is replaced by one on the base as it is now.
    Replace,
    /// A commit is added to those of others.
    Continue,
    /// It is deleted.
    Delete,
}

/// What is done with the pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Nothing, as there is none.
    None,
    /// One is opened.
    Open,
    /// It says what is proposed.
    Keep(&'a PullRequest),
    /// It is for another change, or was not finished; it gets a new title and description.
    Edit(&'a PullRequest),
    /// It is closed: the base has what it proposes.
    Close(&'a PullRequest),
    /// Nothing: someone closed this one, which proposed the same.
    Declined(&'a PullRequest),
    /// Nothing: this one was merged, and someone took its change out again.
    Reverted(&'a PullRequest),
    /// Nothing, as too many are open.
    TooMany,
    /// Nothing, as the branch is someone else's and never held a change of ours.
    Occupied,
}

/// Decides. The base must have been read after the requests, or a fresh merge would look reverted.
pub fn plan<'a>(seen: &Seen<'a>) -> (Push, Request<'a>) {
    let open = seen.requests.iter().find(|request| request.state == State::Open);
    let is_ours = matches!(seen.branch, Branch::Ours { .. });
    let Some(wanted) = seen.wanted else {
        if !seen.is_settled {
            return (Push::Leave, open.map_or(Request::None, Request::Keep));
        }
        let push = if is_ours { Push::Delete } else { Push::Leave };
        // What others committed to may propose more than we know.
        return match open {
            Some(open) if is_ours && mark::change_of(&open.body).is_some() => (push, Request::Close(open)),
            Some(open) => (Push::Leave, Request::Keep(open)),
            None => (push, Request::None),
        };
    };
    let Some(open) = open else {
        // What was decided before that is outdated by it.
        let marked = seen.requests.iter().filter_map(|request| {
            let change = mark::change_of(&request.body)?;
            Some((request, change))
        });
        let last = marked.max_by_key(|(request, _)| request.number);
        return match last {
            Some((last, change)) if change == *wanted => {
                let request = match last.state {
                    State::Merged => Request::Reverted(last),
                    State::Closed | State::Open => Request::Declined(last),
                };
                (Push::Leave, request)
            }
            None if seen.branch == Branch::Foreign => (Push::Leave, Request::Occupied),
            _ if !seen.may_open => (Push::Leave, Request::TooMany),
            _ => (push(seen, wanted), Request::Open),
        };
    };
    let request = match mark::change_of(&open.body) {
        Some(change) if change != *wanted || mark::is_unfinished(&open.body) => Request::Edit(open),
        // Without a mark it is a person's, who may say what they like.
        _ => Request::Keep(open),
    };
    (push(seen, wanted), request)
}

/// Open pull requests of ours from one branch, beyond the first. A process that was killed may have asked for one that the
/// forge opened later than the one of its successor: Gitea looks whether there is one, and does not lock.
pub fn doubled(requests: &[PullRequest]) -> Vec<&PullRequest> {
    let is_ours =
        |request: &&PullRequest| request.state == State::Open && mark::change_of(&request.body).is_some();
    let mut open: Vec<_> = requests.iter().filter(is_ours).collect();
    open.sort_by_key(|request| request.number);
    open.into_iter().skip(1).collect()
}

fn push(seen: &Seen<'_>, wanted: &Change) -> Push {
    match &seen.branch {
        Branch::Missing => Push::Create,
        Branch::Ours { change, base } if change == wanted && Some(base) == seen.base => Push::Leave,
        Branch::Ours { .. } => Push::Replace,
        Branch::Foreign => Push::Continue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str) -> Change {
        Change::new([name])
    }

    fn ours(name: &str, base: &str) -> Branch {
        Branch::Ours {
            change: change(name),
            base: change(base),
        }
    }

    fn request(number: u64, state: State, of: Option<&str>) -> PullRequest {
        PullRequest {
            number,
            url: String::new(),
            title: String::new(),
            body: of.map_or_else(String::new, |name| mark::marked("", &change(name))),
            state,
            head: "h".to_owned(),
            base: "b".to_owned(),
            commit: String::new(),
            opened: None,
        }
    }

    #[test]
    fn of_two_that_are_open_the_first_stays() {
        let requests = [
            request(9, State::Open, Some("new")),
            request(4, State::Open, None),
            request(5, State::Closed, Some("new")),
            request(7, State::Open, Some("old")),
        ];
        let numbers = |requests: &[PullRequest]| {
            let doubled = doubled(requests).into_iter().map(|request| request.number);
            doubled.collect::<Vec<_>>()
        };
        assert_eq!(numbers(&requests), [9]);
        assert_eq!(numbers(&requests[1..]), [0; 0], "a person's is not ours to close");
        assert_eq!(numbers(&[]), [0; 0]);
    }

    /// Plans for the wanted change over the base `files`.
    fn planned(wanted: Option<&str>, branch: Branch, requests: &[PullRequest], may_open: bool) -> String {
        let (wanted, base) = (wanted.map(change), change("files"));
        let seen = Seen {
            wanted: wanted.as_ref(),
            base: Some(&base),
            branch,
            requests,
            may_open,
            is_settled: true,
        };
        let (push, request) = plan(&seen);
        let request = match request {
            Request::None => "none".to_owned(),
            Request::Open => "open".to_owned(),
            Request::TooMany => "too many".to_owned(),
            Request::Occupied => "occupied".to_owned(),
            Request::Keep(request) => format!("keep {}", request.number),
            Request::Edit(request) => format!("edit {}", request.number),
            Request::Close(request) => format!("close {}", request.number),
            Request::Declined(request) => format!("declined {}", request.number),
            Request::Reverted(request) => format!("reverted {}", request.number),
        };
        format!("{push:?}, {request}")
    }

    #[test]
    fn a_change_is_proposed_once_and_kept_up_to_date() {
        use State::Open;
        let mine = || [request(1, Open, Some("a"))];
        for (wanted, branch, requests, expected) in [
            ("a", Branch::Missing, vec![], "Create, open"),
            // Killed between the push and the pull request.
            ("a", ours("a", "files"), vec![], "Leave, open"),
            ("a", ours("a", "files"), mine().to_vec(), "Leave, keep 1"),
            ("b", ours("a", "files"), mine().to_vec(), "Replace, edit 1"),
            // Killed between the push and the new title.
            ("b", ours("b", "files"), mine().to_vec(), "Leave, edit 1"),
            // The files changed below it.
            ("a", ours("a", "older"), mine().to_vec(), "Replace, keep 1"),
            ("b", Branch::Foreign, mine().to_vec(), "Continue, edit 1"),
            ("a", Branch::Missing, mine().to_vec(), "Create, keep 1"),
            // A person's own pull request from the branch.
            (
                "b",
                ours("b", "files"),
                vec![request(1, Open, None)],
                "Leave, keep 1",
            ),
        ] {
            let planned = planned(Some(wanted), branch.clone(), &requests, true);
            assert_eq!(planned, expected, "{wanted} {branch:?}");
        }
    }

    #[test]
    fn what_people_decided_stays_decided_until_there_is_something_newer() {
        use State::{Closed, Merged};
        let closed = [request(1, Closed, Some("a"))];
        assert_eq!(
            planned(Some("a"), ours("a", "files"), &closed, true),
            "Leave, declined 1"
        );
        assert_eq!(
            planned(Some("b"), ours("a", "files"), &closed, true),
            "Replace, open"
        );
        let merged = [request(1, Merged, Some("a"))];
        assert_eq!(
            planned(Some("a"), Branch::Missing, &merged, true),
            "Leave, reverted 1"
        );
        assert_eq!(planned(Some("b"), Branch::Missing, &merged, true), "Create, open");
    }

    #[test]
    fn the_last_decision_counts() {
        use State::{Closed, Merged};
        // Merged, then another one (a way back), and now the first again.
        let back = [request(1, Merged, Some("a")), request(2, Merged, Some("b"))];
        assert_eq!(planned(Some("a"), Branch::Missing, &back, true), "Create, open");
        let (first, second) = (request(1, Closed, Some("a")), request(2, Closed, Some("a")));
        for requests in [[first.clone(), second.clone()], [second, first]] {
            assert_eq!(
                planned(Some("a"), Branch::Missing, &requests, true),
                "Leave, declined 2"
            );
        }
    }

    #[test]
    fn a_branch_of_someone_else_is_not_taken() {
        use State::Merged;
        assert_eq!(planned(Some("a"), Branch::Foreign, &[], true), "Leave, occupied");
        let theirs = [request(1, Merged, None)];
        assert_eq!(
            planned(Some("a"), Branch::Foreign, &theirs, true),
            "Leave, occupied"
        );
        // It was ours until someone added to it.
        let ours = [request(1, Merged, Some("b"))];
        assert_eq!(planned(Some("a"), Branch::Foreign, &ours, true), "Continue, open");
    }

    #[test]
    fn what_the_base_has_is_no_longer_proposed() {
        use State::Open;
        let mine = [request(1, Open, Some("a"))];
        assert_eq!(planned(None, ours("a", "x"), &mine, true), "Delete, close 1");
        assert_eq!(planned(None, ours("a", "x"), &[], true), "Delete, none");
        assert_eq!(planned(None, Branch::Foreign, &mine, true), "Leave, keep 1");
        assert_eq!(planned(None, Branch::Missing, &[], true), "Leave, none");
        assert_eq!(
            planned(None, ours("a", "x"), &[request(1, Open, None)], true),
            "Leave, keep 1"
        );
    }

    #[test]
    fn nothing_is_taken_back_while_a_policy_has_no_choice() {
        let requests = [request(1, State::Open, Some("a"))];
        let seen = Seen {
            wanted: None,
            base: None,
            branch: ours("a", "files"),
            requests: &requests,
            may_open: true,
            is_settled: false,
        };
        assert_eq!(plan(&seen), (Push::Leave, Request::Keep(&requests[0])));
    }

    #[test]
    fn what_was_begun_is_finished() {
        let mut begun = request(1, State::Open, None);
        begun.body = mark::unfinished("", &change("a"));
        assert_eq!(
            planned(Some("a"), ours("a", "files"), &[begun], true),
            "Leave, edit 1"
        );
    }

    #[test]
    fn a_limit_holds_back_new_ones_only() {
        let mine = [request(1, State::Open, Some("a"))];
        assert_eq!(planned(Some("a"), Branch::Missing, &[], false), "Leave, too many");
        assert_eq!(
            planned(Some("b"), ours("a", "files"), &mine, false),
            "Replace, edit 1"
        );
    }
}

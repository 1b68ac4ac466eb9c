//! A pull request of ours: what it gets besides its text, and when it is merged without a person.

use api::delivery::{MergeMethod, MergeSpec, PullRequestSpec};
use forge::check::{self, Verdict};
use forge::pull_request::{Merge, Method, PullRequest};
use forge::{Error, Forge};
use git_client::ObjectId;
use jiff::{SignedDuration, Timestamp};

/// Names of checks that are shown.
const SHOWN: usize = 5;
/// Characters of a line of the forge that are shown.
const MAX_LINE: usize = 200;

/// What came of a pull request that may be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// It is part of its base.
    Done,
    /// Not yet, and why; and when it is looked at again, where there is a time.
    NotYet(String, Option<Timestamp>),
}

/// Returns a pull request as people call it.
pub fn named(request: &PullRequest) -> String {
    match request.url.as_str() {
        "" => format!("pull request {}", request.number),
        url => format!("pull request {} ({url})", request.number),
    }
}

/// Labels a pull request, and asks for reviews.
///
/// # Errors
/// When the forge refuses.
pub async fn finish(forge: &Forge<'_>, spec: &PullRequestSpec, open: &PullRequest) -> Result<(), Error> {
    if !spec.labels.is_empty() {
        forge.label(open.number, &spec.labels).await?;
    }
    if !spec.reviewers.is_empty() {
        forge.request_review(open, &spec.reviewers).await?;
    }
    Ok(())
}

/// Merges a pull request at our commit if it is old enough and its checks have passed.
///
/// # Errors
/// When the forge cannot be asked.
pub async fn merge(
    forge: &Forge<'_>,
    request: &PullRequest,
    commit: ObjectId,
    merge: &MergeSpec,
) -> Result<Merged, Error> {
    if let (Some(age), Some(opened)) = (&merge.minimum_age, request.opened) {
        let age = SignedDuration::try_from(age.to_std()).unwrap_or(SignedDuration::MAX);
        let time = opened.checked_add(age).unwrap_or(Timestamp::MAX);
        if Timestamp::now() < time {
            let shown = time.round(jiff::Unit::Second).unwrap_or(time);
            let text = format!("merged at {shown} at the earliest");
            return Ok(Merged::NotYet(text, Some(time)));
        }
    }
    let commit = commit.to_string();
    let not_yet = |text: String| Ok(Merged::NotYet(text, None));
    match check::judge(&forge.checks(&commit).await?, &merge.checks) {
        Verdict::Waiting(names) => not_yet(format!("waits for {}", listed(&names))),
        Verdict::Failed(names) => not_yet(format!("not merged, as {} failed", listed(&names))),
        Verdict::Passed => {
            let method = match merge.method.unwrap_or_default() {
                MergeMethod::Merge => Method::Merge,
                MergeMethod::Squash => Method::Squash,
                MergeMethod::Rebase => Method::Rebase,
            };
            match forge.merge(request.number, method, &commit).await? {
                Merge::NotYet(why) => {
                    not_yet(format!("not merged yet, as the forge says: {}", first_line(&why)))
                }
                Merge::Done => Ok(Merged::Done),
            }
        }
    }
}

/// Names of checks, a few of them.
fn listed(names: &[String]) -> String {
    let mut list: Vec<String> = names.iter().take(SHOWN).map(|name| first_line(name)).collect();
    if names.len() > SHOWN {
        list.push(format!("{} more", names.len() - SHOWN));
    }
    list.join(", ")
}

/// The first line of a text of others, cut and made fit to be shown.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    line.chars().filter(|c| !c.is_control()).take(MAX_LINE).collect()
}

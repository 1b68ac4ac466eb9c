//! The files of a bootstrap as a pull request, for branches that take no direct push.

use forge::pull_request::{Draft, State};
use git_client::edit::Changes;

use super::branch::Branch;
use super::flags::Shared;
use super::origin::{Origin, of_forge};
use crate::cluster::Failure;

/// Opens a pull request, or brings the one up to date that is open. None if nothing differs.
pub(super) async fn open(
    origin: &Origin,
    branch: &Branch,
    changes: &Changes,
    message: &str,
    shared: &Shared,
    report_line: &impl Fn(&str),
) -> Result<Option<String>, Failure> {
    let Some(forge) = origin.forge().await? else {
        return Err(Failure::Usage(
            "--pull-request: a plain Git server has none".to_owned(),
        ));
    };
    if !branch.exists() {
        return Err(Failure::Usage(format!(
            "--pull-request: the repository has no branch {} yet",
            shared.branch
        )));
    }
    let head = format!("windlass-bootstrap/{}", shared.branch);
    let Some(commit) = branch.push_aside(origin, &head, changes, message, shared).await? else {
        return Ok(None);
    };
    report_line(&format!("pushed commit {commit} to branch {head}"));
    let found = forge
        .find(&head, &shared.branch)
        .await
        .map_err(|error| of_forge(&error))?;
    let request = match found.into_iter().find(|request| request.state == State::Open) {
        Some(request) => request,
        None => {
            let draft = Draft {
                head: &head,
                base: &shared.branch,
                title: message.lines().next().unwrap_or_default(),
                body: "The files of `windlass bootstrap`. When this is merged, run the command again.",
            };
            forge.open(draft).await.map_err(|error| of_forge(&error))?
        }
    };
    Ok(Some(format!(
        "pull request {}: {}\nThe cluster is as it was. When the pull request is merged, run the command again.\n",
        request.number, request.url
    )))
}

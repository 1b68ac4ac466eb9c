//! Deployments: which commit is in which environment, as GitHub and GitLab list them. The others have none that may be made from outside.

use crate::check::State;

/// A commit in an environment.
#[derive(Debug, Clone, Copy)]
pub struct Deployment<'a> {
    /// The commit.
    pub commit: &'a str,
    /// The environment.
    pub environment: &'a str,
    /// How it is there.
    pub state: State,
    /// Why, in a line.
    pub description: &'a str,
}

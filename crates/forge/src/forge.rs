//! One face for all forges.

use std::fmt;

use url::Url;

use crate::annotation::Annotated;
use crate::azure_devops::{self, AzureDevOps};
use crate::bitbucket::{self, Bitbucket};
use crate::bitbucket_server::BitbucketServer;
use crate::check::{Check, Status};
use crate::comment::{self, Comment, Mine};
use crate::error::{Error, Retry};
use crate::exchange::Exchange;
use crate::gitea::Gitea;
use crate::github::GitHub;
use crate::gitlab::GitLab;
use crate::incoming::Incoming;
use crate::log::Commit;
use crate::pull_request::{Draft, Merge, Method, PullRequest};
use crate::reference::Reference;

/// Which forge a repository is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GitHub and GitHub Enterprise.
    GitHub,
    /// GitLab.
    GitLab,
    /// Gitea and Forgejo.
    Gitea,
    /// Bitbucket Cloud.
    Bitbucket,
    /// Bitbucket Server and Data Center.
    BitbucketServer,
    /// Azure DevOps.
    AzureDevOps,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
            Self::Gitea => "Gitea",
            Self::Bitbucket => "Bitbucket",
            Self::BitbucketServer => "Bitbucket Server",
            Self::AzureDevOps => "Azure DevOps",
        })
    }
}

/// Who signs in. Bitbucket and its server take a name and a password, too; all others a token.
#[derive(Clone, Default)]
pub struct Login {
    /// Name of the user; empty with a token.
    pub username: String,
    /// Token or password.
    pub password: String,
}

/// A repository at a forge.
pub struct Forge<'a>(pub(crate) Repository<'a>);

pub(crate) enum Repository<'a> {
    GitHub(GitHub<'a>),
    GitLab(GitLab<'a>),
    Gitea(Gitea<'a>),
    Bitbucket(Bitbucket<'a>),
    BitbucketServer(BitbucketServer<'a>),
    AzureDevOps(AzureDevOps<'a>),
}

/// The same call at each forge.
macro_rules! each {
    ($self:ident, $at:ident => $call:expr) => {
        match &$self.0 {
            Repository::GitHub($at) => $call,
            Repository::GitLab($at) => $call,
            Repository::Gitea($at) => $call,
            Repository::Bitbucket($at) => $call,
            Repository::BitbucketServer($at) => $call,
            Repository::AzureDevOps($at) => $call,
        }
    };
}

impl<'a> Forge<'a> {
    /// The repository at this address. Nothing is asked yet.
    pub fn new(kind: Kind, address: &str, login: &Login, http: impl Exchange + 'a) -> Result<Self, Error> {
        if login.password.trim().is_empty() {
            return Err(Error::invalid(format!("the token for {kind} is empty")));
        }
        Self::at(kind, address, login, http)
    }

    /// A public repository, as everyone sees it.
    ///
    /// # Errors
    /// At Bitbucket and Azure DevOps, where a login is needed.
    pub fn public(kind: Kind, address: &str, http: impl Exchange + 'a) -> Result<Self, Error> {
        match kind {
            Kind::GitHub | Kind::GitLab | Kind::Gitea => Self::at(kind, address, &Login::default(), http),
            _ => Err(Error::invalid(format!("a token for {kind} is needed"))),
        }
    }

    fn at(kind: Kind, address: &str, login: &Login, http: impl Exchange + 'a) -> Result<Self, Error> {
        let token = login.password.trim();
        Ok(Self(match kind {
            Kind::GitHub => Repository::GitHub(GitHub::new(http, address, token)?),
            Kind::GitLab => Repository::GitLab(GitLab::new(http, address, token)?),
            Kind::Gitea => Repository::Gitea(Gitea::new(http, address, token)?),
            Kind::Bitbucket => {
                let root = Url::parse(bitbucket::ROOT).map_err(|error| Error::invalid(error.to_string()))?;
                Repository::Bitbucket(Bitbucket::new(http, root, address, &login.username, token)?)
            }
            Kind::BitbucketServer => {
                let server = BitbucketServer::new(http, address, &login.username, token)?;
                Repository::BitbucketServer(server)
            }
            Kind::AzureDevOps => Repository::AzureDevOps(AzureDevOps::new(http, address, token)?),
        }))
    }

    /// Pull requests from a branch of the repository to another: all that are open, and those that were closed last.
    pub async fn find(&self, head: &str, base: &str) -> Result<Vec<PullRequest>, Error> {
        let found = each!(self, at => at.find(head, base).await);
        found.map_err(|error| error.within("failed to list pull requests"))
    }

    /// All open pull requests to a branch, or to any, those from forks included; None if they are those that are known by an entity tag, which is
    /// brought up to date.
    ///
    /// # Errors
    /// At Bitbucket, which is not asked for them.
    pub async fn incoming(
        &self,
        base: Option<&str>,
        known: &mut Option<String>,
    ) -> Result<Option<Vec<Incoming>>, Error> {
        let found = match &self.0 {
            Repository::GitHub(at) => at.incoming(base, known).await,
            Repository::GitLab(at) => at.incoming(base, known).await,
            // These give lists no entity tags.
            Repository::Gitea(at) => at.incoming(base).await.map(Some),
            Repository::AzureDevOps(at) => at.incoming(base).await.map(Some),
            Repository::Bitbucket(_) | Repository::BitbucketServer(_) => Err(elsewhere()),
        };
        found.map_err(|error| error.within("failed to list pull requests"))
    }

    /// All branches, with their newest commits.
    ///
    /// # Errors
    /// At Bitbucket, which is not asked for them.
    pub async fn branches(&self) -> Result<Vec<Reference>, Error> {
        let found = match &self.0 {
            Repository::GitHub(at) => at.branches().await,
            Repository::GitLab(at) => at.branches().await,
            Repository::Gitea(at) => at.branches().await,
            Repository::AzureDevOps(at) => at.branches().await,
            Repository::Bitbucket(_) | Repository::BitbucketServer(_) => Err(elsewhere()),
        };
        found.map_err(|error| error.within("failed to list branches"))
    }

    /// All tags, with their commits.
    ///
    /// # Errors
    /// At Bitbucket, which is not asked for them.
    pub async fn tags(&self) -> Result<Vec<Reference>, Error> {
        let found = match &self.0 {
            Repository::GitHub(at) => at.tags().await,
            Repository::GitLab(at) => at.tags().await,
            Repository::Gitea(at) => at.tags().await,
            Repository::AzureDevOps(at) => at.tags().await,
            Repository::Bitbucket(_) | Repository::BitbucketServer(_) => Err(elsewhere()),
        };
        found.map_err(|error| error.within("failed to list tags"))
    }

    /// The reference by which the head of a pull request is fetched from the repository that it is for, forks included.
    pub fn head_reference(&self, number: u64) -> String {
        match &self.0 {
            Repository::GitLab(_) => format!("refs/merge-requests/{number}/head"),
            Repository::BitbucketServer(_) => format!("refs/pull-requests/{number}/from"),
            _ => format!("refs/pull/{number}/head"),
        }
    }

    /// Returns whether comments on pull requests can be kept up to date.
    pub fn keeps_comments(&self) -> bool {
        matches!(
            &self.0,
            Repository::GitHub(_) | Repository::GitLab(_) | Repository::Gitea(_)
        )
    }

    /// Adds a comment that begins with a marker, or changes the one of the token's owner that is there.
    ///
    /// # Errors
    /// At Bitbucket and Azure DevOps, where comments are not kept up to date.
    pub async fn keep_comment(&self, number: u64, comment: Comment<'_>) -> Result<(), Error> {
        let text = number.to_string();
        let kept = match &self.0 {
            Repository::GitHub(at) => {
                let mine = async {
                    match comment::me(&at.api).await {
                        // The token of an App may not ask who it is.
                        Err(error) if error.retry == Retry::Never => Ok(Mine::Robots),
                        me => me.map(Mine::Named),
                    }
                };
                comment.put(&at.api, &at.comments(&text)?, None, mine).await
            }
            Repository::GitLab(at) => {
                let mine = async { comment::me(&at.api).await.map(Mine::Named) };
                comment.put(&at.api, &at.comments(&text), None, mine).await
            }
            Repository::Gitea(at) => {
                let mine = async { comment::me(&at.api).await.map(Mine::Named) };
                comment.put(&at.api, &at.comments(&text)?, None, mine).await
            }
            Repository::Bitbucket(_) | Repository::BitbucketServer(_) | Repository::AzureDevOps(_) => {
                Err(elsewhere())
            }
        };
        kept.map(drop)
            .map_err(|error| error.within(&format!("failed to comment on pull request {number}")))
    }

    /// Opens a pull request.
    pub async fn open(&self, draft: Draft<'_>) -> Result<PullRequest, Error> {
        let opened = each!(self, at => at.open(draft).await);
        opened.map_err(|error| error.within("failed to open a pull request"))
    }

    /// Changes title and description.
    pub async fn edit(&self, number: u64, title: &str, body: &str) -> Result<(), Error> {
        let edited = each!(self, at => at.edit(number, title, body).await);
        edited.map_err(|error| error.within(&format!("failed to change pull request {number}")))
    }

    /// Adds labels. Bitbucket has none: nothing happens there.
    pub async fn label(&self, number: u64, labels: &[String]) -> Result<(), Error> {
        let labelled = match &self.0 {
            Repository::GitHub(at) => at.label(number, labels).await,
            Repository::GitLab(at) => at.label(number, labels).await,
            Repository::Gitea(at) => at.label(number, labels).await,
            Repository::AzureDevOps(at) => at.label(number, labels).await,
            Repository::Bitbucket(_) | Repository::BitbucketServer(_) => Ok(()),
        };
        labelled.map_err(|error| error.within(&format!("failed to label pull request {number}")))
    }

    /// Asks for reviews.
    pub async fn request_review(&self, request: &PullRequest, people: &[String]) -> Result<(), Error> {
        let number = request.number;
        let asked = match &self.0 {
            Repository::GitHub(at) => at.request_review(number, people).await,
            Repository::GitLab(at) => at.request_review(number, people).await,
            Repository::Gitea(at) => at.request_review(number, people).await,
            Repository::Bitbucket(at) => at.request_review(request, people).await,
            Repository::BitbucketServer(at) => at.request_review(request, people).await,
            Repository::AzureDevOps(at) => at.request_review(number, people).await,
        };
        asked.map_err(|error| error.within(&format!("failed to ask for reviews of pull request {number}")))
    }

    /// Adds a comment.
    pub async fn comment(&self, number: u64, text: &str) -> Result<(), Error> {
        let said = each!(self, at => at.comment(number, text).await);
        said.map_err(|error| error.within(&format!("failed to comment on pull request {number}")))
    }

    /// Closes a pull request without a merge.
    pub async fn close(&self, number: u64) -> Result<(), Error> {
        let closed = each!(self, at => at.close(number).await);
        closed.map_err(|error| error.within(&format!("failed to close pull request {number}")))
    }

    /// Merges a pull request if its branch is at this commit, and removes the branch where the forge does that.
    pub async fn merge(&self, number: u64, method: Method, commit: &str) -> Result<Merge, Error> {
        let merged = each!(self, at => at.merge(number, method, commit).await);
        merged.map_err(|error| error.within(&format!("failed to merge pull request {number}")))
    }

    /// The commits that `new` has and `old` lacks, as the forge orders them, of which it may list a part.
    pub async fn commits(&self, old: &str, new: &str) -> Result<Vec<Commit>, Error> {
        let commits = each!(self, at => at.commits(old, new).await);
        commits.map_err(|error| error.within("failed to list the commits between two"))
    }

    /// What others say of a commit.
    pub async fn checks(&self, commit: &str) -> Result<Vec<Check>, Error> {
        let checks = each!(self, at => at.checks(commit).await);
        checks.map_err(|error| error.within("failed to list the checks of the commit"))
    }

    /// Says something of a commit. `key` names the status where names may have 40 characters only.
    pub async fn set_status(&self, status: Status<'_>, key: &str) -> Result<(), Error> {
        let set = match &self.0 {
            Repository::GitHub(at) => at.set_status(status).await,
            Repository::GitLab(at) => at.set_status(status).await,
            Repository::Gitea(at) => at.set_status(status).await,
            Repository::Bitbucket(at) => at.set_status(status, key).await,
            Repository::BitbucketServer(at) => at.set_status(status, key).await,
            Repository::AzureDevOps(at) => at.set_status(status, azure_devops::GENRE).await,
        };
        set.map_err(|error| error.within("failed to set the status of the commit"))
    }

    /// Shows findings beside the lines of a commit. Only GitHub does that, for GitHub Apps with the permission `checks: write`.
    pub async fn annotate(&self, check: Annotated<'_>) -> Result<(), Error> {
        let made = match &self.0 {
            Repository::GitHub(at) => at.annotate(check).await,
            _ => Err(Error::invalid("findings beside lines are shown by GitHub only")),
        };
        made.map_err(|error| error.within("failed to make a check run"))
    }
}

fn elsewhere() -> Error {
    Error::invalid("Bitbucket is not asked for open pull requests, branches and tags")
}

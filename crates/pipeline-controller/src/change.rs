//! One change: a release goes into one target, by a commit or by a pull request.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::delivery::{Pipeline, PullRequestSpec};
use change_policy::mark;
use controller_kit::ObjectKey;
use git_client::commit::Person;
use git_client::pack::Pack;
use git_client::{Checkout, push};
use git_writer::{branch, races};
use promotion::manifests::Edited;
use transport::stop::Stop;

use crate::context::Context;
use crate::edit::{self, Changed, Task};
use crate::place::{self, Place};
use crate::proposal::{self, Proposal, Proposed, Way, Work};
use crate::site::{Base, Part as Files, Site};

/// Why no change was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is no place for it.
    #[error(transparent)]
    Place(#[from] Box<place::Error>),
    /// The fetch.
    #[error("failed to fetch the branch '{branch}'")]
    Fetch {
        /// The branch.
        branch: String,
        /// The error.
        #[source]
        source: branch::Error,
    },
    /// The files.
    #[error(transparent)]
    Edit(#[from] edit::Error),
    /// How changes go in.
    #[error(transparent)]
    Policy(#[from] Box<proposal::Error>),
    /// The commit.
    #[error("failed to make the commit")]
    Commit(#[from] git_writer::commit::Error),
    /// The push.
    #[error("failed to push to the branch '{branch}'")]
    Push {
        /// The branch.
        branch: String,
        /// The error.
        #[source]
        source: push::Error,
    },
    /// Others were faster.
    #[error("the branch '{0}' was changed by others each of {max} times that a commit was made for it", max = races::MAX_TRIES)]
    Races(String),
    /// What several targets share failed.
    #[error("{0}")]
    Way(String),
    /// A blocking step was torn down.
    #[error("failed to finish the change")]
    Abandoned,
}

impl From<proposal::Error> for Error {
    fn from(error: proposal::Error) -> Self {
        Self::Policy(Box::new(error))
    }
}

impl From<place::Error> for Error {
    fn from(error: place::Error) -> Self {
        Self::Place(Box::new(error))
    }
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    /// The branch has the values, in this commit. New, or found there.
    Committed {
        /// The commit.
        commit: String,
        /// False if the files had the values already.
        is_new: bool,
    },
    /// A pull request proposes them.
    Proposed(Proposal),
}

/// Makes the changes of targets of one environment: those in one repository by one commit, or a pull request for each. Returns what
/// came of each. `open` is the number of pull requests of the pipeline for other targets.
pub(crate) async fn carry_out(
    tasks: &[Task],
    pipeline: &Pipeline,
    open: usize,
    context: &Context,
) -> Vec<Result<Done, String>> {
    let environment = tasks.first().map(|task| task.wanted.environment.as_str());
    let way = proposal::way(pipeline, environment.unwrap_or_default(), context).await;
    if let Ok(Way::Event) = &way {
        let announced = tasks
            .iter()
            .map(|task| Ok(Done::Proposed(proposal::announce(task))));
        return announced.collect();
    }
    let mut results: Vec<Option<Result<Done, Error>>> = tasks.iter().map(|_| None).collect();
    let mut groups: BTreeMap<ObjectKey, Vec<Part>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        match parts(task, pipeline, context).await {
            Ok(parts) => {
                for (place, part) in parts {
                    let (path, task) = (place.path, part);
                    groups
                        .entry(place.repository)
                        .or_default()
                        .push(Part { at, path, task });
                }
            }
            Err(error) => results[at] = Some(Err(error)),
        }
    }
    let own = pipeline.metadata.namespace.as_deref().unwrap_or_default();
    for (key, parts) in groups {
        let opened = match &way {
            Ok(_) => place::open(&key, own, context).await.map_err(Error::from),
            Err(error) => Err(Error::Way(error_chain::chain(error))),
        };
        let repository = match opened {
            Ok(repository) => repository,
            Err(error) => {
                let problem = error_chain::chain(&error);
                for part in parts {
                    join(&mut results[part.at], Err(Error::Way(problem.clone())));
                }
                continue;
            }
        };
        let site = Site {
            namespace: own,
            uid: pipeline.metadata.uid.as_deref().unwrap_or_default(),
            key: &key,
            part: Files::Folders(parts.iter().map(|part| part.path.clone()).collect()),
            repository: &repository,
            context,
        };
        match &way {
            Ok(Way::PullRequest(policy, spec)) => {
                let may_open = spec.max_open.is_none_or(|most| open < most as usize);
                for part in parts {
                    let at = part.at;
                    let done = propose(&site, part, (policy, spec), may_open).await;
                    join(&mut results[at], done);
                }
            }
            _ => {
                let done = commit(&site, &parts).await;
                for (part, done) in parts.iter().zip(done) {
                    join(&mut results[part.at], done);
                }
            }
        }
    }
    let nothing = || Err(Error::Edit(edit::Error::Nothing));
    let results = results.into_iter().map(|result| result.unwrap_or_else(nothing));
    results
        .map(|result| result.map_err(|error| error_chain::chain(&error)))
        .collect()
}

/// Brings the pull request of a target to where it should be.
async fn propose(
    site: &Site<'_>,
    part: Part,
    (policy, spec): (&str, &PullRequestSpec),
    may_open: bool,
) -> Result<Done, Error> {
    let work = Work::new(site, Arc::new(part), (policy, spec), may_open).await?;
    work.propose().await
}

/// Joins what came of a target in one repository with that of another: a failure counts before a pull request that waits, and that
/// before a commit.
fn join(result: &mut Option<Result<Done, Error>>, next: Result<Done, Error>) {
    let joined = match (result.take(), next) {
        (Some(Err(error)), _) | (_, Err(error)) => Err(error),
        (Some(Ok(Done::Proposed(proposal))), _) | (_, Ok(Done::Proposed(proposal))) => {
            Ok(Done::Proposed(proposal))
        }
        (Some(Ok(Done::Committed { is_new: true, .. })), Ok(Done::Committed { commit, .. })) => {
            Ok(Done::Committed { commit, is_new: true })
        }
        (_, next) => next,
    };
    *result = Some(joined);
}

/// Where the manifests of a target are, with the applications that are there.
async fn parts(task: &Task, pipeline: &Pipeline, context: &Context) -> Result<Vec<(Place, Task)>, Error> {
    let mut places: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
    for (at, (app, fields)) in task.wanted.apps.iter().enumerate() {
        if !fields.is_empty() {
            let place = place::find(pipeline, (task, at), app, context).await?;
            places.entry(place).or_default().push(at);
        }
    }
    let parts = places.into_iter().map(|(place, apps)| (place, task.part(&apps)));
    Ok(parts.collect())
}

/// The manifests of a target in one folder.
pub(crate) struct Part {
    /// The target, among those that are changed together.
    at: usize,
    /// The folder.
    path: String,
    task: Task,
}

impl Proposed for Part {
    fn branch(&self) -> String {
        self.task.branch()
    }

    fn author(&self) -> Person {
        self.task.author.clone()
    }

    fn edit(&self, pack: &Pack) -> Result<Changed, edit::Error> {
        let edited = edit::edit_below(&self.task.wanted, &self.path, pack, &Edited::default());
        edited.map(Changed::from)
    }

    fn change(&self, changed: &Changed) -> mark::Change {
        edit::change(&changed.edited, self.task.asked.as_ref())
    }

    fn title(&self) -> String {
        self.task.title()
    }

    fn message(&self, changed: &Changed) -> String {
        self.task.message(&[&self.task.target], &changed.edited)
    }

    fn body(&self, changed: &Changed) -> String {
        self.task.body(&changed.edited)
    }
}

/// Commits to the branch, all targets that can be changed at once.
async fn commit(site: &Site<'_>, parts: &[Part]) -> Vec<Result<Done, Error>> {
    let branch = &site.repository.branch;
    let writers = &site.context.writers;
    let _turn = writers.turn(site.repository.remotes.url.as_str(), branch).await;
    for attempt in 1..=races::MAX_TRIES {
        match try_commit(site, parts).await {
            Err(Error::Push { source, .. }) if source.is_moved() => {
                tracing::info!("branch '{branch}' was changed in the meantime, attempt {attempt}");
                races::pause().await;
            }
            Err(error) => return all_failed(parts, &error),
            Ok(done) => return done,
        }
    }
    all_failed(parts, &Error::Races(branch.clone()))
}

async fn try_commit(site: &Site<'_>, parts: &[Part]) -> Result<Vec<Result<Done, Error>>, Error> {
    let branch = &site.repository.branch;
    let (checkout, stop) = site.checkout(branch).await?;
    let (base, changed) = edit_all(parts, checkout, &stop).await?;
    let parent = base.commit;
    let is_new = !base.changed.is_empty();
    let mut commit = parent;
    if let Some(first) = parts.first().filter(|_| is_new) {
        let targets = parts.iter().zip(&changed).filter(|(_, changed)| changed.is_ok());
        let targets = targets.map(|(part, _)| part.task.target.as_str());
        let message = first
            .task
            .message(&targets.collect::<Vec<_>>(), &base.changed.edited);
        let made = site.write(first.task.author.clone(), base, message).await?;
        let pushed = site.push(branch, Some(parent), Some(&made)).await;
        pushed.map_err(|source| Error::Push {
            branch: branch.clone(),
            source,
        })?;
        commit = made.id;
    }
    let done = changed.into_iter().map(|changed| {
        changed.map(|()| Done::Committed {
            commit: commit.to_string(),
            is_new,
        })
    });
    Ok(done.collect())
}

/// The same failure for each.
fn all_failed(parts: &[Part], error: &Error) -> Vec<Result<Done, Error>> {
    let problem = error_chain::chain(error);
    parts.iter().map(|_| Err(Error::Way(problem.clone()))).collect()
}

/// Sets the values of targets in the files of a checkout. One that cannot be changed leaves the others unhurt.
async fn edit_all(
    parts: &[Part],
    checkout: Checkout,
    stop: &Stop,
) -> Result<(Base, Vec<Result<(), Error>>), Error> {
    let parts: Vec<_> = parts
        .iter()
        .map(|part| (part.path.clone(), part.task.clone()))
        .collect();
    let waiting = stop.when_dropped();
    let editing = tokio::task::spawn_blocking(move || {
        let (mut edited, mut changed) = (Edited::default(), Vec::new());
        for (path, task) in &parts {
            let one = edit::edit_below(&task.wanted, path, &checkout.pack, &edited);
            changed.push(one.map(|one| edited.add(one)).map_err(Error::Edit));
        }
        (Base::new(checkout, edited.into()), changed)
    });
    let done = editing.await.map_err(|_| Error::Abandoned)?;
    waiting.disarm();
    Ok(done)
}

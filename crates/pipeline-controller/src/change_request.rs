//! A change of manifests that a person asks for (ADR 22): proposed by pull request, and followed until that is merged or closed.

use std::sync::Arc;
use std::time::Duration;

use api::delivery::{
    ChangeKind, ChangePolicy, ChangeRequest, ChangeRequestStatus, PullRequestSpec, PullRequestState,
    PullRequestStatus, Window,
};
use api::meta::{condition_types, reasons};
use change_window::window;
use controller_kit::conditions::{self, Fact};
use controller_kit::events::Severity;
use controller_kit::queue::{Outcome, Queue};
use controller_kit::record::{Unrecorded, Writer, begun};
use controller_kit::{ObjectKey, access_from, pace};
use forge::pull_request::{PullRequest, State};
use git_writer::files::cleaned;
use git_writer::request::named;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Preconditions};
use remote_access::error::ReadError;

use crate::change::{self, Done};
use crate::context::Context;
use crate::edit;
use crate::place;
use crate::proposal::Work;
use crate::site::Site;

mod proposed;
mod revert;

use self::proposed::Request;

/// How often a forge is asked, if the spec does not say.
const INTERVAL: Duration = Duration::from_secs(60);
/// How long a finished request is kept, if the spec does not say.
const KEEP_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// Reasons of the condition and of events.
const OPEN: &str = "PullRequestOpen";
const MERGED: &str = "Merged";
const CLOSED: &str = "Closed";
const WAITING: &str = "WaitingForWindow";
const NOT_PROPOSED: &str = "NotProposed";
const NOT_POSSIBLE: &str = "ChangeNotPossible";

/// What is known of ChangeRequests. Their contents are not kept in memory.
pub(crate) struct Requests {
    pub(crate) writer: Writer<ChangeRequest>,
    pub(crate) queue: Queue<ObjectKey>,
}

/// Why nothing was proposed.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The ChangePolicy cannot be read.
    #[error(transparent)]
    Policy(#[from] ReadError),
    /// It is of another type.
    #[error(
        "the ChangePolicy '{0}' is not of the type PullRequest: a ChangeRequest is proposed by pull request only"
    )]
    Type(String),
    /// Its windows cannot be understood.
    #[error("ChangePolicy '{name}': {source}")]
    Window {
        /// Its name.
        name: String,
        /// The error.
        source: window::Error,
    },
    /// There is no such Kustomization, or the owner of its repository does not allow it. Only those who may use it learn which.
    #[error(
        "there is no Kustomization {key} whose GitRepository lists the namespace '{namespace}' in the annotation {}",
        access_from::ANNOTATION
    )]
    NotAllowed {
        /// The Kustomization.
        key: ObjectKey,
        /// The namespace of the request.
        namespace: String,
    },
    /// There is none in the namespace of the request.
    #[error("there is no Kustomization {0}")]
    Missing(ObjectKey),
    /// The source is no repository.
    #[error(
        "the Kustomization {key} is built from {kind}/{name}: changes can be made in a GitRepository only"
    )]
    NoRepository {
        /// The Kustomization.
        key: ObjectKey,
        /// Kind of its source.
        kind: String,
        /// Name of its source.
        name: String,
    },
    /// The repository.
    #[error(transparent)]
    Place(#[from] Box<place::Error>),
    /// The object cannot be read.
    #[error("failed to read the ChangeRequest")]
    Read(#[source] Box<kube::Error>),
    /// What it takes back.
    #[error(transparent)]
    Revert(#[from] revert::Error),
    /// The change.
    #[error(transparent)]
    Change(#[from] Box<change::Error>),
}

impl From<change::Error> for Error {
    fn from(error: change::Error) -> Self {
        Self::Change(Box::new(error))
    }
}

impl Error {
    /// Whether only people can help, in Git or in an object.
    fn is_theirs(&self) -> bool {
        match self {
            Self::Type(_) | Self::Window { .. } | Self::NotAllowed { .. } | Self::NoRepository { .. } => true,
            Self::Change(error) => {
                use edit::Error::{Asked, Revert};
                matches!(&**error, change::Error::Edit(Asked(_) | Revert(_)))
            }
            Self::Revert(error) => error.is_theirs(),
            Self::Policy(_) | Self::Missing(_) | Self::Place(_) | Self::Read(_) => false,
        }
    }
}

/// How a request stands.
enum Stand {
    /// The windows of the ChangePolicy are closed until then.
    Waits(Timestamp),
    /// The pull request waits for people; what was done to it, and when it is looked at again.
    Open(PullRequest, Option<String>, Option<Timestamp>),
    /// Nothing is proposed, and why.
    NotProposed(String),
    /// The pull request was merged or closed.
    Ended(PullRequest),
    /// The branch had the change before it was proposed.
    There(String),
}

/// Proposes what is asked for.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let writer = &context.requests.writer;
    writer
        .reconcile(&key, |_| {}, |object| follow(object, &context))
        .await
}

async fn follow(object: Arc<ChangeRequest>, context: &Context) -> Result<Outcome, Unrecorded> {
    let status = object.status.clone().unwrap_or_default();
    if let Some(finished) = &status.finished_at {
        let next = begun(&*object);
        if next != status {
            // Who asks waits for the answer, although there is nothing more to do.
            context.requests.writer.write(Arc::clone(&object), &next).await?;
        }
        return Ok(keep(&object, finished.0, context).await);
    }
    let (stood, now) = (stand(&object, context).await, Timestamp::now());
    let mut next = begun(&*object);
    let generation = object.metadata.generation.unwrap_or_default();
    next.observed_generation = Some(generation);
    let (ready, mut said, mut outcome) = concluded(&object, stood, &mut next, now, context);
    conditions::remove(&mut next.conditions, condition_types::RECONCILING);
    // A failure that stays the same is reported once.
    let known = conditions::get(&status.conditions, condition_types::READY);
    if known.is_some_and(|known| (&known.reason, &known.message) == (&ready.reason, &ready.message)) {
        said = said.filter(|said| said.severity != Severity::Error);
    }
    conditions::set(&mut next.conditions, ready, generation, now);
    if next.finished_at.is_some() {
        outcome = Outcome::After(keep_for(&object));
    }
    let written = context.requests.writer.write(object, &next).await?;
    if let Some(Said {
        severity,
        reason,
        text,
    }) = said
    {
        context.requests.writer.publish(&written, severity, reason, &text);
    }
    Ok(outcome)
}

/// What an event says.
struct Said {
    severity: Severity,
    reason: &'static str,
    text: String,
}

/// The condition, the event, and when the request is looked at again.
fn concluded(
    object: &ChangeRequest,
    stood: Result<Stand, Error>,
    next: &mut ChangeRequestStatus,
    now: Timestamp,
    context: &Context,
) -> (Fact, Option<Said>, Outcome) {
    let interval = object.spec.interval.map_or(INTERVAL, api::meta::Duration::to_std);
    let again = pace::after(interval, context.jitter_percentage);
    let info = |reason, text: String| {
        let severity = Severity::Info;
        Some(Said {
            severity,
            reason,
            text,
        })
    };
    let failed = |reason, text: &str| {
        let (severity, text) = (Severity::Error, text.to_owned());
        Some(Said {
            severity,
            reason,
            text,
        })
    };
    match stood {
        Ok(Stand::Waits(until)) => {
            let text = format!(
                "waits: the window of ChangePolicy '{}' opens {until}",
                object.spec.change_policy_ref.name
            );
            let ready = Fact::is_unknown(condition_types::READY, WAITING, text);
            (ready, None, pace::by(again, Some(until), now))
        }
        Ok(Stand::Open(request, event, due)) => {
            let text = format!("{} is open", named(&request));
            next.pull_request = Some(seen(&request));
            let ready = Fact::is_unknown(condition_types::READY, OPEN, text);
            let said = event.and_then(|event| info(OPEN, event));
            (ready, said, pace::by(again, due, now))
        }
        Ok(Stand::NotProposed(why)) => {
            let ready = Fact::does_not_hold(condition_types::READY, NOT_PROPOSED, &*why);
            (ready, failed(NOT_PROPOSED, &why), again)
        }
        Ok(Stand::Ended(request)) => {
            next.pull_request = Some(seen(&request));
            next.finished_at = Some(Time(now));
            let name = named(&request);
            let (ready, said) = match request.state {
                State::Merged => {
                    let text = format!("{name} was merged");
                    let ready = Fact::holds(condition_types::READY, MERGED, &*text);
                    (ready, info(MERGED, text))
                }
                State::Closed | State::Open => {
                    let text = format!("{name} was closed without a merge");
                    let ready = Fact::does_not_hold(condition_types::READY, CLOSED, &*text);
                    (ready, info(CLOSED, text))
                }
            };
            (ready, said, again)
        }
        Ok(Stand::There(branch)) => {
            next.finished_at = Some(Time(now));
            let text = format!("the branch '{branch}' has the change");
            let ready = Fact::holds(condition_types::READY, reasons::SUCCEEDED, &*text);
            (ready, info(MERGED, text), again)
        }
        Err(error) => {
            let (reason, outcome) = match error.is_theirs() {
                true => (NOT_POSSIBLE, again),
                false => (NOT_PROPOSED, Outcome::Backoff),
            };
            let text = error_chain::chain(&error);
            let ready = Fact::does_not_hold(condition_types::READY, reason, &*text);
            (ready, failed(reason, &text), outcome)
        }
    }
}

fn seen(request: &PullRequest) -> PullRequestStatus {
    PullRequestStatus {
        number: request.number,
        url: request.url.clone(),
        state: match request.state {
            State::Open => PullRequestState::Open,
            State::Merged => PullRequestState::Merged,
            State::Closed => PullRequestState::Closed,
        },
    }
}

/// Looks at the forge and at Git, and brings the pull request to where it should be.
async fn stand(object: &ChangeRequest, context: &Context) -> Result<Stand, Error> {
    let namespace = object.namespace().unwrap_or_default();
    let (windows, spec) = policy(object, &namespace, context).await?;
    let (key, folder) = place(object, &namespace, context)?;
    let repository = place::open(&key, &namespace, context).await;
    let repository = repository.map_err(|error| match error {
        place::Error::NotAllowed { .. } => Error::NotAllowed {
            key: kustomization(object, &namespace),
            namespace: namespace.clone(),
        },
        error => Error::Place(Box::new(error)),
    })?;
    // Of the contents, as they are now; the cache has none.
    let api: Api<ChangeRequest> = Api::namespaced(context.client.clone(), &namespace);
    let whole = api.get(&object.name_any()).await;
    let whole = whole.map_err(|error| Error::Read(Box::new(error)))?;
    let mut request = Request::new(&whole, folder);
    let site = Site {
        namespace: &namespace,
        uid: object.metadata.uid.as_deref().unwrap_or_default(),
        key: &key,
        part: request.part(),
        repository: &repository,
        context,
    };
    let may_open = spec
        .max_open
        .is_none_or(|most| open(object, context) < most as usize);
    if let Some(spec) = &whole.spec.revert {
        let of = kustomization(object, &namespace);
        request.revert = Some(revert::fetch(spec, &of, request.folder(), &site).await?);
    }
    let name = &object.spec.change_policy_ref.name;
    let work = Work::new(&site, Arc::new(request), (name, &spec), may_open).await?;
    if let Some(ended) = work.ended().await? {
        if ended.state == State::Merged {
            work.clear().await?;
        }
        return Ok(Stand::Ended(ended));
    }
    let gate = window::gate(&windows, Timestamp::now());
    let gate = gate.map_err(|source| Error::Window {
        name: name.clone(),
        source,
    })?;
    if let window::Gate::Opens(until) = gate {
        return Ok(Stand::Waits(until));
    }
    match work.propose().await? {
        // It was merged a moment ago; or others made the change, and the pull request was closed for that.
        Done::Committed { .. } => match work.ended().await?.filter(|ended| ended.state == State::Merged) {
            Some(ended) => Ok(Stand::Ended(ended)),
            None => Ok(Stand::There(repository.branch.clone())),
        },
        Done::Proposed(proposal) => match proposal.request {
            Some(request) => Ok(Stand::Open(*request, proposal.event, proposal.again)),
            None => Ok(Stand::NotProposed(proposal.line)),
        },
    }
}

/// The windows and the pull requests of the ChangePolicy.
async fn policy(
    object: &ChangeRequest,
    namespace: &str,
    context: &Context,
) -> Result<(Vec<Window>, Box<PullRequestSpec>), Error> {
    let name = &object.spec.change_policy_ref.name;
    let policy: ChangePolicy = context.reader(namespace).object(name).await?;
    match (policy.spec.kind, policy.spec.pull_request) {
        (ChangeKind::PullRequest, Some(spec)) => Ok((policy.spec.windows, Box::new(spec))),
        _ => Err(Error::Type(name.clone())),
    }
}

fn kustomization(object: &ChangeRequest, namespace: &str) -> ObjectKey {
    let reference = &object.spec.kustomization_ref;
    let of = reference.namespace.as_deref().filter(|of| !of.is_empty());
    ObjectKey::new(of.unwrap_or(namespace), &*reference.name)
}

/// The GitRepository and the folder that have the manifests.
fn place(object: &ChangeRequest, namespace: &str, context: &Context) -> Result<(ObjectKey, String), Error> {
    let key = kustomization(object, namespace);
    let is_own = key.namespace == namespace;
    let not_allowed = || Error::NotAllowed {
        key: key.clone(),
        namespace: namespace.to_owned(),
    };
    let Some(built) = context.kustomizations.get(&key.object_ref()) else {
        return Err(match is_own {
            true => Error::Missing(key),
            false => not_allowed(),
        });
    };
    let built = built.spec();
    let (kind, of, source) = built.source.clone().unwrap_or_default();
    if kind != "GitRepository" {
        return Err(match is_own {
            true => Error::NoRepository {
                key,
                kind,
                name: source,
            },
            false => not_allowed(),
        });
    }
    let of = if of.is_empty() { key.namespace } else { of };
    Ok((ObjectKey::new(of, source), cleaned(&built.path)))
}

/// How many pull requests are open for other requests under the same ChangePolicy.
fn open(object: &ChangeRequest, context: &Context) -> usize {
    let policy = &object.spec.change_policy_ref;
    let all = context.requests.writer.cache.store().state();
    let others = all.iter().filter(|one| {
        one.metadata.namespace == object.metadata.namespace
            && one.metadata.uid != object.metadata.uid
            && one.spec.change_policy_ref == *policy
    });
    others
        .filter(|one| {
            let request = one
                .status
                .as_ref()
                .and_then(|status| status.pull_request.as_ref());
            request.is_some_and(|request| request.state == PullRequestState::Open)
        })
        .count()
}

fn keep_for(object: &ChangeRequest) -> Duration {
    object.spec.keep_for.map_or(KEEP_FOR, api::meta::Duration::to_std)
}

/// Deletes a finished request when it was kept long enough.
async fn keep(object: &ChangeRequest, finished: Timestamp, context: &Context) -> Outcome {
    let keep = SignedDuration::try_from(keep_for(object)).unwrap_or(SignedDuration::MAX);
    let left = keep
        - Timestamp::now()
            .duration_since(finished)
            .max(SignedDuration::ZERO)
            .min(keep);
    if left.is_positive() {
        return Outcome::After(left.unsigned_abs());
    }
    let api: Api<ChangeRequest> =
        Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
    let this = DeleteParams::default().preconditions(Preconditions {
        uid: object.metadata.uid.clone(),
        resource_version: None,
    });
    match api.delete(&object.name_any(), &this).await {
        Ok(_) => Outcome::Done,
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Outcome::Done,
        Err(error) => {
            tracing::warn!(
                error = error_chain::chain(&error),
                "failed to delete a finished request"
            );
            Outcome::Backoff
        }
    }
}

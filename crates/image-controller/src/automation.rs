//! One reconcile of an ImageUpdateAutomation: which policies, which repository, fetch, set, commit, push, status.
//!
//! A push moves the branch only from the commit that was edited. Whoever was faster is fetched and edited in turn, up to ten
//! times; nothing is ever forced. Automations of this process wait for each other at a branch.

mod checkout;
mod commit;
pub(crate) mod kept;
mod message;
pub(crate) mod proposal;
mod signing;
mod status;
pub(crate) mod target;
mod update;
mod way;
pub(crate) mod writers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::image::{ImagePolicy, ImageRef, ImageUpdateAutomation};
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::jitter::random;
use controller_kit::queue::Outcome;
use controller_kit::runtime::should_reconcile_now;
use git_client::ObjectId;
use git_client::push;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;

use self::checkout::{Fetched, advanced, fetch, keep, within};
use self::commit::{make, push_commit, second_push};
use self::kept::Place;
use self::proposal::Proposed;
use self::signing::Key;
use self::target::Target;
use self::way::Way;
use crate::context::Context;
use crate::pace;
use crate::record::Unrecorded;

/// How often a commit is made anew because someone else was faster.
const MAX_TRIES: u32 = 10;
/// Longest pause before the next try.
const PAUSE: Duration = Duration::from_millis(400);
/// Characters of a commit that are shown.
const SHOWN: usize = 7;
/// Bytes of a message that are shown in an event.
const MAX_SHOWN: usize = 16 << 10;

/// Why nothing was pushed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// `spec.policySelector`.
    #[error("failed to parse policy selector: {0}")]
    Selector(String),
    /// The repository.
    #[error("failed configuring source manager")]
    Target(#[from] target::Error),
    /// The key that signs.
    #[error("failed configuring source manager")]
    Signing(#[from] signing::Error),
    /// The fetch.
    #[error("failed to checkout source")]
    Checkout(#[source] git_client::Error),
    /// The files.
    #[error("failed to apply policies")]
    Update(#[from] update::Error),
    /// The commit.
    #[error("failed to update source")]
    Edit(#[from] git_client::edit::Error),
    /// The message of the commit.
    #[error("failed to update source")]
    Message(#[from] message::Error),
    /// The push.
    #[error("failed to update source")]
    Push(#[source] push::Error),
    /// How changes go in.
    #[error("failed to read how changes go into Git")]
    Way(#[from] way::Error),
    /// Signing in at the forge.
    #[error("failed to sign in at the Git service")]
    SignIn(#[from] remote_access::forge::Error),
    /// The forge.
    #[error(transparent)]
    Forge(#[from] forge::Error),
    /// Someone else was faster each time.
    #[error(
        "failed to update source: branch '{0}' was changed by others each of {MAX_TRIES} times that a commit was made for it"
    )]
    Races(String),
    /// A blocking step was torn down.
    #[error("failed to finish the update")]
    Abandoned,
}

/// A run that came to its end.
pub(crate) struct Run {
    /// Of the branch that was edited, as it is now.
    pub(crate) revision: String,
    pub(crate) pushed: Option<Pushed>,
    /// Markers without effect; None if the repository was not looked at.
    pub(crate) notes: Option<Vec<String>>,
    /// With pull requests: where each group of changes stands.
    pub(crate) proposed: Vec<Proposed>,
}

/// A commit that was pushed.
pub(crate) struct Pushed {
    pub(crate) commit: ObjectId,
    pub(crate) message: String,
}

/// Brings a repository up to date with the policies.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let forget = |object: Option<&ImageUpdateAutomation>| {
        let uid = object.and_then(|object| object.metadata.uid.as_deref());
        context.kept.forget(uid.unwrap_or_default());
        context.heads.forget(uid.unwrap_or_default());
    };
    let writer = &context.automations;
    writer
        .reconcile(&key, forget, |object| update(object, &context))
        .await
}

/// How a run ended without a failure.
enum Ended {
    Ran(Box<Run>, Vec<Arc<ImagePolicy>>),
    /// No window is open before then.
    Waits(Timestamp),
}

async fn update(object: Arc<ImageUpdateAutomation>, context: &Context) -> Result<Outcome, Unrecorded> {
    let writer = &context.automations;
    let now = Timestamp::now();
    let (status, events, again) = match carry_out(&object, context).await {
        Ok(Ended::Ran(run, policies)) => {
            let status = status::ran(&object, observed(&policies), &run, now);
            let again = run.proposed.iter().filter_map(|proposed| proposed.again).min();
            (status, run.events(), again)
        }
        Ok(Ended::Waits(time)) => (status::waits(&object, time, now), Vec::new(), Some(time)),
        Err(error) => {
            let failed = status::failed(&object, &error, now);
            return writer.fail(object, failed).await;
        }
    };
    let was_ready = object
        .status
        .as_ref()
        .is_some_and(|status| controller_kit::conditions::is_ready(&status.conditions));
    let object = writer.write(object, &status).await?;
    let succeeded = api::meta::reasons::SUCCEEDED;
    for event in &events {
        writer.publish(&object, Severity::Info, succeeded, event);
    }
    if events.is_empty() {
        let severity = if was_ready {
            Severity::Trace
        } else {
            Severity::Info
        };
        writer.publish(&object, severity, succeeded, status::message(&status));
    }
    let outcome = pace::after(object.spec.interval.to_std(), context.jitter_percentage);
    Ok(pace::by(outcome, again, now))
}

async fn carry_out(object: &ImageUpdateAutomation, context: &Context) -> Result<Ended, Error> {
    let chosen = policies(object, context)?;
    let run = match way::way(object, context).await? {
        Way::Commit => run(object, &chosen.policies, context).await?,
        Way::PullRequest(spec) => proposal::run(object, &chosen, &spec, context).await?,
        Way::Wait(time) => return Ok(Ended::Waits(time)),
    };
    Ok(Ended::Ran(Box::new(run), chosen.policies))
}

impl Run {
    /// What happened, for people.
    fn events(&self) -> Vec<String> {
        let events = self.proposed.iter().filter_map(|proposed| proposed.event.clone());
        let mut events: Vec<_> = events.collect();
        if let (Some(pushed), true) = (&self.pushed, self.proposed.is_empty()) {
            let branch = self.revision.split('@').next().unwrap_or_default();
            let commit = pushed.commit.to_string();
            let (short, message) = (&commit[..SHOWN], &pushed.message);
            let shown = &message[..message.floor_char_boundary(MAX_SHOWN)];
            events.push(format!("pushed commit '{short}' to branch '{branch}'\n{shown}"));
        }
        events
    }
}

/// What the policies of an automation have chosen.
struct Chosen {
    /// Those that have chosen an image.
    policies: Vec<Arc<ImagePolicy>>,
    /// No policy is without a choice.
    is_settled: bool,
}

/// The policies of the namespace, by the selector.
fn policies(object: &ImageUpdateAutomation, context: &Context) -> Result<Chosen, Error> {
    let namespace = object.metadata.namespace.as_deref();
    let selector = selector(object)?;
    let all = context.policies.cache.store().state().into_iter();
    // What was written a moment ago may not be in the store yet.
    let newest = all.filter_map(|policy| context.policies.cache.get(&ObjectKey::of(&*policy).object_ref()));
    let selected = newest
        .filter(|policy| policy.metadata.namespace.as_deref() == namespace)
        .filter(|policy| {
            let labels = policy.metadata.labels.as_ref();
            selector.as_ref().is_none_or(|selector| match labels {
                Some(labels) => kube::core::SelectorExt::matches(selector, labels),
                None => kube::core::SelectorExt::matches(selector, &BTreeMap::new()),
            })
        });
    let (mut policies, without): (Vec<_>, Vec<_>) = selected.partition(|policy| {
        let status = policy.status.as_ref();
        status.is_some_and(|status| status.latest_ref.is_some())
    });
    policies.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    Ok(Chosen {
        policies,
        is_settled: without.is_empty(),
    })
}

fn selector(object: &ImageUpdateAutomation) -> Result<Option<Selector>, Error> {
    let Some(selector) = &object.spec.policy_selector else {
        return Ok(None);
    };
    let failed = |error: &dyn std::fmt::Display| Error::Selector(error.to_string());
    let value = serde_json::to_value(selector).map_err(|error| failed(&error))?;
    let selector: LabelSelector = serde_json::from_value(value).map_err(|error| failed(&error))?;
    Selector::try_from(selector)
        .map(Some)
        .map_err(|error| failed(&error))
}

fn observed(policies: &[Arc<ImagePolicy>]) -> BTreeMap<String, ImageRef> {
    let entry = |policy: &Arc<ImagePolicy>| {
        let name = policy.metadata.name.clone()?;
        Some((name, policy.status.as_ref()?.latest_ref.clone()?))
    };
    policies.iter().filter_map(entry).collect()
}

async fn run(
    object: &ImageUpdateAutomation,
    policies: &[Arc<ImagePolicy>],
    context: &Context,
) -> Result<Run, Error> {
    let target = target::find(object, context).await?;
    let key = signing_key(object, context).await?;
    let setters = update::setters(policies.iter().map(|policy| &**policy));
    let known = known_revision(object, policies, &target);
    let _turn = context
        .writers
        .turn(target.remotes.url.as_str(), &target.branch)
        .await;
    let place = Place::new(object.metadata.uid.as_deref(), &target);
    for attempt in 1..=MAX_TRIES {
        let known = known.clone().filter(|_| attempt == 1);
        let kept = place.as_ref().and_then(|place| context.kept.take(place));
        let (kept, stop, is_new) = match fetch(&target, known, kept, context).await? {
            Fetched::Unchanged { revision, kept } => {
                keep(place, kept, context);
                return Ok(Run {
                    revision,
                    pushed: None,
                    notes: None,
                    proposed: Vec::new(),
                });
            }
            Fetched::Checkout { kept, stop, is_new } => (kept, stop, is_new),
        };
        let making = make(object.clone(), kept, setters.clone(), key.clone());
        let (made, kept) = within(target.timeout, &stop, making).await?;
        let Some(commit) = made.commit else {
            keep(place, Some(kept).filter(|_| !is_new), context);
            return Ok(Run {
                revision: made.revision,
                pushed: None,
                notes: Some(made.notes),
                proposed: Vec::new(),
            });
        };
        let from = Some(made.base).filter(|_| !is_new);
        match push_commit(&target, &commit, from).await {
            Ok(()) => {
                second_push(&target, &commit, made.base).await?;
                let revision = format!("{}@sha1:{}", target.branch, commit.id);
                keep(place, advanced(kept, &commit, &revision, context).await, context);
                return Ok(Run {
                    revision,
                    pushed: Some(Pushed {
                        commit: commit.id,
                        message: commit.message,
                    }),
                    notes: Some(made.notes),
                    proposed: Vec::new(),
                });
            }
            Err(error) if error.is_moved() => {
                tracing::info!(
                    "branch '{}' was changed in the meantime, attempt {attempt}",
                    target.branch
                );
                tokio::time::sleep(PAUSE.mul_f64(random())).await;
            }
            Err(error) => return Err(Error::Push(error)),
        }
    }
    Err(Error::Races(target.branch))
}

/// The key that signs commits.
async fn signing_key(object: &ImageUpdateAutomation, context: &Context) -> Result<Option<Key>, Error> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let git = object.spec.git.as_ref();
    match git.and_then(|git| git.commit.signing_key.as_ref()) {
        Some(signing) => Ok(Some(Key::read(signing, &context.reader(namespace)).await?)),
        None => Ok(None),
    }
}

/// The revision at which there is nothing to do; None if everything must be looked at.
fn known_revision(
    object: &ImageUpdateAutomation,
    policies: &[Arc<ImagePolicy>],
    target: &Target,
) -> Option<String> {
    let status = object.status.as_ref()?;
    let is_same = status.observed_generation == object.metadata.generation
        && status.observed_policies == observed(policies)
        && controller_kit::conditions::is_ready(&status.conditions)
        && !should_reconcile_now(object)
        && !target.switches()
        && target.second.is_none();
    status.observed_source_revision.clone().filter(|_| is_same)
}

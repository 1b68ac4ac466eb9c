//! One reconcile of an ImageUpdateAutomation: which policies, which repository, fetch, set, commit, push, status.
//!
//! A push moves the branch only from the commit that was edited. Whoever was faster is fetched and edited in turn, up to ten
//! times; nothing is ever forced. Automations of this process wait for each other at a branch.

pub(crate) mod kept;
mod message;
mod signing;
mod status;
pub(crate) mod target;
mod update;
pub(crate) mod writers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::image::{ImagePolicy, ImageRef, ImageUpdateAutomation};
use api::source::GitRepositoryRef;
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::jitter::random;
use controller_kit::queue::Outcome;
use controller_kit::runtime::should_reconcile_now;
use git_client::commit::{Draft, Person};
use git_client::push::{self, Move};
use git_client::reference::{Fields, Reference};
use git_client::{Checkout, Object, ObjectId};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use tokio::time::Instant;
use transport::stop::Stop;
use yaml_setters::Setters;

use self::kept::{Kept, Place};
use self::signing::Key;
use self::target::Target;
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
    };
    let writer = &context.automations;
    writer
        .reconcile(&key, forget, |object| update(object, &context))
        .await
}

async fn update(object: Arc<ImageUpdateAutomation>, context: &Context) -> Result<Outcome, Unrecorded> {
    let writer = &context.automations;
    let ran = match policies(&object, context) {
        Ok(policies) => run(&object, &policies, context).await.map(|run| (run, policies)),
        Err(error) => Err(error),
    };
    match ran {
        Ok((run, policies)) => {
            let was_ready = object
                .status
                .as_ref()
                .is_some_and(|status| controller_kit::conditions::is_ready(&status.conditions));
            let status = status::ran(&object, observed(&policies), &run, Timestamp::now());
            let object = writer.write(object, &status).await?;
            let branch = run.revision.split('@').next().unwrap_or_default();
            match &run.pushed {
                Some(pushed) => {
                    let commit = pushed.commit.to_string();
                    let (short, message) = (&commit[..SHOWN], &pushed.message);
                    let shown = &message[..message.floor_char_boundary(MAX_SHOWN)];
                    let text = format!("pushed commit '{short}' to branch '{branch}'\n{shown}");
                    writer.publish(&object, Severity::Info, api::meta::reasons::SUCCEEDED, &text);
                }
                None => {
                    let severity = if was_ready {
                        Severity::Trace
                    } else {
                        Severity::Info
                    };
                    writer.publish(
                        &object,
                        severity,
                        api::meta::reasons::SUCCEEDED,
                        "repository up-to-date",
                    );
                }
            }
            let interval = object.spec.interval.to_std();
            Ok(pace::after(interval, context.jitter_percentage))
        }
        Err(error) => {
            let failed = status::failed(&object, &error, Timestamp::now());
            writer.fail(object, failed).await
        }
    }
}

/// The policies of the namespace that have chosen an image, by the selector.
fn policies(object: &ImageUpdateAutomation, context: &Context) -> Result<Vec<Arc<ImagePolicy>>, Error> {
    let namespace = object.metadata.namespace.as_deref();
    let selector = selector(object)?;
    let all = context.policies.cache.store().state().into_iter();
    // What was written a moment ago may not be in the store yet.
    let newest = all.filter_map(|policy| context.policies.cache.get(&ObjectKey::of(&*policy).object_ref()));
    let mut policies: Vec<_> = newest
        .filter(|policy| policy.metadata.namespace.as_deref() == namespace)
        .filter(|policy| {
            policy
                .status
                .as_ref()
                .is_some_and(|status| status.latest_ref.is_some())
        })
        .filter(|policy| {
            let labels = policy.metadata.labels.as_ref();
            selector.as_ref().is_none_or(|selector| match labels {
                Some(labels) => kube::core::SelectorExt::matches(selector, labels),
                None => kube::core::SelectorExt::matches(selector, &BTreeMap::new()),
            })
        })
        .collect();
    policies.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    Ok(policies)
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
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let signing = object
        .spec
        .git
        .as_ref()
        .and_then(|git| git.commit.signing_key.as_ref());
    let key = match signing {
        Some(signing) => Some(Key::read(signing, &context.reader(namespace)).await?),
        None => None,
    };
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

/// Puts a commit aside for the next run.
fn keep(place: Option<Place>, kept: Option<Kept>, context: &Context) {
    if let (Some(place), Some(kept)) = (place, kept) {
        context.kept.put(place, kept);
    }
}

/// Goes on to the commit that was pushed. None if that fails, as the next run fetches it then.
async fn advanced(kept: Kept, commit: &Commit, revision: &str, context: &Context) -> Option<Kept> {
    let (id, objects, folder) = (commit.id, commit.objects.clone(), context.fetching.clone());
    let Kept { checkout, plain } = kept;
    let Checkout {
        mut resolved, pack, ..
    } = *checkout;
    let writing = tokio::task::spawn_blocking(move || pack.advance(id, &objects, &folder));
    let pack = writing.await.ok()?;
    let pack = pack.inspect_err(|error| tracing::debug!(%error, "the commit is not kept"));
    resolved.commit = id;
    revision.clone_into(&mut resolved.revision);
    let pack = pack.ok()?;
    Some(Kept {
        checkout: Box::new(Checkout {
            subject: pack.subject().to_owned(),
            resolved,
            pack,
        }),
        plain,
    })
}

enum Fetched {
    /// The revision that was known, and what is kept of it.
    Unchanged { revision: String, kept: Option<Kept> },
    /// A commit to edit.
    Checkout {
        kept: Kept,
        /// Ends what reads it.
        stop: Stop,
        /// The branch to push to does not exist yet.
        is_new: bool,
    },
}

/// Fetches the branch that is pushed to, or what it will begin with.
async fn fetch(
    target: &Target,
    known: Option<String>,
    kept: Option<Kept>,
    context: &Context,
) -> Result<Fetched, Error> {
    let revision_of = |kept: &Kept| kept.checkout.resolved.revision.clone();
    let is_known = known.is_some();
    let known = known.or_else(|| kept.as_ref().map(revision_of));
    let own = GitRepositoryRef {
        branch: Some(target.branch.clone()),
        ..Default::default()
    };
    let fetched = match fetch_reference(target, &own, known, context).await {
        Err(Error::Checkout(git_client::Error::FindReference { .. })) if target.switches() => (
            fetch_reference(target, &target.checkout, None, context).await?,
            true,
        ),
        fetched => (fetched?, false),
    };
    Ok(match (fetched, kept) {
        (((git_client::Outcome::Unchanged(_), stop), _), Some(mut kept)) if !is_known => {
            kept.checkout.pack = kept.checkout.pack.stopped_by(stop.clone());
            Fetched::Checkout {
                kept,
                stop,
                is_new: false,
            }
        }
        (((git_client::Outcome::Unchanged(resolved), _), _), kept) => Fetched::Unchanged {
            kept: kept.filter(|kept| revision_of(kept) == resolved.revision),
            revision: resolved.revision,
        },
        (((git_client::Outcome::Fetched(checkout), stop), is_new), kept) => Fetched::Checkout {
            kept: Kept {
                checkout,
                plain: kept.map(|kept| kept.plain).unwrap_or_default(),
            },
            stop,
            is_new,
        },
    })
}

/// Waits for work on other threads; it is stopped when time is up, or when no one waits for it any more.
async fn within<T>(
    limit: Duration,
    stop: &Stop,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let waiting = stop.when_dropped();
    tokio::pin!(work);
    let done = tokio::select! {
        done = &mut work => done,
        () = tokio::time::sleep(limit) => {
            stop.now();
            work.await
        }
    };
    waiting.disarm();
    done
}

async fn fetch_reference(
    target: &Target,
    reference: &GitRepositoryRef,
    unless_revision: Option<String>,
    context: &Context,
) -> Result<(git_client::Outcome, Stop), Error> {
    let stop = Stop::default();
    let request = git_client::Request {
        remote: target.remotes.main().map_err(target::Error::from)?,
        reference: Reference::from_fields(Fields {
            branch: reference.branch.as_deref(),
            tag: reference.tag.as_deref(),
            semver: reference.semver.as_deref(),
            name: reference.name.as_deref(),
            commit: reference.commit.as_deref(),
        }),
        sparse: None,
        unless_revision,
        directory: context.fetching.clone(),
        packs: git_pack::Settings {
            limits: git_pack::Limits::default(),
            memory: context.packs.clone(),
            cancelled: stop.flag().clone(),
        },
        deadline: Instant::now() + target.timeout,
        stop: stop.clone(),
    };
    let outcome = git_client::fetch(request).await.map_err(Error::Checkout)?;
    Ok((outcome, stop))
}

/// A commit that is not pushed yet.
struct Commit {
    id: ObjectId,
    message: String,
    objects: Vec<Object>,
}

/// What became of a checkout.
struct Made {
    base: ObjectId,
    /// Of the checkout.
    revision: String,
    /// None if nothing changes.
    commit: Option<Commit>,
    notes: Vec<String>,
}

/// Edits the files and makes the commit, on a blocking thread.
async fn make(
    object: ImageUpdateAutomation,
    mut kept: Kept,
    setters: Setters,
    key: Option<Key>,
) -> Result<(Made, Kept), Error> {
    let making = tokio::task::spawn_blocking(move || {
        let made = make_blocking(&object, &mut kept, &setters, key.as_ref())?;
        Ok((made, kept))
    });
    making.await.map_err(|_| Error::Abandoned)?
}

fn make_blocking(
    object: &ImageUpdateAutomation,
    kept: &mut Kept,
    setters: &Setters,
    key: Option<&Key>,
) -> Result<Made, Error> {
    let path = object
        .spec
        .update
        .as_ref()
        .and_then(|update| update.path.as_deref());
    let Kept { checkout, plain } = kept;
    let updated = update::update(&checkout.pack, path.unwrap_or_default(), setters, plain)?;
    let mut notes = updated.notes;
    if updated.problems > notes.len() {
        notes.push(format!("and {} more", updated.problems - notes.len()));
    }
    let base = checkout.resolved.commit;
    let commit = match &object.spec.git {
        Some(git) if !updated.contents.is_empty() => {
            let meta = &object.metadata;
            let data = message::Data {
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: meta.name.clone().unwrap_or_default(),
                files: updated.files,
                values: git.commit.message_template_values.clone(),
            };
            let message = message::render(git.commit.message_template.as_deref(), &data)?;
            let edited = git_client::edit::edit(&checkout.pack, updated.contents)?;
            let draft = Draft {
                tree: edited.tree,
                parents: vec![base],
                author: Person {
                    name: git.commit.author.name.clone().unwrap_or_default(),
                    email: git.commit.author.email.clone(),
                },
                time: Timestamp::now().as_second(),
                message: message.clone(),
            };
            let signature = key.map(|key| key.sign(&draft.unsigned())).transpose()?;
            let made = draft.commit(signature.as_deref());
            let made = made.map_err(git_client::edit::Error::from)?;
            let id = made.id();
            let mut objects = edited.objects;
            objects.push(made);
            Some(Commit { id, message, objects })
        }
        _ => None,
    };
    Ok(Made {
        base,
        revision: checkout.resolved.revision.clone(),
        commit,
        notes,
    })
}

async fn push_commit(target: &Target, commit: &Commit, from: Option<ObjectId>) -> Result<(), push::Error> {
    let step = Move {
        reference: format!("refs/heads/{}", target.branch),
        from,
        to: Some(commit.id),
    };
    push(target, step, commit.objects.clone()).await
}

/// Pushes the commit to the reference of the refspec, if that follows what is there.
async fn second_push(target: &Target, commit: &Commit, base: ObjectId) -> Result<(), Error> {
    let Some(reference) = &target.second else {
        return Ok(());
    };
    let step = |from| Move {
        reference: reference.clone(),
        from,
        to: Some(commit.id),
    };
    let objects = || commit.objects.clone();
    match push(target, step(None), objects()).await {
        Err(push::Error::Moved { found, .. }) if found.id() == Some(base) => {
            let pushed = push(target, step(Some(base)), objects()).await;
            pushed.map_err(Error::Push)
        }
        Err(push::Error::Moved { found, .. }) if found.id() == Some(commit.id) => Ok(()),
        pushed => pushed.map_err(Error::Push),
    }
}

async fn push(target: &Target, step: Move, objects: Vec<Object>) -> Result<(), push::Error> {
    let remote = target.remotes.main().map_err(|_| git_client::Error::Abandoned)?;
    let stop = Stop::default();
    let request = push::Request {
        remote,
        moves: vec![step],
        objects,
        options: target.options.clone(),
        deadline: Instant::now() + target.timeout,
        stop,
    };
    push::push(request).await.map(drop)
}

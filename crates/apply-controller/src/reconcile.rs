//! One reconcile of one Kustomization: observe, decide, then fetch, build, apply, prune, health, and record.
//!
//! `decide` and `status` hold the behaviour and are pure; the steps between carry out the plan. A crash between any two
//! steps loses only time: the inventory is recorded before what it describes is made.

pub mod build;
pub mod closure;
pub mod decide;
mod decrypt;
pub mod finalize;
pub mod handover;
pub mod health;
mod ignore;
pub mod observe;
pub mod prune;
pub mod record;
pub mod report;
pub mod status;
mod tree_fs;
pub mod variables;
pub mod why;

use std::sync::Arc;
use std::time::Duration;

use api::kustomize::{Kustomization, ResourceInventory, ResourceRef};
use api::meta::ValuesKind;
use artifact::client::{ArtifactRef, RemoteTree};
use controller_kit::ObjectKey;
use controller_kit::queue::Outcome as Next;
use jiff::Timestamp;
use kube_apply::{ApplyOptions, CommonMetadata, Inventory, Owner};
use manifest::ObjectId;

use crate::controller::Context;
use crate::error::Error;
use crate::memory::{self, Attempt};
use build::Output;
use decide::{Decision, Plan, Trigger};
use observe::Observed;
use record::Recorder;
use report::Reports;
use status::{Health, Report};
use variables::Variables;

/// A run whose objects are applied: all that is left is to wait for health and to record it.
#[derive(Debug, Clone)]
pub struct Run {
    /// What it carried out.
    pub plan: Plan,
    /// When it began.
    pub began: Timestamp,
    /// Digest of the built objects.
    pub checksum: String,
    /// What is managed now.
    pub inventory: ResourceInventory,
    /// Whether anything in the cluster was changed.
    pub changed: bool,
    /// What is told of it in the history.
    pub reports: Reports,
}

impl Run {
    /// Nobody asked for it, and it changed nothing.
    fn quiet(&self) -> bool {
        !self.changed
            && matches!(
                self.plan.trigger,
                Trigger::Interval | Trigger::Startup | Trigger::Variables | Trigger::HandOver
            )
    }
}

/// Reconciles the object that `key` names.
pub async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Next {
    let Some(observed) = observe::observe(&context.caches, &context.memory, &key) else {
        context.forget(&key);
        return Next::Done;
    };
    if !context.is_ours(&observed.object) {
        // It was moved to another shard, whose controller goes on with it.
        context.forget(&key);
        return Next::Done;
    }
    let mut recorder = Recorder::new(&context, Arc::clone(&observed.object));
    let decision = decide::decide(&observed, &context.policy, Timestamp::now());
    tracing::debug!(?decision, "decided");
    if !matches!(decision, Decision::Blocked { .. }) {
        context.memory.with(&key, |entry| entry.blocked_since = None);
    }
    health::cancel(&context, &key, &observed, &decision, &mut recorder).await;
    match decision {
        Decision::Finalize => finalize::finalize(&context, &key, &observed, recorder).await,
        Decision::Suspended => {
            context.memory.forget(&key);
            recorder
                .report(Report::Suspended)
                .await
                .map_or(Next::Backoff, |_| Next::Done)
        }
        Decision::Stalled { reason, message } => recorder.stalled(reason, message).await,
        Decision::Blocked { reason, message } => match still_patient(&context, &key) {
            Some(rest) => Next::After(rest),
            None => recorder.blocked(reason, message).await,
        },
        Decision::AwaitHealth => Next::Done,
        Decision::TellOfWait => health::tell(&context, &key, recorder).await,
        Decision::Rest { until } => Next::After(until_then(until)),
        Decision::Conclude(plan) => health::conclude(&context, &key, &observed, recorder, &plan).await,
        Decision::Run(plan) => run(&context, &key, &observed, recorder, plan).await,
    }
}

/// Says for how long an object that waits for another is not told of yet. Sources and dependencies that were created or
/// changed together with it are ready sooner, as a rule; a status and an event for that would only be noise.
fn still_patient(context: &Context, key: &ObjectKey) -> Option<Duration> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let now = Timestamp::now();
    let since = context
        .memory
        .with(key, |entry| *entry.blocked_since.get_or_insert(now));
    PATIENCE
        .checked_sub(now.duration_since(since).unsigned_abs())
        .filter(|rest| !rest.is_zero())
}

fn until_then(until: Timestamp) -> Duration {
    until
        .duration_since(Timestamp::now())
        .try_into()
        .unwrap_or(Duration::ZERO)
}

/// Carries out a plan, and records how it ended.
async fn run(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    plan: Plan,
) -> Next {
    let began = Timestamp::now();
    context.memory.with(key, |entry| {
        entry.drifted = false;
        entry.variables_touched = false;
        entry.prune_refused = None;
        entry.wait = None;
    });
    let timeout: Duration = observed.object.timeout().into();
    let steps = carry_out(context, key, observed, &mut recorder, &plan, began);
    let ended = match tokio::time::timeout(timeout, steps).await {
        Ok(ended) => ended,
        Err(_) => Err(Box::new(Failed::before_build(Error::TimedOut(timeout.into())))),
    };
    context.observe(key, Timestamp::now().duration_since(began).unsigned_abs());
    match ended {
        Ok(Ended::Done { run, health }) => {
            conclude_success(context, key, observed, recorder, *run, health).await
        }
        Ok(Ended::Waiting) => Next::Done,
        Err(failed) => conclude_failure(context, key, observed, recorder, &plan, *failed, began).await,
    }
}

/// How the steps ended, if none failed.
enum Ended {
    Done { run: Box<Run>, health: Health },
    Waiting,
}

/// A step that failed, and what had been done before it.
pub(crate) struct Failed {
    /// What failed.
    pub error: Error,
    /// Digest of the built objects, if they were built.
    pub checksum: Option<String>,
    /// What is managed now, if that changed.
    pub inventory: Option<ResourceInventory>,
}

impl Failed {
    fn before_build(error: Error) -> Self {
        Self {
            error,
            checksum: None,
            inventory: None,
        }
    }
}

impl From<Error> for Box<Failed> {
    fn from(error: Error) -> Self {
        Box::new(Failed::before_build(error))
    }
}

async fn carry_out(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    recorder: &mut Recorder<'_>,
    plan: &Plan,
    began: Timestamp,
) -> Result<Ended, Box<Failed>> {
    recorder.ensure_finalizer().await?;
    let target = context.targets.of(&observed.object).await.map_err(Error::from)?;
    let tree = Arc::new(fetch(context, plan).await?);
    let variables = Variables::read(&context.client, &key.namespace, &observed.object).await?;
    let keys = context
        .decryption
        .keys_of(&observed.object)
        .await
        .map_err(Error::from)?;
    let before = context.memory.with(key, |entry| entry.applied.clone());
    // Elsewhere, or by somebody else, nothing that is remembered is true: a tenant must be allowed what it takes over.
    let before = before.filter(|applied| applied.place == target.place);
    let keys_digest = keys.as_ref().map(|keys| keys.digest);
    let with_these_keys = before.as_ref().filter(|applied| applied.keys == keys_digest);
    if let Some(run) = moved_on(observed, with_these_keys, &tree, &variables, plan, began).await? {
        return Ok(Ended::Done {
            run: Box::new(run),
            health: Health::Unchanged,
        });
    }
    let folder = folder(&tree, &observed.object, plan).await?;
    let spec = Arc::new(observed.object.spec.clone());
    let build = build::build(&context.builds, &tree, &folder, &spec, plan, keys.as_ref()).await?;
    drop(tree);
    let built = build.result.clone().map_err(Error::Build)?;
    let values = variables.digest().copied();
    let references = variables::references(&observed.object);
    // What may hold a secret is told without values.
    let has_secrets = keys.is_some() || references.iter().any(|r| r.kind == ValuesKind::Secret);
    let strict = context.policy.strict_substitutions;
    let output = build::output(built, &spec, variables, strict, keys.as_ref()).await;
    let Output {
        objects,
        checksum,
        hidden,
    } = output.map_err(|error| Error::Build(Arc::new(error)))?;

    let owner = Owner {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    };
    let failed = |error, inventory| {
        Box::new(Failed {
            error,
            checksum: Some(checksum.clone()),
            inventory,
        })
    };
    let common = common_metadata(&observed.object);
    let prepared = target.engine.prepare(&owner, objects, &common).await;
    let prepared = prepared.map_err(|error| failed(hidden.masked(error), None))?;
    let prepared = match ignore::rules(&observed.object) {
        Ok(rules) => prepared.ignoring(&rules),
        // Stalled, or it would not run.
        Err(_) => prepared,
    };
    // A value that came from a Secret is nobody's business, and may be anywhere.
    let prepared = prepared.confidential(|_| has_secrets);
    let new = prepared.inventory();
    if plan.trigger == Trigger::Requested || before.is_none() {
        // Who asks for a reconcile wants everything applied, whatever is remembered of it.
        new.iter()
            .for_each(|(id, _)| target.engine.managed().forget_object(id));
    }
    let old = managed_before(&observed.object);
    let all = recorded(&old.union(&new));
    recorder
        .applying(plan, all.clone())
        .await
        .map_err(|e| failed(e, None))?;

    let spec = &observed.object.spec;
    let options = ApplyOptions {
        force: spec.force,
        want_live: spec.wait,
        want_changes: true,
        ..ApplyOptions::default()
    };
    let applied = target.engine.apply(prepared, &options).await.map_err(|error| {
        // What nobody was allowed to make is not managed: it would be deleted later, in vain.
        let managed = if error.wrote_nothing() {
            recorded(&old)
        } else {
            all.clone()
        };
        failed(hidden.masked(error), Some(managed))
    })?;
    let changes = report::changes(&applied);
    recorder.changes(plan, &applied, changes.as_deref());
    let inventory = match prune::prune(context, &target, observed, recorder, plan, &old, &new).await {
        Ok(inventory) => inventory,
        Err((error, inventory)) => return Err(failed(error, Some(inventory))),
    };
    let changed = applied.changed().next().is_some();
    let run = Run {
        plan: plan.clone(),
        began,
        checksum,
        inventory,
        changed,
        reports: changes
            .into_iter()
            .map(|text| (report::CHANGES.to_owned(), text))
            .collect(),
    };
    context.memory.with(key, |entry| {
        let generation = plan.inputs.generation;
        entry.applied = Some(memory::Applied {
            generation,
            closure: Arc::clone(&build.closure),
            variables: values,
            keys: keys_digest,
            checksum: run.checksum.clone(),
            place: target.place.clone(),
        });
    });
    health::begin(context, &target, key, observed, run, applied).await
}

async fn fetch(context: &Context, plan: &Plan) -> Result<RemoteTree, Error> {
    let reference = ArtifactRef {
        url: plan.url.clone(),
        digest: plan.inputs.digest.clone(),
        revision: plan.inputs.revision.clone(),
    };
    context
        .artifacts
        .open(&reference)
        .await
        .map_err(|source| fetch_error(plan, source))
}

fn fetch_error(plan: &Plan, source: artifact::client::Error) -> Error {
    Error::FetchArtifact {
        revision: plan.inputs.revision.clone(),
        source,
    }
}

/// A new revision that touched nothing which the last build looked at, or a ConfigMap or Secret that was touched and
/// holds the same variables: the revision moves on, nothing else happens.
async fn moved_on(
    observed: &Observed,
    applied: Option<&memory::Applied>,
    tree: &RemoteTree,
    variables: &Variables,
    plan: &Plan,
    began: Timestamp,
) -> Result<Option<Run>, Error> {
    let succeeded = observed
        .attempt
        .as_ref()
        .is_some_and(|a| a.outcome == memory::Outcome::Succeeded);
    let Some(applied) = applied.filter(|a| succeeded && a.generation == plan.inputs.generation) else {
        return Ok(None);
    };
    let may_be_same = matches!(plan.trigger, Trigger::Revision | Trigger::Variables);
    if !may_be_same || observed.drifted || applied.variables.as_ref() != variables.digest() {
        return Ok(None);
    }
    let same = applied
        .closure
        .holds_in(tree)
        .await
        .map_err(|source| fetch_error(plan, source))?;
    Ok(same.then(|| Run {
        plan: plan.clone(),
        began,
        checksum: applied.checksum.clone(),
        inventory: recorded(&managed_before(&observed.object)),
        changed: false,
        reports: Reports::new(),
    }))
}

/// Finds `spec.path` in the tree.
async fn folder(tree: &RemoteTree, object: &Kustomization, plan: &Plan) -> Result<String, Error> {
    let path = object.spec.path.as_deref().unwrap_or_default();
    let folder = flux_build::path::clamp(path);
    let found = match folder.as_str() {
        "" => true,
        folder => {
            let entry = tree
                .entry(folder)
                .await
                .map_err(|source| fetch_error(plan, source))?;
            entry.is_some_and(|entry| entry.kind == artifact::tree::EntryKind::Directory)
        }
    };
    if !found {
        return Err(Error::PathNotFound {
            path: path.to_owned(),
            revision: plan.inputs.revision.clone(),
        });
    }
    Ok(folder)
}

/// Reads the inventory of the object's status. An entry that cannot be read is left out: it names no object.
pub fn managed_before(object: &Kustomization) -> Inventory {
    let inventory = object
        .status
        .as_ref()
        .and_then(|status| status.inventory.as_ref());
    let entries = inventory.into_iter().flat_map(|inventory| &inventory.entries);
    let read = entries.filter_map(|entry| {
        Some((
            ObjectId::parse_inventory_id(&entry.id).ok()?,
            entry.version.clone(),
        ))
    });
    read.collect()
}

fn recorded(inventory: &Inventory) -> ResourceInventory {
    let entries = inventory
        .to_entries()
        .into_iter()
        .map(|(id, version)| ResourceRef { id, version });
    ResourceInventory {
        entries: entries.collect(),
    }
}

fn common_metadata(object: &Kustomization) -> CommonMetadata {
    let common = object.spec.common_metadata.clone().unwrap_or_default();
    CommonMetadata {
        labels: common.labels,
        annotations: common.annotations,
    }
}

/// Records a success, and when the next run is due.
async fn conclude_success(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    run: Run,
    health: Health,
) -> Next {
    let interval = context.jittered(observed.object.spec.interval.into());
    if recorder
        .succeeded(&run, health, observed.object.spec.interval.into())
        .await
        .is_err()
    {
        // The status says something else: its inventory may still name what was pruned, its Ready that it is under way.
        // What is remembered must not stand in for a run that puts it right.
        context.memory.with(key, |entry| {
            entry.attempt = None;
            entry.applied = None;
        });
        return Next::Backoff;
    }
    remember(
        context,
        key,
        run.plan.inputs,
        memory::Outcome::Succeeded,
        interval,
    );
    // What waits for its heirs is looked at again before that.
    let waits = context.memory.with(key, |entry| entry.handing_over.clone());
    Next::After(waits.map_or(interval, |waits| match waits.moved {
        true => Duration::ZERO,
        false => until_then(waits.until()).min(interval),
    }))
}

/// Records a failure, and when it is tried again.
async fn conclude_failure(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    plan: &Plan,
    failed: Failed,
    began: Timestamp,
) -> Next {
    let retry: Duration = observed.object.retry_interval().into();
    remember(context, key, plan.inputs.clone(), memory::Outcome::Failed, retry);
    match recorder.failed_run(plan, &failed, began).await {
        Ok(()) => Next::After(retry),
        Err(_) => Next::Backoff,
    }
}

fn remember(
    context: &Context,
    key: &ObjectKey,
    inputs: memory::Inputs,
    outcome: memory::Outcome,
    interval: Duration,
) {
    let attempt = Attempt {
        inputs,
        outcome,
        at: Timestamp::now(),
        interval,
    };
    context.memory.with(key, |entry| entry.attempt = Some(attempt));
}

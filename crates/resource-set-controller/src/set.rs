//! One reconcile of one ResourceSet: inputs, dependencies, templates, then apply, health and prune, step by step.
//!
//! What the spec names in the cluster is read as the account that applies. The inventory is recorded before what it describes is made.

mod dependencies;
mod environments;
mod finalize;
mod frozen;
pub(crate) mod inputs;
mod references;
mod run;
mod status;

use std::sync::Arc;
use std::time::Duration;

use api::flux_operator::{FINALIZER, RECONCILE_EVERY, RECONCILE_TIMEOUT, ResourceSet, ResourceSetStatus};
use api::meta::{StatusObject as _, reasons};
use change_window::freeze::InForce;
use cluster_access::targets::{self, Target};
use controller_kit::events::Severity;
use controller_kit::queue::{Outcome, Slot};
use controller_kit::record::{Unrecorded, begun};
use controller_kit::{ObjectKey, conditions, finalizer, pace};
use jiff::Timestamp;
use kube_apply::{ApplyError, ObjectError};
use manifest::ObjectId;
use reconcile_kit::base::{owner, placement};
use resource_set::environment::Request;
use resource_set::{Export, Objects};
use serde_json::Value;
use tokio::sync::Notify;

use self::environments::Environments;
use crate::context::Context;
use crate::timing::{NoDuration, annotated};

const INTERVAL: Duration = Duration::from_mins(60);
const TIMEOUT: Duration = Duration::from_mins(5);
/// When dependencies are looked at again: they are of any kind, and not watched.
const DEPENDENCIES: Duration = Duration::from_secs(5);

/// Why a ResourceSet is not applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An annotation is no duration.
    #[error(transparent)]
    Annotation(#[from] NoDuration),
    /// The inputs cannot be combined.
    #[error(transparent)]
    Combine(#[from] resource_set::inputs::Error),
    /// A selector of providers.
    #[error("spec.inputsFrom: {0}")]
    Selector(String),
    /// A provider that has not exported anything yet, or is not there.
    #[error("{0}")]
    Provider(String),
    /// An object that must be there first.
    #[error("{0}")]
    Dependency(String),
    /// An expression cannot be read.
    #[error("the readyExpr of {0} cannot be read: {1}")]
    Expression(String, String),
    /// The templates.
    #[error(transparent)]
    Render(#[from] resource_set::render::Error),
    /// What annotations of objects name.
    #[error(transparent)]
    References(#[from] resource_set::references::Error),
    /// A ConfigMap or Secret cannot be read as the account.
    #[error("failed to read {reference}: {problem}")]
    Read {
        /// Which.
        reference: String,
        /// In the words of the API server.
        problem: String,
    },
    /// The account, or the cluster.
    #[error(transparent)]
    Target(#[from] targets::Error),
    /// Images do not meet a policy.
    #[error(transparent)]
    Images(#[from] verification_policy::images::Error),
    /// The apply.
    #[error("{within}{}", error.to_string())]
    Apply {
        /// The step, if there are steps.
        within: String,
        /// What was refused.
        error: Box<ApplyError>,
    },
    /// The prune.
    #[error("failed to delete {} objects:\n{}", .0.len(), kube_apply::summarize(.0).join("\n"))]
    Prune(Vec<ObjectError>),
    /// The health of objects.
    #[error("{within}health check failed after {after}: {report}")]
    Health {
        /// The step, if there are steps.
        within: String,
        /// How long it was waited for.
        after: api::meta::Duration,
        /// Which objects.
        report: Box<kube_health::Report>,
    },
    /// A step of the controller broke off.
    #[error("failed to finish the templates")]
    Abandoned,
    /// The API server did not take the status.
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
}

impl Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Combine(_)
            | Self::Render(_)
            | Self::References(_)
            | Self::Selector(_)
            | Self::Annotation(_) => reasons::BUILD_FAILED,
            Self::Read { .. } | Self::Abandoned => reasons::BUILD_FAILED,
            Self::Provider(_) | Self::Dependency(_) => reasons::DEPENDENCY_NOT_READY,
            Self::Expression(..) => reasons::INVALID_CEL_EXPRESSION,
            Self::Images(_) => reasons::IMAGE_VERIFICATION_FAILED,
            Self::Health { .. } => reasons::HEALTH_CHECK_FAILED,
            Self::Prune(_) => reasons::PRUNE_FAILED,
            Self::Target(_) | Self::Apply { .. } | Self::Unrecorded(_) => reasons::RECONCILIATION_FAILED,
        }
    }

    /// Returns whether only another spec, or other inputs, help.
    fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Combine(_) | Self::Selector(_) | Self::Expression(..) | Self::Annotation(_)
        )
    }
}

/// How far a run came.
enum Ended {
    /// All is applied, and healthy if that was asked for.
    Applied(run::Applied),
    /// A newer trigger ended the wait for health.
    Interrupted,
    /// Nothing was applied since a Freeze is in force. True if something waits for its end.
    Frozen(InForce, bool),
}

/// Applies what is to be applied.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>, slot: Slot) -> Outcome {
    let (began, kind) = (tokio::time::Instant::now(), "ResourceSet");
    let writer = &context.sets;
    // Before the object is read: what changes from here on ends a wait.
    let interrupt = context.memory.fresh_interrupt(&key);
    let Some(object) = writer.cache.get(&key.object_ref()) else {
        context.memory.forget(&key);
        context.targets.forget(&owner(&key));
        writer.metrics.forget_object(kind, &key.namespace, &key.name);
        return Outcome::Done;
    };
    if !context.is_ours(&*object) {
        return Outcome::Done;
    }
    let ended = async {
        if object.metadata.deletion_timestamp.is_some() {
            return finalize::finalize(&key, object, &context, &slot).await;
        }
        let added = finalizer::add_named(&context.client, &*object, FINALIZER, writer.manager).await;
        let object = match added.map_err(Unrecorded::from)? {
            Some(changed) => {
                writer.cache.remember(changed.clone());
                Arc::new(changed)
            }
            None => object,
        };
        if object.suspended() {
            return Ok(Outcome::Done);
        }
        follow(&key, object, &context, (&slot, interrupt)).await
    };
    let ended: Result<Outcome, Unrecorded> = ended.await;
    writer
        .metrics
        .observe_reconcile(kind, &key.namespace, &key.name, began.elapsed());
    ended.unwrap_or_else(|error| {
        tracing::error!(
            error = error_chain::chain(&error),
            "failed to record the reconcile"
        );
        Outcome::Backoff
    })
}

async fn follow(
    key: &ObjectKey,
    object: Arc<ResourceSet>,
    context: &Context,
    (slot, interrupt): (&Slot, Arc<Notify>),
) -> Result<Outcome, Unrecorded> {
    let began = Timestamp::now();
    let mut pass = Pass {
        key,
        context,
        slot,
        next: begun(&*object),
        object,
        revision: None,
    };
    let result = pass.run(interrupt).await;
    let took = Timestamp::now().duration_since(began).unsigned_abs();
    let interval = annotated(&*pass.object, RECONCILE_EVERY, INTERVAL).unwrap_or(INTERVAL);
    match result {
        Ok(Ended::Interrupted) => Ok(Outcome::After(Duration::from_millis(1))),
        Ok(Ended::Frozen(freeze, waits)) => {
            let again = pace::after(interval, context.jitter_percentage);
            frozen::record(&mut pass, &freeze, waits, Timestamp::now()).await?;
            Ok(pace::by(again, freeze.until, Timestamp::now()))
        }
        Ok(Ended::Applied(applied)) => {
            context.memory.applied(key, &applied.revision);
            let message = status::applied_message(&pass.next, &applied);
            let is_news = applied.changed
                || !conditions::is_ready(pass.object.conditions())
                || pass
                    .object
                    .status
                    .as_ref()
                    .and_then(|status| status.last_applied_revision.as_ref())
                    != Some(&applied.revision);
            status::succeeded(
                &mut pass.next,
                &pass.object,
                &applied,
                &message,
                took,
                Timestamp::now(),
            );
            let object = context.sets.write(Arc::clone(&pass.object), &pass.next).await?;
            if is_news {
                context.sets.publish(
                    &object,
                    Severity::Info,
                    reasons::RECONCILIATION_SUCCEEDED,
                    &message,
                );
            }
            Ok(pace::after(interval, context.jitter_percentage))
        }
        Err(Error::Unrecorded(error)) => Err(error),
        Err(error) => {
            let (reason, message) = (error.reason(), status::message(&error));
            let known = conditions::get(pass.object.conditions(), api::meta::condition_types::READY);
            let is_news =
                known.is_none_or(|known| (known.reason.as_str(), &known.message) != (reason, &message));
            let failed = status::Failure {
                reason,
                message: &message,
                is_final: error.is_final(),
                revision: pass.revision.take(),
                took,
            };
            status::failed(&mut pass.next, &pass.object, failed, Timestamp::now());
            let object = context.sets.write(Arc::clone(&pass.object), &pass.next).await?;
            let waits = reason == reasons::DEPENDENCY_NOT_READY;
            if !waits {
                context.memory.failed(key, &message);
                context.wake_policies(key);
            }
            if is_news {
                let severity = if waits { Severity::Info } else { Severity::Error };
                context.sets.publish(&object, severity, reason, &message);
            }
            Ok(match error {
                Error::Dependency(_) => Outcome::After(DEPENDENCIES),
                // A watch tells when it has exported something.
                Error::Provider(_) => Outcome::Done,
                error if error.is_final() => Outcome::Terminal,
                _ => Outcome::Backoff,
            })
        }
    }
}

/// One pass over one ResourceSet.
struct Pass<'a> {
    key: &'a ObjectKey,
    context: &'a Context,
    slot: &'a Slot,
    object: Arc<ResourceSet>,
    /// The status as it will be.
    next: ResourceSetStatus,
    /// Digest of what was rendered, once it is.
    revision: Option<String>,
}

impl Pass<'_> {
    async fn run(&mut self, interrupt: Arc<Notify>) -> Result<Ended, Error> {
        annotated(&*self.object, RECONCILE_EVERY, INTERVAL)?;
        let timeout = annotated(&*self.object, RECONCILE_TIMEOUT, TIMEOUT)?;
        let mut exports = inputs::exports(&self.object, self.context)?;
        inputs::hold_back(&mut exports, self.key, self.context)?;
        self.context.memory.begin(self.key, requests(&exports));
        let target = self.context.targets.target_of(placement(&*self.object)).await?;
        dependencies::check(&self.object, &target).await?;
        let (object, namespace) = (Arc::clone(&self.object), self.key.namespace.clone());
        let rendered = tokio::task::spawn_blocking(move || {
            let sets = resource_set::combine(object.spec.input_strategy.as_ref(), &exports)?;
            let steps = resource_set::render(&object.spec, &sets, &namespace)?;
            let environments = Environments::new(&exports, &sets, &steps);
            Ok::<_, Error>((steps, environments))
        });
        let (mut steps, environments) = rendered.await.map_err(|_| Error::Abandoned)??;
        let confidential = references::fill(self, &target, &mut steps).await?;
        self.verify_images(&mut steps).await?;
        let revision = status::revision(&steps);
        self.revision = Some(revision.clone());
        if let Some(ended) = frozen::check(self, &revision, Timestamp::now()) {
            return Ok(ended);
        }
        let run = run::Run {
            target: &target,
            owner: owner(self.key),
            revision,
            confidential,
            environments,
            timeout,
            interrupt,
        };
        run.carry_out(self, steps).await
    }

    /// Holds the images against the policies of the cluster, and names them by digests where those want it.
    async fn verify_images(&self, steps: &mut [Objects]) -> Result<(), Error> {
        let from = &self.key.namespace;
        let objects = steps.iter().flat_map(|step| &step.objects);
        let judged = self.context.images.judge(from, from, objects).await?;
        let objects = steps.iter_mut().flat_map(|step| &mut step.objects);
        objects.for_each(|object| {
            judged.pin(object);
        });
        if self.context.memory.warned(self.key, &judged.warnings) {
            let message = judged.warnings.join("\n");
            let (sets, reason) = (&self.context.sets, reasons::IMAGE_VERIFICATION_FAILED);
            sets.publish(&self.object, Severity::Error, reason, &message);
        }
        Ok(())
    }
}

/// The pull requests of all providers.
fn requests(exports: &[Export]) -> Vec<Request> {
    let exports = exports.iter().filter(|export| export.is_of_requests);
    let requests = exports.flat_map(|export| {
        let sets = export.sets.iter();
        sets.filter_map(|set| Request::of(&export.name, set))
    });
    requests.collect()
}

/// Reads an object as the account that applies; None if there is none.
async fn read(target: &Target, id: &ObjectId, version: &str) -> Result<Option<Value>, String> {
    let at = target
        .engine
        .address(id, version)
        .await
        .map_err(|failure| failure.to_string())?;
    let Some(at) = at else {
        return Ok(None);
    };
    target
        .engine
        .read_one(&at)
        .await
        .map_err(|failure| failure.to_string())
}

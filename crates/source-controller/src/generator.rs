//! `ArtifactGenerator`: artifacts that are put together from the files of other sources.
//!
//! The same steps as for a source, and steps of its own: validate, observe, fetch, build, apply, status, record. One object
//! gives many artifacts, which are objects of their own (ExternalArtifact), so it is no [`Kind`](crate::kind::Kind).
//! What is in the store is never copied: an artifact is made of digests.

mod apply;
mod build;
mod context;
mod copy;
mod doublestar;
mod fetch;
mod filename;
mod merge;
mod names;
mod observe;
mod pattern;
mod source;
mod stage;
mod status;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::meta::StatusObject as _;
use api::source_extensions::{ArtifactGenerator, ExternalArtifactReference, FINALIZER, InputReference};
use artifact::store::{self};
use controller_kit::events::Severity;
use controller_kit::jitter::{jitter, random};
use controller_kit::queue::Outcome;
use controller_kit::{ObjectKey, conditions, finalizer};
use error_chain::chain;
use jiff::Timestamp;
use kube::ResourceExt as _;
use tokio::time::Instant;
use transport::received;

use self::apply::Desired;
use self::build::Built;
use self::observe::Input;
use self::status::{Conclusion, Ending};
use crate::reconcile::status::{Event, Next};
use context::Remembered;

pub(crate) use context::{Context, MANAGER, Memory};

/// The kind, as in metrics.
const NAME: &str = "ArtifactGenerator";
/// The safety net, as in source-watcher: everything that matters is watched.
const INTERVAL: Duration = Duration::from_secs(3600);
/// An attempt that is over before needs no status of its own in between.
const PATIENCE: Duration = Duration::from_secs(2);

/// Brings the artifacts and the status of a generator up to date.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let began = Instant::now();
    let Some(object) = context.generators.get(&key.object_ref()) else {
        context.metrics.forget_object(NAME, &key.namespace, &key.name);
        context.memory.forget(&key);
        return Outcome::Done;
    };
    let outcome = if object.metadata.deletion_timestamp.is_some() {
        finalize(&object, &key, &context).await
    } else {
        update(object, &key, &context).await
    };
    context
        .metrics
        .observe_reconcile(NAME, &key.namespace, &key.name, began.elapsed());
    outcome.unwrap_or_else(|error| {
        if matches!(&error, Error::Status(error) if error.is_not_found()) {
            return Outcome::Done;
        }
        tracing::error!(error = chain(&error), "failed to record the reconcile");
        Outcome::Backoff
    })
}

/// Returns whether a generator is made of this source, or makes it.
pub(crate) fn concerns(generator: &ArtifactGenerator, source: &store::ObjectKey) -> bool {
    let namespace = generator.namespace().unwrap_or_default();
    let is_input = |input: &InputReference| {
        let other = input.namespace.as_deref().unwrap_or(&namespace);
        *source == store::ObjectKey::new(input.kind.name(), other, &input.name)
    };
    let inventory = generator.status.iter().flat_map(|status| &status.inventory);
    let is_output = |output: &ExternalArtifactReference| {
        *source == store::ObjectKey::new(build::KIND, &namespace, &output.name)
    };
    generator.spec.sources.iter().any(is_input) || inventory.into_iter().any(is_output)
}

/// The API server did not take what was concluded.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Status(#[from] controller_kit::status::Error),
    #[error(transparent)]
    Finalizer(#[from] finalizer::Error),
    #[error(transparent)]
    Delete(#[from] apply::Error),
    #[error("failed to remove the artifacts of a deleted object")]
    Store(#[source] store::Error),
    #[error("failed to finish the work on the artifacts")]
    Abandoned,
}

async fn update(
    object: Arc<ArtifactGenerator>,
    key: &ObjectKey,
    context: &Arc<Context>,
) -> Result<Outcome, Error> {
    let mut object = match finalizer::add_named(&context.client, &*object, FINALIZER, MANAGER).await? {
        Some(changed) => {
            context.generators.remember(changed.clone());
            Arc::new(changed)
        }
        None => object,
    };
    if object.suspended() {
        let status = status::suspended(&object, Timestamp::now());
        write_status(object, &status, context).await?;
        return Ok(Outcome::Done);
    }
    let spec = object.clone();
    let work = attempt(&spec, key, context);
    tokio::pin!(work);
    let mut patience = Some(Instant::now() + PATIENCE);
    let ending = loop {
        tokio::select! {
            biased;
            ending = &mut work => break ending?,
            () = context.shutdown.cancelled() => return Ok(Outcome::Done),
            () = tokio::time::sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => {
                patience = None;
                let status = status::in_progress(&object, Timestamp::now());
                object = write_status(object, &status, context).await?;
            }
        }
    };
    let Conclusion { status, events, next } = status::conclude(&object, ending, Timestamp::now());
    let object = write_status(object, &status, context).await?;
    for event in events {
        publish(&object, event, context);
    }
    Ok(match next {
        Next::AtInterval => Outcome::After(jitter(INTERVAL, context.jitter_percentage, random())),
        Next::AfterBackoff => Outcome::Backoff,
        Next::AfterPause(pause) => Outcome::After(jitter(pause, context.jitter_percentage, random())),
        Next::WhenChanged => Outcome::Done,
    })
}

/// Validate, observe, fetch, build, apply.
async fn attempt(object: &ArtifactGenerator, key: &ObjectKey, context: &Context) -> Result<Ending, Error> {
    let allowed = validate::validate(&object.spec, &key.namespace, context.no_cross_namespace_refs);
    if let Err(refusal) = allowed {
        return Ok(Ending::Refused(refusal));
    }
    let inputs = match observe::observe(&object.spec, &key.namespace, context).await {
        Ok(inputs) => inputs,
        Err(error) if error.is_denied() => {
            return Ok(Ending::Denied {
                message: chain(&error),
            });
        }
        Err(error) => {
            return Ok(Ending::NoSource {
                message: format!("get sources failed: {}", chain(&error)),
                again: !error.is_awaited(),
            });
        }
    };
    let sources_digest = observe::digest(&inputs);
    if is_up_to_date(object, key, &sources_digest, context) {
        return Ok(Ending::UpToDate);
    }
    let downloading = fetch::download(&inputs, &context.fetcher);
    let downloads = match received::counting(context.received.clone(), downloading).await {
        Ok(downloads) => downloads,
        Err(error) => return Ok(not_fetched(&error)),
    };
    let built = match build_all(object, key, inputs, downloads, context).await? {
        Ok(built) => built,
        Err(ending) => return Ok(ending),
    };
    apply_all(object, key, built, sources_digest, context).await
}

fn not_fetched(error: &fetch::Error) -> Ending {
    Ending::NoSource {
        message: format!("fetch sources failed: {}", chain(error)),
        again: true,
    }
}

/// Returns whether what was made last is still there, of the same sources, by the same spec.
fn is_up_to_date(
    object: &ArtifactGenerator,
    key: &ObjectKey,
    sources_digest: &str,
    context: &Context,
) -> bool {
    let Some(last) = context.memory.get(key) else {
        return false;
    };
    let holds = |desired: &Desired| {
        let object = ObjectKey::new(&*key.namespace, &*desired.name).object_ref();
        let record = context.store.by_path(&desired.artifact.path);
        record.is_some_and(|record| record.digest.to_string() == desired.artifact.digest)
            && context
                .artifacts
                .get(&object)
                .is_some_and(|object| desired.holds_for(&object, false))
    };
    let wanted: Vec<&str> = last.desired.iter().map(|desired| &*desired.name).collect();
    last.uid == object.uid()
        && last.generation == object.metadata.generation
        && last.sources_digest == sources_digest
        && conditions::is_ready(object.conditions())
        && last.desired.iter().all(holds)
        && apply::unwanted(object, &wanted, context).is_empty()
}

/// Builds on a blocking thread. The inner error is for the status.
async fn build_all(
    object: &ArtifactGenerator,
    key: &ObjectKey,
    inputs: BTreeMap<String, Input>,
    downloads: fetch::Downloads,
    context: &Context,
) -> Result<Result<Vec<Built>, Ending>, Error> {
    let foreign = apply::foreign(object, context);
    let (spec, namespace, store) = (object.spec.clone(), key.namespace.clone(), context.store.clone());
    let work = tokio::task::spawn_blocking(move || {
        // Holds what is unpacked until all artifacts are built.
        let mut unpacked = store.ingest();
        let sources =
            fetch::open(&inputs, downloads, &store, &mut unpacked).map_err(|error| not_fetched(&error))?;
        build::build(&namespace, &spec, &foreign, &inputs, &sources, &store).map_err(|error| {
            let stalled = matches!(&error, build::Error::Expand(error) if error.is_terminal());
            Ending::NotBuilt {
                message: chain(&error),
                stalled,
                again: !error.is_certain(),
            }
        })
    });
    work.await.map_err(|_| Error::Abandoned)
}

/// Makes the cluster's ExternalArtifacts those that were built, and deletes the others of this generator.
async fn apply_all(
    object: &ArtifactGenerator,
    key: &ObjectKey,
    built: Vec<Built>,
    sources_digest: String,
    context: &Context,
) -> Result<Ending, Error> {
    let last = context.memory.get(key);
    let (mut all, mut inventory) = (Vec::new(), Vec::new());
    for Built { labels, record } in built {
        let artifact = context.address.artifact(&record);
        let desired = Desired::new(object, &record.name, &labels, artifact);
        let is_known = last.as_ref().is_some_and(|last| last.desired.contains(&desired));
        match apply::apply(object, &desired, is_known, context).await {
            Ok(changed) if changed => {
                let (kind, namespace, name) = (build::KIND, &key.namespace, &record.name);
                let revision = &record.revision;
                tracing::info!("{kind}/{namespace}/{name} reconciled with revision {revision}");
            }
            Ok(_) => {}
            Err(error) => {
                let message = format!("{} reconcile failed: {}", record.name, chain(&error));
                return Ok(Ending::NotApplied { message });
            }
        }
        inventory.push(ExternalArtifactReference {
            name: record.name.clone(),
            namespace: key.namespace.clone(),
            digest: record.digest.to_string(),
            filename: record.path.rsplit('/').next().unwrap_or_default().to_owned(),
        });
        all.push(desired);
    }
    let wanted: Vec<&str> = all.iter().map(|desired| &*desired.name).collect();
    for name in apply::unwanted(object, &wanted, context) {
        remove(object, key, &name, context).await?;
    }
    let remembered = Remembered {
        uid: object.uid(),
        generation: object.metadata.generation,
        sources_digest: sources_digest.clone(),
        desired: Arc::new(all),
    };
    context.memory.set(key.clone(), remembered);
    Ok(Ending::Done {
        inventory,
        sources_digest,
    })
}

/// Deletes an ExternalArtifact of this generator and what is stored for it.
async fn remove(
    object: &ArtifactGenerator,
    key: &ObjectKey,
    name: &str,
    context: &Context,
) -> Result<(), Error> {
    if !apply::delete(object, name, context).await? {
        return Ok(());
    }
    let (store, namespace, removed) = (context.store.clone(), key.namespace.clone(), name.to_owned());
    let work = tokio::task::spawn_blocking(move || store.remove_object(build::KIND, &namespace, &removed));
    work.await.map_err(|_| Error::Abandoned)?.map_err(Error::Store)?;
    tracing::info!("{}/{}/{name} deleted", build::KIND, key.namespace);
    Ok(())
}

/// Deletes what a generator made, and then lets it go.
async fn finalize(object: &ArtifactGenerator, key: &ObjectKey, context: &Context) -> Result<Outcome, Error> {
    if !finalizer::has(object, FINALIZER) {
        return Ok(Outcome::Done);
    }
    for name in apply::unwanted(object, &[], context) {
        remove(object, key, &name, context).await?;
    }
    finalizer::remove_named(&context.client, object, FINALIZER, MANAGER).await?;
    context.memory.forget(key);
    Ok(Outcome::Done)
}

async fn write_status(
    object: Arc<ArtifactGenerator>,
    status: &api::source_extensions::ArtifactGeneratorStatus,
    context: &Context,
) -> Result<Arc<ArtifactGenerator>, Error> {
    let patched = controller_kit::status::patch_status(&context.client, &*object, status, MANAGER).await?;
    Ok(match patched {
        Some(answer) => {
            context.generators.remember(answer.clone());
            Arc::new(answer)
        }
        None => object,
    })
}

fn publish(object: &ArtifactGenerator, event: Event, context: &Context) {
    let Event {
        severity,
        reason,
        message,
        annotations,
    } = event;
    match severity {
        Severity::Error => tracing::error!(reason, error = message, "failed to reconcile"),
        Severity::Trace | Severity::Info => tracing::info!("{message}"),
    }
    context
        .recorder
        .publish(object, severity, &reason, &message, annotations);
}

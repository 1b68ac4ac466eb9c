//! One reconcile of one object of any kind: observe, decide, fetch, verify, store, status, record.
//!
//! In: a key from the queue. Out: when to look again. A crash between any two steps loses only time: what is fetched
//! is stored under its digest, what is stored is found again by the next run, and the status is written last.

mod context;
pub(crate) mod decide;
pub(crate) mod fetch;
pub(crate) mod observe;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod secrets_read;
pub(crate) mod status;
pub(crate) mod store;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use controller_kit::events::Severity;
use controller_kit::jitter::{jitter, random};
use controller_kit::queue::Outcome;
use controller_kit::{ObjectKey, finalizer};
use jiff::Timestamp;
use kube::core::object::HasStatus;
use tokio::time::Instant;
use transport::received;
use verification_policy::sources::Origin;

use self::decide::{Decision, Plan, Progress, decide};
use self::fetch::Fetcher;
use self::observe::observe;
use self::status::{Conclusion, Ending, Event, Next};
use crate::error::Error;
use crate::kind::{Failure, Fetch, Fetched, Kind, Verified};
use crate::metrics::FetchResult;

pub(crate) use context::Context;

/// A fetch that is over before needs no status of its own in between.
const PATIENCE: Duration = Duration::from_secs(2);

/// The object, as the store names it.
fn store_key<K: Kind>(key: &ObjectKey) -> artifact::store::ObjectKey {
    artifact::store::ObjectKey::new(K::NAME, &key.namespace, &key.name)
}

/// Brings an object's artifact and status up to date.
pub(crate) async fn reconcile<K: Kind>(key: ObjectKey, context: Arc<Context<K>>) -> Outcome {
    let began = Instant::now();
    let Some(object) = context.cache.get(&key.object_ref()) else {
        return forget(&key, &context).await;
    };
    let outcome = if object.is_static() {
        leave_alone(object, &key, &context).await
    } else if object.meta().deletion_timestamp.is_some() {
        finalize(object, &key, &context).await
    } else {
        update(object, &key, &context).await
    };
    context
        .metrics
        .observe_reconcile(K::NAME, &key.namespace, &key.name, began.elapsed());
    outcome.unwrap_or_else(|error| {
        if error.is_not_found() {
            return Outcome::Done;
        }
        tracing::error!(
            error = error_chain::chain(&error),
            "failed to record the reconcile"
        );
        Outcome::Backoff
    })
}

/// The API server did not take what was concluded.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error(transparent)]
    Status(#[from] controller_kit::status::Error),
    #[error(transparent)]
    Finalizer(#[from] finalizer::Error),
    #[error("failed to remove the artifacts of a deleted object")]
    RemoveArtifacts(#[source] Error),
}

impl RecordError {
    fn is_not_found(&self) -> bool {
        matches!(self, Self::Status(error) if error.is_not_found())
    }
}

async fn update<K: Kind>(
    object: Arc<K>,
    key: &ObjectKey,
    context: &Context<K>,
) -> Result<Outcome, RecordError> {
    let object = match finalizer::add(&context.client, &*object, &context.field_manager).await? {
        Some(changed) => {
            context.cache.remember(changed.clone());
            Arc::new(changed)
        }
        None => object,
    };
    let restored = restore(&*object, key, context).await;
    if object.suspended() {
        let status = status::suspended(&*object);
        record::write_status(object, &status, context).await?;
        return Ok(Outcome::Done);
    }
    let object = match restored.filter(|_| object.artifact().is_none()) {
        Some(record) => publish_restored(object, &record, context).await?,
        None => object,
    };
    let reading = context.secrets_read.begin(store_key::<K>(key));
    let observed = observe(object.clone(), context, reading).await;
    let (object, progress, ending) = match decide(observed) {
        Decision::Fetch(plan) => match carry_out(object, key, plan, context).await? {
            Some(done) => done,
            None => return Ok(Outcome::Done), // whoever comes next begins anew
        },
        Decision::Fail(failure, progress) => (object, progress, Ending::Failed(failure)),
    };
    if let Ending::UpToDate { revision } = &ending {
        tracing::info!("no changes since last reconciliation: observed revision '{revision}'");
    }
    if !matches!(ending, Ending::Failed(_)) {
        back_up(&*object, key, context);
    }
    let conclusion = status::conclude(&*object, &progress, ending, &context.address, Timestamp::now());
    conclude(object, conclusion, context).await
}

/// Gives the store what the backup has for the object, if the store has nothing.
async fn restore<K: Kind>(
    object: &K,
    key: &ObjectKey,
    context: &Context<K>,
) -> Option<artifact::store::Record> {
    let backup = context.backup.as_ref()?;
    if context
        .store
        .current(K::NAME, &key.namespace, &key.name)
        .is_some()
    {
        return None;
    }
    backup.restore(object, &store_key::<K>(key)).await
}

/// Says which artifact the object had, before its remote is asked: it may be away.
async fn publish_restored<K: Kind>(
    object: Arc<K>,
    record: &artifact::store::Record,
    context: &Context<K>,
) -> Result<Arc<K>, RecordError> {
    let status = status::restored(&*object, record, &context.address, Timestamp::now());
    let object = record::write_status(object, &status, context).await?;
    let event = Event {
        severity: Severity::Info,
        reason: "ArtifactRestored".to_owned(),
        message: format!(
            "restored the artifact of revision '{}' from the backup",
            record.revision
        ),
        annotations: BTreeMap::new(),
    };
    record::publish(&*object, event, context);
    Ok(object)
}

/// Has the backup keep the current artifact, which was made for this spec.
fn back_up<K: Kind>(object: &K, key: &ObjectKey, context: &Context<K>) {
    let current = context.store.current(K::NAME, &key.namespace, &key.name);
    if let (Some(backup), Some(record)) = (&context.backup, current) {
        backup.keep(object, record);
    }
}

type Done<K> = (Arc<K>, Progress, Ending);

/// Fetches and stores. Tells of it in the status when it takes long. None when the process ends meanwhile, or someone
/// deletes the object.
async fn carry_out<K: Kind>(
    mut object: Arc<K>,
    key: &ObjectKey,
    plan: Plan<K>,
    context: &Context<K>,
) -> Result<Option<Done<K>>, RecordError> {
    let Plan {
        references,
        unless_revision,
        admission,
        progress,
    } = plan;
    let spec = object.clone();
    let began = Instant::now();
    let timeout = K::HAS_TIMEOUT.then(|| spec.timeout());
    let fetcher = context.fetcher.for_run(admission.clone(), timeout);
    let origin = spec.origin(&references);
    // Whatever still runs on other threads ends with this function.
    let _stop = fetcher.stop.when_dropped();
    let work = received::counting(context.fetches.received.clone(), async {
        if let Err(refusal) = origin.iter().try_for_each(|origin| admission.admit(origin)) {
            return late(&*spec, Error::from(refusal).into());
        }
        let mut fetched = match spec.fetch(&references, unless_revision, &fetcher).await {
            Ok(Fetch::Unchanged { revision }) => return Ending::UpToDate { revision },
            Ok(Fetch::New(fetched)) => fetched,
            Err(failure) => return late(&*spec, failure),
        };
        let verified = match verify(&*spec, &references, &mut fetched, &fetcher).await {
            Ok(verified) => verified,
            Err(failure) => return late(&*spec, failure),
        };
        if let Some(origin) = &origin
            && let Err(failure) = judge(&*spec, origin, &references, &mut fetched, &fetcher).await
        {
            return late(&*spec, failure);
        }
        let headline = fetched.headline.clone();
        let included = K::included(&references);
        let build = K::build(&fetched.content);
        match store::store::<K>(key, fetched, &context.store, &fetcher).await {
            Ok(record) => Ending::Stored {
                record,
                included,
                headline,
                build,
                verified,
                met: admission.met(),
            },
            Err(failure) => late(&*spec, failure),
        }
    });
    tokio::pin!(work);
    let mut patience = Some(Instant::now() + PATIENCE);
    loop {
        tokio::select! {
            biased;
            ending = &mut work => {
                context.fetches.observe(result_of(&ending), began.elapsed());
                return Ok(Some((object, progress, ending)));
            }
            () = context.shutdown.cancelled() => return Ok(None),
            // The queue has the key again, because of the deletion.
            () = deleted(key, context) => return Ok(None),
            () = tokio::time::sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => {
                patience = None;
                let status = status::in_progress(&*object, &progress, &context.address, Timestamp::now());
                object = record::write_status(object, &status, context).await?;
            }
        }
    }
}

/// Returns when the object is gone, or is to go.
async fn deleted<K: Kind>(key: &ObjectKey, context: &Context<K>) {
    const LOOK: Duration = Duration::from_millis(500);
    let is_wanted = || {
        let object = context.cache.get(&key.object_ref());
        object.is_some_and(|object| object.meta().deletion_timestamp.is_none())
    };
    while is_wanted() {
        tokio::time::sleep(LOOK).await;
    }
}

fn result_of(ending: &Ending) -> FetchResult {
    match ending {
        Ending::UpToDate { .. } => FetchResult::NotModified,
        Ending::Stored { .. } => FetchResult::Fetched,
        Ending::Failed(_) => FetchResult::Failed,
    }
}

/// A failure, with the time that the spec gives the remote if that was too short.
fn late<K: Kind>(spec: &K, failure: Failure) -> Ending {
    let Failure { error, seen } = failure;
    let error = if K::HAS_TIMEOUT {
        error.after(spec.timeout())
    } else {
        error
    };
    Ending::Failed(Failure { error, seen })
}

/// Verifies what was fetched if the spec wants that. What does not pass is not stored.
async fn verify<K: Kind>(
    object: &K,
    references: &K::References,
    fetched: &mut Fetched<K::Content>,
    fetcher: &Fetcher,
) -> Result<Option<Verified>, Failure> {
    if !object.wants_verification() {
        return Ok(None);
    }
    match object.verify(references, fetched, fetcher).await {
        Ok(verified) => Ok(Some(verified)),
        Err(error) => Err(Failure {
            error,
            seen: Some(fetched.seen.clone()),
        }),
    }
}

/// Holds what was fetched against the VerificationPolicies that demand a signature of it.
async fn judge<K: Kind>(
    object: &K,
    origin: &Origin,
    references: &K::References,
    fetched: &mut Fetched<K::Content>,
    fetcher: &Fetcher,
) -> Result<(), Failure> {
    let admission = &fetcher.admission;
    for policy in admission.demanding(origin) {
        let met = match admission.trust(&policy).await {
            Ok(trust) => object.meets(&trust, references, fetched, fetcher).await,
            Err(problem) => Err(problem),
        };
        admission.conclude(&policy, met).map_err(|refusal| Failure {
            error: refusal.into(),
            seen: Some(fetched.seen.clone()),
        })?;
    }
    Ok(())
}

async fn conclude<K: Kind>(
    object: Arc<K>,
    conclusion: Conclusion<<K as HasStatus>::Status>,
    context: &Context<K>,
) -> Result<Outcome, RecordError> {
    let Conclusion { status, events, next } = conclusion;
    let object = record::write_status(object, &status, context).await?;
    for event in events {
        record::publish(&*object, event, context);
    }
    Ok(match next {
        // As in Flux, an interval of zero means that the object is looked at only when someone asks for it.
        Next::AtInterval if object.interval().to_std().is_zero() => Outcome::Done,
        Next::AtInterval => {
            let interval = object.interval().to_std();
            Outcome::After(jitter(interval, context.jitter_percentage, random()))
        }
        Next::AfterBackoff => Outcome::Backoff,
        // A little later than asked, so that not all objects of a registry come back in the same moment.
        Next::AfterPause(pause) => Outcome::After(pause.mul_f64(1.0 + 0.1 * random())),
        Next::WhenChanged => Outcome::Done,
    })
}

/// Removes the artifacts of an object that is being deleted, and then lets it go.
async fn finalize<K: Kind>(
    object: Arc<K>,
    key: &ObjectKey,
    context: &Context<K>,
) -> Result<Outcome, RecordError> {
    if !finalizer::is_set(&*object) {
        return Ok(Outcome::Done);
    }
    let removed = store::remove::<K>(key, &context.store)
        .await
        .map_err(RecordError::RemoveArtifacts)?;
    if removed > 0 {
        let event = Event {
            severity: Severity::Trace,
            reason: "GarbageCollectionSucceeded".to_owned(),
            message: "garbage collected artifacts for deleted resource".to_owned(),
            annotations: BTreeMap::new(),
        };
        record::publish(&*object, event, context);
    }
    if let Some(backup) = &context.backup {
        backup.forget(store_key::<K>(key));
    }
    finalizer::remove(&context.client, &*object, &context.field_manager).await?;
    Ok(Outcome::Done)
}

/// Takes away what an object that is only read by others should not have: it may have been of another type before.
async fn leave_alone<K: Kind>(
    object: Arc<K>,
    key: &ObjectKey,
    context: &Context<K>,
) -> Result<Outcome, RecordError> {
    let is_deleted = object.meta().deletion_timestamp.is_some();
    if object.suspended() && !is_deleted {
        return Ok(Outcome::Done);
    }
    let object = if is_deleted {
        object // it goes, and its status with it
    } else {
        record::write_status(object, &<K as HasStatus>::Status::default(), context).await?
    };
    finalize(object, key, context).await
}

/// The object is gone. Its artifacts went with its finalizer, unless someone took that away.
async fn forget<K: Kind>(key: &ObjectKey, context: &Context<K>) -> Outcome {
    context.metrics.forget_object(K::NAME, &key.namespace, &key.name);
    context.secrets_read.forget(&store_key::<K>(key));
    K::forget(key, &context.fetcher);
    match store::remove::<K>(key, &context.store).await {
        Ok(_) => Outcome::Done,
        Err(error) => {
            tracing::error!(
                error = error.message(),
                "failed to remove the artifacts of an object that is gone"
            );
            Outcome::Backoff
        }
    }
}

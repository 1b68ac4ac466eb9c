//! Reads the inputs of a ResourceSetInputProvider, and records them in its status.

pub(crate) mod git;
mod registry;
mod service;

use std::sync::Arc;
use std::time::Duration;

use api::flux_operator::{
    AnyMap, FINALIZER, InputProviderStatus, NextSchedule, RECONCILE_EVERY, RECONCILE_TIMEOUT,
    ResourceSetInputProvider, ServiceFamily, Subject,
};
use api::meta::{
    FORCE_REQUEST_ANNOTATION, LocalObjectReference, StatusObject as _, condition_types, reasons,
};
use api::source::ExternalArtifact;
use controller_kit::conditions::{self, Fact};
use controller_kit::events::Severity;
use controller_kit::queue::Outcome;
use controller_kit::record::{Failed, Unrecorded, begun};
use controller_kit::runtime::requested_at;
use controller_kit::{ObjectKey, access_from, finalizer, pace};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};
use remote_access::error::{IdentityError, ReadError};
use resource_set::found::{self, Filter};
use resource_set::inputs::checksum;
use resource_set::schedule::{self, Schedules};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use transport::auth::SecretData;
use transport::{auth, http};

use crate::context::Context;
use crate::timing::{NoDuration, annotated};

const INTERVAL: Duration = Duration::from_mins(10);
const TIMEOUT: Duration = Duration::from_mins(2);

/// Reason of the condition for a spec that cannot be followed.
const INVALID_SPEC: &str = "InvalidSpec";
const INVALID_SCHEDULE: &str = "InvalidSchedule";
const INVALID_INPUTS: &str = "InvalidExportedInputs";
const SKIPPED: &str = "SkippedDueToSchedule";

/// Why there are no inputs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An annotation is no duration.
    #[error(transparent)]
    Annotation(#[from] NoDuration),
    /// What the type reads is not served.
    #[error("the type {0:?} is not supported")]
    Unsupported(api::flux_operator::ProviderType),
    /// When inputs may change.
    #[error(transparent)]
    Schedule(#[from] schedule::Error),
    /// What counts, or how much.
    #[error(transparent)]
    Found(#[from] found::Error),
    /// A selector of labels.
    #[error("spec.selectors: {0}")]
    Selector(String),
    /// Objects of other namespaces.
    #[error("spec.selectors: artifacts of other namespaces are not read here (--no-cross-namespace-refs)")]
    OtherNamespace,
    /// A Secret or ServiceAccount.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The data of `spec.certSecretRef`.
    #[error("failed to read the certificates of spec.certSecretRef")]
    Tls(#[from] auth::Error),
    /// The way to the Git service, or the service itself.
    #[error(transparent)]
    Forge(#[from] remote_access::forge::Error),
    /// The registry.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// The identity at a cloud provider.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The web service.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// It took too long.
    #[error("reading the inputs took longer than {} s", .0.as_secs())]
    Late(Duration),
}

impl Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Annotation(_) | Self::Unsupported(_) | Self::Selector(_) | Self::OtherNamespace => {
                INVALID_SPEC
            }
            Self::Schedule(_) => INVALID_SCHEDULE,
            Self::Found(error) if error.is_of_spec() => INVALID_SPEC,
            Self::Found(_) => INVALID_INPUTS,
            _ => reasons::RECONCILIATION_FAILED,
        }
    }

    /// Returns whether only another spec helps.
    fn is_final(&self) -> bool {
        matches!(self.reason(), INVALID_SPEC | INVALID_SCHEDULE)
    }
}

/// Brings the inputs of a provider up to date.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let (began, kind) = (tokio::time::Instant::now(), "ResourceSetInputProvider");
    let writer = &context.providers;
    let Some(object) = writer.cache.get(&key.object_ref()) else {
        writer.metrics.forget_object(kind, &key.namespace, &key.name);
        return Outcome::Done;
    };
    if !context.is_ours(&*object) {
        return Outcome::Done;
    }
    let ended = if object.metadata.deletion_timestamp.is_some() {
        // There is nothing to clean up: ours have no finalizer, those of flux-operator do.
        let removed = finalizer::remove_named(&context.client, &*object, FINALIZER, writer.manager).await;
        removed.map(|_| Outcome::Done).map_err(Unrecorded::from)
    } else if object.suspended() {
        Ok(Outcome::Done)
    } else {
        update(object, &context).await
    };
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

async fn update(object: Arc<ResourceSetInputProvider>, context: &Context) -> Result<Outcome, Unrecorded> {
    let now = Timestamp::now();
    let mut next = begun(&*object);
    let timings = timings(&object);
    let (interval, timeout, schedules) = match timings {
        Ok(timings) => timings,
        Err(error) => return fail(object, next, &error, context).await,
    };
    let forced = object.annotations().get(FORCE_REQUEST_ANNOTATION);
    let is_forced = forced.is_some()
        && forced.map(String::as_str) == requested_at(&*object)
        && next.last_handled_force_at.as_ref() != forced;
    next.last_handled_force_at = forced.cloned().or(next.last_handled_force_at);
    let planned = next.next_schedule.as_ref().map(|planned| planned.when.0);
    let allowed = schedules.at(now, planned);
    next.next_schedule = allowed.next.map(|(index, when)| {
        let schedule = &object.spec.schedule[index];
        NextSchedule {
            cron: schedule.cron.clone(),
            time_zone: schedule.time_zone.clone(),
            window: schedule.window,
            when: Time(when),
        }
    });
    let again = pace::by(
        pace::after(interval, context.jitter_percentage),
        allowed.next.map(|(_, when)| when),
        now,
    );
    if !allowed.is_open && !is_forced {
        let is_new = object
            .status
            .as_ref()
            .and_then(|status| status.next_schedule.as_ref())
            != next.next_schedule.as_ref();
        let when = allowed.next.map(|(_, when)| when.to_string()).unwrap_or_default();
        let object = context.providers.write(object, &next).await?;
        if is_new {
            let text = format!("inputs do not change outside of the schedule, which begins next at {when}");
            context.providers.publish(&object, Severity::Info, SKIPPED, &text);
        }
        return Ok(again);
    }
    let read = tokio::time::timeout(timeout, read(&object, timeout, context)).await;
    let sets = match read.unwrap_or(Err(Error::Late(timeout))) {
        Ok(sets) => sets,
        Err(error) => return fail(object, next, &error, context).await,
    };
    conclude(object, next, sets, context).await?;
    Ok(again)
}

fn timings(object: &ResourceSetInputProvider) -> Result<(Duration, Duration, Schedules), Error> {
    let interval = annotated(object, RECONCILE_EVERY, INTERVAL)?;
    let timeout = annotated(object, RECONCILE_TIMEOUT, TIMEOUT)?.max(Duration::from_secs(1));
    Ok((interval, timeout, Schedules::new(&object.spec.schedule, timeout)?))
}

async fn conclude(
    object: Arc<ResourceSetInputProvider>,
    mut next: InputProviderStatus,
    sets: Vec<AnyMap>,
    context: &Context,
) -> Result<(), Unrecorded> {
    let (generation, now) = (object.metadata.generation.unwrap_or_default(), Timestamp::now());
    let text = serde_json::to_vec(&sets).unwrap_or_default();
    let revision = format!("sha256:{}", hex::encode(Sha256::digest(&text)));
    let is_new = next.last_exported_revision.as_ref() != Some(&revision);
    let message = match sets.len() {
        1 => "1 set of inputs is exported".to_owned(),
        count => format!("{count} sets of inputs are exported"),
    };
    next.exported_inputs = sets;
    next.last_exported_revision = Some(revision);
    next.observed_generation = Some(generation);
    let ready = Fact::holds(
        condition_types::READY,
        reasons::RECONCILIATION_SUCCEEDED,
        &message,
    );
    conditions::set(&mut next.conditions, ready, generation, now);
    conditions::remove(&mut next.conditions, condition_types::RECONCILING);
    conditions::remove(&mut next.conditions, condition_types::STALLED);
    let object = context.providers.write(object, &next).await?;
    if is_new {
        context.providers.publish(
            &object,
            Severity::Info,
            reasons::RECONCILIATION_SUCCEEDED,
            &message,
        );
    }
    Ok(())
}

async fn fail(
    object: Arc<ResourceSetInputProvider>,
    mut next: InputProviderStatus,
    error: &Error,
    context: &Context,
) -> Result<Outcome, Unrecorded> {
    let (generation, now) = (object.metadata.generation.unwrap_or_default(), Timestamp::now());
    let (reason, message) = (error.reason(), error_chain::chain(error));
    let not_ready = Fact::does_not_hold(condition_types::READY, reason, &message);
    conditions::set(&mut next.conditions, not_ready, generation, now);
    conditions::remove(&mut next.conditions, condition_types::RECONCILING);
    conditions::remove(&mut next.conditions, condition_types::STALLED);
    if error.is_final() {
        conditions::set(
            &mut next.conditions,
            Fact::holds(condition_types::STALLED, reason, &message),
            generation,
            now,
        );
    }
    next.observed_generation = Some(generation);
    let failed = Failed {
        status: next,
        reason,
        message,
        is_final: error.is_final(),
    };
    context.providers.fail(object, failed).await
}

/// Finds out what there is.
async fn read(
    object: &ResourceSetInputProvider,
    timeout: Duration,
    context: &Context,
) -> Result<Vec<AnyMap>, Error> {
    let spec = &object.spec;
    let filter = Filter::new(spec.filter.as_ref(), spec.skip.as_ref())?;
    let sets = match spec.type_.parts() {
        (ServiceFamily::Spec, _) => {
            let mut set = AnyMap::new();
            set.insert(
                "id".to_owned(),
                checksum(&format!("{}/{}", namespace(object), object.name_any())).into(),
            );
            vec![set]
        }
        (ServiceFamily::Service, _) => service::read(object, timeout, context).await?,
        (ServiceFamily::Cluster, _) => artifacts(object, context)?,
        (
            ServiceFamily::GitHub | ServiceFamily::GitLab | ServiceFamily::Gitea | ServiceFamily::AzureDevOps,
            what,
        ) if what != Subject::Environments => git::read(object, &filter, timeout, context).await?,
        (ServiceFamily::Registry | ServiceFamily::Acr | ServiceFamily::Ecr | ServiceFamily::Gar, _) => {
            registry::read(object, &filter, timeout, context).await?
        }
        _ => return Err(Error::Unsupported(spec.type_)),
    };
    Ok(found::exported(sets, &spec.default_values)?)
}

/// ExternalArtifacts that the spec selects, in the order of their names.
fn artifacts(object: &ResourceSetInputProvider, context: &Context) -> Result<Vec<AnyMap>, Error> {
    let own = namespace(object);
    let annotation =
        |artifact: &ExternalArtifact| artifact.annotations().get(access_from::ANNOTATION).cloned();
    let mut selected = std::collections::BTreeMap::new();
    let all = context.artifacts.state();
    for selector in &object.spec.selectors {
        let of = match selector.namespace.as_str() {
            "" => own.as_str(),
            namespace => namespace,
        };
        if context.is_locked && of != own {
            return Err(Error::OtherNamespace);
        }
        let labels = api::image::LabelSelector {
            match_labels: selector.match_labels.clone(),
            match_expressions: selector.match_expressions.clone(),
        };
        let labels: Selector = labels
            .of_kubernetes()
            .try_into()
            .map_err(|error: kube::core::ParseExpressionError| Error::Selector(error.to_string()))?;
        let is_selected = |artifact: &&Arc<ExternalArtifact>| {
            let namespace = artifact.namespace().unwrap_or_default();
            (of == "*" || of == namespace)
                && (selector.name.is_empty() || selector.name == artifact.name_any())
                && labels.matches(artifact.labels())
                && (namespace == own
                    || access_from::check(annotation(artifact).as_deref(), &own, &namespace).is_ok())
        };
        for artifact in all.iter().filter(is_selected) {
            let (namespace, name) = (artifact.namespace().unwrap_or_default(), artifact.name_any());
            selected.insert((namespace, name), Arc::clone(artifact));
        }
    }
    let limit = object
        .spec
        .filter
        .as_ref()
        .and_then(|filter| filter.limit)
        .unwrap_or(100);
    let inputs = selected
        .into_iter()
        .take(limit as usize)
        .filter_map(|((namespace, name), artifact)| {
            let revision = artifact.status.as_ref()?.artifact.as_ref()?.revision.clone();
            let set = json!({
                "id": checksum(&format!("{namespace}/{name}")),
                "name": name,
                "namespace": namespace,
                "revision": revision,
                "labels": artifact.labels(),
            });
            match set {
                Value::Object(set) => Some(set),
                _ => None,
            }
        });
    Ok(inputs.collect())
}

/// The Secret of the spec, and how a remote is reached with it and `spec.certSecretRef`.
async fn secrets(
    object: &ResourceSetInputProvider,
    context: &Context,
) -> Result<(Option<SecretData>, http::Settings), Error> {
    let reader = context.reader(&namespace(object));
    let read = async |reference: &Option<LocalObjectReference>| match reference {
        Some(reference) => reader.secret(&reference.name).await.map(Some),
        None => Ok(None),
    };
    let secret = read(&object.spec.secret_ref).await?;
    let certificates = read(&object.spec.cert_secret_ref).await?;
    let tls = certificates.as_ref().or(secret.as_ref()).map(auth::tls);
    Ok((secret, tls.transpose()?.unwrap_or_default()))
}

fn namespace(object: &ResourceSetInputProvider) -> String {
    object.namespace().unwrap_or_default()
}

//! Pipelines of Weave GitOps (`--weave-pipelines`): a Pipeline of ours is made of each, which does all the work, and its status is shown
//! in Weave's words.

mod children;
pub(crate) mod status;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::meta::FALSE;
use api::weave::{GitopsCluster, Pipeline};
use controller_kit::events::Severity;
use controller_kit::queue::{Outcome, Queue};
use controller_kit::record::{Unrecorded, Writer};
use controller_kit::runtime::Cache;
use controller_kit::{ObjectKey, conditions};
use jiff::Timestamp;
use kube::runtime::reflector::{ObjectRef, Store};
use promotion::weave::{Children, children, clusters, kubeconfig};

use crate::context::Context;

/// What is known of Weave's kinds.
pub(crate) struct Weave {
    pub(crate) pipelines: Writer<Pipeline>,
    pub(crate) clusters: Cache<GitopsCluster>,
    pub(crate) queue: Queue<ObjectKey>,
    /// Pipelines whose objects were made by this process, with their UIDs.
    made: Mutex<BTreeMap<ObjectKey, String>>,
}

impl Weave {
    pub(crate) fn new(
        pipelines: Writer<Pipeline>,
        clusters: Store<GitopsCluster>,
        queue: Queue<ObjectKey>,
    ) -> Self {
        Self {
            pipelines,
            clusters: Cache::new(clusters),
            queue,
            made: Mutex::default(),
        }
    }

    /// Has the pipeline looked at from which a Pipeline of ours was made.
    pub(crate) fn wake(&self, key: &ObjectKey) {
        if self.pipelines.cache.get(&key.object_ref()).is_some() {
            self.queue.add(key.clone());
        }
    }

    /// Has the pipelines looked at that name a cluster.
    pub(crate) fn wake_those_of(&self, cluster: &ObjectRef<GitopsCluster>) {
        let namespace = cluster.namespace.as_deref();
        for pipeline in self.pipelines.cache.store().state() {
            if pipeline.metadata.namespace.as_deref() == namespace
                && clusters(&pipeline).any(|name| name == cluster.name)
            {
                self.queue.add(ObjectKey::from_object(&*pipeline));
            }
        }
    }

    fn cluster(&self, namespace: &str, name: &str) -> Option<Arc<GitopsCluster>> {
        self.clusters.get(&ObjectKey::new(namespace, name).object_ref())
    }

    /// Returns whether the objects of a pipeline were made by this process.
    fn has_made(&self, key: &ObjectKey, uid: &str) -> bool {
        self.made().get(key).is_some_and(|made| made == uid)
    }

    fn made(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, String>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the Pipeline of ours, and shows its status.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let Some(weave) = &context.weave else {
        return Outcome::Done;
    };
    let object = weave.pipelines.cache.get(&key.object_ref());
    // What was made of one that is deleted goes with it, by its owner references.
    let Some(object) = object.filter(|object| object.metadata.deletion_timestamp.is_none()) else {
        weave.made().remove(&key);
        return Outcome::Done;
    };
    let ended = show(object, weave, &context).await;
    ended.unwrap_or_else(|error| {
        tracing::error!(
            error = error_chain::chain(&error),
            "failed to record the reconcile"
        );
        Outcome::Backoff
    })
}

async fn show(object: Arc<Pipeline>, weave: &Weave, context: &Context) -> Result<Outcome, Unrecorded> {
    let key = ObjectKey::from_object(&*object);
    let secret = |name: &str| kubeconfig(&*weave.cluster(&key.namespace, name)?);
    let translated = children(&object, secret);
    let known = context.pipelines.cache.get(&key.object_ref());
    let mut outcome = Outcome::Done;
    let problem = match &translated {
        Err(problem) => Some((status::INVALID_SPEC, problem.clone())),
        Ok(wanted) => match make(&object, wanted, known.as_deref(), weave, context).await {
            Ok(()) => None,
            Err(error) => {
                outcome = Outcome::Backoff;
                Some((error.reason(), error_chain::chain(&error)))
            }
        },
    };
    let problem = problem.or_else(|| {
        let state = |name: &str| match weave.cluster(&key.namespace, name) {
            None => Some((
                status::CLUSTER_NOT_FOUND,
                format!("there is no GitopsCluster '{name}'"),
            )),
            Some(cluster) => status::unready(&cluster).map(|why| (status::CLUSTER_NOT_READY, why)),
        };
        clusters(&object).find_map(state)
    });
    let known = context.pipelines.cache.get(&key.object_ref());
    let known = known.filter(|known| children::is_of(&known.metadata, &object));
    let next = status::next(&object, known.as_deref(), problem, Timestamp::now());
    let ready = |status: &[api::meta::Condition]| conditions::get(status, "Ready").cloned();
    let before = object
        .status
        .as_ref()
        .and_then(|status| ready(&status.conditions));
    let now = ready(&next.conditions);
    let written = weave.pipelines.write(object, &next).await?;
    // Once for each problem.
    if let Some(now) = now.filter(|now| now.status == FALSE)
        && before
            .is_none_or(|before| (before.reason, before.message) != (now.reason.clone(), now.message.clone()))
    {
        weave
            .pipelines
            .publish(&written, Severity::Error, &now.reason, &now.message);
    }
    Ok(outcome)
}

/// Makes what a pipeline stands for, unless it is as it should be.
async fn make(
    object: &Pipeline,
    wanted: &Children,
    known: Option<&api::delivery::Pipeline>,
    weave: &Weave,
    context: &Context,
) -> Result<(), children::Error> {
    let observed = object
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    let is_settled = known.is_some_and(|known| {
        let status = known.status.as_ref();
        children::is_of(&known.metadata, object)
            && known.spec == wanted.pipeline
            && status.is_none_or(|status| !conditions::is_false(&status.conditions, "Ready"))
    });
    let (key, uid) = (
        ObjectKey::from_object(object),
        object.metadata.uid.clone().unwrap_or_default(),
    );
    if weave.has_made(&key, &uid) && is_settled && observed == object.metadata.generation {
        return Ok(());
    }
    let made = children::apply(object, wanted, known, context).await?;
    context.pipelines.cache.remember(made);
    weave.made().insert(key, uid);
    Ok(())
}

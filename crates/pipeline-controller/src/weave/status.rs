//! The status of a Pipeline of Weave GitOps: conditions, reasons and texts as Weave has them. Pure.

use api::delivery;
use api::meta::{FALSE, condition_types, reasons};
use api::weave::{GitopsCluster, Pipeline, PipelineStatus};
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;
use promotion::weave::{environments, pending};

/// A cluster is not there.
pub(crate) const CLUSTER_NOT_FOUND: &str = "TargetClusterNotFound";
/// A cluster is not ready.
pub(crate) const CLUSTER_NOT_READY: &str = "TargetClusterNotReady";
/// Nothing can be made of the spec.
pub(crate) const INVALID_SPEC: &str = "InvalidSpec";
/// Someone else has the name of an object that would be made.
pub(crate) const NAME_TAKEN: &str = "NameTaken";
/// The API server did not take an object.
pub(crate) const NOT_MADE: &str = "PipelineNotMade";
const NOT_READABLE: &str = "TargetNotReadable";
const PROMOTION_PENDING: &str = "PromotionPending";
const ENVIRONMENT_NOT_READY: &str = "EnvironmentNotReady";
/// Bytes of a message.
const MAX_MESSAGE: usize = 20_000;

/// Returns why a cluster is not ready. A cluster without conditions counts as ready: Weave's cluster-controller may be gone.
pub(crate) fn unready(cluster: &GitopsCluster) -> Option<String> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let conditions = &cluster.status.as_ref()?.conditions;
    let ready = conditions::get(conditions, condition_types::READY)?;
    let is_unready = ready.status == FALSE;
    is_unready.then(|| format!("the GitopsCluster '{name}' is not ready: {}", ready.message))
}

/// The next status: that of the Pipeline that was made of it, in Weave's words.
pub(crate) fn next(
    pipeline: &Pipeline,
    made: Option<&delivery::Pipeline>,
    problem: Option<(&'static str, String)>,
    now: Timestamp,
) -> PipelineStatus {
    let mut status = pipeline.status.clone().unwrap_or_default();
    let generation = pipeline.metadata.generation.unwrap_or_default();
    // It was not looked at yet since it was changed: what is known stays.
    let seen = made.filter(|made| {
        let status = made.status.as_ref();
        status.is_some_and(|status| status.observed_generation == made.metadata.generation)
    });
    let ready = seen.and_then(|made| {
        made.status
            .as_ref()?
            .conditions
            .iter()
            .find(|one| one.type_ == condition_types::READY)
    });
    let fact = match (problem, ready) {
        (Some((reason, text)), _) => Some(Fact::does_not_hold(condition_types::READY, reason, cut(text))),
        (None, Some(ready)) if ready.status == FALSE => {
            let text = cut(ready.message.clone());
            Some(Fact::does_not_hold(condition_types::READY, NOT_READABLE, text))
        }
        (None, Some(_)) => Some(Fact::holds(
            condition_types::READY,
            reasons::RECONCILIATION_SUCCEEDED,
            "All clusters checked",
        )),
        (None, None) => None,
    };
    if let Some(made) = seen {
        status.environments = environments(pipeline, made, now);
        match made.status.as_ref().and_then(pending) {
            Some(text) => {
                let fact = Fact::holds(PROMOTION_PENDING, ENVIRONMENT_NOT_READY, text);
                conditions::set(&mut status.conditions, fact, generation, now);
            }
            None => conditions::remove(&mut status.conditions, PROMOTION_PENDING),
        }
    }
    if let Some(fact) = fact {
        conditions::set(&mut status.conditions, fact, generation, now);
        status.observed_generation = Some(generation);
    }
    status
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_MESSAGE));
    text
}

//! Which webhooks start a pipeline.

use std::collections::BTreeSet;

use api::delivery::{Pipeline, Trigger};
use futures::FutureExt as _;
use promotion::triggers::{Place, triggers};

use crate::context::Context;
use crate::observe::Looked;

/// The webhooks of the pipeline; those that it had while Receivers are not known, or not installed.
pub(crate) fn of(pipeline: &Pipeline, looked: &[Vec<Looked>], context: &Context) -> Vec<Trigger> {
    let store = context.receivers.store();
    if store.wait_until_ready().now_or_never().is_none() {
        let status = pipeline.status.as_ref();
        return status.map(|status| status.triggers.clone()).unwrap_or_default();
    }
    let receivers = store.state();
    let receivers = receivers.iter().map(|receiver| &**receiver);
    triggers(
        pipeline,
        &sources(pipeline, looked),
        receivers,
        &context.webhook_url,
    )
}

/// What the first environments run here, and what that is made of.
fn sources(pipeline: &Pipeline, looked: &[Vec<Looked>]) -> BTreeSet<Place> {
    let spec = &pipeline.spec;
    let first = looked
        .iter()
        .enumerate()
        .filter(|(at, _)| spec.needs(*at).is_empty());
    let targets = first
        .flat_map(|(_, targets)| targets)
        .filter(|target| target.cluster.is_none());
    let mut found = BTreeSet::new();
    for target in targets {
        for (app, facts) in pipeline.apps().iter().zip(&target.apps) {
            let Some(facts) = facts else {
                continue;
            };
            found.insert((
                app.kind.as_str().to_owned(),
                target.namespace.clone(),
                app.name.clone(),
            ));
            let source = facts.source();
            found.extend(source.map(|(kind, key)| (kind.clone(), key.namespace.clone(), key.name.clone())));
        }
    }
    found
}

//! Which policies an automation follows, and what they have chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::image::{ImagePolicy, ImageRef, ImageUpdateAutomation};
use controller_kit::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;

use super::error::Error;
use crate::context::Context;

/// What the policies of an automation have chosen.
pub(super) struct Chosen {
    /// Those that have chosen an image.
    pub(super) policies: Vec<Arc<ImagePolicy>>,
    /// No policy is without a choice.
    pub(super) is_settled: bool,
}

/// The policies of the namespace, by the selector.
pub(super) fn policies(object: &ImageUpdateAutomation, context: &Context) -> Result<Chosen, Error> {
    let namespace = object.metadata.namespace.as_deref();
    let selector = selector(object)?;
    let all = context.policies.cache.store().state().into_iter();
    // What was written a moment ago may not be in the store yet.
    let newest = all.filter_map(|policy| {
        context
            .policies
            .cache
            .get(&ObjectKey::from_object(&*policy).object_ref())
    });
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

/// The choices as the status has them, by the name of the policy.
pub(super) fn observed(policies: &[Arc<ImagePolicy>]) -> BTreeMap<String, ImageRef> {
    let entry = |policy: &Arc<ImagePolicy>| {
        let name = policy.metadata.name.clone()?;
        Some((name, policy.status.as_ref()?.latest_ref.clone()?))
    };
    policies.iter().filter_map(entry).collect()
}

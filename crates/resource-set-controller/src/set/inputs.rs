//! Inputs of a ResourceSet: its own, and those of the providers that it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::flux_operator::{InputReference, ResourceSet, ResourceSetInputProvider, Subject};
use api::meta::{StatusObject as _, condition_types};
use controller_kit::{ObjectKey, conditions};
use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};
use resource_set::Export;
use resource_set::environment::{Request, admits};

use super::Error;
use crate::context::Context;
use crate::environment::has_spoken;

type Provider = Arc<ResourceSetInputProvider>;

/// Lists the sets of inputs by the objects that they are from. Without any reference to inputs, there is one empty set.
pub(crate) fn exports(object: &ResourceSet, context: &Context) -> Result<Vec<Export>, Error> {
    let own = Export {
        kind: "ResourceSet",
        name: object.name_any(),
        namespace: object.namespace().unwrap_or_default(),
        is_of_requests: false,
        sets: object.spec.inputs.clone(),
    };
    if object.spec.inputs.is_empty() && object.spec.inputs_from.is_empty() {
        let sets = vec![Default::default()];
        return Ok(vec![Export { sets, ..own }]);
    }
    let mut exports: Vec<Export> = Some(own).filter(|own| !own.sets.is_empty()).into_iter().collect();
    let mut named = BTreeMap::new();
    for reference in &object.spec.inputs_from {
        for provider in providers(reference, object, context)? {
            named.insert(provider.name_any(), provider);
        }
    }
    for (name, provider) in named {
        let status = provider.status.as_ref();
        // Nothing that was exported is not the same as an empty export: all would be deleted.
        if status.is_none_or(|status| status.last_exported_revision.is_none()) {
            return Err(Error::Provider(format!(
                "the ResourceSetInputProvider '{name}' has exported nothing yet"
            )));
        }
        exports.push(Export {
            kind: "ResourceSetInputProvider",
            name,
            namespace: provider.namespace().unwrap_or_default(),
            is_of_requests: provider.spec.type_.parts().1 == Subject::PullRequests,
            sets: status
                .map(|status| status.exported_inputs.clone())
                .unwrap_or_default(),
        });
    }
    Ok(exports)
}

/// Leaves out pull requests that an EnvironmentPolicy does not admit.
pub(super) fn hold_back(exports: &mut [Export], key: &ObjectKey, context: &Context) -> Result<(), Error> {
    for policy in context.policies_of(key) {
        // What is not known yet is not nothing: all environments would be deleted.
        let Some(status) = policy.status.as_ref().filter(|status| has_spoken(status)) else {
            let stalled = conditions::get(policy.conditions(), condition_types::STALLED);
            let why = stalled.map(|stalled| format!(": {}", stalled.message));
            return Err(Error::Provider(format!(
                "the EnvironmentPolicy '{}' does not say which environments there may be{}",
                policy.name_any(),
                why.unwrap_or_default()
            )));
        };
        for export in exports.iter_mut().filter(|export| export.is_of_requests) {
            let name = &export.name;
            export.sets.retain(|set| {
                let request = Request::of(name, set);
                request.is_none_or(|request| admits(&status.environments, &request))
            });
        }
    }
    Ok(())
}

fn providers(
    reference: &InputReference,
    object: &ResourceSet,
    context: &Context,
) -> Result<Vec<Provider>, Error> {
    let all = context.providers.cache.store().state().into_iter();
    let mut near = all.filter(|provider| provider.metadata.namespace == object.metadata.namespace);
    if !reference.name.is_empty() {
        let found = near.find(|provider| provider.name_any() == reference.name);
        let missing = || {
            Error::Provider(format!(
                "the ResourceSetInputProvider '{}' does not exist in the namespace",
                reference.name
            ))
        };
        return found.map(|provider| vec![provider]).ok_or_else(missing);
    }
    let selector = reference.selector.clone().unwrap_or_default().of_kubernetes();
    let selector: Selector = selector
        .try_into()
        .map_err(|error: kube::core::ParseExpressionError| Error::Selector(error.to_string()))?;
    Ok(near
        .filter(|provider| selector.matches(provider.labels()))
        .collect())
}

//! Inputs of a ResourceSet: its own, and those of the providers that it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::flux_operator::{InputReference, ResourceSet, ResourceSetInputProvider, Subject};
use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};
use resource_set::Export;

use super::Error;
use crate::context::Context;

type Provider = Arc<ResourceSetInputProvider>;

/// Lists the sets of inputs by the objects that they are from. Without any reference to inputs, there is one empty set.
pub(super) fn exports(object: &ResourceSet, context: &Context) -> Result<Vec<Export>, Error> {
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

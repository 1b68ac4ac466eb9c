//! The order of the result: `sortOptions`, or the default.

use manifest::order::LegacyOrder;

use crate::DefaultOrder;
use crate::error::{Error, Result};
use crate::kustomization::SortOptions;
use crate::nodes::Nodes;
use crate::resource::Resource;
use crate::resource_map::ResourceMap;

/// Sorts resources as the kustomization, or else the caller, says.
pub(crate) fn apply(
    nodes: &Nodes,
    map: &mut ResourceMap,
    options: Option<&SortOptions>,
    default: DefaultOrder,
) -> Result<()> {
    match options {
        None if default == DefaultOrder::Fifo => {}
        None => sort(nodes, map.list_mut(), &LegacyOrder::default()),
        Some(options) => match (options.order.as_str(), &options.legacy) {
            ("fifo", None) => {}
            ("fifo", Some(_)) => {
                return Err(Error::invalid(
                    "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not \
                     'legacy'",
                ));
            }
            ("legacy", None) => sort(nodes, map.list_mut(), &LegacyOrder::default()),
            ("legacy", Some(kinds)) => {
                let order = LegacyOrder::new(kinds.order_first.clone(), kinds.order_last.clone());
                sort(nodes, map.list_mut(), &order);
            }
            _ => {
                return Err(Error::invalid(
                    "the field 'sortOptions.order' must be one of [fifo, legacy]",
                ));
            }
        },
    }
    Ok(())
}

fn sort<S: AsRef<str>>(nodes: &Nodes, list: &mut Vec<Resource>, order: &LegacyOrder<S>) {
    let keyed: Vec<_> = list
        .drain(..)
        .map(|resource| (resource.id(nodes), resource))
        .collect();
    let keyed = order.sort(keyed, |(id, _)| (&id.gvk, &id.namespace, &id.name));
    list.extend(keyed.into_iter().map(|(_, resource)| resource));
}

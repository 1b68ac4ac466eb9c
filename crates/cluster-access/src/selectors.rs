//! Which objects a rule of a spec is for, in the words of the apply engine. Pure.

use api::meta::Selector;
use kube_apply::IgnoreTarget;

/// Reads what a selector selects.
pub fn target(selector: &Selector) -> IgnoreTarget {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    IgnoreTarget {
        group: text(&selector.group),
        version: text(&selector.version),
        kind: text(&selector.kind),
        name: text(&selector.name),
        namespace: text(&selector.namespace),
        annotation_selector: text(&selector.annotation_selector),
        label_selector: text(&selector.label_selector),
    }
}

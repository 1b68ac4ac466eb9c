//! Which objects a rule of a spec selects.

use api::meta::Selector;
use manifest::ObjectSelector;

/// Returns the selector of a spec in the words of the engines.
pub fn object_selector(selector: &Selector) -> ObjectSelector {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    ObjectSelector {
        group: text(&selector.group),
        version: text(&selector.version),
        kind: text(&selector.kind),
        name: text(&selector.name),
        namespace: text(&selector.namespace),
        annotation_selector: text(&selector.annotation_selector),
        label_selector: text(&selector.label_selector),
    }
}

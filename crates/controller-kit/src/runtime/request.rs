//! Requests for a reconcile, by annotation.

use api::meta::{HasConditions, RECONCILE_REQUEST_ANNOTATION, StatusObject};

use kube::Resource;

/// The value of the annotation by which a person asks for a reconciliation.
pub fn requested_at<K: Resource>(object: &K) -> Option<&str> {
    object
        .meta()
        .annotations
        .as_ref()?
        .get(RECONCILE_REQUEST_ANNOTATION)
        .map(String::as_str)
}

/// Returns whether a person asked for a reconciliation that has not been handled yet.
pub fn should_reconcile_now<K: StatusObject>(object: &K) -> bool {
    let handled = object.status().and_then(HasConditions::last_handled_reconcile_at);
    requested_at(object).is_some_and(|requested| Some(requested) != handled)
}

//! Confirmation of a prune, by annotation.

use api::kustomize::Kustomization;
use kube::ResourceExt as _;

/// The confirmation that a person has given.
pub fn confirmation(object: &Kustomization) -> Option<&str> {
    object.annotations().get(CONFIRM_ANNOTATION).map(String::as_str)
}

/// The annotation that confirms a prune. Its value is what the refusal printed.
pub const CONFIRM_ANNOTATION: &str = "windlass.dev/confirm-prune";

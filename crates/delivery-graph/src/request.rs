//! What is written into an object to ask something of its controller, and whom else to ask.

use manifest::ObjectId;
use serde_json::{Value, json};

use crate::kind;
use crate::object::{self, text};

/// A merge patch that asks for a reconcile. `token` is another one for each request; with `force` a release is made anew, with
/// `reset` its failures are forgotten.
pub fn reconcile(token: &str, force: bool, reset: bool) -> Value {
    let mut annotations = json!({api::meta::RECONCILE_REQUEST_ANNOTATION: token});
    if force {
        annotations[api::meta::FORCE_REQUEST_ANNOTATION] = token.into();
    }
    if reset {
        annotations[api::meta::RESET_REQUEST_ANNOTATION] = token.into();
    }
    json!({"metadata": {"annotations": annotations}})
}

/// A merge patch that has a controller leave an object alone, or look at it again.
pub fn suspend(suspended: bool) -> Value {
    // Absent and false mean the same; absent is what a manifest without the field has.
    let value = if suspended { Value::Bool(true) } else { Value::Null };
    json!({"spec": {"suspend": value}})
}

/// What an object is made of: whom to ask before it.
pub fn source_of(object: &Value) -> Option<ObjectId> {
    let links = object::links(object);
    let source = links
        .into_iter()
        .find(|link| matches!(link.word, "source" | "chart"))?;
    Some(source.id)
}

/// Returns whether a controller answers for an object. None looks at a HelmRepository of OCI.
pub fn is_answered(object: &Value) -> bool {
    let is_static = text(object, "/kind") == "HelmRepository" && text(object, "/spec/type") == "oci";
    !is_static && kind::kind_of(&object::id(object)).is_some_and(|kind| kind.answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_request_has_the_same_word_twice() {
        let asked = reconcile("now", true, false);
        let annotations = &asked["metadata"]["annotations"];
        assert_eq!(annotations["reconcile.fluxcd.io/requestedAt"], "now");
        assert_eq!(annotations["reconcile.fluxcd.io/forceAt"], "now");
        assert!(annotations["reconcile.fluxcd.io/resetAt"].is_null());
    }
}

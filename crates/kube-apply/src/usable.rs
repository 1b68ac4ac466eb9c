//! Waits, by watching, until a definition can be used by the objects that need it.
//!
//! Only for CRDs, namespaces and classes between the stages of one apply. Health of workloads is another crate's.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use kube::core::DynamicObject;
use kube::runtime::watcher;
use kube::{Api, Client};
use manifest::GroupVersionKind;
use serde_json::Value;

use crate::failure::{Class, Failure};
use crate::request::Address;
use crate::stage::{is_crd, is_namespace};

/// Returns whether the object is ready for those that depend on it.
pub(crate) fn is_usable(gvk: &GroupVersionKind, live: &Value) -> bool {
    if is_crd(gvk) {
        return condition(live, "Established") == Some("True")
            && condition(live, "NamesAccepted") != Some("False");
    }
    if is_namespace(gvk) {
        return live.pointer("/status/phase").and_then(Value::as_str) == Some("Active");
    }
    let observed = live.pointer("/status/observedGeneration").and_then(Value::as_i64);
    let generation = live.pointer("/metadata/generation").and_then(Value::as_i64);
    let is_seen = observed.is_none() || generation.is_none() || observed >= generation;
    is_seen && condition(live, "Ready").is_none_or(|status| status == "True")
}

/// Says why the object can never become usable, where that shows.
fn is_hopeless(gvk: &GroupVersionKind, live: &Value) -> Option<String> {
    if live.pointer("/metadata/deletionTimestamp").is_some() {
        return Some("it is being deleted".to_owned());
    }
    if is_crd(gvk) && condition(live, "NamesAccepted") == Some("False") {
        let message = find(live, "NamesAccepted")
            .and_then(|c| c.get("message"))
            .and_then(Value::as_str);
        return Some(format!(
            "its names are not accepted: {}",
            message.unwrap_or("another CRD has them")
        ));
    }
    None
}

fn condition<'a>(live: &'a Value, kind: &str) -> Option<&'a str> {
    find(live, kind)?.get("status")?.as_str()
}

fn find<'a>(live: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = live.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// Waits until the object is usable.
pub(crate) async fn wait(
    client: &Client,
    at: &Address,
    gvk: &GroupVersionKind,
    limit: Duration,
) -> Result<(), Failure> {
    let api: Api<DynamicObject> = if at.resource.namespaced {
        Api::namespaced_with(client.clone(), &at.namespace, &at.resource.api)
    } else {
        Api::all_with(client.clone(), &at.resource.api)
    };
    match tokio::time::timeout(limit, follow(api, &at.name, gvk)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let message = format!("it is not ready for use after {} s", limit.as_secs());
            Err(Failure::new(Class::Transient, message))
        }
    }
}

async fn follow(api: Api<DynamicObject>, name: &str, gvk: &GroupVersionKind) -> Result<(), Failure> {
    let mut states = pin!(watcher::watch_object(api, name));
    while let Some(state) = states.next().await {
        let live = match state {
            Ok(Some(object)) => serde_json::to_value(object).unwrap_or_default(),
            Ok(None) => return Err(Failure::new(Class::Transient, "it was deleted meanwhile")),
            Err(error) => {
                tracing::debug!(%error, name, "watching a definition");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        if is_usable(gvk, &live) {
            return Ok(());
        }
        if let Some(reason) = is_hopeless(gvk, &live) {
            return Err(Failure::new(Class::Transient, reason));
        }
    }
    Err(Failure::new(Class::Transient, "the watch ended"))
}

/// Pause after a watch that failed.
const RETRY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gvk(api_version: &str, kind: &str) -> GroupVersionKind {
        GroupVersionKind::new(api_version, kind)
    }

    #[test]
    fn a_crd_is_usable_when_established_under_its_names() {
        let crd = gvk("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let with = |established: &str, accepted: &str| json!({"status": {"conditions": [{"type": "NamesAccepted", "status": accepted}, {"type": "Established", "status": established}]}});
        assert!(is_usable(&crd, &with("True", "True")));
        assert!(!is_usable(&crd, &with("False", "True")));
        assert!(!is_usable(&crd, &json!({})));
        assert!(is_hopeless(&crd, &with("False", "False")).is_some());
        assert!(is_hopeless(&crd, &with("False", "True")).is_none());
    }

    #[test]
    fn a_namespace_is_usable_when_active() {
        let namespace = gvk("v1", "Namespace");
        assert!(is_usable(&namespace, &json!({"status": {"phase": "Active"}})));
        assert!(!is_usable(
            &namespace,
            &json!({"status": {"phase": "Terminating"}})
        ));
    }

    #[test]
    fn a_class_without_status_is_usable_and_one_that_is_not_ready_is_not() {
        let class = gvk("example.com/v1", "ThingClass");
        assert!(is_usable(&class, &json!({})));
        assert!(!is_usable(
            &class,
            &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
        ));
        assert!(!is_usable(
            &class,
            &json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}})
        ));
    }
}

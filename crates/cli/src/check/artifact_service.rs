//! Checks that the artifact service is served and that its clients can reach it.

use std::time::Duration;

use delivery_graph::object::{self, ready};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use super::line::{Level, Line};
use crate::cluster::Failure;
use crate::platform::Platform;
use crate::platform::controllers::{COMPONENT, COMPONENTS, Controller};

/// Kubernetes lists a Pod behind its Service a moment after the Pod is ready; right after an installation it is looked again.
const LOOKS: usize = 10;
const PAUSE: Duration = Duration::from_millis(500);

/// No one outside can call it: what is said is what those say who call it, and whether there is someone who answers.
pub(super) async fn line(
    platform: &Platform,
    found: &[Controller],
    objects: &[Value],
) -> Result<Line, Failure> {
    let line = |level, text: String| Line::new("artifact-service", level, text);
    if let Some(object) = objects.iter().find(|object| complains(object)) {
        let text = format!("{}: {}", object::id(object), ready(object).message);
        return Ok(line(Level::Bad, text));
    }
    let Some(source) = found
        .iter()
        .find(|one| one.is_ours && one.component == COMPONENTS[0])
    else {
        return Ok(line(Level::Note, "source-controller is not ours".to_owned()));
    };
    let namespace = &source.id.namespace;
    let name = &match source.is_shared {
        true => service(platform, namespace).await?.unwrap_or_default(),
        false => source.id.name.clone(),
    };
    let mut answers = has_endpoint(platform, namespace, name).await?;
    for _ in 0..LOOKS {
        if answers {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        answers = has_endpoint(platform, namespace, name).await?;
    }
    if !answers {
        let text = format!("the artifact service {name}.{namespace}:9091 has no Pod that is ready behind it");
        return Ok(line(Level::Bad, text));
    }
    let maps: Api<ConfigMap> = Api::namespaced(platform.client.clone(), namespace);
    let authority = maps.get_metadata_opt("windlass-artifact-ca").await;
    Ok(match authority {
        Ok(None) => line(
            Level::Bad,
            format!(
                "source-controller has not made its authority: ConfigMap {namespace}/windlass-artifact-ca is not there"
            ),
        ),
        _ => line(
            Level::Good,
            format!("the artifact service {name}.{namespace}:9091 is served, and nobody complains about it"),
        ),
    })
}

/// The Service of source-controller, whose Deployment may be called otherwise.
async fn service(platform: &Platform, namespace: &str) -> Result<Option<String>, Failure> {
    let services: Api<Service> = Api::namespaced(platform.client.clone(), namespace);
    let selected =
        ListParams::default().labels(&format!("{COMPONENT}={},!windlass.dev/serves", COMPONENTS[0]));
    let found = services.list_metadata(&selected).await;
    let found = found.map_err(|error| Failure::request("list services", error))?;
    Ok(found
        .items
        .into_iter()
        .next()
        .and_then(|found| found.metadata.name))
}

/// Returns whether the Service has a Pod that is ready.
async fn has_endpoint(platform: &Platform, namespace: &str, name: &str) -> Result<bool, Failure> {
    let slices: Api<EndpointSlice> = Api::namespaced(platform.client.clone(), namespace);
    let selected = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    let slices = slices.list(&selected).await;
    let slices = slices.map_err(|error| Failure::request("list endpointslices", error))?;
    let has_port = |slice: &&EndpointSlice| {
        let ports = slice.ports.iter().flatten();
        ports
            .filter_map(|port| port.name.as_deref())
            .any(|name| name == "grpc")
    };
    Ok(slices.iter().filter(has_port).any(|slice| {
        let mut endpoints = slice.endpoints.iter();
        endpoints.any(|endpoint| {
            let conditions = endpoint.conditions.as_ref();
            conditions.and_then(|conditions| conditions.ready) != Some(false)
        })
    }))
}

/// Returns whether an object is not ready because of the artifact service.
fn complains(object: &Value) -> bool {
    let condition = ready(object);
    condition.status != "True" && condition.message.contains("artifact service")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(status: &str, message: &str) -> Value {
        json!({"kind": "Kustomization", "metadata": {"name": "a", "namespace": "n"},
            "status": {"conditions": [{"type": "Ready", "status": status, "message": message}]}})
    }

    #[test]
    fn only_who_is_not_ready_complains() {
        let text = "failed to reach the artifact service";
        assert!(complains(&object("False", text)));
        assert!(!complains(&object("True", text)));
        assert!(!complains(&object("False", "build failed")));
    }
}

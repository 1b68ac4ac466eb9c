//! The Pods of the controllers, of Flux or ours.

use std::collections::BTreeMap;
use std::fmt;

use delivery_graph::object::{self, list, text};
use kube::core::ApiResource;
use serde_json::Value;

use super::{Cluster, Failure};

/// Label that Flux and our chart put on all their objects.
const PART_OF: &str = "app.kubernetes.io/part-of=flux";
/// The container with the controller.
const CONTAINER: &str = "manager";
/// Where the metrics are, by the name of the port or its usual number.
const METRICS_PORT: (&str, u64) = ("http-prom", 8080);

/// A Pod of a controller.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    namespace: String,
    pub(crate) name: String,
    /// The container with the controller, where there are others beside it.
    pub(crate) container: Option<String>,
    metrics_port: u64,
}

/// Finds the Pods of the controllers: by their own labels, and by those of their Deployments, whose Pods need not have them.
pub(crate) async fn pods(cluster: &Cluster, namespace: &str) -> Result<Vec<Pod>, Failure> {
    let kind = |group: &str, kind: &str, plural: &str| ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{group}/v1").trim_start_matches('/').to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let (pods, deployments) = (kind("", "Pod", "pods"), kind("apps", "Deployment", "deployments"));
    let mut found = BTreeMap::new();
    for pod in cluster.list_any(&pods, namespace, PART_OF).await? {
        found.insert(object::name(&pod).to_owned(), pod);
    }
    // Who may not look at Deployments sees those Pods that say themselves what they are.
    let deployments = cluster.list_any(&deployments, namespace, PART_OF).await;
    for deployment in deployments.unwrap_or_default() {
        let Some(selector) = selector(&deployment) else {
            continue;
        };
        for pod in cluster.list_any(&pods, namespace, &selector).await? {
            found.insert(object::name(&pod).to_owned(), pod);
        }
    }
    if found.is_empty() {
        return Err(Failure::NotReady(format!(
            "no controllers are in the namespace {namespace:?}; name theirs with --flux-namespace"
        )));
    }
    Ok(found.values().map(Pod::of).collect())
}

fn selector(deployment: &Value) -> Option<String> {
    let labels = deployment.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    Some(pairs.collect::<Vec<_>>().join(",")).filter(|selector| !selector.is_empty())
}

impl Pod {
    /// A Pod as the API server describes it.
    pub(crate) fn of(object: &Value) -> Self {
        let containers = list(object, "/spec/containers");
        let is_controller = |container: &&Value| text(container, "/name") == CONTAINER;
        let container = containers
            .iter()
            .find(is_controller)
            .filter(|_| containers.len() > 1);
        let mut ports = containers.iter().flat_map(|container| list(container, "/ports"));
        let port = ports.find(|port| text(port, "/name") == METRICS_PORT.0);
        Self {
            namespace: object::namespace(object).to_owned(),
            name: object::name(object).to_owned(),
            metrics_port: port
                .and_then(|port| port["containerPort"].as_u64())
                .unwrap_or(METRICS_PORT.1),
            container: container.map(|container| text(container, "/name").to_owned()),
        }
    }

    /// A GET for its metrics, which the API server passes on.
    pub(crate) fn metrics(&self) -> Result<http::Request<Vec<u8>>, Failure> {
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}:{}/proxy/metrics",
            self.namespace, self.name, self.metrics_port
        );
        get(path)
    }

    /// A GET for something below the Pod, such as `log?tailLines=1`.
    pub(crate) fn request(&self, below: &str) -> Result<http::Request<Vec<u8>>, Failure> {
        get(format!(
            "/api/v1/namespaces/{}/pods/{}/{below}",
            self.namespace, self.name
        ))
    }
}

fn get(path: String) -> Result<http::Request<Vec<u8>>, Failure> {
    let request = http::Request::get(path).body(Vec::new());
    request.map_err(|error| Failure::Usage(error.to_string()))
}

impl fmt::Display for Pod {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pod/{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metrics_are_asked_for_at_the_port_that_the_pod_names() {
        let path = |ports: Value| {
            let containers = json!([{"name": "proxy", "ports": [{"containerPort": 15000}]}, {"name": "manager", "ports": ports}]);
            let pod =
                json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": containers}});
            Pod::of(&pod).metrics().unwrap().uri().to_string()
        };
        assert_eq!(
            path(json!([{"name": "http-prom", "containerPort": 9000}])),
            "/api/v1/namespaces/n/pods/p:9000/proxy/metrics"
        );
        assert_eq!(path(json!([])), "/api/v1/namespaces/n/pods/p:8080/proxy/metrics");
    }

    #[test]
    fn the_labels_of_a_deployment_find_its_pods() {
        let deployment =
            json!({"spec": {"selector": {"matchLabels": {"app": "source-controller", "x": "y"}}}});
        assert_eq!(
            selector(&deployment).as_deref(),
            Some("app=source-controller,x=y")
        );
    }
}

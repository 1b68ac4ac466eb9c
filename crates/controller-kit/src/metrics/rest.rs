//! Requests to the Kubernetes API, as client-go counts them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counter of requests by status code, method and host.
#[derive(Clone, Debug, Default)]
pub struct RestMetrics {
    requests: Family<RequestLabels, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    host: String,
    method: String,
}

impl RestMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            metrics.requests.clone(),
        );
        metrics
    }

    /// Counts one request. `code` is the status, or "<error>" where no answer came, as in client-go.
    pub fn observe(&self, method: &str, code: &str, host: &str) {
        let labels = RequestLabels {
            code: code.to_owned(),
            host: host.to_owned(),
            method: method.to_owned(),
        };
        self.requests.get_or_create(&labels).inc();
    }
}

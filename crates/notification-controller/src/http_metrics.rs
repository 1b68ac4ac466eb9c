//! What HTTP servers measure, under the names that Flux's have.

use std::time::Duration;

use controller_kit::metrics::Metrics;
use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Prometheus' default buckets, in seconds.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The metrics of one server. Clones share their values.
#[derive(Clone, Debug)]
pub struct HttpMetrics {
    duration: Family<Labels, Histogram, fn() -> Histogram>,
    in_flight: Family<Place, Gauge>,
    /// The path, or "/" for all: paths can make very many series.
    names_paths: bool,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    code: u16,
    handler: String,
    method: String,
    service: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Place {
    handler: String,
    service: String,
}

/// A request that is under way.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl HttpMetrics {
    /// Registers them; `prefix` is `gotk_event` or `gotk_receiver`.
    pub fn register(metrics: &Metrics, prefix: &str, names_paths: bool) -> Self {
        let duration = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        let in_flight = Family::default();
        metrics.register(|registry| {
            registry.register(
                format!("{prefix}_http_request_duration_seconds"),
                "The latency of the HTTP requests",
                duration.clone(),
            );
            registry.register(
                format!("{prefix}_http_requests_inflight"),
                "The number of inflight requests being handled at the same time",
                in_flight.clone(),
            );
        });
        Self {
            duration,
            in_flight,
            names_paths,
        }
    }

    /// Counts a request until what is returned is dropped.
    pub fn begin(&self, path: &str) -> InFlight {
        let place = Place {
            handler: self.handler(path),
            service: String::new(),
        };
        let gauge = self.in_flight.get_or_create_owned(&place);
        gauge.inc();
        InFlight(gauge)
    }

    /// Records an answer.
    pub fn observe(&self, path: &str, method: &Method, status: StatusCode, took: Duration) {
        let labels = Labels {
            code: status.as_u16(),
            handler: self.handler(path),
            method: known(method).to_owned(),
            service: String::new(),
        };
        self.duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    fn handler(&self, path: &str) -> String {
        if self.names_paths {
            path.to_owned()
        } else {
            "/".to_owned()
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Methods that anybody may make up would make as many series.
fn known(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::POST
        | Method::PUT
        | Method::HEAD
        | Method::DELETE
        | Method::PATCH
        | Method::OPTIONS => method.as_str(),
        _ => "other",
    }
}

//! Metrics of HTTP servers, under Flux's names.

use std::time::Duration;

use controller_kit::metrics::Metrics;
use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Prometheus' default buckets, in seconds.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Powers of ten from 100, in bytes.
const BYTES: [f64; 8] = [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The metrics of one server. Clones share their values.
#[derive(Clone, Debug)]
pub struct HttpMetrics {
    duration: Histograms,
    size: Histograms,
    in_flight: Family<Place, Gauge>,
    /// Paths can make very many series.
    names_paths: bool,
    /// Label for all paths where they are not named.
    any_path: &'static str,
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
        let histograms = |make: fn() -> Histogram| Histograms::new_with_constructor(make);
        let duration = histograms(|| Histogram::new(SECONDS));
        let size = histograms(|| Histogram::new(BYTES));
        let in_flight = Family::default();
        metrics.register(|registry| {
            registry.register(
                format!("{prefix}_http_request_duration_seconds"),
                "The latency of the HTTP requests",
                duration.clone(),
            );
            registry.register(
                format!("{prefix}_http_response_size_bytes"),
                "The size of the HTTP responses",
                size.clone(),
            );
            registry.register(
                format!("{prefix}_http_requests_inflight"),
                "The number of inflight requests being handled at the same time",
                in_flight.clone(),
            );
        });
        Self {
            duration,
            size,
            in_flight,
            names_paths,
            any_path: "/",
        }
    }

    /// Has this stand for all paths.
    pub fn standing_for_all(self, any_path: &'static str) -> Self {
        Self { any_path, ..self }
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

    /// Records an answer, which has no body.
    pub fn observe(&self, path: &str, method: &Method, status: StatusCode, took: Duration) {
        let labels = Labels {
            code: status.as_u16(),
            handler: self.handler(path),
            method: known(method).to_owned(),
            service: String::new(),
        };
        self.duration.get_or_create(&labels).observe(took.as_secs_f64());
        self.size.get_or_create(&labels).observe(0.0);
    }

    fn handler(&self, path: &str) -> String {
        if self.names_paths {
            path.to_owned()
        } else {
            self.any_path.to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_named_only_if_asked_for() {
        for (names_paths, expected) in [(true, "/hook/abc"), (false, "/hook/")] {
            let metrics = Metrics::new();
            let http =
                HttpMetrics::register(&metrics, "gotk_receiver", names_paths).standing_for_all("/hook/");
            let method = Method::from_bytes(b"MADEUP").unwrap();
            http.observe("/hook/abc", &method, StatusCode::OK, Duration::from_millis(1));
            let text = metrics.encode().unwrap();
            for metric in ["request_duration_seconds_count", "response_size_bytes_count"] {
                let line = format!(
                    "gotk_receiver_http_{metric}{{code=\"200\",handler=\"{expected}\",method=\"other\",service=\"\"}} 1"
                );
                assert!(text.contains(&line), "{text}");
            }
        }
    }
}

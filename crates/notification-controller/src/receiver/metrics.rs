//! What the server measures, under the names that Flux's has.

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
/// What stands for all paths.
const ANY_PATH: &str = "/hook/";

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// Clones share their values.
#[derive(Clone, Debug)]
pub struct HttpMetrics {
    duration: Histograms,
    size: Histograms,
    in_flight: Family<Place, Gauge>,
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

/// A call that is under way.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl HttpMetrics {
    /// Registers them. Paths of Receivers are named if asked for; those of nobody never are, as anybody can make them up.
    pub fn register(metrics: &Metrics, names_paths: bool) -> Self {
        let histograms = |make: fn() -> Histogram| Histograms::new_with_constructor(make);
        let all = Self {
            duration: histograms(|| Histogram::new(SECONDS)),
            size: histograms(|| Histogram::new(BYTES)),
            in_flight: Family::default(),
            names_paths,
        };
        metrics.register(|registry| {
            registry.register(
                "gotk_receiver_http_request_duration_seconds",
                "The latency of the HTTP requests",
                all.duration.clone(),
            );
            registry.register(
                "gotk_receiver_http_response_size_bytes",
                "The size of the HTTP responses",
                all.size.clone(),
            );
            registry.register(
                "gotk_receiver_http_requests_inflight",
                "The number of inflight requests being handled at the same time",
                all.in_flight.clone(),
            );
        });
        all
    }

    /// Counts a call until what is returned is dropped.
    pub fn begin(&self) -> InFlight {
        let place = Place {
            handler: ANY_PATH.to_owned(),
            service: String::new(),
        };
        let gauge = self.in_flight.get_or_create(&place).clone();
        gauge.inc();
        InFlight(gauge)
    }

    /// Records an answer; the path is that of a Receiver, if it is.
    pub fn observe(&self, path: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
        let path = path.filter(|_| self.names_paths);
        let labels = Labels {
            code: status.as_u16(),
            handler: path.unwrap_or(ANY_PATH).to_owned(),
            method: known(method).to_owned(),
            service: String::new(),
        };
        self.duration.get_or_create(&labels).observe(took.as_secs_f64());
        self.size.get_or_create(&labels).observe(0.0);
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
    fn only_paths_of_receivers_are_named_and_only_if_asked_for() {
        for (names_paths, expected) in [(true, "/hook/abc"), (false, "/hook/")] {
            let metrics = Metrics::new();
            let http = HttpMetrics::register(&metrics, names_paths);
            let method = Method::from_bytes(b"MADEUP").unwrap();
            http.observe(
                Some("/hook/abc"),
                &method,
                StatusCode::OK,
                Duration::from_millis(1),
            );
            let text = metrics.encode().unwrap();
            let line = format!(
                "gotk_receiver_http_request_duration_seconds_count{{code=\"200\",handler=\"{expected}\",method=\"other\",service=\"\"}} 1"
            );
            assert!(text.contains(&line), "{text}");
        }
    }
}

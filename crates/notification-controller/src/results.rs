//! Counts what became of notifications.

use controller_kit::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// `windlass_notifications_total`. Clones share their values.
#[derive(Clone, Debug, Default)]
pub struct Results(Family<Labels, Counter>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    provider_type: String,
    result: &'static str,
}

impl Results {
    /// Registers the metric.
    pub fn register(metrics: &Metrics) -> Self {
        let results = Self::default();
        metrics.register(|registry| {
            let help = "Attempts to send a notification, by type of provider and result: sent, failed (it is tried again) or dropped";
            registry.register("windlass_notifications", help, results.0.clone());
        });
        results
    }

    /// Begins the series of a type: Prometheus sees a counter grow only if it was there before.
    pub fn expect(&self, provider_type: &str) {
        for result in ["sent", "failed", "dropped"] {
            let labels = Labels {
                provider_type: provider_type.to_owned(),
                result,
            };
            drop(self.0.get_or_create(&labels));
        }
    }

    /// Counts one.
    pub fn count(&self, provider_type: &str, result: &'static str) {
        let labels = Labels {
            provider_type: provider_type.to_owned(),
            result,
        };
        self.0.get_or_create(&labels).inc();
    }
}

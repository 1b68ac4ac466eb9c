//! Images that were held against policies, counted.

use controller_kit::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// What came of an image and a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    Met,
    Warned,
    Refused,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    kind: &'static str,
    result: &'static str,
}

/// Counts. No label has what a tenant wrote.
pub(crate) struct Tally {
    kind: &'static str,
    images: Family<Labels, Counter>,
}

impl Tally {
    /// For objects of a kind that deliver.
    pub(crate) fn new(kind: &'static str, metrics: &Metrics) -> Self {
        let images = Family::default();
        metrics.register(|registry| {
            let help = "Images that were held against VerificationPolicies";
            registry.register("windlass_verified_images", help, images.clone());
        });
        Self { kind, images }
    }

    pub(crate) fn count(&self, outcome: Outcome) {
        let result = match outcome {
            Outcome::Met => "met",
            Outcome::Warned => "warned",
            Outcome::Refused => "refused",
        };
        let labels = Labels {
            kind: self.kind,
            result,
        };
        self.images.get_or_create(&labels).inc();
    }
}

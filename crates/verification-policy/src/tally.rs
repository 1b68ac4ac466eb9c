//! What was held against policies, counted.

use controller_kit::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// What came of an image or a source, and a policy.
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
#[derive(Clone)]
pub(crate) struct Tally {
    kind: &'static str,
    counts: Family<Labels, Counter>,
}

impl Tally {
    /// Of images, for objects of a kind that deliver.
    pub(crate) fn of_images(kind: &'static str, metrics: &Metrics) -> Self {
        let counts = Family::default();
        metrics.register(|registry| {
            let help = "Images that were held against VerificationPolicies";
            registry.register("windlass_verified_images", help, counts.clone());
        });
        Self { kind, counts }
    }

    /// Of sources.
    pub(crate) fn of_sources(metrics: &Metrics) -> Self {
        let counts = Family::default();
        metrics.register(|registry| {
            let help = "Revisions of sources that were held against VerificationPolicies";
            registry.register("windlass_verified_sources", help, counts.clone());
        });
        Self { kind: "", counts }
    }

    /// The same, for objects of a kind.
    pub(crate) fn of(&self, kind: &'static str) -> Self {
        Self {
            kind,
            counts: self.counts.clone(),
        }
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
        self.counts.get_or_create(&labels).inc();
    }
}

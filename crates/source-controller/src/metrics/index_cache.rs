//! Counts hits and misses of the cached indexes of Helm repositories, under Flux's name.

use artifact::store::ObjectKey;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

const HIT: &str = "cache_hit";
const MISS: &str = "cache_miss";

/// `gotk_cache_events_total`. Clones share their values.
#[derive(Clone, Default)]
pub(crate) struct IndexCache(Family<Labels, Counter>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    event_type: &'static str,
    name: String,
    namespace: String,
}

impl IndexCache {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "gotk_cache_events",
            "Whether the index that is kept of a Helm repository had the chart that was asked for",
            self.0.clone(),
        );
    }

    /// Counts a question about a chart of a repository.
    pub(crate) fn count(&self, repository: &ObjectKey, is_hit: bool) {
        let labels = |event_type| labels(event_type, &repository.namespace, &repository.name);
        // Both begin together: a rate wants a beginning.
        let (hit, miss) = (labels(HIT), labels(MISS));
        let (hit, miss) = (
            self.0.get_or_create_owned(&hit),
            self.0.get_or_create_owned(&miss),
        );
        if is_hit {
            hit.inc()
        } else {
            miss.inc()
        };
    }

    /// Removes the series of a repository that is gone.
    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        for event_type in [HIT, MISS] {
            self.0.remove(&labels(event_type, namespace, name));
        }
    }
}

fn labels(event_type: &'static str, namespace: &str, name: &str) -> Labels {
    Labels {
        event_type,
        name: name.to_owned(),
        namespace: namespace.to_owned(),
    }
}

//! Metrics of the cache of cloud provider tokens, under the names of fluxcd/pkg's `cache`.
//!
//! The cache is asked at each scrape. Flux's events also name the object; ours are counted together, since objects share
//! tokens here.

use std::fmt;

use prometheus_client::collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Counters of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCacheCounts {
    /// Tokens that were there.
    pub hits: u64,
    /// Tokens that were not.
    pub misses: u64,
    /// Tokens that made room for others.
    pub evictions: u64,
    /// Tokens that were made.
    pub issued: u64,
    /// Tokens that could not be had.
    pub failures: u64,
    /// Tokens that are kept.
    pub kept: usize,
}

/// Asks a cache.
pub(super) struct Collector<F>(pub(super) F);

impl<F> fmt::Debug for Collector<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("token cache")
    }
}

impl<F: Fn() -> TokenCacheCounts + Send + Sync + 'static> collector::Collector for Collector<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = self.0();
        let mut events = encoder.encode_descriptor(
            "gotk_token_cache_events",
            "Total number of cache retrieval events",
            None,
            MetricType::Counter,
        )?;
        for (event, count) in [("cache_hit", counts.hits), ("cache_miss", counts.misses)] {
            ConstCounter::new(count).encode(events.encode_family(&[("event_type", event)])?)?;
        }
        let mut requests = encoder.encode_descriptor(
            "gotk_token_cache_requests",
            "Total number of cache requests, by whether there was a token in the end",
            None,
            MetricType::Counter,
        )?;
        let succeeded = counts.hits + counts.issued;
        for (status, count) in [("success", succeeded), ("failure", counts.failures)] {
            ConstCounter::new(count).encode(requests.encode_family(&[("status", status)])?)?;
        }
        let evictions = encoder.encode_descriptor(
            "gotk_token_cache_evictions",
            "Total number of cache evictions",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(counts.evictions).encode(evictions)?;
        let kept = encoder.encode_descriptor(
            "gotk_token_cached_items",
            "Total number of items in the cache",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(i64::try_from(counts.kept).unwrap_or(i64::MAX)).encode(kept)
    }
}

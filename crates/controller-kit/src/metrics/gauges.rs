//! Gauges that are read when someone asks for them.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// Labels and value of one series.
pub type Sample<'a> = (Vec<(&'static str, &'a str)>, u64);

/// Encodes a metric; none at all without samples, since it would be no valid text.
///
/// # Errors
/// When the text cannot be written.
pub fn encode<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = Sample<'a>>,
) -> fmt::Result {
    let mut samples = samples.into_iter().peekable();
    if samples.peek().is_none() {
        return Ok(());
    }
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in samples {
        // Gauges are signed or floats; nothing here comes near 2^63.
        let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        gauge.encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

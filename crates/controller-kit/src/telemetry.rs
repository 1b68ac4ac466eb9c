//! Logs, in the shape that Flux's controllers write (zap): one line per event, on standard error.
//!
//! In: `tracing` events and the fields of the spans around them. Out: `{"level","ts","logger"?,"msg",…}` or
//! columns for people. Credentials in URLs are masked on the way out; other secrets must not get this far.

mod line;

use std::io::Write as _;

use tracing::{Span, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, reload};

use crate::ObjectKey;
use crate::flags::{LogFlags, LogLevel};
use crate::jitter::random_bits;
use line::LineLayer;

/// Changes the level of a running process.
#[derive(Clone, Debug)]
pub struct LevelHandle(Option<reload::Handle<Targets, Registry>>);

impl LevelHandle {
    /// Logs at this level from now on.
    pub fn set(&self, level: LogLevel) {
        if let Some(handle) = &self.0
            && let Err(error) = handle.reload(targets(level))
        {
            tracing::error!(%error, "failed to change the log level");
        }
    }
}

/// Starts logging for the whole process, panics included. A second call changes nothing.
pub fn init(flags: &LogFlags) -> LevelHandle {
    let (filter, handle) = reload::Layer::new(targets(flags.log_level));
    let lines = LineLayer::new(flags.log_encoding, |line| {
        // A log that cannot be written has nowhere to be told of.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    });
    let first = Registry::default()
        .with(lines.with_filter(filter))
        .try_init()
        .is_ok();
    if first {
        std::panic::set_hook(Box::new(log_panic));
    }
    LevelHandle(first.then_some(handle))
}

/// The span of one reconciliation: every line within it names the object.
///
/// Its level is error so that it is there at every log level.
pub fn reconcile_span<K: kube::Resource<DynamicType = ()>>(key: &ObjectKey) -> Span {
    let (kind, group) = (K::kind(&()), K::group(&()));
    tracing::error_span!(
        "reconcile",
        controller = kind.to_lowercase(),
        controllerGroup = &*group,
        controllerKind = &*kind,
        namespace = key.namespace,
        name = key.name,
        reconcileID = random_id(),
    )
}

/// A random UUID, to tell one attempt from another in a log.
pub(crate) fn random_id() -> String {
    let (high, low) = (random_bits(), random_bits());
    let (first, second, third) = (high >> 32, (high >> 16) & 0xffff, high & 0x0fff);
    let (fourth, fifth) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    format!("{first:08x}-{second:04x}-4{third:03x}-{fourth:04x}-{fifth:012x}")
}

/// Libraries that tell of each request. The names are prefixes: "hyper" stands for hyper_util too.
const LIBRARIES: [&str; 12] = [
    "gix",
    "h2",
    "hyper",
    "kube_client",
    "kube_runtime",
    "mio",
    "oci_client",
    "reqwest",
    "rustls",
    "tokio",
    "tonic",
    "tower",
];

/// Our own crates log at the level that was asked for; libraries speak up only when something is wrong, unless
/// all is asked for.
fn targets(level: LogLevel) -> Targets {
    let (own, libraries) = match level {
        LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
        LogLevel::Info => (LevelFilter::INFO, LevelFilter::WARN),
        LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::INFO),
        LogLevel::Trace => (LevelFilter::TRACE, LevelFilter::DEBUG),
    };
    Targets::new()
        .with_default(own)
        .with_targets(LIBRARIES.map(|target| (target, libraries)))
}

/// Panics are bugs; they are logged as one line like everything else.
fn log_panic(info: &std::panic::PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    let message = info.payload_as_str().unwrap_or("no message");
    tracing::error!(panic = message, location, "panicked");
}

/// Needed by the layer: spans that can be looked up.
trait Spans: Subscriber + for<'span> LookupSpan<'span> {}
impl<S: Subscriber + for<'span> LookupSpan<'span>> Spans for S {}

#[cfg(test)]
mod tests;

//! Many small sources: all at once, and at rest.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use testkit::control_plane::ApiMetrics;
use testkit::process::Usage;
use testkit::{Registry, objects};

use super::bench::{Arguments, Bench, NAMESPACE};
use crate::bench::ready::all_ready;

const PATIENCE: Duration = Duration::from_secs(600);

/// Figures of one contestant.
pub struct Measured {
    /// From the first creation until all of `--sources` are Ready.
    pub all_ready: Duration,
    /// Until then.
    pub usage: Usage,
    /// Requests to the API server until then, by all of its clients.
    pub requests: ApiMetrics,
    /// Requests to the registry until then.
    pub registry_requests: usize,
    /// Requests to the API server at rest, by all of its clients.
    pub requests_at_rest: ApiMetrics,
    /// Requests to the registry at rest.
    pub registry_requests_at_rest: usize,
    /// Processor time in the time at rest.
    pub cpu_at_rest: Duration,
    /// Resident memory at the end of the time at rest, in bytes.
    pub resident_at_rest: u64,
}

/// Pushes `count` small artifacts.
pub async fn push(registry: &Registry, count: usize) -> Result<()> {
    let pushes = futures::stream::iter(0..count).map(|number| async move {
        let manifest = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-{number}\n");
        let files = [("map.yaml", manifest.as_str())];
        registry
            .push_files(&name(number), &["latest"], "main@sha1:0", &files)
            .await
    });
    pushes
        .buffer_unordered(8)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// Measures.
pub async fn run(bench: &Bench<'_>, registry: &Registry, arguments: &Arguments) -> Result<Measured> {
    let controller = bench.start().await?;
    let api_server = bench.control_plane;
    registry.reset_requests();
    let (before, start) = (api_server.api_metrics().await?, Instant::now());
    create(bench, registry, 0..arguments.sources)
        .await
        .with_context(|| controller.log_tails())?;
    let all_ready = start.elapsed();
    let requests = api_server.api_metrics().await?.since(&before);
    let (registry_requests, usage) = (registry.all_requests(), controller.usage()?[0]);
    create(bench, registry, arguments.sources..arguments.at_rest)
        .await
        .with_context(|| controller.log_tails())?;
    // What is left to do (events, the last watches) is not "at rest".
    tokio::time::sleep(Duration::from_secs(5)).await;
    registry.reset_requests();
    let (before, cpu) = (api_server.api_metrics().await?, controller.cpu()?);
    tokio::time::sleep(Duration::from_secs(arguments.rest)).await;
    Ok(Measured {
        all_ready,
        usage,
        requests,
        registry_requests,
        requests_at_rest: api_server.api_metrics().await?.since(&before),
        registry_requests_at_rest: registry.all_requests(),
        cpu_at_rest: controller.cpu()?.saturating_sub(cpu),
        resident_at_rest: controller.resident()?,
    })
}

/// Creates the sources of `numbers` and waits until all that there are, are Ready.
async fn create(bench: &Bench<'_>, registry: &Registry, numbers: std::ops::Range<usize>) -> Result<()> {
    let client = &bench.control_plane.client();
    let api = objects::api(client, "source.toolkit.fluxcd.io/v1", "OCIRepository", NAMESPACE);
    let total = numbers.end;
    let creations = futures::stream::iter(numbers).map(|number| async move {
        let name = name(number);
        let source = objects::oci_repository(NAMESPACE, &name, &registry.url(&name), "latest");
        objects::apply(client, &source).await
    });
    let creations = creations.buffer_unordered(8).try_for_each(|_| async { Ok(()) });
    let ready = tokio::time::timeout(PATIENCE, all_ready(api, total));
    let (created, ready) = tokio::join!(creations, ready);
    created?;
    ready.with_context(|| format!("not ready after {PATIENCE:?}"))?
}

fn name(number: usize) -> String {
    format!("app-{number}")
}

//! Benchmark of the controllers at rest.

use std::time::Duration;

use anyhow::Result;
use testkit::ControlPlane;
use testkit::control_plane::ApiMetrics;

use super::contestant::Running;
use super::figures::{Table, mebibytes};

/// Usage while nothing happened.
pub struct AtRest {
    /// Requests to the API server by all of its clients. A watch is counted when it ends.
    pub requests: ApiMetrics,
    /// How many requests the controllers sent, by their own count.
    pub own_requests: u64,
    /// Processor time of the controllers.
    pub cpu: Duration,
    /// Resident memory of the controllers at the end, in bytes.
    pub resident: u64,
}

/// Time for the rest of a sync (events, the last watches), which is not "at rest".
const SETTLING: Duration = Duration::from_secs(5);

/// Looks on while nothing happens. This is the one place where time is meant to pass.
pub async fn look_on(control_plane: &ControlPlane, running: &Running, seconds: u64) -> Result<AtRest> {
    tokio::time::sleep(SETTLING).await;
    let (before, own, used) = (
        control_plane.api_metrics().await?,
        running.requests().await?,
        running.cpu()?,
    );
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let sent: u64 = running.requests().await?.iter().sum();
    Ok(AtRest {
        requests: control_plane.api_metrics().await?.since(&before),
        own_requests: sent.saturating_sub(own.iter().sum()),
        cpu: running.cpu()?.saturating_sub(used),
        resident: running.resident()?,
    })
}

/// Prints the rows of it.
pub fn rows<T>(table: &Table<'_, T>, seconds: u64, of: impl Fn(&T) -> &AtRest + Copy) {
    table.row(
        &format!("API requests in {seconds} s at rest, all clients"),
        move |m| of(m).requests.total().to_string(),
    );
    table.row("– of what is measured, by its own count", move |m| {
        of(m).own_requests.to_string()
    });
    table.row(&format!("CPU in {seconds} s at rest"), move |m| {
        format!("{} ms", of(m).cpu.as_millis())
    });
    table.row("memory at rest", move |m| mebibytes(of(m).resident));
}

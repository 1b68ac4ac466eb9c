//! The report of `bench-sync`.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use testkit::control_plane::ApiMetrics;

use super::Arguments;
use super::scenario::Measured;
use crate::bench::figures::{Table, line, mebibytes, percentile, seconds};

/// Prints what was measured of each contestant, side by side.
pub fn print(arguments: &Arguments, results: &[Measured]) {
    let title = format!("{} pairs, 4 objects each", arguments.pairs);
    let table = Table::new(&title, results, |measured| measured.name);
    let rest = arguments.rest;
    table.row("all Ready", |m| seconds(m.all_ready));
    table.row("source-controller, peak memory", |m| {
        mebibytes(m.source.peak_resident_bytes)
    });
    table.row("apply- or kustomize-controller, peak memory", |m| {
        mebibytes(m.apply.peak_resident_bytes)
    });
    table.row("source-controller, CPU", |m| seconds(m.source.cpu_time));
    table.row("apply- or kustomize-controller, CPU", |m| {
        seconds(m.apply.cpu_time)
    });
    table.row("API requests, all clients", |m| m.requests.total().to_string());
    table.row(&format!("API requests in {rest} s at rest, all clients"), |m| {
        m.requests_at_rest.total().to_string()
    });
    table.row(&format!("CPU of both in {rest} s at rest"), |m| {
        format!("{} ms", m.cpu_at_rest.as_millis())
    });
    table.row("memory of both at rest", |m| mebibytes(m.resident_at_rest));
    table.row("push to Ready, median", |m| percentile(&m.pushes, 50));
    table.row("push to Ready, 95th percentile", |m| percentile(&m.pushes, 95));
    line("\nAPI requests until all were Ready (from the API server's metrics, all clients):\n");
    requests(results, 10, |measured| &measured.requests);
    line("\nThe same at rest:\n");
    requests(results, 1, |measured| &measured.requests_at_rest);
}

/// Prints the requests of which some contestant saw at least `least`.
fn requests(results: &[Measured], least: u64, of: impl Fn(&Measured) -> &ApiMetrics) {
    let table = Table::new("request", results, |measured| measured.name);
    let all = results
        .iter()
        .flat_map(|measured| of(measured).iter().map(|(key, _)| key));
    let mut keys: Vec<_> = all.collect::<BTreeSet<_>>().into_iter().collect();
    let count = |measured: &Measured, key: &(String, String)| of(measured).count(&key.0, &key.1);
    keys.sort_by_key(|key| Reverse(results.iter().map(|m| count(m, key)).sum::<u64>()));
    for key in keys
        .into_iter()
        .filter(|key| results.iter().any(|m| count(m, key) >= least))
    {
        table.row(&format!("{} {}", key.0, key.1), |m| count(m, key).to_string());
    }
}

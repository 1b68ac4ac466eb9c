//! The report of `bench-sync`.

use super::arguments::Arguments;
use super::scenario::Measured;
use crate::bench::at_rest;
use crate::bench::figures::{Table, line, mebibytes, percentile, requests, seconds};

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
    let pairs = arguments.pairs.max(1) as f64;
    table.row("API requests of both controllers, by their own count", |m| {
        m.own_requests.to_string()
    });
    table.row("– for each pair", |m| {
        format!("{:.1}", m.own_requests as f64 / pairs)
    });
    at_rest::rows(&table, rest, |m| &m.rest);
    table.row("push to Ready, median", |m| percentile(&m.pushes, 50));
    table.row("push to Ready, 95th percentile", |m| percentile(&m.pushes, 95));
    line("\nAPI requests until all were Ready (from the API server's metrics, all clients):\n");
    requests(results, |m| m.name, 10, |m| &m.requests);
    line("\nThe same at rest:\n");
    requests(results, |m| m.name, 1, |m| &m.rest.requests);
}

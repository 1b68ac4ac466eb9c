//! The report of `bench-source`.

use super::bench::Arguments;
use super::large;
use super::measured::Measured;
use crate::bench::figures::{Table, line, mebibytes, seconds};

/// Prints what was measured of each contestant, side by side.
pub fn print(arguments: &Arguments, results: &[Measured]) {
    let table = Table::new("source-controller", results, |measured| measured.name);
    table.row("started, nothing to do: peak memory", |m| mebibytes(m.idle));
    many(&table, arguments);
    for size in 0..2 {
        one(&table, results, "Git repository", "another commit", move |m| {
            &m.git[size]
        });
    }
    for size in 0..2 {
        one(&table, results, "index.yaml", "another index", move |m| {
            &m.index[size]
        });
    }
    line("");
}

fn many(table: &Table<'_, Measured>, arguments: &Arguments) {
    let sources = arguments.sources;
    table.row(&format!("{sources} OCIRepositories at once: all Ready"), |m| {
        seconds(m.many.all_ready)
    });
    table.row("– peak memory", |m| mebibytes(m.many.usage.peak_resident_bytes));
    table.row("– CPU", |m| seconds(m.many.usage.cpu_time));
    table.row("– API requests, all clients", |m| {
        m.many.requests.total().to_string()
    });
    table.row("– registry requests", |m| m.many.registry_requests.to_string());
    let (at_rest, rest) = (arguments.at_rest.max(sources), arguments.rest);
    table.row(
        &format!("{at_rest} at rest for {rest} s: API requests, all clients"),
        |m| m.many.requests_at_rest.total().to_string(),
    );
    table.row("– registry requests", |m| {
        m.many.registry_requests_at_rest.to_string()
    });
    table.row("– CPU", |m| format!("{} ms", m.many.cpu_at_rest.as_millis()));
    table.row("– memory", |m| mebibytes(m.many.resident_at_rest));
}

fn one(
    table: &Table<'_, Measured>,
    results: &[Measured],
    what: &str,
    again: &str,
    of: impl Fn(&Measured) -> &large::Measured + Copy,
) {
    let Some(size) = results.first().map(|m| of(m).mebibytes) else {
        return;
    };
    table.row(&format!("{what} of {size} MiB: Ready"), move |m| {
        seconds(of(m).first)
    });
    table.row("– peak memory", move |m| {
        mebibytes(of(m).usage.peak_resident_bytes)
    });
    table.row("– CPU", move |m| seconds(of(m).usage.cpu_time));
    table.row(&format!("– {again}: Ready"), move |m| seconds(of(m).second));
    table.row("– peak memory after it", move |m| {
        mebibytes(of(m).usage_after.peak_resident_bytes)
    });
}

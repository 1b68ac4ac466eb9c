//! Figures as Markdown.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use testkit::control_plane::ApiMetrics;

use super::Arguments;
use super::scenario::Measured;

/// Prints what was measured of each contestant, side by side.
#[expect(clippy::print_stdout, reason = "the report is this tool's output")]
pub fn print(arguments: &Arguments, results: &[Measured]) {
    let head: Vec<_> = results.iter().map(|result| result.name).collect();
    println!(
        "| {} pairs, 4 objects each | {} |",
        arguments.pairs,
        head.join(" | ")
    );
    println!("|---|{}", "---|".repeat(results.len()));
    let row = |name: &str, value: &dyn Fn(&Measured) -> String| {
        let values: Vec<_> = results.iter().map(value).collect();
        println!("| {name} | {} |", values.join(" | "));
    };
    row("all Ready", &|m| seconds(m.all_ready));
    row("source-controller, peak memory", &|m| {
        mebibytes(m.usage[0].1.peak_resident_bytes)
    });
    row("apply- or kustomize-controller, peak memory", &|m| {
        mebibytes(m.usage[1].1.peak_resident_bytes)
    });
    row("source-controller, CPU", &|m| seconds(m.usage[0].1.cpu_time));
    row("apply- or kustomize-controller, CPU", &|m| {
        seconds(m.usage[1].1.cpu_time)
    });
    row("API requests, all clients", &|m| m.requests.total().to_string());
    row(
        &format!("API requests in {} s at rest, all clients", arguments.rest),
        &|m| m.requests_at_rest.total().to_string(),
    );
    row(&format!("CPU of both in {} s at rest", arguments.rest), &|m| {
        format!("{} ms", m.cpu_at_rest.as_millis())
    });
    row("memory of both at rest", &|m| mebibytes(m.resident_at_rest));
    row("push to Ready, median", &|m| percentile(&m.pushes, 50));
    row("push to Ready, 95th percentile", &|m| percentile(&m.pushes, 95));
    println!("\nAPI requests until all were Ready (from the API server's metrics, all clients):\n");
    requests(results, &head, 10, |measured| &measured.requests);
    println!("\nThe same at rest:\n");
    requests(results, &head, 1, |measured| &measured.requests_at_rest);
}

/// Prints the requests of which some contestant saw at least `least`.
#[expect(clippy::print_stdout, reason = "the report is this tool's output")]
fn requests(results: &[Measured], head: &[&str], least: u64, of: impl Fn(&Measured) -> &ApiMetrics) {
    println!("| verb | resource | {} |", head.join(" | "));
    println!("|---|---|{}", "---|".repeat(results.len()));
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
        let counts: Vec<_> = results.iter().map(|m| count(m, key).to_string()).collect();
        println!("| {} | {} | {} |", key.0, key.1, counts.join(" | "));
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn percentile(sorted: &[Duration], percent: usize) -> String {
    let Some(last) = sorted.len().checked_sub(1) else {
        return "-".to_owned();
    };
    format!(
        "{} ms",
        sorted[(sorted.len() * percent / 100).min(last)].as_millis()
    )
}

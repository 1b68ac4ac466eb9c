//! Figures as Markdown: units, and a table with one column per contestant.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use testkit::control_plane::ApiMetrics;

/// A table that is printed row by row: `| name | value of the first | value of the second |`.
pub struct Table<'a, T> {
    results: &'a [T],
}

impl<'a, T> Table<'a, T> {
    /// Prints the head. `results` gives the columns, `name` their heads.
    pub fn new(title: &str, results: &'a [T], name: impl Fn(&T) -> &str) -> Self {
        let names: Vec<_> = results.iter().map(name).collect();
        line(&format!("| {title} | {} |", names.join(" | ")));
        line(&format!("|---|{}", "---|".repeat(results.len())));
        Self { results }
    }

    /// Prints a row.
    pub fn row(&self, name: &str, value: impl Fn(&T) -> String) {
        let values: Vec<_> = self.results.iter().map(value).collect();
        line(&format!("| {name} | {} |", values.join(" | ")));
    }
}

/// Prints the requests of which some contestant saw at least `least`, the most frequent first.
pub fn requests<T>(results: &[T], name: impl Fn(&T) -> &str, least: u64, of: impl Fn(&T) -> &ApiMetrics) {
    let table = Table::new("request", results, name);
    let all = results
        .iter()
        .flat_map(|measured| of(measured).iter().map(|(key, _)| key));
    let mut keys: Vec<_> = all.collect::<BTreeSet<_>>().into_iter().collect();
    let count = |measured: &T, key: &(String, String)| of(measured).count(&key.0, &key.1);
    keys.sort_by_key(|key| Reverse(results.iter().map(|m| count(m, key)).sum::<u64>()));
    for key in keys
        .into_iter()
        .filter(|key| results.iter().any(|m| count(m, key) >= least))
    {
        table.row(&format!("{} {}", key.0, key.1), |m| count(m, key).to_string());
    }
}

/// Prints one line of the report.
#[expect(clippy::print_stdout, reason = "the report is this tool's output")]
pub fn line(text: &str) {
    println!("{text}");
}

/// `1.25 s`.
pub fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

/// `12.5 MiB`.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// A percentile of sorted durations, in milliseconds; `-` of none.
pub fn percentile(sorted: &[Duration], percent: usize) -> String {
    let Some(last) = sorted.len().checked_sub(1) else {
        return "-".to_owned();
    };
    format!(
        "{} ms",
        sorted[(sorted.len() * percent / 100).min(last)].as_millis()
    )
}

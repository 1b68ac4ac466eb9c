//! Figures as Markdown: units, and a table with one column per contestant.

use std::time::Duration;

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

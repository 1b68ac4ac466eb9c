//! Figures as Markdown.

use std::fs;
use std::thread;
use std::time::Duration;

use super::measure::{Contestant, Usage};

/// Prints under which conditions the figures were taken.
#[expect(clippy::print_stdout, reason = "the report is this tool's output")]
pub fn head() {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    println!("{cores} cores, load {load} before the start\n");
}

/// Prints the times of a set of cases.
#[expect(clippy::print_stdout, reason = "the report is this tool's output")]
pub fn cases(name: &str, contestants: &[&Contestant], times: &[Vec<Duration>], in_process: &[Duration]) {
    println!(
        "| {name}, {} cases | median | 95th percentile | slowest |",
        in_process.len()
    );
    println!("|---|---|---|---|");
    let row = |name: &str, sorted: &[Duration]| {
        let [median, high, most] = [50, 95, 100].map(|percent| percentile(sorted, percent));
        println!("| {name} | {median} | {high} | {most} |");
    };
    for (contestant, times) in contestants.iter().zip(times) {
        row(&format!("{}, process", contestant.name), times);
    }
    row("windlass, in-process", in_process);
    println!();
}

/// Prints what one large build took.
#[expect(clippy::print_stdout, reason = "the report is this tool's output")]
pub fn large(name: &str, contestants: &[&Contestant], usages: &[Usage]) {
    println!("| {name} | time | peak memory |\n|---|---|---|");
    for (contestant, usage) in contestants.iter().zip(usages) {
        let mebibytes = usage.peak_resident_bytes as f64 / f64::from(1 << 20);
        println!(
            "| {} | {:.3} s | {mebibytes:.1} MiB |",
            contestant.name,
            usage.time.as_secs_f64()
        );
    }
    println!();
}

fn percentile(sorted: &[Duration], percent: usize) -> String {
    let Some(last) = sorted.len().checked_sub(1) else {
        return "-".to_owned();
    };
    let time = sorted[(sorted.len() * percent / 100).min(last)];
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

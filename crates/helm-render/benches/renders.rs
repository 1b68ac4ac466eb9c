//! Renders charts that are loaded and parsed once, and prints how long each took with new values, in nanoseconds: the
//! median of several renders.
//!
//! The argument is a file with a line for each chart: the arguments of `helm template`, as JSON. `make bench-render` writes it.
//! Without an argument there is nothing to measure.

#[path = "../tests/support/command.rs"]
mod command;

use std::time::Instant;

use helm_chart::Helm;

/// How often a chart is rendered. Enough that the first renders, which fill caches, do not count.
const RENDERS: usize = 15;

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn main() {
    // Cargo adds `--bench`.
    let Some(list) = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"))
    else {
        return;
    };
    for line in std::fs::read_to_string(list).expect("a list of charts").lines() {
        println!("{}", median(line));
    }
}

fn median(line: &str) -> u128 {
    let arguments: Vec<String> = serde_json::from_str(line).expect("JSON");
    let mut prepared = command::prepare(&arguments, Helm::V4).expect("the real helm renders it");
    let mut times = Vec::with_capacity(RENDERS);
    for round in 0..RENDERS {
        prepared.values.insert("round".to_owned(), round.into());
        let start = Instant::now();
        // A schema may refuse the new value; that takes time too.
        let text = prepared.render();
        times.push(start.elapsed().as_nanos());
        drop(std::hint::black_box(text));
    }
    times.sort_unstable();
    times[RENDERS / 2]
}

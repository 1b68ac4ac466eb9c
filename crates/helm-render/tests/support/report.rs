//! Runs many cases on all cores and says which fail.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many cases of each group pass, and what is wrong with the others.
#[derive(Debug, Default)]
pub struct Report {
    groups: BTreeMap<String, (usize, usize)>,
    failures: Vec<(String, String)>,
}

impl Report {
    /// Checks every case; `check` gives its group, its name and what is wrong with it.
    pub fn new<T: Sync>(
        cases: &[T],
        check: impl Fn(&T) -> (String, String, Result<(), String>) + Sync,
    ) -> Self {
        let report = Mutex::new(Self::default());
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (group, name, outcome) = check(case);
                let mut report = report.lock().expect("no check panics");
                let counts = report.groups.entry(group).or_default();
                counts.1 += 1;
                match outcome {
                    Ok(()) => counts.0 += 1,
                    Err(why) => report.failures.push((name, why)),
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
                scope.spawn(work);
            }
        });
        let mut report = report.into_inner().expect("no check panics");
        report.failures.sort();
        report
    }

    /// How many pass.
    pub fn passed(&self) -> usize {
        self.groups.values().map(|(passed, _)| passed).sum()
    }

    /// Prints what fails, with details, then names and figures.
    #[expect(clippy::print_stdout, reason = "what fails is shown as the test ends")]
    pub fn print(&self, title: &str) {
        for (name, why) in &self.failures {
            println!("FAIL {title} {name}\n{why}\n");
        }
        let all: usize = self.groups.values().map(|(_, all)| all).sum();
        for (group, (passed, all)) in &self.groups {
            println!("{title}, {group}: {passed} of {all}");
        }
        for (name, _) in &self.failures {
            println!("  fails: {name}");
        }
        println!("{title}: {} of {all} pass", self.passed());
    }
}

/// Says where two texts part.
pub fn difference(expected: &str, actual: &str) -> Result<(), String> {
    if expected == actual {
        return Ok(());
    }
    let first = expected
        .lines()
        .zip(actual.lines())
        .take_while(|(one, other)| one == other)
        .count();
    let mut said = format!("line {}:", first + 1);
    for (sign, text) in [('-', expected), ('+', actual)] {
        for line in text.split('\n').skip(first.saturating_sub(2)).take(8) {
            let line: String = line.chars().take(400).collect();
            said.push_str(&format!("\n{sign}{line}"));
        }
    }
    Err(said)
}

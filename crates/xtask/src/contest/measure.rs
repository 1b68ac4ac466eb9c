//! Starting programs and taking their time.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context as _, Result, bail, ensure};

/// Work of each program.
pub trait Work {
    /// The command line for one of them.
    fn command(&self, binary: &Path) -> Command;

    /// Input line of the engine's measuring program.
    fn line(&self) -> String;
}

/// A program that does it.
#[derive(Debug)]
pub struct Contestant {
    /// Its name in the report.
    pub name: &'static str,
    binary: PathBuf,
}

/// Cost of one large piece of work.
#[derive(Debug)]
pub struct Usage {
    /// From the start to the end of the process.
    pub time: Duration,
    /// The highest resident set size that was seen.
    pub peak_resident_bytes: u64,
    /// Lines of the result, by which both are seen to have done the same.
    pub lines: usize,
}

impl Contestant {
    pub fn new(name: &'static str, binary: &Path) -> Result<Self> {
        let binary = binary
            .canonicalize()
            .with_context(|| format!("there is no {}", binary.display()))?;
        Ok(Self { name, binary })
    }

    fn command(&self, work: &impl Work) -> Command {
        let mut command = work.command(&self.binary);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }
}

/// Does every case with each contestant in turn, and returns for each the median times of the cases, sorted.
pub fn each(contestants: &[&Contestant], cases: &[impl Work], runs: usize) -> Result<Vec<Vec<Duration>>> {
    let mut times = vec![Vec::new(); contestants.len()];
    for case in cases {
        let mut of_case = vec![Vec::new(); contestants.len()];
        for _ in 0..runs.max(1) {
            for (contestant, times) in contestants.iter().zip(&mut of_case) {
                let start = Instant::now();
                contestant.command(case).output()?;
                times.push(start.elapsed());
            }
        }
        for (all, of_case) in times.iter_mut().zip(&mut of_case) {
            of_case.sort();
            all.push(of_case[of_case.len() / 2]);
        }
    }
    times.iter_mut().for_each(|times| times.sort());
    Ok(times)
}

/// Does every case in one process of ours, the bench target of an engine, and returns the median times of the cases, sorted.
pub fn in_process(engine: &str, bench: &str, cases: &[impl Work], scratch: &Path) -> Result<Vec<Duration>> {
    let list = scratch.join("cases.txt");
    let lines = cases.iter().map(|case| case.line() + "\n");
    fs::write(&list, lines.collect::<String>())?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsStr::new("cargo").to_owned());
    let output = Command::new(cargo)
        .args([
            "bench",
            "--quiet",
            "--locked",
            "--package",
            engine,
            "--bench",
            bench,
            "--",
        ])
        .arg(&list)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the bench of {engine} failed");
    let mut times = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        times.push(Duration::from_nanos(line.parse()?));
    }
    ensure!(
        times.len() == cases.len(),
        "{} of {} cases were measured",
        times.len(),
        cases.len()
    );
    times.sort();
    Ok(times)
}

/// Does a large case once with each contestant.
pub fn once(contestants: &[&Contestant], case: &impl Work) -> Result<Vec<Usage>> {
    let usages = contestants.iter().map(|contestant| usage(contestant, case));
    let usages = usages.collect::<Result<Vec<_>>>()?;
    if let [first, rest @ ..] = &usages[..]
        && let Some(other) = rest.iter().find(|other| other.lines != first.lines)
    {
        bail!("the results have {} and {} lines", first.lines, other.lines);
    }
    Ok(usages)
}

fn usage(contestant: &Contestant, case: &impl Work) -> Result<Usage> {
    let start = Instant::now();
    let mut child = contestant.command(case).spawn()?;
    let stdout = child.stdout.take().context("no standard output")?;
    // The result is read beside, so that a full pipe holds no one up.
    let reader = thread::spawn(move || std::io::read_to_string(stdout));
    let mut peak_resident_bytes = 0;
    while child.try_wait()?.is_none() {
        peak_resident_bytes = peak_resident_bytes.max(peak(&child));
        thread::sleep(Duration::from_millis(1));
    }
    let time = start.elapsed();
    ensure!(child.wait()?.success(), "{} failed", contestant.name);
    let text = reader
        .join()
        .map_err(|_| anyhow::anyhow!("the reader failed"))??;
    Ok(Usage {
        time,
        peak_resident_bytes,
        lines: text.lines().count(),
    })
}

/// The highest resident set size so far; it can be read only while the process runs, so the last millisecond is lost.
fn peak(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

//! Starting builds and taking their time.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context as _, Result, bail, ensure};

use super::cases::Case;

/// A program that builds.
#[derive(Debug)]
pub struct Contestant {
    /// Its name in the report.
    pub name: &'static str,
    binary: PathBuf,
}

/// What one large build took.
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

    fn command(&self, case: &Case) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("build").arg(case.folder()).args(&case.flags);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }
}

/// Builds every case with each contestant in turn, and returns for each the median times of the cases, sorted.
pub fn each(contestants: &[&Contestant], cases: &[Case], runs: usize) -> Result<Vec<Vec<Duration>>> {
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

/// Builds every case in one process of ours, in memory, and returns the median times of the cases, sorted.
pub fn in_process(cases: &[Case], scratch: &Path) -> Result<Vec<Duration>> {
    let line = |case: &Case| {
        format!(
            "{}\t{}\t{}\n",
            case.tree.display(),
            case.path,
            case.flags.join(" ")
        )
    };
    let list = scratch.join("cases.txt");
    fs::write(&list, cases.iter().map(line).collect::<String>())?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsStr::new("cargo").to_owned());
    let output = Command::new(cargo)
        .args([
            "bench",
            "--quiet",
            "--locked",
            "--package",
            "kustomize-build",
            "--bench",
            "cases",
            "--",
        ])
        .arg(&list)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the bench of kustomize-build failed");
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

/// Builds a large case once with each contestant.
pub fn once(contestants: &[&Contestant], case: &Case) -> Result<Vec<Usage>> {
    let usages = contestants.iter().map(|contestant| build(contestant, case));
    let usages = usages.collect::<Result<Vec<_>>>()?;
    if let [first, rest @ ..] = &usages[..]
        && let Some(other) = rest.iter().find(|other| other.lines != first.lines)
    {
        bail!("the results have {} and {} lines", first.lines, other.lines);
    }
    Ok(usages)
}

fn build(contestant: &Contestant, case: &Case) -> Result<Usage> {
    let start = Instant::now();
    let mut child = contestant.command(case).spawn()?;
    let stdout = child.stdout.take().context("no standard output")?;
    // The result is read beside, so that a full pipe holds nobody up.
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

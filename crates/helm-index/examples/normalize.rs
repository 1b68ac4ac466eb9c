//! Normalizes the indexes that are named on standard input: `x` gives `x.ours` or `x.ours-error`. With `--measure FILE` it
//! says how long that takes and how much memory it needs at most.

use std::fs::File;
use std::io::BufRead as _;
use std::time::Instant;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--measure") {
        return measure(&arguments.next().expect("a file"));
    }
    for path in std::io::stdin().lock().lines() {
        let path = path?;
        let output = File::create(format!("{path}.ours"))?;
        if let Err(error) = normalize(&path, &output) {
            std::fs::remove_file(format!("{path}.ours"))?;
            std::fs::write(format!("{path}.ours-error"), error.to_string())?;
        }
    }
    Ok(())
}

fn normalize(path: &str, output: &File) -> Result<helm_index::Summary, helm_index::Error> {
    helm_index::normalize(&mut File::open(path)?, tempfile::tempfile()?, output)
}

#[allow(clippy::print_stdout, reason = "this is what it is for")]
fn measure(path: &str) -> std::io::Result<()> {
    let before = peak()?;
    let began = Instant::now();
    let output = tempfile::NamedTempFile::new()?;
    let summary = normalize(path, output.as_file()).map_err(std::io::Error::other)?;
    let size = std::fs::metadata(path)?.len();
    println!(
        "{size} bytes, {} charts, {} versions: {:?}, peak {} KiB of memory (before: {before} KiB)",
        summary.charts,
        summary.versions,
        began.elapsed(),
        peak()?
    );
    let began = Instant::now();
    let found = helm_index::find(output.reopen()?, "chart-0009").map_err(std::io::Error::other)?;
    println!(
        "a chart of {} versions found in {:?}",
        found.map_or(0, |all| all.len()),
        began.elapsed()
    );
    Ok(())
}

/// Most memory that this process had, in KiB.
fn peak() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.and_then(|number| number.parse().ok()).unwrap_or_default())
}

//! Process metrics of the kernel, read from /proc at each scrape.
//!
//! The names are those of the Prometheus client libraries. Where there is no /proc nothing is exposed.

use std::fs;

use prometheus_client::collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Ticks per second in /proc: USER_HZ is 100 in the Linux ABI of every architecture that we build for.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(super) struct Collector;

/// One look at /proc.
#[derive(Debug, Default, PartialEq)]
struct Sample {
    cpu_seconds: f64,
    start_time_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    open_files: u64,
    max_files: u64,
}

impl collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(sample) = Sample::take() else {
            return Ok(());
        };
        let cpu = ConstCounter::new(sample.cpu_seconds);
        let help = "Total user and system CPU time spent in seconds";
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?)?;
        let gauges = [
            (
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds",
                sample.start_time_seconds,
            ),
            (
                "process_resident_memory_bytes",
                "Resident memory size in bytes",
                sample.resident_bytes as f64,
            ),
            (
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes",
                sample.virtual_bytes as f64,
            ),
            (
                "process_open_fds",
                "Number of open file descriptors",
                sample.open_files as f64,
            ),
            (
                "process_max_fds",
                "Maximum number of open file descriptors",
                sample.max_files as f64,
            ),
        ];
        for (name, help, value) in gauges {
            ConstGauge::new(value).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Gauge,
            )?)?;
        }
        Ok(())
    }
}

impl Sample {
    fn take() -> Option<Self> {
        let (cpu_ticks, start_ticks) = parse_stat(&fs::read_to_string("/proc/self/stat").ok()?)?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let boot = fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|stat| boot_time(&stat))
            .unwrap_or(0.0);
        let open_files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
        let limits = fs::read_to_string("/proc/self/limits").ok()?;
        Some(Self {
            cpu_seconds: cpu_ticks / TICKS_PER_SECOND,
            start_time_seconds: boot + start_ticks / TICKS_PER_SECOND,
            resident_bytes: kibibytes(&status, "VmRSS:")? * 1024,
            virtual_bytes: kibibytes(&status, "VmSize:")? * 1024,
            open_files: open_files.saturating_sub(1), // one was open for counting
            max_files: max_open_files(&limits).unwrap_or(0),
        })
    }
}

/// User and system ticks together, and the tick at which the process started: fields 14, 15 and 22 of
/// proc_pid_stat(5). The second field is a program name in parentheses that may hold anything, so counting
/// begins after the last parenthesis.
fn parse_stat(stat: &str) -> Option<(f64, f64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    Some((field(14)? + field(15)?, field(22)?))
}

fn kibibytes(status: &str, key: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

fn boot_time(stat: &str) -> Option<f64> {
    stat.lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

fn max_open_files(limits: &str) -> Option<u64> {
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let stat =
            "7 (a) (b c)) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 3 0 4200 0 0 18446744073709551615";
        assert_eq!(parse_stat(stat), Some((200.0, 4200.0)));
    }

    #[test]
    fn this_process_has_plausible_values() {
        let sample = Sample::take().expect("tests run on Linux");
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(sample.start_time_seconds);
        let age = SystemTime::now().duration_since(started).unwrap_or_default();
        assert!(age < Duration::from_secs(24 * 3600), "{sample:?}");
        assert!(
            sample.resident_bytes > 1 << 20 && sample.resident_bytes < sample.virtual_bytes,
            "{sample:?}"
        );
        assert!(
            sample.open_files >= 3 && sample.open_files < sample.max_files,
            "{sample:?}"
        );
    }
}

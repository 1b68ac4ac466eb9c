//! A large index does not show in memory. In a process of its own, because that is what the kernel counts.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

use std::fs::File;
use std::io::{BufWriter, Seek as _, Write as _};

const CHARTS: usize = 100;
const VERSIONS: usize = 200;
/// Far less than the index, which is more than 16 MB.
const LIMIT_KIB: u64 = 12 << 10;

/// Most memory that this process had, in KiB; None where the kernel does not say.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn write_index(file: &File) {
    let mut out = BufWriter::new(file);
    writeln!(out, "apiVersion: v1\nentries:").unwrap();
    let description = "what it does and why one would want that, in many words. ".repeat(10);
    for chart in 0..CHARTS {
        writeln!(out, "  chart-{chart:04}:").unwrap();
        for version in 0..VERSIONS {
            writeln!(
                out,
                "  - apiVersion: v2\n    name: chart-{chart:04}\n    version: {version}.0.0\n    description: {description}\n    \
                 created: \"2024-05-21T14:13:30Z\"\n    keywords:\n    - one\n    - two\n    digest: {version:064x}\n    urls:\n    \
                 - https://charts.example.com/chart-{chart:04}-{version}.0.0.tgz"
            )
            .unwrap();
        }
    }
    out.flush().unwrap();
}

#[test]
fn a_large_index_needs_little_memory() {
    let mut input = tempfile::tempfile().unwrap();
    write_index(&input);
    let size = input.stream_position().unwrap();
    assert!(size > 16_000_000, "{size}");
    input.rewind().unwrap();
    let mut output = tempfile::tempfile().unwrap();

    let before = peak();
    let summary = helm_index::normalize(&mut input, tempfile::tempfile().unwrap(), &mut output).unwrap();
    output.rewind().unwrap();
    let versions = helm_index::find(&output, "chart-0042").unwrap().unwrap();
    assert_eq!((summary.versions, versions.len()), (CHARTS * VERSIONS, VERSIONS));
    assert_eq!(versions[0].version, "199.0.0");
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before < LIMIT_KIB, "{} KiB", after - before);
    }
}

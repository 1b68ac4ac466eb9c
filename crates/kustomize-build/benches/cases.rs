//! Builds folders in memory and prints how long each took, in nanoseconds: the median of several builds.
//!
//! The argument is a file with a line for each folder: the root of its tree, the folder below it, and flags, with tabs
//! between. `make bench-build` writes it. Without an argument there is nothing to measure.

use std::fs;
use std::path::Path;
use std::time::Instant;

use kustomize_build::{DefaultOrder, LoadRestrictions, MemoryFs, Options, build};

/// How often a folder is built. Enough that the first builds, which fill caches, do not count.
const BUILDS: usize = 15;

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn main() {
    // Cargo adds `--bench`.
    let Some(list) = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"))
    else {
        return;
    };
    for line in fs::read_to_string(list).expect("a list of folders").lines() {
        println!("{}", median(line));
    }
}

fn median(line: &str) -> u128 {
    let mut parts = line.split('\t');
    let mut part = || parts.next().unwrap_or_default();
    let (root, folder, flags) = (part(), part(), part());
    let mut files = MemoryFs::default();
    read(&mut files, Path::new(root), "");
    let options = options(flags);
    let mut times = Vec::with_capacity(BUILDS);
    for _ in 0..BUILDS {
        let start = Instant::now();
        // Refusals are cases too.
        let text = build(&files, folder, &options).map(|built| built.to_yaml());
        times.push(start.elapsed().as_nanos());
        drop(std::hint::black_box(text));
    }
    times.sort_unstable();
    times[BUILDS / 2]
}

fn options(flags: &str) -> Options {
    let mut options = Options::default();
    if flags.contains("LoadRestrictionsNone") {
        options.load_restrictions = LoadRestrictions::None;
    }
    if flags.contains("--reorder none") {
        options.default_order = DefaultOrder::Fifo;
    }
    options
}

fn read(files: &mut MemoryFs, root: &Path, folder: &str) {
    for entry in fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        // Links are followed; those that lead nowhere are part of some cases.
        match fs::metadata(root.join(&path)) {
            Ok(found) if found.is_dir() => read(files, root, &path),
            Ok(_) => files.insert(path.as_str(), fs::read(root.join(&path)).expect("a file")),
            Err(_) => {}
        }
    }
}

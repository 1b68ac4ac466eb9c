//! Fuzzes the build with generated trees.
//!
//! Always, and quickly: no tree and no bytes make it panic or run long. With `KUSTOMIZE` set to the real kustomize
//! (`make fuzz-build`), every tree is built by both and the answers are compared, bytes and words. A tree that they
//! answer differently is made small and printed; add it to tests/cases when it is fixed.
//!
//! `CASES` is the number of trees, `SEED` the start; a failure names its tree's seed, and `TREE=seed` runs that one only.

mod differential;
mod generate;
mod mutate;
mod oracle;
mod random;
mod tree;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use kustomize_build::{MemoryFs, Options, build};
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestCaseError, TestRunner};

use crate::oracle::Answer;
use crate::random::Random;
use crate::tree::{Tree, Trees};

/// Time limit for a build of a few files, with room for a busy machine and unoptimised code.
const LONG: Duration = Duration::from_secs(10);

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A runner whose trees are the same in every run.
fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(number("SEED").unwrap_or(1)),
        ..Config::default()
    })
}

/// Builds, and tells a panic and a build that takes long from an answer.
fn answer(files: &MemoryFs, folder: &str) -> Result<Answer, String> {
    let start = Instant::now();
    let built = catch_unwind(AssertUnwindSafe(|| build(files, folder, &Options::default())));
    if start.elapsed() > LONG {
        return Err(format!("took {:?}", start.elapsed()));
    }
    match built {
        Ok(Ok(built)) => Ok(Ok(built.to_yaml())),
        Ok(Err(error)) => Ok(Err(error.to_string().trim_end().to_owned())),
        Err(_) => Err("panicked".to_owned()),
    }
}

#[test]
fn generated_trees_build_without_a_panic() {
    let check = |tree: Tree| {
        answer(&tree.file_system(), &tree.folder)
            .map(drop)
            .map_err(|why| TestCaseError::fail(format!("{why}: {}", tree.show())))
    };
    runner(number("CASES").map_or(400, |cases| cases as u32))
        .run(&Trees, check)
        .expect("every tree has an answer");
}

#[test]
fn files_with_changed_bytes_build_without_a_panic() {
    let check = |tree: Tree| {
        let mut random = Random::new(tree.seed);
        let spoilt = random.below(tree.files.len().max(1));
        let mut files = MemoryFs::default();
        for (position, (path, content)) in tree.contents().enumerate() {
            let mut content = content.into_bytes();
            if position == spoilt {
                mutate::mutate(&mut random, &mut content);
            }
            files.insert(path, content);
        }
        answer(&files, &tree.folder)
            .map(drop)
            .map_err(|why| TestCaseError::fail(format!("{why}: {}", tree.show())))
    };
    runner(number("CASES").map_or(400, |cases| cases as u32))
        .run(&Trees, check)
        .expect("every tree has an answer");
}

#[test]
fn generated_trees_build_as_the_real_kustomize_builds_them() {
    let Some(program) = std::env::var_os("KUSTOMIZE") else {
        println!("KUSTOMIZE is not set: skipped");
        return;
    };
    differential::run(program.into());
}

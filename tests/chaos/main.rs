//! Chaos: revisions are pushed while controllers are killed, the API server dies and etcd hangs, all at random. In the end the
//! cluster is what Git says, what belongs to others is as it was, and the inventories name what is there and nothing else. Releases
//! have a run of their own.
//!
//! A control plane of its own, since it does not survive this unharmed. `REVISIONS` and `SEED` choose how long and what; a seed
//! repeats the choices, if not the moments. `make chaos` is the long run, with choices of its own each time.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's output is shown when it fails"
)]

mod cluster;
mod fault;
mod model;
mod random;
mod releases;
mod soak;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use testkit::git::Repository;

use cluster::Cluster;
use fault::Fault;
use model::Model;
use random::Random;

/// Revisions of a run in `cargo test`.
const REVISIONS: u64 = 15;
/// Seed of the random choices: always the same, so that an unrelated change is not stopped by a new find.
const SEED: u64 = 1;

#[test]
fn the_cluster_is_what_git_says_whatever_fails_meanwhile() {
    let seed = number("SEED").unwrap_or(SEED);
    let revisions = number("REVISIONS").unwrap_or(REVISIONS);
    println!("REVISIONS={revisions} SEED={seed}");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    if let Err(error) = runtime.block_on(chaos(seed, revisions)) {
        panic!("REVISIONS={revisions} SEED={seed}: {error:#}");
    }
}

#[test]
fn a_release_survives_the_death_of_its_controller_at_any_moment() {
    let seed = number("SEED").unwrap_or(SEED);
    let rounds = number("REVISIONS").unwrap_or(REVISIONS);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    if let Err(error) = runtime.block_on(releases::chaos(seed, rounds)) {
        panic!("REVISIONS={rounds} SEED={seed}: {error:#}");
    }
}

#[test]
#[ignore = "it takes HOURS; make soak"]
fn nothing_grows_and_nothing_is_lost_in_the_long_run() {
    let hours: f64 = std::env::var("HOURS")
        .ok()
        .and_then(|hours| hours.parse().ok())
        .unwrap_or(2.0);
    let apps = number("APPS").unwrap_or(1000);
    let seed = number("SEED").unwrap_or(SEED);
    let rate = number("COMMITS").unwrap_or(1);
    println!("HOURS={hours} APPS={apps} COMMITS={rate} SEED={seed}");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let duration = Duration::from_secs_f64(hours * 3600.0);
    let apps = usize::try_from(apps).expect("so many fit into memory");
    if let Err(error) = runtime.block_on(soak::soak(duration, apps, rate, seed)) {
        panic!("HOURS={hours} APPS={apps} COMMITS={rate} SEED={seed}: {error:#}");
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

async fn chaos(seed: u64, revisions: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut model = Model::new(&mut random);
    let mut cluster = Cluster::start(&model).await?;
    let outcome = rounds(&mut cluster, &mut model, &mut random, revisions).await;
    if outcome.is_err() {
        eprintln!("{}", cluster.logs());
    }
    outcome
}

async fn rounds(cluster: &mut Cluster, model: &mut Model, random: &mut Random, revisions: u64) -> Result<()> {
    let began = Instant::now();
    cluster.converges(model).await.context("before any fault")?;
    for round in 1..=revisions {
        let repository: &Repository = &cluster.repository;
        let told = model.change(repository, random, round == revisions)?;
        let after = Duration::from_millis(random.below(600));
        let fault = Fault::any(random);
        println!(
            "{:6.1} s, revision {round}: {told}; after {after:?} {fault:?}",
            began.elapsed().as_secs_f64()
        );
        tokio::time::sleep(after).await;
        fault.befall(cluster, model, random).await?;
        cluster.check_running()?;
        // Most revisions come before the one before is done with; some find everything at rest.
        if random.below(5) == 0 || round == revisions {
            cluster
                .converges(model)
                .await
                .with_context(|| format!("after revision {round}"))?;
        } else {
            tokio::time::sleep(Duration::from_millis(random.below(1500))).await;
        }
    }
    cluster.end().await?;
    println!("{:6.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

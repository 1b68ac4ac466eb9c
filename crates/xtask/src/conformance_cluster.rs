//! `conformance-cluster`: overlays and charts delivered by Flux's controllers and by ours, and what they left compared.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cluster_conformance::words::{self, Said, Stage};
use cluster_conformance::{Case, Recording, Servers, case, changes, compare, play, report};
use testkit::tools::Package;
use testkit::{ControlPlane, Options, install_crds};

use crate::bench::contestant::Contestant;
use crate::bench::figures::line;

/// Arguments of the task.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder with Flux's source-controller, kustomize-controller and helm-controller.
    #[arg(long, value_name = "FOLDER")]
    peer: PathBuf,
    /// The recorded cases.
    #[arg(long, value_name = "FOLDER", default_value = "../shared/conformance")]
    set: PathBuf,
    /// Overlays that are delivered.
    #[arg(long, default_value_t = 300)]
    overlays: usize,
    /// Charts that are delivered.
    #[arg(long, default_value_t = 300)]
    charts: usize,
    /// Cases that are in the cluster at once.
    #[arg(long, default_value_t = 100)]
    wave: usize,
    /// Only cases whose id begins so, such as overlay-017.
    #[arg(long, default_value = "")]
    only: String,
    /// Keep what each left in this folder, and take what is there already instead of delivering.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Deliver the project's own cases instead of recorded ones.
    #[arg(long)]
    own: bool,
    /// Compare what the flux command says of both, instead of what they leave.
    #[arg(long)]
    words: bool,
    /// Only run Flux's controllers, and record what they left of the project's own cases, or with --words what flux said, in tests/cases/cluster.
    #[arg(long)]
    record: bool,
}

/// Reconciles at once: as many as a machine of a few processors can do.
const CONCURRENT: usize = 20;
/// The project's own cases.
const OWN: &str = "tests/cases/cluster";
/// What Flux left of them.
const RECORDED: &str = "flux.jsonl";
/// What the flux command said of Flux's controllers.
const WORDS: &str = "flux-words.json";

/// Delivers with both, and compares.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    match (arguments.words, arguments.record) {
        (false, true) => runtime.block_on(record(arguments)),
        (false, false) => runtime.block_on(compared(arguments)),
        (true, _) => runtime.block_on(compare_words(arguments)),
    }
}

/// What the flux command says of both.
async fn compare_words(arguments: &Arguments) -> Result<()> {
    tokio::task::spawn_blocking(|| Package::Flux.ensure(&mut line)).await??;
    let stage = Stage::set().await?;
    let flux = said(&flux(arguments), &stage).await?;
    if arguments.record {
        let path = testkit::tools::repository_root().join(OWN).join(WORDS);
        std::fs::write(path, serde_json::to_string_pretty(&flux)? + "\n")?;
        line(&format!("{OWN}/{WORDS} was written"));
        return Ok(());
    }
    let ours = said(&Contestant::Windlass, &stage).await?;
    line(&words::markdown(&flux, &ours));
    Ok(())
}

async fn said(contestant: &Contestant, stage: &Stage) -> Result<Vec<Said>> {
    line(contestant.name());
    let control_plane = ControlPlane::start(Options::default()).await?;
    install_crds(&control_plane.client()).await?;
    let running = contestant.start_for_all(&control_plane, CONCURRENT).await?;
    let said = words::speak(&control_plane, stage, Package::Flux.path()?, line).await;
    said.inspect_err(|_| line(&running.log_tails()))
}

async fn compared(arguments: &Arguments) -> Result<()> {
    let mut cases = match arguments.own {
        true => case::own(&testkit::tools::repository_root().join(OWN))?,
        false => [
            case::overlays(&arguments.set, arguments.overlays)?,
            case::charts(&arguments.set, arguments.charts)?,
        ]
        .concat(),
    };
    cases.retain(|case| case.id.starts_with(&arguments.only));
    line(&format!("{} cases", cases.len()));
    let servers = Servers::start(&cases).await?;
    let waves = case::waves(cases, arguments.wave);
    let keep = arguments.keep.as_deref();
    let peer = delivered(keep, &flux(arguments), &servers, &waves).await?;
    let ours = delivered(keep, &Contestant::Windlass, &servers, &waves).await?;
    line(&report::markdown(&compare::compare(&peer, &ours))?);
    Ok(())
}

async fn record(arguments: &Arguments) -> Result<()> {
    let own = testkit::tools::repository_root().join(OWN);
    let cases = case::own(&own)?;
    let servers = Servers::start(&cases).await?;
    let recording = delivered(None, &flux(arguments), &servers, &[cases]).await?;
    std::fs::write(own.join(RECORDED), changes::to_lines(&recording)?)?;
    line(&format!("{OWN}/{RECORDED} was written"));
    Ok(())
}

fn flux(arguments: &Arguments) -> Contestant {
    Contestant::Flux(arguments.peer.clone())
}

async fn delivered(
    keep: Option<&Path>,
    contestant: &Contestant,
    servers: &Servers,
    waves: &[Vec<Case>],
) -> Result<Recording> {
    let kept = keep.map(|folder| folder.join(format!("{}.json", contestant.name())));
    if let Some(kept) = kept.as_ref().filter(|kept| kept.exists()) {
        return changes::from_lines(&std::fs::read_to_string(kept)?);
    }
    line(contestant.name());
    let control_plane = ControlPlane::start(Options::default()).await?;
    install_crds(&control_plane.client()).await?;
    let running = contestant.start_for_all(&control_plane, CONCURRENT).await?;
    let recording = play(&control_plane, servers, waves, line).await;
    let recording = recording.inspect_err(|_| line(&running.log_tails()))?;
    if let Some(kept) = kept {
        std::fs::write(&kept, changes::to_lines(&recording)?)
            .with_context(|| format!("failed to write {}", kept.display()))?;
    }
    Ok(recording)
}

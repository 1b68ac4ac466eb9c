//! `bench-build`: how long `windlass build` takes beside the real kustomize, on recorded cases and on large trees.
//!
//! Process against process: both are started afresh for each build, on the same files, in turn. The same cases are
//! built in-process too, by the bench target of `kustomize-build`. Prints Markdown for docs/benchmarks.md.

mod cases;
mod large;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use testkit::scratch;

use crate::contest::{self, Contestant};
use cases::Case;

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The `windlass` binary, of a release build.
    #[arg(long, value_name = "FILE")]
    windlass: PathBuf,
    /// The real kustomize, to be measured beside it.
    #[arg(long, value_name = "FILE")]
    pub(super) peer: Option<PathBuf>,
    /// How often each case is built; its time is the median.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Objects of the large build: half of them Deployments, half of them ConfigMaps that these name.
    #[arg(long, default_value_t = 4000)]
    objects: usize,
    /// Files of the large repository, of which one overlay is built.
    #[arg(long, default_value_t = 10_000)]
    files: usize,
    /// Leaves the large build to windlass alone: it takes the real kustomize minutes.
    #[arg(long)]
    skip_large_peer: bool,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = scratch::directory("bench-build")?;
    let windlass = Contestant::new("windlass", &arguments.windlass)?;
    let peer = match &arguments.peer {
        Some(binary) => Some(Contestant::new("kustomize", binary)?),
        None => None,
    };
    let contestants: Vec<&Contestant> = peer.iter().chain([&windlass]).collect();
    contest::head();
    for (name, cases) in sets(folder.path())? {
        let times = contest::each(&contestants, &cases, arguments.runs)?;
        let in_process = contest::in_process("kustomize-build", "cases", &cases, folder.path())?;
        contest::cases(name, &contestants, &times, &in_process);
    }
    let few: &[&Contestant] = if arguments.skip_large_peer {
        &[&windlass]
    } else {
        &contestants
    };
    let objects = large::objects(&folder.path().join("objects"), arguments.objects)?;
    contest::large(
        &format!("{} objects", arguments.objects),
        few,
        &contest::once(few, &objects)?,
    );
    let repository = large::repository(&folder.path().join("repository"), arguments.files)?;
    let name = format!("one overlay of a repository of {} files", arguments.files);
    contest::large(&name, &contestants, &contest::once(&contestants, &repository)?);
    Ok(())
}

/// The recorded cases: the project's own, and those beside the repository when they are there.
fn sets(scratch: &Path) -> Result<Vec<(&'static str, Vec<Case>)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own =
        cases::own(&root.join("tests/cases/kustomize")).context("failed to read tests/cases/kustomize")?;
    let mut sets = vec![("tests/cases/kustomize", own)];
    let beside = root.join("../shared/conformance/kustomize/cases");
    if beside.is_dir() {
        sets.push((
            "../shared/conformance/kustomize",
            cases::packed(&beside, &scratch.join("cases"))?,
        ));
    }
    Ok(sets)
}

//! `bench-render`: how long `windlass template` takes beside the real helm, on recorded charts.
//!
//! Process against process: both are started afresh for each chart, with the same arguments, in turn. In-process, by the
//! bench target of `helm-render`, each chart is loaded and parsed once and then rendered with new values. Prints Markdown
//! for docs/benchmarks.md.

mod cases;

use std::path::{Path, PathBuf};

use anyhow::Result;
use testkit::scratch;

use crate::contest::{self, Contestant};

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The `windlass` binary, of a release build.
    #[arg(long, value_name = "FILE")]
    windlass: PathBuf,
    /// The real helm, to be measured beside it.
    #[arg(long, value_name = "FILE")]
    pub(super) peer: Option<PathBuf>,
    /// How often each chart is rendered; its time is the median.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Takes each Nth of the recorded charts: all of them take the real helm minutes.
    #[arg(long, default_value_t = 10)]
    every: usize,
}

/// The largest of the recorded charts, by what they hold or by what they print.
const LARGEST: [&str; 6] = [
    "VictoriaMetrics__victoria-metrics-k8s-stack",
    "kyverno__kyverno",
    "bitnami__mastodon",
    "opentelemetry-helm-charts__opentelemetry-operator",
    "volcano__volcano",
    "cowboysysop__kfserving",
];

/// One of the size of most.
const USUAL: &str = "stefanprodan-podinfo__podinfo__v-prod";

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = scratch::directory("bench-render")?;
    let windlass = Contestant::new("windlass", &arguments.windlass)?;
    let peer = match &arguments.peer {
        Some(binary) => Some(Contestant::new("helm", binary)?),
        None => None,
    };
    let contestants: Vec<&Contestant> = peer.iter().chain([&windlass]).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = cases::own(&root.join("tests/cases/helm/charts"))?;
    let recorded = cases::recorded(&root.join("../shared/conformance/helm/cases"))?;
    let some: Vec<_> = recorded.iter().step_by(arguments.every.max(1)).cloned().collect();
    let usual: Vec<_> = recorded
        .iter()
        .filter(|case| case.name == USUAL)
        .cloned()
        .collect();
    contest::head();
    for (name, cases) in [
        ("tests/cases/helm", own),
        ("../shared/conformance/helm", some),
        (USUAL, usual),
    ] {
        let times = contest::each(&contestants, &cases, arguments.runs)?;
        let in_process = contest::in_process("helm-render", "renders", &cases, folder.path())?;
        contest::cases(name, &contestants, &times, &in_process);
    }
    for name in LARGEST {
        if let Some(case) = recorded.iter().find(|case| case.name == name) {
            contest::large(name, &contestants, &contest::once(&contestants, case)?);
        }
    }
    Ok(())
}

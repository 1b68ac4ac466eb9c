//! `windlass dora`: deployment frequency, lead time, change failure rate and time to recover, as a console computes them.

use clap::Args;
use jiff::SignedDuration;
use serde_json::Value;

use crate::cluster::output::{self, Cell, Colours};
use crate::cluster::{Failure, Output, print};
use crate::console::{Console, ConsoleFlags};

/// Command line of `dora`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Name of an object; all by default
    #[arg(value_name = "NAME", default_value = "", hide_default_value = true)]
    name: String,

    /// Figures for each: cluster, namespace, app, or label:KEY; all together by default
    #[arg(long, default_value = "", value_name = "WHAT", hide_default_value = true)]
    by: String,

    /// Beginning of the window: a time, or how long ago, such as 7d
    #[arg(long, default_value = "30d", value_name = "TIME")]
    since: String,

    /// End of the window; now by default
    #[arg(long, default_value = "", value_name = "TIME", hide_default_value = true)]
    until: String,

    /// Clusters, separated by commas
    #[arg(long, default_value = "", value_name = "NAMES", hide_default_value = true)]
    clusters: String,

    /// Namespaces, separated by commas; all by default
    #[arg(
        long,
        short,
        default_value = "",
        value_name = "NAMES",
        hide_default_value = true
    )]
    namespace: String,

    #[command(flatten)]
    console: ConsoleFlags,

    /// Output format
    #[arg(long, short, default_value = "table", value_parser = ["table", "json"])]
    output: String,
}

/// Asks, and prints.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let pairs = [
        ("name", flags.name.clone()),
        ("by", flags.by.clone()),
        ("since", flags.since.clone()),
        ("until", flags.until.clone()),
        ("cluster", flags.clusters.clone()),
        ("namespace", flags.namespace.clone()),
    ];
    let told = flags
        .console
        .run(async |console: Console| console.ask("dora", &pairs).await)?;
    if flags.output == "json" {
        return print(&output::document(&told, Output::Json)?);
    }
    let groups = told["groups"].as_object().cloned().unwrap_or_default();
    if groups.is_empty() {
        report_line("nothing was delivered in this time");
        return Ok(());
    }
    let header = [
        "GROUP",
        "DEPLOYMENTS",
        "PER DAY",
        "LEAD TIME",
        "CHANGES",
        "FAILED",
        "RECOVERY",
        "GAPS",
    ];
    let rows: Vec<Vec<Cell>> = groups.iter().map(|(name, figures)| row(name, figures)).collect();
    print(&output::table(&header, &rows, Colours::of_terminal()))
}

fn row(name: &str, figures: &Value) -> Vec<Cell> {
    let name = if name.is_empty() { "all" } else { name };
    let median = |field: &str| {
        figures[field]["median"]
            .as_f64()
            .map(duration)
            .unwrap_or_default()
    };
    let rate = figures["changeFailureRate"].as_f64();
    let rate = rate
        .map(|rate| format!("{:.0} %", 100.0 * rate))
        .unwrap_or_default();
    vec![
        name.to_owned().into(),
        figures["deployments"].to_string().into(),
        format!("{:.2}", figures["deploymentsPerDay"].as_f64().unwrap_or_default()).into(),
        median("leadTime").into(),
        figures["changes"].to_string().into(),
        rate.into(),
        median("timeToRecover").into(),
        figures["gaps"].to_string().into(),
    ]
}

/// In whole seconds, as people read it.
fn duration(seconds: f64) -> String {
    let whole = SignedDuration::try_from_secs_f64(seconds.round());
    whole.map(|whole| format!("{whole:#}")).unwrap_or_default()
}

//! `windlass drill`: compares a cluster with one that was made anew from the same repositories, object by object, and reports what Git
//! would bring back and what would be lost.

mod compare;
mod report;
mod time;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cluster::output::{self, Colours};
use crate::cluster::{self, ClusterFlags, Failure, Output, print};
use crate::orphans::survey;
use report::Report;

/// Command line of `drill`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kubeconfig context of the cluster that was made anew
    #[arg(long, value_name = "NAME", required = true)]
    recreated: String,

    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context of the cluster that is in use; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// How long to wait until all is delivered into the new cluster; 0s does not wait
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = cluster::parse_timeout)]
    timeout: Duration,

    /// Exit with 5 if the clusters differ, or if anything would be lost
    #[arg(long)]
    exit_code: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

/// How the report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Table,
    Markdown,
    Json,
}

/// Waits, compares, and prints. `report_line` is for progress, and for what could not be seen.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let of = |context: Option<String>| ClusterFlags::of_context(flags.kubeconfig.clone(), context);
    let (used, new) = (of(flags.context.clone()), of(Some(flags.recreated.clone())));
    let names = [
        flags
            .context
            .clone()
            .or_else(|| cluster::current_context(&used))
            .unwrap_or_default(),
        flags.recreated.clone(),
    ];
    if names[0] == names[1] {
        return Err(Failure::Usage(format!(
            "both clusters are {}: name the one that is in use with --context",
            names[0]
        )));
    }
    let report = cluster::run(&used, async |used| {
        let new = cluster::connect(&new).await?;
        report_line(&format!("looking at {}", names[0]));
        let before = survey::take(&used, None, &[]).await?;
        let waited = time::wait(&before, &used, &new, flags.timeout, &report_line).await?;
        report_line(&format!("comparing with {}", names[1]));
        let after = survey::take(&new, None, &[]).await?;
        let outcome = compare::compare((&used, &before), (&new, &after)).await?;
        Ok(Report::new(names.clone(), &before, &after, waited, outcome))
    })?;
    match flags.output {
        Format::Json => print(&output::document(&report.value(), Output::Json)?)?,
        Format::Markdown => print(&report.markdown())?,
        Format::Table => print(&report.text(Colours::of_terminal()))?,
    }
    for unseen in &report.unseen {
        report_line(unseen);
    }
    match (report.unseen.len(), report.is_complete()) {
        (0, false) if flags.exit_code => Err(Failure::Differs),
        (0, _) => Ok(()),
        (lists, _) => Err(Failure::Incomplete(format!(
            "{lists} lists could not be read: the report has not everything"
        ))),
    }
}

//! `windlass charts`: which versions of which charts are released, in a cluster, or in all clusters of a console.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fleet::charts::{Released, charts};
use fleet::csv::csv;
use fleet::query::{Parameters, Query};
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, print};
use crate::console::{Console, ConsoleFlags};
use crate::query;

/// Command line of `charts`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Chart; all by default
    #[arg(value_name = "CHART", default_value = "", hide_default_value = true)]
    chart: String,

    /// Range of versions: '<1.4.2'
    #[arg(long, default_value = "", value_name = "RANGE", hide_default_value = true)]
    version: String,

    /// Clusters that a console knows, separated by commas
    #[arg(long, default_value = "", value_name = "NAMES", hide_default_value = true)]
    clusters: String,

    #[command(flatten)]
    console: ConsoleFlags,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,

    /// Namespaces, separated by commas; all by default
    #[arg(
        long,
        short,
        default_value = "",
        value_name = "NAMES",
        hide_default_value = true
    )]
    namespace: String,

    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// How charts are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Table,
    Json,
    Csv,
}

/// Asks, and prints. `report_line` is for clusters that may have more.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let parameters = Parameters {
        kind: "HelmRelease".to_owned(),
        chart: flags.chart.clone(),
        version: flags.version.clone(),
        cluster: flags.clusters.clone(),
        namespace: flags.namespace.clone(),
        ..Parameters::default()
    };
    // What is wrong with it is said before anyone is asked.
    Query::read(&parameters).map_err(|error| Failure::Usage(error.to_string()))?;
    let rows: Vec<Value> = match flags.console.is_given() {
        true => flags.console.run(async |console: Console| {
            let found = console.ask("charts", &query::pairs(&parameters)).await?;
            for cluster in found["silent"].as_array().into_iter().flatten() {
                report_line(&format!("cluster {cluster} is not known, and may have more"));
            }
            Ok(found["items"].as_array().cloned().unwrap_or_default())
        })?,
        false => {
            let cluster = ClusterFlags::in_namespace(flags.kubeconfig.clone(), flags.context.clone(), "");
            let found = cluster::run(&cluster, async |cluster: Cluster| {
                let rows = query::rows(&cluster, &parameters, &report_line).await?;
                Ok(charts(&rows, BTreeSet::new()))
            })?;
            found.items.iter().map(|row| json!(row)).collect()
        }
    };
    match flags.output {
        Format::Json => print(&output::document(&Value::Array(rows), Output::Json)?),
        Format::Csv => print(&csv(Released::COLUMNS, &rows)),
        Format::Table if rows.is_empty() => {
            report_line("nothing found");
            Ok(())
        }
        Format::Table => print(&table(&rows, Colours::of_terminal())),
    }
}

fn table(rows: &[Value], colours: Colours) -> String {
    let field = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let clusters: HashSet<String> = rows.iter().map(|row| field(row, "cluster")).collect();
    let mut header = vec!["CHART", "VERSION", "APP VERSION", "RELEASES", "READY"];
    if clusters.len() > 1 {
        header.insert(0, "CLUSTER");
    }
    let cells = rows.iter().map(|row| {
        let tone = if row["ready"] == row["releases"] {
            Tone::Plain
        } else {
            Tone::Bad
        };
        let mut cells: Vec<Cell> = vec![
            field(row, "chart").into(),
            field(row, "version").into(),
            field(row, "appVersion").into(),
            row["releases"].to_string().into(),
            Cell::toned(row["ready"].to_string(), tone),
        ];
        if clusters.len() > 1 {
            cells.insert(0, field(row, "cluster").into());
        }
        cells
    });
    output::table(&header, &cells.collect::<Vec<_>>(), colours)
}

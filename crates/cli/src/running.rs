//! `windlass where`: which images run where, of the Pods of a cluster, or of all clusters of a console.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use fleet::csv::csv;
use fleet::running::{Found, Parameters, Question, Running};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::watcher;
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, print};
use crate::console::{Console, ConsoleFlags};

/// Name of the cluster that is asked without a console.
const HERE: &str = "local";
/// Rows of a page; all pages are read.
const PAGE: usize = 1000;

/// Command line of `where`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Image without tag, or the end of its name: log4j-app; all by default
    #[arg(value_name = "IMAGE", default_value = "", hide_default_value = true)]
    image: String,

    /// Range of versions that the tag is in: '<1.4.2'; what follows the number (-alpine) is passed over
    #[arg(long, default_value = "", value_name = "RANGE", hide_default_value = true)]
    version: String,

    /// Beginning of the digest that runs
    #[arg(long, default_value = "", value_name = "DIGEST", hide_default_value = true)]
    digest: String,

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

/// How rows are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Table,
    Json,
    Csv,
}

/// Asks, and prints. `report_line` is for clusters whose Pods are not known.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let parameters = Parameters {
        image: flags.image.clone(),
        version: flags.version.clone(),
        digest: flags.digest.clone(),
        cluster: flags.clusters.clone(),
        namespace: flags.namespace.clone(),
        limit: Some(PAGE),
        after: String::new(),
    };
    // What is wrong with it is said before anyone is asked.
    Question::read(&parameters).map_err(|error| Failure::Usage(error.to_string()))?;
    let rows = match flags.console.is_given() {
        true => flags.console.run(async |console: Console| {
            let pairs = pairs(&parameters);
            // Who looks for what is vulnerable must know what this answer is not about.
            let first = console.ask("where", &pairs).await?;
            for cluster in first["unknown"].as_array().into_iter().flatten() {
                report_line(&format!(
                    "cluster {cluster}: its Pods are not known, and it may run more"
                ));
            }
            console.all("where", pairs, usize::MAX).await
        })?,
        false => {
            let cluster = ClusterFlags::in_namespace(flags.kubeconfig.clone(), flags.context.clone(), "");
            cluster::run(&cluster, async |cluster: Cluster| {
                of_cluster(&cluster, &parameters).await
            })?
        }
    };
    match flags.output {
        Format::Json => print(&output::document(&Value::Array(rows), Output::Json)?),
        Format::Csv => print(&csv(Found::COLUMNS, &rows)),
        Format::Table if rows.is_empty() => {
            report_line("nothing found");
            Ok(())
        }
        Format::Table => print(&table(&rows, Colours::of_terminal())),
    }
}

/// What the Pods of a cluster run.
pub(crate) async fn pods(cluster: &Cluster) -> Result<Running, Failure> {
    let running = Running::default();
    let here: Arc<str> = HERE.into();
    let pods: Api<Pod> = Api::all(cluster.client());
    // The first list of a watch comes in pages.
    let events = watcher(pods, watcher::Config::default());
    futures::pin_mut!(events);
    let failed = |error: watcher::Error| {
        Failure::NotReady(format!("pods cannot be listed: {}", error_chain::chain(&error)))
    };
    while let Some(event) = events.try_next().await.map_err(failed)? {
        match event {
            watcher::Event::InitApply(pod) => running.put(&here, &pod),
            watcher::Event::InitDone => break,
            _ => {}
        }
    }
    Ok(running)
}

async fn of_cluster(cluster: &Cluster, parameters: &Parameters) -> Result<Vec<Value>, Failure> {
    let running = pods(cluster).await?;
    let mut parameters = parameters.clone();
    let mut rows = Vec::new();
    loop {
        let question = Question::read(&parameters).map_err(|error| Failure::Usage(error.to_string()))?;
        let page = running.find(&question, &running.places(&question));
        rows.extend(page.items.into_iter().map(|row| json!(row)));
        match page.next {
            Some(next) => parameters.after = next,
            None => return Ok(rows),
        }
    }
}

fn pairs(parameters: &Parameters) -> Vec<(&'static str, String)> {
    vec![
        ("image", parameters.image.clone()),
        ("version", parameters.version.clone()),
        ("digest", parameters.digest.clone()),
        ("cluster", parameters.cluster.clone()),
        ("namespace", parameters.namespace.clone()),
        ("limit", PAGE.to_string()),
    ]
}

fn table(rows: &[Value], colours: Colours) -> String {
    let field = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let clusters: HashSet<String> = rows.iter().map(|row| field(row, "cluster")).collect();
    let mut header = vec!["IMAGE", "TAG", "DIGEST", "NAMESPACE", "WORKLOAD", "PODS", "READY"];
    if clusters.len() > 1 {
        header.insert(0, "CLUSTER");
    }
    let cells = rows.iter().map(|row| {
        let digest = field(row, "digest");
        let short: String = digest.trim_start_matches("sha256:").chars().take(12).collect();
        let tone = if row["ready"] == 0 { Tone::Bad } else { Tone::Plain };
        let mut cells: Vec<Cell> = vec![
            field(row, "image").into(),
            field(row, "tag").into(),
            short.into(),
            field(row, "namespace").into(),
            field(row, "workload").into(),
            row["pods"].to_string().into(),
            Cell::toned(row["ready"].to_string(), tone),
        ];
        if clusters.len() > 1 {
            cells.insert(0, field(row, "cluster").into());
        }
        cells
    });
    output::table(&header, &cells.collect::<Vec<_>>(), colours)
}

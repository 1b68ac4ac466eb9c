//! `windlass query`: what is delivered where, asked of a cluster or of a console, with the same words and the same answer.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use delivery_graph::kind;
use delivery_graph::object::short_revision;
use fleet::csv::csv;
use fleet::query::{Parameters, Query};
use fleet::row::{Key, Row};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, print};
use crate::console::{Console, ConsoleFlags};

/// Name of the cluster that is asked without a console.
const HERE: &str = "local";
/// Rows of a page; all pages are read.
const PAGE: usize = 500;
/// Columns of the CSV, and fields of the JSON.
const FIELDS: [&str; 9] = [
    "cluster",
    "kind",
    "namespace",
    "name",
    "status",
    "revision",
    "source",
    "since",
    "message",
];

/// Command line of `query`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kinds, separated by commas; all by default
    #[arg(value_name = "KINDS", default_value = "", hide_default_value = true)]
    kinds: String,

    /// Clusters that a console knows, separated by commas
    #[arg(long, default_value = "", value_name = "NAMES", hide_default_value = true)]
    clusters: String,

    /// Ready, Failed, InProgress, Suspended or Unknown, separated by commas
    #[arg(long, default_value = "", value_name = "WORDS", hide_default_value = true)]
    status: String,

    /// Labels as key=value or key, separated by commas; all must be there
    #[arg(
        long,
        short = 'l',
        default_value = "",
        value_name = "LABELS",
        hide_default_value = true
    )]
    label: String,

    /// Source, chart or image that it is made of: GitRepository/NAMESPACE/NAME
    #[arg(long, default_value = "", value_name = "OBJECT", hide_default_value = true)]
    source: String,

    /// Beginning of the revision, or of its commit or digest
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    revision: String,

    /// Text in the name, the message or the revision
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    text: String,

    /// CEL expression over `row`: row.namespace.startsWith('team-') && row.status != 'Ready'
    #[arg(long, default_value = "", value_name = "CEL", hide_default_value = true)]
    filter: String,

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

/// Asks, and prints. `report_line` is for what cannot be listed.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let parameters = Parameters {
        kind: flags.kinds.clone(),
        cluster: flags.clusters.clone(),
        namespace: flags.namespace.clone(),
        status: flags.status.clone(),
        label: flags.label.clone(),
        source: flags.source.clone(),
        revision: flags.revision.clone(),
        text: flags.text.clone(),
        filter: flags.filter.clone(),
        limit: Some(PAGE),
        after: String::new(),
    };
    // What is wrong with it is said before anyone is asked.
    Query::read(&parameters).map_err(|error| Failure::Usage(error.to_string()))?;
    let rows = match flags.console.is_given() {
        true => {
            let asking =
                async |console: Console| console.all("objects", pairs(&parameters), usize::MAX).await;
            flags.console.run(asking)?
        }
        false => {
            // Of all namespaces; that of the context plays no part.
            let cluster = ClusterFlags::in_namespace(flags.kubeconfig.clone(), flags.context.clone(), "");
            let asking = async |cluster: Cluster| of_cluster(&cluster, &parameters, &report_line).await;
            cluster::run(&cluster, asking)?
        }
    };
    match flags.output {
        Format::Json => print(&output::document(&Value::Array(rows), Output::Json)?),
        Format::Csv => print(&csv(&FIELDS, &rows)),
        Format::Table if rows.is_empty() => {
            report_line("nothing found");
            Ok(())
        }
        Format::Table => print(&table(&rows, Colours::of_terminal())),
    }
}

/// Lists all kinds that may be listed, and answers from that.
async fn of_cluster(
    cluster: &Cluster,
    parameters: &Parameters,
    report_line: &impl Fn(&str),
) -> Result<Vec<Value>, Failure> {
    let usage = |error: fleet::query::Error| Failure::Usage(error.to_string());
    let query = Query::read(parameters).map_err(usage)?;
    let name: Arc<str> = HERE.into();
    let kinds = kind::ALL.iter().filter(|kind| query.concerns_kind(kind));
    let lists = kinds.map(async |kind| (kind, cluster.list(kind, None, None).await));
    let mut rows: Vec<(Key, Arc<Row>)> = Vec::new();
    for (kind, list) in join_all(lists).await {
        match list {
            Ok(list) => rows.extend(list.unwrap_or_default().iter().map(|object| {
                let (namespace, own) = (
                    delivery_graph::object::namespace(object),
                    delivery_graph::object::name(object),
                );
                let key = Key::new(&name, kind, namespace, own);
                (key, Arc::new(Row::new(&name, kind, object)))
            })),
            Err(error) => report_line(&error.to_string()),
        }
    }
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    let found = query.matching(rows).map_err(usage)?;
    Ok(found.into_iter().map(|(_, row)| json!(row)).collect())
}

fn pairs(parameters: &Parameters) -> Vec<(&'static str, String)> {
    let Parameters {
        kind,
        cluster,
        namespace,
        status,
        label,
        source,
        revision,
        text,
        filter,
        limit,
        after,
    } = parameters;
    let texts = [
        ("kind", kind),
        ("cluster", cluster),
        ("namespace", namespace),
        ("status", status),
        ("label", label),
        ("source", source),
        ("revision", revision),
        ("text", text),
        ("filter", filter),
        ("after", after),
    ];
    let given = texts.into_iter().filter(|(_, value)| !value.is_empty());
    let limit = limit.map(|limit| ("limit", limit.to_string()));
    given
        .map(|(name, value)| (name, value.clone()))
        .chain(limit)
        .collect()
}

fn field<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn table(rows: &[Value], colours: Colours) -> String {
    let several = rows
        .iter()
        .any(|row| field(row, "cluster") != field(&rows[0], "cluster"));
    let mut header = vec!["KIND", "NAMESPACE", "NAME", "STATUS", "REVISION", "MESSAGE"];
    if several {
        header.insert(0, "CLUSTER");
    }
    let cells = rows.iter().map(|row| {
        let status = field(row, "status");
        let tone = match status {
            "Ready" => Tone::Good,
            "Failed" => Tone::Bad,
            _ => Tone::Plain,
        };
        let mut cells: Vec<Cell> = vec![
            field(row, "kind").into(),
            field(row, "namespace").into(),
            field(row, "name").into(),
            Cell::toned(status, tone),
            short_revision(field(row, "revision")).into(),
            field(row, "message").into(),
        ];
        if several {
            cells.insert(0, field(row, "cluster").into());
        }
        cells
    });
    output::table(&header, &cells.collect::<Vec<_>>(), colours)
}

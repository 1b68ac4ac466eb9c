//! `windlass query`: what is delivered where, asked of a cluster or of a console, with the same words and the same answer.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use delivery_graph::object::short_revision;
use delivery_graph::{kind, object};
use fleet::csv::csv;
use fleet::query::{Parameters, Query, of_repository};
use fleet::row::{Key, Row};
use fleet::running::Question;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, print};
use crate::console::{Console, ConsoleFlags};
use crate::running;

/// Name of the cluster that is asked without a console.
const HERE: &str = "local";
/// Rows of a page; all pages are read.
const PAGE: usize = 500;

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

    /// Name of the chart that is delivered
    #[arg(long, default_value = "", value_name = "CHART", hide_default_value = true)]
    chart: String,

    /// Version range of the chart or revision: '<1.4.2'
    #[arg(long, default_value = "", value_name = "RANGE", hide_default_value = true)]
    version: String,

    /// URL of its source, or a suffix of the URL: team/app
    #[arg(long, default_value = "", value_name = "URL", hide_default_value = true)]
    repository: String,

    /// Image that its workloads run, without tag, or a suffix of its name
    #[arg(long, default_value = "", value_name = "IMAGE", hide_default_value = true)]
    image: String,

    /// Object that applied it: Kustomization/NAMESPACE/NAME
    #[arg(long, default_value = "", value_name = "OBJECT", hide_default_value = true)]
    owner: String,

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

impl Flags {
    fn parameters(&self) -> Parameters {
        Parameters {
            kind: self.kinds.clone(),
            cluster: self.clusters.clone(),
            namespace: self.namespace.clone(),
            status: self.status.clone(),
            label: self.label.clone(),
            source: self.source.clone(),
            revision: self.revision.clone(),
            chart: self.chart.clone(),
            version: self.version.clone(),
            repository: self.repository.clone(),
            image: self.image.clone(),
            owner: self.owner.clone(),
            text: self.text.clone(),
            filter: self.filter.clone(),
            sort: String::new(),
            limit: Some(PAGE),
            after: String::new(),
        }
    }
}

/// Asks, and prints. `report_line` is for what cannot be listed.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let parameters = flags.parameters();
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
        Format::Csv => print(&csv(Row::COLUMNS, &rows)),
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
    let rows = rows(cluster, parameters, report_line).await?;
    Ok(rows.into_iter().map(|(_, row)| json!(row)).collect())
}

/// The rows of a cluster that are an answer.
pub(crate) async fn rows(
    cluster: &Cluster,
    parameters: &Parameters,
    report_line: &impl Fn(&str),
) -> Result<Vec<(Key, Arc<Row>)>, Failure> {
    let usage = |error: fleet::query::Error| Failure::Usage(error.to_string());
    let query = Query::read(parameters).map_err(usage)?;
    let workloads = match query.image() {
        Some(image) => {
            let wrong = |error: fleet::running::Error| Failure::Usage(error.to_string());
            let question = Question::of_image(image).map_err(wrong)?;
            let running = running::pods(cluster).await?;
            Some(running.workloads(&question, &running.places(&question)))
        }
        None => None,
    };
    let runs_it = |object: &Value| {
        workloads
            .as_ref()
            .is_none_or(|found| found.iter().any(|(_, id)| object::has_applied(object, id)))
    };
    let name: Arc<str> = HERE.into();
    // What an object is made of may be of another kind.
    let kinds = kind::ALL
        .iter()
        .filter(|kind| query.repository().is_some() || query.concerns_kind(kind));
    let lists = kinds.map(async |kind| (kind, cluster.list(kind, None, None).await));
    let mut rows: Vec<(Key, Arc<Row>)> = Vec::new();
    let mut that_run: HashSet<Key> = HashSet::new();
    for (kind, list) in join_all(lists).await {
        match list {
            Ok(list) => {
                for object in list.unwrap_or_default() {
                    let key = Key::new(&name, kind, object::namespace(&object), object::name(&object));
                    if runs_it(&object) {
                        that_run.insert(key.clone());
                    }
                    rows.push((key, Arc::new(Row::new(&name, kind, &object))));
                }
            }
            Err(error) => report_line(&error.to_string()),
        }
    }
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    if let Some(repository) = query.repository() {
        let made_of_it = of_repository(&rows, repository);
        rows.retain(|(key, _)| made_of_it.contains(key));
    }
    rows.retain(|(key, _)| that_run.contains(key));
    query.matching(rows).map_err(usage)
}

/// The parameters, as a console takes them.
pub(crate) fn pairs(parameters: &Parameters) -> Vec<(&'static str, String)> {
    let Parameters {
        kind,
        cluster,
        namespace,
        status,
        label,
        source,
        revision,
        chart,
        version,
        repository,
        image,
        owner,
        text,
        filter,
        sort,
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
        ("chart", chart),
        ("version", version),
        ("repository", repository),
        ("image", image),
        ("owner", owner),
        ("text", text),
        ("filter", filter),
        ("sort", sort),
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

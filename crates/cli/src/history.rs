//! `windlass history`: what was delivered, of the ledger of a console, or of what the objects of a cluster still tell.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use delivery_graph::kind::{self, Kind};
use delivery_graph::object::short_revision;
use fleet::csv::csv;
use futures::future::join_all;
use jiff::Timestamp;
use ledger::delivery::Delivery;
use ledger::fold::{Change, fold};
use ledger::{read, window};
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, print};
use crate::console::{Console, ConsoleFlags};

/// Name of the cluster that is asked without a console.
const HERE: &str = "local";
/// Rows of a page.
const PAGE: usize = 500;

/// Command line of `history`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kustomization, HelmRelease or Pipeline, as NAME or KIND/NAME; all by default
    #[arg(value_name = "OBJECT", default_value = "", hide_default_value = true)]
    object: String,

    /// Clusters that a console knows, separated by commas
    #[arg(long, default_value = "", value_name = "NAMES", hide_default_value = true)]
    clusters: String,

    /// Succeeded, Failed or Gap: a time of which nothing is known
    #[arg(long, default_value = "", value_name = "WORD", hide_default_value = true)]
    outcome: String,

    /// Beginning of the revision, or of its commit, digest or version
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    revision: String,

    /// What ended then or later: a time, or how long ago, such as 7d, 12h or 30m
    #[arg(long, default_value = "", value_name = "TIME", hide_default_value = true)]
    since: String,

    /// What ended before: the same
    #[arg(long, default_value = "", value_name = "TIME", hide_default_value = true)]
    until: String,

    /// Deliveries at most; 0 for all
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,

    #[command(flatten)]
    console: ConsoleFlags,

    /// Output format; jsonl has an object per line
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
    Jsonl,
    Csv,
}

/// Asks, and prints. `report_line` is for what cannot be listed.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let question = Question::read(flags, Timestamp::now())?;
    let most = if flags.limit == 0 { usize::MAX } else { flags.limit };
    let rows = match flags.console.is_given() {
        true => {
            let asking =
                async |console: Console| console.all("deliveries", question.pairs(flags), most).await;
            flags.console.run(asking)?
        }
        false => {
            let cluster = ClusterFlags::in_namespace(flags.kubeconfig.clone(), flags.context.clone(), "");
            let asking = async |cluster: Cluster| of_cluster(&cluster, &question, &report_line).await;
            let mut rows = cluster::run(&cluster, asking)?;
            rows.truncate(most);
            rows
        }
    };
    match flags.output {
        Format::Json => print(&output::document(&Value::Array(rows), Output::Json)?),
        Format::Jsonl => print(&rows.iter().map(|row| format!("{row}\n")).collect::<String>()),
        Format::Csv => print(&csv(Delivery::COLUMNS, &rows)),
        Format::Table if rows.is_empty() => {
            report_line("nothing found");
            Ok(())
        }
        Format::Table => print(&table(&rows, Colours::of_terminal())),
    }
}

/// What is asked for, understood.
struct Question {
    kind: Option<&'static Kind>,
    name: String,
    namespaces: Vec<String>,
    outcome: String,
    revision: String,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Question {
    fn read(flags: &Flags, now: Timestamp) -> Result<Self, Failure> {
        let (word, name) = match flags.object.split_once('/') {
            Some((word, name)) => (Some(word), name),
            None => (None, flags.object.as_str()),
        };
        let kind = match word {
            None => None,
            Some(word) => {
                let known = kind::named(word).filter(|kind| delivers(kind));
                let problem = || {
                    Failure::Usage(format!(
                        "{word}: only Kustomizations, HelmReleases and Pipelines have a history"
                    ))
                };
                Some(known.ok_or_else(problem)?)
            }
        };
        let time = |flag: &str, text: &str| match text {
            "" => Ok(None),
            text => {
                let read = window::time(text, now).map(Some);
                read.map_err(|error| Failure::Usage(format!("--{flag} {text}: {error}")))
            }
        };
        if !matches!(flags.outcome.as_str(), "" | "Succeeded" | "Failed" | "Gap") {
            let message = format!("--outcome {}: it is not Succeeded, Failed or Gap", flags.outcome);
            return Err(Failure::Usage(message));
        }
        let namespaces = flags.namespace.split(',').map(str::trim);
        Ok(Self {
            kind,
            name: name.to_owned(),
            namespaces: namespaces
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            outcome: flags.outcome.clone(),
            revision: flags.revision.clone(),
            since: time("since", &flags.since)?,
            until: time("until", &flags.until)?,
        })
    }

    /// The same for a console.
    fn pairs(&self, flags: &Flags) -> Vec<(&'static str, String)> {
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
        let limit = if flags.limit == 0 {
            PAGE
        } else {
            flags.limit.min(PAGE)
        };
        vec![
            ("cluster", flags.clusters.clone()),
            (
                "kind",
                self.kind.map(|kind| kind.kind.to_owned()).unwrap_or_default(),
            ),
            ("namespace", self.namespaces.join(",")),
            ("name", self.name.clone()),
            ("outcome", self.outcome.clone()),
            ("revision", self.revision.clone()),
            ("since", time(self.since)),
            ("until", time(self.until)),
            ("limit", limit.to_string()),
        ]
    }

    fn has(&self, row: &ledger::delivery::Delivery) -> bool {
        let whole = [&row.revision, &row.origin];
        let names = whole.map(|revision| revision.rsplit([':', '@']).next().unwrap_or_default());
        let mut beginnings = whole.into_iter().map(String::as_str).chain(names);
        (self.name.is_empty() || self.name == row.name)
            && (self.outcome.is_empty() || self.outcome == row.outcome.word())
            && (self.revision.is_empty() || beginnings.any(|text| text.starts_with(&self.revision)))
            && self.since.is_none_or(|since| row.ended >= since)
            && self.until.is_none_or(|until| row.ended < until)
    }
}

fn delivers(kind: &Kind) -> bool {
    matches!(kind.kind, "Kustomization" | "HelmRelease" | "Pipeline")
}

/// Deliveries since a time that the objects of a namespace, or of all namespaces, still record.
pub(crate) async fn of_cluster_since(
    cluster: &Cluster,
    namespace: Option<&str>,
    since: Timestamp,
    report_line: &impl Fn(&str),
) -> Result<Vec<Value>, Failure> {
    let question = Question {
        kind: None,
        name: String::new(),
        namespaces: namespace.map(str::to_owned).into_iter().collect(),
        outcome: String::new(),
        revision: String::new(),
        since: Some(since),
        until: None,
    };
    of_cluster(cluster, &question, report_line).await
}

/// What the objects still tell: the last few outcomes of each.
async fn of_cluster(
    cluster: &Cluster,
    question: &Question,
    report_line: &impl Fn(&str),
) -> Result<Vec<Value>, Failure> {
    let now = Timestamp::now();
    let kinds = kind::ALL.iter().filter(|kind| delivers(kind));
    let kinds = kinds.filter(|kind| question.kind.is_none_or(|wanted| wanted == *kind));
    let lists = kinds.map(async |kind| (kind, cluster.list(kind, None, None).await));
    let mut rows = Vec::new();
    for (kind, list) in join_all(lists).await {
        let objects = match list {
            Ok(list) => list.unwrap_or_default(),
            Err(error) => {
                report_line(&error.to_string());
                continue;
            }
        };
        let subjects = objects
            .iter()
            .filter_map(|object| read::subject(HERE, kind, object, now));
        let wanted = subjects.filter(|subject| {
            question.namespaces.is_empty() || question.namespaces.contains(&subject.namespace)
        });
        for subject in wanted {
            rows.extend(fold(&[], &subject).into_iter().map(|change| match change {
                Change::Insert(row) | Change::Move(row) => *row,
            }));
        }
    }
    rows.retain(|row| question.has(row));
    rows.sort_by(|a, b| (b.ended, &b.id).cmp(&(a.ended, &a.id)));
    Ok(rows.into_iter().map(|row| json!(row)).collect())
}

fn table(rows: &[Value], colours: Colours) -> String {
    let field = |row: &'static str| move |value: &Value| value[row].as_str().unwrap_or_default().to_owned();
    let several = rows.iter().any(|row| row["cluster"] != rows[0]["cluster"]);
    let mut header = vec![
        "ENDED", "OBJECT", "OUTCOME", "REVISION", "TOOK", "TRIGGER", "AUTHOR", "MESSAGE",
    ];
    if several {
        header.insert(0, "CLUSTER");
    }
    let cells = rows.iter().map(|row| {
        let outcome = field("outcome")(row);
        let tone = match outcome.as_str() {
            "Succeeded" => Tone::Good,
            "Failed" => Tone::Bad,
            _ => Tone::Open,
        };
        let object = format!(
            "{}/{}/{}",
            field("kind")(row),
            field("namespace")(row),
            field("name")(row)
        );
        let (trigger, author, message) = (field("trigger")(row), field("author")(row), field("message")(row));
        let revision = field("revision")(row);
        let mut cells: Vec<Cell> = vec![
            field("ended")(row).into(),
            object.into(),
            Cell::toned(outcome, tone),
            short_revision(&revision).into(),
            took(row).into(),
            trigger.into(),
            author.into(),
            message.into(),
        ];
        if several {
            cells.insert(0, field("cluster")(row).into());
        }
        cells
    });
    output::table(&header, &cells.collect::<Vec<_>>(), colours)
}

/// From its beginning to its end, where both are known.
fn took(row: &Value) -> String {
    let time = |name: &str| row[name].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    match (time("began"), time("ended")) {
        (Some(began), Some(ended)) if began < ended => format!("{:#}", ended.duration_since(began)),
        _ => String::new(),
    }
}

//! `windlass audit`: who changed what in a cluster, by which way: by commits, by requests for changes, by hand.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use delivery_graph::field_managers::{Program, Write};
use delivery_graph::kind;
use delivery_graph::object::{self, short_revision, text};
use fleet::csv::csv;
use jiff::Timestamp;
use ledger::window;
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, print};
use crate::history;
use crate::orphans::survey::{self, Survey};

/// As many fields are named in a table.
const FIELDS: usize = 3;

/// Command line of `audit`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Start of the period: a time, or how long ago, such as 7d, 12h or 30m
    #[arg(long, value_name = "TIME", default_value = "24h")]
    since: String,

    /// Leave out what was delivered from Git
    #[arg(long)]
    by_hand: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,

    /// Namespace; the whole cluster by default
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,

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

/// Columns of the CSV, which are the fields of the JSON.
const COLUMNS: &[&str] = &["at", "way", "object", "by", "what"];

/// Looks, and prints. `report_line` is for what could not be seen.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let since = window::time(&flags.since, Timestamp::now());
    let since = since.map_err(|error| Failure::Usage(format!("--since {}: {error}", flags.since)))?;
    let cluster = ClusterFlags::of_context(flags.kubeconfig.clone(), flags.context.clone());
    let (rows, unseen) = cluster::run(&cluster, async |cluster| {
        let namespace = flags.namespace.as_deref();
        let survey = survey::take(&cluster, namespace, &[]).await?;
        let mut rows = writes(&survey, since);
        rows.extend(requests(&cluster, namespace, since).await?);
        if !flags.by_hand {
            let delivered = history::of_cluster_since(&cluster, namespace, since, &report_line).await?;
            rows.extend(delivered.iter().map(delivery));
        }
        rows.sort_by(|a, b| (&b.at, &b.object).cmp(&(&a.at, &a.object)));
        Ok((rows, survey.unseen))
    })?;
    let values: Vec<Value> = rows.iter().map(Row::value).collect();
    match flags.output {
        Format::Json => print(&output::document(&Value::Array(values), Output::Json)?)?,
        Format::Csv => print(&csv(COLUMNS, &values))?,
        Format::Table if rows.is_empty() => report_line("nothing found"),
        Format::Table => print(&table(&rows, Colours::of_terminal()))?,
    }
    unseen.iter().for_each(|one| report_line(one));
    match unseen.len() {
        0 => Ok(()),
        kinds => Err(Failure::Incomplete(format!(
            "{kinds} kinds could not be listed, and may have more"
        ))),
    }
}

/// A change.
#[derive(Debug)]
struct Row {
    at: String,
    /// `Git`, `Request`, `Hand`, or `Tool`.
    way: &'static str,
    object: String,
    by: String,
    what: Vec<String>,
}

impl Row {
    fn value(&self) -> Value {
        json!({"at": self.at, "way": self.way, "object": self.object, "by": self.by, "what": self.what.join("; ")})
    }
}

/// What people's tools, and those for delivery that are not ours, have written.
fn writes(survey: &Survey, since: Timestamp) -> Vec<Row> {
    let mut rows = Vec::new();
    for seen in &survey.objects {
        for Write { manager, at, paths } in &seen.writes {
            let way = match Program::from_manager(manager) {
                Program::Person => "Hand",
                _ => "Tool",
            };
            let Some(at) = at.filter(|at| *at >= since) else {
                continue;
            };
            rows.push(Row {
                at: at.to_string(),
                way,
                object: seen.id.to_string(),
                by: manager.clone(),
                what: paths.clone(),
            });
        }
    }
    rows
}

/// Changes that were asked for in the console, or with `windlass edit|propose|adopt`.
async fn requests(cluster: &Cluster, namespace: Option<&str>, since: Timestamp) -> Result<Vec<Row>, Failure> {
    let Some(kind) = kind::exact("ChangeRequest") else {
        return Ok(Vec::new());
    };
    let found = cluster.list(kind, namespace, None).await?.unwrap_or_default();
    let rows = found.iter().filter_map(|request| {
        let at: Timestamp = text(request, "/metadata/creationTimestamp").parse().ok()?;
        (at >= since).then(|| Row {
            at: at.to_string(),
            way: "Request",
            object: object::id(request).to_string(),
            by: text(request, "/spec/requestedBy").to_owned(),
            what: vec![text(request, "/spec/title").to_owned()],
        })
    });
    Ok(rows.collect())
}

/// A row of the history.
fn delivery(row: &Value) -> Row {
    let field = |name: &str| row[name].as_str().unwrap_or_default();
    let subject = field("subject");
    let mut what = format!("{} {}", field("outcome"), short_revision(field("revision")));
    if !subject.is_empty() {
        what.push_str(&format!(" {subject:?}"));
    }
    Row {
        at: field("ended").to_owned(),
        way: "Git",
        object: format!("{}/{}/{}", field("kind"), field("namespace"), field("name")),
        by: field("author").to_owned(),
        what: vec![what],
    }
}

fn table(rows: &[Row], colours: Colours) -> String {
    let cells = rows.iter().map(|row| {
        let tone = match row.way {
            "Git" | "Request" => Tone::Plain,
            _ => Tone::Open,
        };
        let mut what = row.what[..row.what.len().min(FIELDS)].join(", ");
        if row.what.len() > FIELDS {
            what.push_str(&format!(" and {} more", row.what.len() - FIELDS));
        }
        vec![
            Cell::from(row.at.clone()),
            Cell::toned(row.way, tone),
            row.object.clone().into(),
            row.by.clone().into(),
            what.into(),
        ]
    });
    output::table(
        &["AT", "WAY", "OBJECT", "BY", "WHAT"],
        &cells.collect::<Vec<_>>(),
        colours,
    )
}

#[cfg(test)]
mod tests {
    use delivery_graph::orphans::Maker;
    use manifest::ObjectId;

    use super::*;
    use crate::orphans::survey::Seen;

    #[test]
    fn what_was_written_by_hand_lately_is_a_row() {
        let write = |manager: &str, time: &str, paths: &[&str]| Write {
            manager: manager.to_owned(),
            at: time.parse().ok(),
            paths: paths.iter().map(|&path| path.to_owned()).collect(),
        };
        let survey = Survey {
            objects: vec![Seen {
                id: ObjectId::parse_inventory_id("shop_a__ConfigMap").expect("an id"),
                maker: Maker::Delivered,
                created: None,
                is_record: false,
                writes: vec![
                    write(
                        "kubectl-edit",
                        "2026-11-02T00:00:00Z",
                        &[".data.a", ".data.b", ".data.c", ".data.d"],
                    ),
                    write("k9s", "2026-10-02T00:00:00Z", &[".data.e"]),
                ],
            }],
            kinds: Vec::new(),
            unseen: Vec::new(),
        };
        let since = "2026-11-01T00:00:00Z".parse().expect("a time");
        let rows = writes(&survey, since);
        assert_eq!(
            table(&rows, Colours::none()),
            "AT                    WAY   OBJECT            BY            WHAT\n\
             2026-11-02T00:00:00Z  Hand  ConfigMap/shop/a  kubectl-edit  .data.a, .data.b, .data.c and 1 more\n"
        );
        assert_eq!(rows[0].value()["what"], ".data.a; .data.b; .data.c; .data.d");
    }

    #[test]
    fn a_delivery_is_told_with_its_author() {
        let row = json!({"ended": "2026-11-02T00:00:00Z", "kind": "Kustomization", "namespace": "shop", "name": "web",
            "outcome": "Succeeded", "revision": "main@sha1:0123456789abcdef", "author": "Ana", "subject": "More"});
        let row = delivery(&row);
        assert_eq!(row.what, ["Succeeded main@sha1:01234567 \"More\""]);
        assert_eq!((row.by.as_str(), row.way), ("Ana", "Git"));
    }
}

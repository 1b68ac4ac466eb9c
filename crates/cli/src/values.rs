//! `windlass values`: what an object is built with, and where each value is from.

use clap::{Args, ValueEnum};
use delivery_diff::{Given, Reader, given};
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours};
use crate::cluster::{self, ClusterFlags, Failure, Output, print, select};

/// Command line of `values`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kustomization or HelmRelease, as KIND/NAME or KIND NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// How values are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

/// Asks, and prints. `report_line` is for what is left out.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let target = select::one_target(&flags.words)?;
    if !matches!(target.kind.kind, "Kustomization" | "HelmRelease") {
        let kind = target.kind.kind;
        return Err(Failure::Usage(format!(
            "{kind}: only Kustomizations and HelmReleases are built with values"
        )));
    }
    cluster::run(&flags.cluster, async |cluster| {
        let object = cluster.need(&target.id(&cluster.namespace)).await?;
        let found = given(Reader::new(cluster.client()), &object).await;
        let found = found.map_err(Failure::NotReady)?;
        for note in &found.notes {
            report_line(note);
        }
        match flags.output {
            Format::Json => print(&output::document(&document(&found), Output::Json)?),
            Format::Yaml => print(&output::document(&document(&found), Output::Yaml)?),
            Format::Table => print(&table(&found, Colours::of_terminal())),
        }
    })
}

fn document(found: &Given) -> Value {
    let values = found.values.iter();
    let values = values.map(|one| json!({"path": one.path, "value": one.value, "origin": one.origin}));
    json!({"values": values.collect::<Vec<_>>(), "notes": found.notes})
}

fn table(found: &Given, colours: Colours) -> String {
    let rows = found.values.iter().map(|one| -> Vec<Cell> {
        vec![
            one.path.clone().into(),
            one.value.clone().into(),
            one.origin.clone().into(),
        ]
    });
    output::table(&["PATH", "VALUE", "ORIGIN"], &rows.collect::<Vec<_>>(), colours)
}

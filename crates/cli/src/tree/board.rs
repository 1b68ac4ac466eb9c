//! A pipeline as a board: environments as columns, releases as rows.

use api::delivery::Trigger;
use jiff::Timestamp;
use promotion::board::{Board, Cell as Stand, Column, State, board};
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, ClusterFlags, Failure, Output, pipeline, print};

/// Values of a release that are named.
const MAX_CHANGED: usize = 3;

/// Reads a pipeline, and prints it.
pub(super) fn run(name: &str, output: Output, flags: &ClusterFlags) -> Result<(), Failure> {
    cluster::run(flags, async |cluster| {
        let (id, pipeline) = pipeline::read(&cluster, name).await?;
        let board = board(&pipeline, Timestamp::now());
        match output {
            Output::Json | Output::Yaml => print(&output::document(&value(&board), output)?),
            Output::Name => print(&format!("{id}\n")),
            Output::Table | Output::Wide => print(&shown(&board, Colours::of_terminal())),
        }
    })
}

fn shown(board: &Board, colours: Colours) -> String {
    let names: Vec<String> = board
        .columns
        .iter()
        .map(|column| column.name.to_uppercase())
        .collect();
    let mut header = vec!["RELEASE"];
    header.extend(names.iter().map(String::as_str));
    header.push("CHANGES");
    let rows = board.rows.iter().map(|row| {
        let mut cells: Vec<Cell> = vec![row.release.number.to_string().into()];
        cells.extend(
            row.cells
                .iter()
                .zip(&board.columns)
                .map(|(stand, column)| cell(stand, column)),
        );
        let changed = row
            .changed
            .iter()
            .take(MAX_CHANGED)
            .map(|(field, before, after)| match before {
                Some(before) => format!("{field} {before} → {after}"),
                None => format!("{field} {after}"),
            });
        cells.push(changed.collect::<Vec<_>>().join(", ").into());
        cells
    });
    let mut text = output::table(&header, &rows.collect::<Vec<_>>(), colours);
    for column in &board.columns {
        for wait in &column.waits {
            text.push_str(&format!("{}: {}\n", column.name, delivery_graph::one_line(wait)));
        }
    }
    for trigger in &board.triggers {
        let Trigger {
            receiver,
            type_,
            reconciles,
            url,
        } = trigger;
        let url = url.as_ref().map_or(String::new(), |url| format!(": {url}"));
        let line = format!("started by Receiver {receiver} ({type_}, reconciles {reconciles}){url}");
        text.push_str(&format!("{}\n", delivery_graph::one_line(&line)));
    }
    if let Some(problem) = &board.problem {
        text.push_str(&format!("{}\n", delivery_graph::one_line(problem)));
    }
    text
}

fn cell(stand: &Stand, column: &Column) -> Cell {
    let (word, tone) = match stand.state {
        State::Absent => ("", Tone::Plain),
        State::Passed => ("was here", Tone::Plain),
        State::Back => ("taken back", Tone::Open),
        State::Waiting => ("waits", Tone::Open),
        State::Here if column.soaks.is_some() => ("here, soaks", Tone::Good),
        State::Here => ("here", Tone::Good),
        State::Coming => ("on its way", Tone::Open),
        State::Failed => ("failed", Tone::Bad),
    };
    let here = stand
        .targets
        .iter()
        .filter(|place| place.state == stand.state)
        .count();
    match (here, stand.of) {
        (0, _) | (_, 1) => Cell::toned(word, tone),
        (here, of) => Cell::toned(format!("{word} {here}/{of}"), tone),
    }
}

/// For scripts.
fn value(board: &Board) -> Value {
    let word = |state: State| match state {
        State::Absent => "Absent",
        State::Passed => "Passed",
        State::Back => "TakenBack",
        State::Waiting => "Waiting",
        State::Here => "Here",
        State::Coming => "Coming",
        State::Failed => "Failed",
    };
    let environments = board.columns.iter().map(|column| {
        json!({"name": column.name, "needs": column.needs, "release": column.release, "healthy": column.is_healthy,
            "waits": column.waits, "holds": column.holds})
    });
    let releases = board.rows.iter().map(|row| {
        let stands = row.cells.iter().zip(&board.columns);
        let stands = stands.map(|(stand, column)| (column.name.clone(), json!(word(stand.state))));
        json!({"number": row.release.number, "digest": row.release.digest, "values": row.release.values,
            "environments": stands.collect::<serde_json::Map<_, _>>()})
    });
    json!({"environments": environments.collect::<Vec<_>>(), "releases": releases.collect::<Vec<_>>(),
        "triggers": board.triggers})
}

#[cfg(test)]
mod tests {
    use api::delivery::Pipeline;

    use super::*;

    #[test]
    fn a_board_has_environments_as_columns_and_releases_as_rows() {
        let target = |name: &str, release: u64| json!({"name": name, "release": release, "newest": release, "ready": true});
        let pipeline: Pipeline = serde_json::from_value(json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "shop"},
            "spec": {"apps": [], "environments": [
                {"name": "dev", "targets": []},
                {"name": "production", "targets": [], "approvals": {"required": 1}},
            ]},
            "status": {
                "releases": [
                    {"number": 6, "digest": "a", "values": {"HelmRelease/shop: chart": "1.0.0"}},
                    {"number": 7, "digest": "b", "values": {"HelmRelease/shop: chart": "1.1.0"}},
                ],
                "environments": [
                    {"name": "dev", "release": 7, "passed": [6, 7], "targets": [target("dev", 7)]},
                    {"name": "production", "passed": [6], "waits": ["release 7: approval 0 of 1"],
                        "targets": [target("eu", 6), target("us", 5)]},
                ],
            },
        }))
        .unwrap();
        let board = board(&pipeline, Timestamp::UNIX_EPOCH);
        let lines = [
            "RELEASE  DEV       PRODUCTION  CHANGES",
            "7        here      waits       HelmRelease/shop: chart 1.0.0 → 1.1.0",
            "6        was here  here 1/2    HelmRelease/shop: chart 1.0.0",
            "production: release 7: approval 0 of 1",
        ];
        let shown = shown(&board, Colours::none());
        let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
        assert_eq!(shown, lines);
        assert_eq!(
            value(&board)["releases"][0]["environments"]["production"],
            "Waiting"
        );
    }
}

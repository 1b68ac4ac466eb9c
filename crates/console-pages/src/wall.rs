//! A page for a screen on a wall: how each cluster is, to be read from afar.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::fleet::picture::Cluster;
use ::fleet::row::{Row, Status};
use maud::{Markup, html};

use crate::{Shown, View, element, list};

/// How many applications of a cluster are how.
#[derive(Default)]
struct Counts {
    ready: usize,
    failed: usize,
    busy: usize,
    suspended: usize,
}

/// Shows it. The rows are those of the applications that the reader may get.
pub fn show(view: &View, rows: &[Arc<Row>], clusters: &[Cluster]) -> Shown {
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for row in rows {
        let of_cluster = counts.entry(&row.cluster).or_default();
        match row.status {
            Status::Ready => of_cluster.ready += 1,
            Status::Failed => of_cluster.failed += 1,
            Status::InProgress | Status::Unknown => of_cluster.busy += 1,
            Status::Suspended => of_cluster.suspended += 1,
        }
    }
    let away: Vec<&Cluster> = clusters.iter().filter(|cluster| cluster.away).collect();
    let (failed, busy) = counts.values().fold((away.len(), 0), |(failed, busy), counts| {
        (failed + counts.failed, busy + counts.busy)
    });
    let content = html! {
        ul #wall.wall role="list" {
            @for (name, counts) in &counts {
                (tile(view, name, counts, away.iter().any(|cluster| &*cluster.name == *name)))
            }
        }
    };
    Shown {
        title: match failed {
            0 => view.texts.wall.to_owned(),
            failed => format!("({failed}) {}", view.texts.wall),
        },
        mood: list::mood(failed, busy),
        main: html! { h1.hidden { (view.texts.wall) } (content) },
        parts: vec![("wall".to_owned(), content)],
        frame: None,
    }
}

fn tile(view: &View, name: &str, counts: &Counts, is_away: bool) -> Markup {
    let texts = view.texts;
    let class = match (is_away || counts.failed > 0, counts.busy > 0) {
        (true, _) => "failed",
        (false, true) => "busy",
        (false, false) => "ready",
    };
    let total = counts.ready + counts.failed + counts.busy + counts.suspended;
    html! {
        li class=(class) {
            h2 { (name) }
            p.large { (counts.ready) "/" (total) " " (texts.ready) }
            @if is_away { p { (element::badge("failed", texts.away)) } }
            @if counts.failed > 0 { p { (element::badge("failed", texts.failed)) " " (counts.failed) } }
            @if counts.busy > 0 { p { (element::badge("busy", texts.in_progress)) " " (counts.busy) } }
            @if counts.suspended > 0 { p { (element::badge("suspended", texts.suspended)) " " (counts.suspended) } }
        }
    }
}

//! The fleet: applications by clusters, with the version that each has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::fleet::row::{Row, Status};
use maud::{Markup, html};

use crate::search::Search;
use crate::{Shown, View, element, link, list};

/// Applications of a page, and clusters.
pub const MAX_APPS: usize = 50;
const MAX_CLUSTERS: usize = 50;

/// A page of the matrix.
pub struct Matrix<'a> {
    /// What was asked for.
    pub search: &'a Search,
    /// The rows of the page's applications, in their order: those of one application follow each other.
    pub rows: &'a [Arc<Row>],
    /// Applications of all pages.
    pub total: usize,
    /// Those before this page.
    pub skipped: usize,
}

/// Shows it.
pub fn show(view: &View, matrix: &Matrix<'_>) -> Shown {
    let texts = view.texts;
    let clusters: BTreeSet<&str> = matrix.rows.iter().map(|row| &*row.cluster).collect();
    let clusters: Vec<&str> = clusters.into_iter().take(MAX_CLUSTERS).collect();
    let apps = matrix.rows.chunk_by(|a, b| same(a, b));
    let content = html! {
        div #matrix.wide tabindex="0" {
            table.matrix {
                thead {
                    tr {
                        th scope="col" { (texts.applications) }
                        @for cluster in &clusters {
                            th scope="col" { a href=(link::with("/apps", &[("cluster", cluster)])) { (cluster) } }
                        }
                    }
                }
                tbody { @for app in apps { (line(view, app, &clusters)) } }
            }
        }
    };
    let next = (matrix.skipped + MAX_APPS < matrix.total).then(|| (matrix.skipped + MAX_APPS).to_string());
    let failed = matrix
        .rows
        .iter()
        .filter(|row| row.status == Status::Failed)
        .count();
    let busy = matrix
        .rows
        .iter()
        .filter(|row| row.status == Status::InProgress)
        .count();
    let main = html! {
        h1 { (texts.fleet) " " a.t0 href="/wall" { (texts.wall) } }
        form.filter action="/fleet" role="search" {
            input type="search" name="q" value=(matrix.search.typed) placeholder=(texts.search_hint) aria-label=(texts.search);
            button { (texts.search) }
        }
        @if matrix.rows.is_empty() { p { (texts.no_rows) } }
        (content)
        nav.pages aria-label=(texts.next_page) {
            @if let Some(next) = next {
                a rel="next" href=(link::with("/fleet", &[("q", &matrix.search.typed), ("skip", &next)])) { (texts.next_page) }
            }
        }
    };
    Shown {
        title: texts.fleet.to_owned(),
        mood: list::mood(failed, busy),
        main,
        parts: vec![("matrix".to_owned(), content)],
        frame: None,
    }
}

/// Whether two rows are the same application in different clusters.
pub fn same(a: &Row, b: &Row) -> bool {
    (a.kind, &a.namespace, &a.name) == (b.kind, &b.namespace, &b.name)
}

fn line(view: &View, app: &[Arc<Row>], clusters: &[&str]) -> Markup {
    let Some(first) = app.first() else {
        return html! {};
    };
    let versions: BTreeMap<&str, usize> = app.iter().fold(BTreeMap::new(), |mut counts, row| {
        *counts.entry(version(row)).or_default() += 1;
        counts
    });
    html! {
        tr {
            th scope="row" {
                (first.name) span.place { (first.kind) " · " (first.namespace) }
                @if versions.len() > 1 { span.place { (versions.len()) " " (view.texts.versions) } }
            }
            @for cluster in clusters {
                td {
                    @if let Some(row) = app.iter().find(|row| &*row.cluster == *cluster) {
                        a.cell href=(link::row(row)) {
                            (element::status(view, row.status)) span.mono { (short(version(row))) }
                        }
                    }
                }
            }
        }
    }
}

fn version(row: &Row) -> &str {
    match row.version.is_empty() {
        true => &row.revision,
        false => &row.version,
    }
}

fn short(version: &str) -> String {
    delivery_graph::object::short_revision(version)
}

//! A list of objects: facets, rows, and what can be done to those that are selected.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::fleet::query::{Page, Parameters};
use ::fleet::row::{Row, Status};
use maud::{Markup, html};

use crate::search::Search;
use crate::{Mood, Shown, View, element, link};

/// A page of a list.
pub struct List<'a> {
    /// Its heading.
    pub title: &'static str,
    /// Its path.
    pub path: &'static str,
    /// What was asked for.
    pub search: &'a Search,
    /// Parameters that were given besides what was typed.
    pub given: &'a Parameters,
    /// What was found.
    pub page: &'a Page,
}

/// Facets, and the parameter of each.
const FACETS: [&str; 4] = ["status", "kind", "namespace", "cluster"];

/// Shows it.
pub fn show(view: &View, list: &List<'_>) -> Shown {
    let texts = view.texts;
    let page = list.page;
    let rows: Vec<(String, Markup)> = page.items.iter().map(|row| item(view, row)).collect();
    let facets = html! { div #facets.facets { @for facet in FACETS { (facet_of(view, list, facet)) } } };
    let count = html! { p #count.count { (page.total) " " (texts.of_total) } };
    let listing = html! { ul #rows role="list" { @for (_, row) in &rows { (row) } } };
    let main = html! {
        h1 { (list.title) @if view.has_changes { " " a.button href="/new" { (texts.new) } } }
        form.filter action=(list.path) role="search" {
            input #q type="search" name="q" value=(list.search.typed) placeholder=(texts.search_hint) aria-label=(texts.search);
            @for (name, value) in given(list.given) {
                @if !value.is_empty() && name != "sort" { input type="hidden" name=(name) value=(value); }
            }
            select name="sort" aria-label=(texts.sort) {
                @for (value, word) in [("", texts.by_name), ("status", texts.by_status), ("newest", texts.by_newest), ("oldest", texts.by_oldest)] {
                    option value=(value) selected[list.given.sort == value] { (word) }
                }
            }
            button { (texts.search) }
        }
        @if !page.silent.is_empty() {
            p.cause { (texts.silent) " " @for cluster in &page.silent { (cluster) " " } }
        }
        div.columns {
            (facets)
            div.grow {
                (count)
                form.rows method="post" action="/actions" {
                    @if view.has_actions && !rows.is_empty() {
                        label.check.all data-all hidden { input type="checkbox"; " " (texts.select_all) }
                    }
                    (listing)
                    @if rows.is_empty() { p { (texts.no_rows) " " a href=(list.path) { (texts.clear) } } }
                    @if view.has_actions && !rows.is_empty() {
                        (actions(view, texts.selected, &["reconcile", "suspend", "resume"]))
                    }
                }
                nav.pages aria-label=(texts.next_page) {
                    @if !list.given.after.is_empty() { a href=(address(list, &[("after", "")])) { (texts.first_page) } }
                    @if let Some(next) = &page.next { a rel="next" href=(address(list, &[("after", next)])) { (texts.next_page) } }
                }
            }
        }
    };
    let failed = count_of(&page.facets, Status::Failed);
    let busy = count_of(&page.facets, Status::InProgress);
    let parts = [("facets".to_owned(), facets), ("count".to_owned(), count)];
    Shown {
        title: match failed {
            0 => list.title.to_owned(),
            failed => format!("({failed}) {}", list.title),
        },
        mood: mood(failed, busy),
        main,
        parts: parts.into_iter().chain(rows).collect(),
        frame: Some(("rows", listing)),
    }
}

/// The mood of a page with these numbers of objects.
pub(crate) fn mood(failed: usize, busy: usize) -> Mood {
    match (failed, busy) {
        (0, 0) => Mood::Good,
        (0, _) => Mood::Busy,
        _ => Mood::Bad,
    }
}

fn count_of(facets: &BTreeMap<&'static str, BTreeMap<String, usize>>, status: Status) -> usize {
    let counts = facets.get("status");
    counts
        .and_then(|counts| counts.get(status.word()))
        .copied()
        .unwrap_or_default()
}

/// A row, with its id.
fn item(view: &View, row: &Arc<Row>) -> (String, Markup) {
    let key = object_value(row);
    let id = element::id("r", &key);
    let markup = html! {
        li #(id) class=(row.status.word()) {
            @if view.has_actions {
                input type="checkbox" name="object" value=(key) aria-label={(view.texts.select) " " (row.name)};
            }
            (element::status(view, row.status))
            div.what { (element::name(row)) (element::place(row)) }
            // A pipeline that is ready says where its releases are.
            div.why { @if row.status != Status::Ready || row.kind == "Pipeline" { (row.message) } }
            div.revision { (element::revision(&row.revision)) }
            div.since { @if let Some(since) = row.since { (element::ago(view, since)) } }
        }
    };
    (id, markup)
}

/// A row's object in a form.
pub fn object_value(row: &Row) -> String {
    format!("{}/{}", row.cluster, row.id())
}

/// Buttons for verbs, with a field for the reason.
pub(crate) fn actions(view: &View, legend: &str, verbs: &[&str]) -> Markup {
    let texts = view.texts;
    let word = |verb: &str| match verb {
        "reconcile" => texts.reconcile,
        "suspend" => texts.suspend,
        "resume" => texts.resume,
        "restart" => texts.restart,
        _ => texts.download,
    };
    html! {
        fieldset.actions {
            legend { (legend) }
            input type="hidden" name="back" value=(view.address);
            label { (texts.reason) " " input name="reason" maxlength="1000" autocomplete="off"; }
            @for verb in verbs { button name="verb" value=(verb) { (word(verb)) } }
            @if verbs.contains(&"reconcile") {
                label.check { input type="checkbox" name="withSource" value="true"; " " (texts.with_source) }
            }
        }
    }
}

fn facet_of(view: &View, list: &List<'_>, facet: &'static str) -> Markup {
    let texts = view.texts;
    let title = match facet {
        "status" => texts.status,
        "kind" => texts.kind,
        "namespace" => texts.namespace,
        _ => texts.cluster,
    };
    let chosen = given(list.given).into_iter().find(|(name, _)| *name == facet);
    let chosen = chosen.map(|(_, value)| value).unwrap_or_default();
    let counts = list.page.facets.get(facet);
    html! {
        section {
            h2 { (title) }
            ul role="list" {
                @if !chosen.is_empty() {
                    li { a href=(address(list, &[(facet, ""), ("after", "")])) { "✕ " (chosen) } }
                } @else {
                    @for (value, count) in counts.into_iter().flatten() {
                        li { a href=(address(list, &[(facet, value), ("after", "")])) { (value) } span.number { (count) } }
                    }
                }
            }
        }
    }
}

/// The address of this list with other values of some parameters.
fn address(list: &List<'_>, changes: &[(&str, &str)]) -> String {
    let mut parameters = vec![("q", list.search.typed.as_str())];
    parameters.extend(given(list.given));
    parameters.push(("after", &list.given.after));
    for (name, value) in &mut parameters {
        if let Some((_, changed)) = changes.iter().find(|(changed, _)| changed == name) {
            *value = changed;
        }
    }
    link::with(list.path, &parameters)
}

/// The parameters that an address of a list has, `after` aside.
fn given(parameters: &Parameters) -> Vec<(&'static str, &str)> {
    vec![
        ("status", &parameters.status),
        ("kind", &parameters.kind),
        ("namespace", &parameters.namespace),
        ("cluster", &parameters.cluster),
        ("label", &parameters.label),
        ("source", &parameters.source),
        ("revision", &parameters.revision),
        ("chart", &parameters.chart),
        ("version", &parameters.version),
        ("owner", &parameters.owner),
        ("repository", &parameters.repository),
        ("image", &parameters.image),
        ("filter", &parameters.filter),
        ("sort", &parameters.sort),
    ]
}

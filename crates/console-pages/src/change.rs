//! Where a change is: which objects have it, which are to get it, and which did not.

use std::sync::Arc;

use ::fleet::row::Row;
use ledger::delivery::Delivery;
use maud::{Markup, html};

use crate::{Mood, Shown, View, element, history, link};

/// Objects of a group that are shown.
const MAX_SHOWN: usize = 200;

/// An object, and why it is where it is.
pub struct Place {
    /// The object.
    pub row: Arc<Row>,
    /// What it waits for, or what failed; empty for those that have it.
    pub why: String,
}

/// Where a change is.
#[derive(Default)]
pub struct Change<'a> {
    /// What was asked for.
    pub wanted: &'a str,
    /// Sources that have it, or had it.
    pub sources: Vec<Place>,
    /// Applications that have it.
    pub done: Vec<Place>,
    /// Those that will.
    pub missing: Vec<Place>,
    /// Those that tried.
    pub failed: Vec<Place>,
    /// Earlier deliveries of it, where a ledger is kept.
    pub deliveries: &'a [Delivery],
}

/// Shows it.
pub fn show(view: &View, change: &Change<'_>) -> Shown {
    let texts = view.texts;
    let groups = [
        (texts.not_there, "failed", &change.failed),
        (texts.on_its_way, "busy", &change.missing),
        (texts.there, "ready", &change.done),
        (texts.sources, "ready", &change.sources),
    ];
    let is_nowhere = groups.iter().all(|(_, _, places)| places.is_empty()) && change.deliveries.is_empty();
    let content = html! {
        div #change {
            @if is_nowhere && !change.wanted.is_empty() { p { (texts.nobody_has_it) } }
            @for (title, class, places) in groups { (group(view, title, class, places)) }
            @if !change.deliveries.is_empty() {
                section { h2 { (texts.history) } (history::table(view, change.deliveries, true)) }
            }
        }
    };
    let main = html! {
        h1 { (texts.change) " " span.mono { (change.wanted) } }
        form.filter action="/change" role="search" {
            input type="search" name="q" value=(change.wanted) placeholder=(texts.change_hint) aria-label=(texts.change_hint) maxlength="300";
            button { (texts.search) }
        }
        (content)
    };
    Shown {
        title: format!("{} {}", texts.change, change.wanted),
        mood: match (change.failed.is_empty(), change.missing.is_empty()) {
            (false, _) => Mood::Bad,
            (true, false) => Mood::Busy,
            (true, true) => Mood::Good,
        },
        main,
        parts: vec![("change".to_owned(), content)],
        frame: None,
    }
}

fn group(view: &View, title: &str, class: &str, places: &[Place]) -> Markup {
    html! {
        @if !places.is_empty() {
            section.needs {
                h2 { (element::badge(class, title)) " " span.number { (places.len()) } }
                ul.rows role="list" {
                    @for place in places.iter().take(MAX_SHOWN) {
                        li {
                            div.what { a.name href=(link::row(&place.row)) { (place.row.name) } (element::place(&place.row)) }
                            div.why { (place.why) }
                            div.revision { (element::revision(&place.row.revision)) }
                            div.since { @if let Some(since) = place.row.since { (element::ago(view, since)) } }
                        }
                    }
                    @if places.len() > MAX_SHOWN { li { "…" } }
                }
            }
        }
    }
}

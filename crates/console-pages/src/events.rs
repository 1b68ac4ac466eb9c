//! Kubernetes Events about an object.

use fleet::row::Row;
use jiff::Timestamp;
use maud::html;

use crate::{Mood, Shown, View, element};

/// An Event.
pub struct Event {
    /// When it was so last.
    pub last: Option<Timestamp>,
    /// How often.
    pub count: i32,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// A word for it.
    pub reason: String,
    /// What happened.
    pub message: String,
    /// Who tells it.
    pub reporter: String,
}

/// Shows them, the newest first.
pub fn show(view: &View, row: &Row, events: &[Event]) -> Shown {
    let texts = view.texts;
    let main = html! {
        h1 { (element::name(row)) " " (element::place(row)) }
        section #events {
            h2 { (texts.events) }
            @if events.is_empty() { p { (texts.no_events) } } @else {
                div.wide tabindex="0" {
                    table {
                        thead { tr { th { (texts.when) } th { (texts.reason) } th { (texts.what) } th { (texts.who) } } }
                        tbody {
                            @for event in events {
                                tr {
                                    td.short {
                                        @if let Some(last) = event.last { (element::ago(view, last)) }
                                        @if event.count > 1 { " × " (event.count) }
                                    }
                                    td {
                                        @match event.kind == "Warning" {
                                            true => (element::badge("failed", &event.reason)),
                                            false => (event.reason),
                                        }
                                    }
                                    td { (event.message) }
                                    td { (event.reporter) }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    Shown {
        title: format!("{} {}", row.name, texts.events),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}

//! What an object is built with, as a part of its page that is asked for.

use fleet::row::Row;
use maud::html;

use crate::{Mood, Shown, View, element};

/// Shows paths, values and where each is from.
pub fn show(view: &View, row: &Row, values: &[(&str, &str, &str)], notes: &[String]) -> Shown {
    let texts = view.texts;
    let main = html! {
        h1 { (element::name(row)) " " (element::place(row)) }
        section #values {
            h2 { (texts.values) }
            @if values.is_empty() { p { (texts.no_values) } } @else {
                div.wide tabindex="0" {
                    table {
                        thead { tr { th { (texts.path) } th { (texts.value) } th { (texts.origin) } } }
                        tbody {
                            @for (path, value, origin) in values {
                                tr { td { code { (path) } } td { code { (value) } } td { (origin) } }
                            }
                        }
                    }
                }
            }
            @for note in notes { p.why { (note) } }
        }
    };
    Shown {
        title: format!("{} {}", row.name, texts.values),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}

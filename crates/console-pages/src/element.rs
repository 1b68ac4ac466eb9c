//! Small things that all pages use.

use fleet::row::{Row, Status};
use jiff::Timestamp;
use maud::{Markup, html};
use sha2::{Digest as _, Sha256};

use crate::{View, link};

/// The id of an element for this name: a hash, because names may have characters that selectors do not allow.
pub fn id(prefix: &str, name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}-{hex}")
}

/// A status: a shape, a word and a colour.
pub fn status(view: &View, status: Status) -> Markup {
    let class = match status {
        Status::Ready => "ready",
        Status::Failed => "failed",
        Status::InProgress => "busy",
        Status::Suspended => "suspended",
        Status::Unknown => "unknown",
    };
    badge(class, word(view, status))
}

/// The word of a status.
pub fn word(view: &View, status: Status) -> &'static str {
    let texts = view.texts;
    match status {
        Status::Ready => texts.ready,
        Status::Failed => texts.failed,
        Status::InProgress => texts.in_progress,
        Status::Suspended => texts.suspended,
        Status::Unknown => texts.unknown,
    }
}

/// A word with a shape: `ready`, `failed`, `busy`, `suspended` or `unknown`.
pub fn badge(class: &str, word: &str) -> Markup {
    html! { span class={"badge " (class)} { i aria-hidden="true" {} (word) } }
}

/// Only the shape, where there is little room; the word is for screen readers and pointers.
pub fn mark(class: &str, word: &str) -> Markup {
    html! { span class={"badge " (class)} title=(word) { i aria-hidden="true" {} span.hidden { (word) } } }
}

/// How long ago something was, with the time itself behind it.
pub fn ago(view: &View, time: Timestamp) -> Markup {
    let full = time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    html! { time.ago datetime=(time) title=(full) { (duration(view.loaded.duration_since(time).as_secs())) } }
}

/// Seconds in the largest unit that fits: `45 s`, `3 min`, `5 h`, `12 d`.
pub fn duration(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min", seconds / 60),
        seconds @ ..86_400 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// A revision in short, with a way to where it is.
pub fn revision(revision: &str) -> Markup {
    if revision.is_empty() {
        return html! {};
    }
    let short = delivery_graph::object::short_revision(revision);
    html! { a.mono href=(link::change(revision)) title=(revision) { (short) } }
}

/// What a row is called, with a way to its page.
pub fn name(row: &Row) -> Markup {
    html! { a.name href=(link::row(row)) { (row.name) } }
}

/// Where it is: kind, namespace and cluster.
pub fn place(row: &Row) -> Markup {
    html! { span.place { (row.kind) " · " (row.namespace) " · " (row.cluster) } }
}

/// A section that is asked for by a button, and then stands where the button was. Without scripts the button leads to its page.
pub fn asked_for(id: &str, title: &str, button: &str, address: &str) -> Markup {
    let selector = format!("#{id}");
    html! {
        section #(id) {
            h2 { (title) }
            p {
                a.button href=(address) hx-get=(address) hx-select=(selector) hx-target=(selector) hx-swap="outerHTML" { (button) }
            }
        }
    }
}

/// An address outside, with a way there if it is one that browsers may open.
pub fn outside(address: &str) -> Markup {
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    html! {
        @if is_web { a href=(address) rel="noreferrer noopener" { (address) } } @else { (address) }
    }
}

/// A command, with a button that copies it.
pub fn command(view: &View, text: &str) -> Markup {
    html! {
        div.command {
            code { (text) }
            button type="button" data-copy=(text) data-copied=(view.texts.copied) hidden { (view.texts.copy) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let all = [
            (-5, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3600, "1 h"),
            (86_400, "1 d"),
            (40_000_000, "462 d"),
        ];
        for (seconds, text) in all {
            assert_eq!(duration(seconds), text);
        }
    }
}

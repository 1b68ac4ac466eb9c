//! What an object would change now, as a part of its page that is asked for.

use fleet::row::Row;
use maud::{Markup, html};
use serde_json::Value;

use crate::{Mood, Shown, View, element};

/// What was compared.
pub struct Compared<'a> {
    /// What the source has.
    pub desired: &'a str,
    /// What was applied last.
    pub applied: &'a str,
    /// Why they differ.
    pub reason: &'a str,
    /// Objects that differ, as the API has them: object, action, file, message and fields.
    pub objects: &'a [Value],
    /// What was not compared.
    pub notes: &'a [String],
}

/// Shows it.
pub fn show(view: &View, row: &Row, compared: &Compared<'_>) -> Shown {
    let texts = view.texts;
    let has_revisions = !compared.applied.is_empty() || !compared.desired.is_empty();
    let main = html! {
        h1 { (element::name(row)) " " (element::place(row)) }
        section #compared {
            h2 { @if row.kind == "Pipeline" { (texts.next_releases) } @else { (texts.differences) } }
            @if !compared.reason.is_empty() { p.why { (compared.reason) } }
            @if has_revisions {
                p {
                    (texts.applied) " " (element::revision(compared.applied)) " → "
                    (texts.in_source) " " (element::revision(compared.desired))
                }
            }
            @if compared.objects.is_empty() { p { (texts.no_differences) } }
            @for object in compared.objects { (changed(object)) }
            @for note in compared.notes { p.why { (note) } }
        }
    };
    Shown {
        title: format!("{} {}", row.name, texts.differences),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}

/// Two objects, or one in two revisions, and what differs between what they want to have applied.
pub struct Between<'a> {
    /// `CLUSTER/KIND/NAMESPACE/NAME`, with `@3` for a revision of a release; as it was typed.
    pub from: &'a str,
    /// The same.
    pub to: &'a str,
    /// What `from` was made of, what `to` was, and what differs; None if nothing was asked yet.
    pub found: Option<(&'a str, &'a str, &'a [Value], &'a [String])>,
}

/// Shows it.
pub fn between(view: &View, asked: &Between<'_>) -> Shown {
    let texts = view.texts;
    let main = html! {
        h1 { (texts.compare) }
        form.filter action="/compare" {
            label { (texts.from) " " input name="from" value=(asked.from) placeholder=(texts.side_hint) maxlength="700"; }
            label { (texts.to) " " input name="to" value=(asked.to) placeholder=(texts.side_hint) maxlength="700"; }
            button { (texts.compare) }
        }
        @if let Some((from, to, objects, notes)) = asked.found {
            section #compared {
                p { (element::revision(from)) " → " (element::revision(to)) }
                @if objects.is_empty() { p { (texts.no_differences) } }
                @for object in objects { (changed(object)) }
                @for note in notes { p.why { (note) } }
            }
        }
    };
    Shown {
        title: texts.compare.to_owned(),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}

/// An object that would change, with its fields.
pub(crate) fn changed(object: &Value) -> Markup {
    let of = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let fields = object
        .get("fields")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    html! {
        details.diff open {
            summary { strong { (of("action")) } " " (of("object")) " " span.place { (of("file")) } }
            @if !of("message").is_empty() { p.why { (of("message")) } }
            @for field in fields { (line(field)) }
            @if let Some(more) = object.get("moreFields").and_then(Value::as_u64) { p { "… +" (more) } }
        }
    }
}

fn line(field: &Value) -> Markup {
    let of = |name: &str| field.get(name).and_then(Value::as_str);
    html! {
        div.field {
            code { (of("path").unwrap_or_default()) }
            @if let Some(old) = of("old") { del { (old) } }
            @if let Some(new) = of("new") { ins { (new) } }
            @if let Some(by) = of("setBy") { span.place { (by) } }
        }
    }
}

//! A pipeline as a board: environments as columns, releases as rows; and what can be decided about it.

use api::delivery::Pipeline;
use maud::{Markup, html};
use promotion::board::{Board, Cell, Column, Need, Place, Row as Line, State, board};
use serde_json::Value;

use crate::{View, element};

/// Changes of a release that are named.
const MAX_CHANGED: usize = 5;
/// Targets of a cell that are named.
const MAX_TARGETS: usize = 10;
/// Characters of a value.
const MAX_VALUE: usize = 60;

/// The verbs of decisions.
pub(crate) const VERBS: [&str; 5] = ["approve", "promote", "rollback", "hold", "release"];

/// Reads the board of a pipeline; None for other objects.
pub fn of(object: &Value, view: &View) -> Option<Board> {
    if object.get("kind")? != "Pipeline" {
        return None;
    }
    let pipeline: Pipeline = serde_json::from_value(object.clone()).ok()?;
    Some(board(&pipeline, view.now))
}

/// Shows it.
pub(crate) fn show(view: &View, board: &Board) -> Markup {
    let texts = view.texts;
    html! {
        section #board {
            h2 { (texts.board) }
            @if let Some(problem) = &board.problem { p.cause { (problem) } }
            @if board.rows.is_empty() { p { (texts.no_releases) } }
            div.wide tabindex="0" {
                table.board {
                    thead {
                        tr {
                            th scope="col" { (texts.release) }
                            @for column in &board.columns { th scope="col" { (head(view, column)) } }
                        }
                    }
                    tbody { @for line in &board.rows { (row(view, line, &board.columns)) } }
                }
            }
            @for trigger in &board.triggers {
                p.why {
                    (texts.started_by) " Receiver " (trigger.receiver) " (" (trigger.type_) ") → " (trigger.reconciles)
                    @if let Some(url) = &trigger.url { " " code { (url) } }
                }
            }
        }
    }
}

fn head(view: &View, column: &Column) -> Markup {
    let texts = view.texts;
    let (class, word) = match (column.is_healthy, column.release) {
        (true, _) => ("ready", texts.ready),
        (false, None) => ("unknown", texts.unknown),
        (false, Some(_)) => ("busy", texts.not_ready),
    };
    html! {
        strong { (column.name) }
        @if !column.needs.is_empty() { span.place { (texts.after) " " (column.needs.join(", ")) } }
        (element::badge(class, word))
        @if let Some((since, until)) = column.soaks {
            @let whole = until.duration_since(since).as_secs().max(1);
            @let gone = view.loaded.duration_since(since).as_secs().clamp(0, whole);
            progress data-since=(since) value=(gone) max=(whole) aria-label=(texts.soaks_until) {}
            span.place { (texts.soaks_until) " " (until.strftime("%a %H:%M UTC")) }
        }
        @for hold in &column.holds { span { (element::badge("suspended", texts.held)) span.place { " " (hold) } } }
    }
}

fn row(view: &View, line: &Line, columns: &[Column]) -> Markup {
    let release = &line.release;
    html! {
        tr {
            th scope="row" title=(release.digest) {
                (view.texts.release) " " (release.number)
                @if let Some(made) = &release.made { span.place { (element::ago(view, made.0)) } }
                @for (field, before, after) in line.changed.iter().take(MAX_CHANGED) {
                    span.place title=(field) {
                        (short(field.rsplit(": ").next().unwrap_or(field))) " "
                        @if let Some(before) = before { (short(before)) " → " }
                        strong { (short(after)) }
                    }
                }
                @if line.changed.len() > MAX_CHANGED { span.place { "…" } }
                @if let Some(from) = &release.rolled_back { span.place { (view.texts.roll_back) ": " (from) } }
            }
            @for (cell, column) in line.cells.iter().zip(columns) { (stands(view, cell, column)) }
        }
    }
}

fn stands(view: &View, cell: &Cell, column: &Column) -> Markup {
    let texts = view.texts;
    let (class, badge) = match cell.state {
        State::Absent => ("", None),
        State::Passed => ("gone", None),
        State::Back => ("back", Some(("suspended", texts.taken_back))),
        State::Waiting => ("waits", Some(("busy", texts.waits))),
        State::Here => ("here", Some(("ready", texts.here))),
        State::Coming => ("coming", Some(("busy", texts.on_its_way))),
        State::Failed => ("failed", Some(("failed", texts.failed))),
    };
    // Of one target that is well there is nothing more to say.
    let is_plain = cell.of == 1
        && matches!(cell.targets.as_slice(), [place] if matches!(place.state, State::Here | State::Back));
    html! {
        td class=(class) {
            @match badge {
                Some((class, word)) => (element::badge(class, word)),
                None if cell.state == State::Passed => (texts.was_here),
                None => {},
            }
            @if cell.state == State::Waiting {
                ul { @for wait in &column.waits { li.why { (wait) } } }
            }
            @if !is_plain && !cell.targets.is_empty() {
                ul { @for place in cell.targets.iter().take(MAX_TARGETS) { (target(view, place)) } }
                @if cell.targets.len() > MAX_TARGETS { "…" }
            }
        }
    }
}

fn target(view: &View, place: &Place) -> Markup {
    let texts = view.texts;
    let (class, word) = match place.state {
        State::Here => ("ready", texts.here),
        State::Coming => ("busy", texts.on_its_way),
        State::Back => ("suspended", texts.taken_back),
        _ => ("failed", texts.failed),
    };
    html! {
        li {
            (element::mark(class, word)) " " (place.name)
            @if !place.commit.is_empty() { " " (element::revision(&place.commit)) }
            @if !place.pull_request.is_empty() { span.why { " " (place.pull_request) } }
            @if !place.message.is_empty() && !matches!(place.state, State::Here | State::Back) { span.why { " " (place.message) } }
        }
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What can be decided: first what waits for people, by a button each, then everything.
pub(crate) fn decide(view: &View, object: &str, board: &Board, verbs: &[&str]) -> Markup {
    let texts = view.texts;
    let verbs: Vec<&str> = VERBS.into_iter().filter(|verb| verbs.contains(verb)).collect();
    html! {
        @for column in &board.columns {
            @match &column.needs_people {
                Some(Need::Approval { release, by, required }) => {
                    (quick(view, object, column, *release, verbs.contains(&"approve").then_some("approve"), &html! {
                        strong { (column.name) } " " (texts.needs_approval) " " (release) " (" (by.len()) "/" (required) ")"
                        @if !by.is_empty() { ", " (texts.approved_by) " " (by.join(", ")) }
                    }))
                }
                Some(Need::Release { release, hold }) => {
                    (quick(view, object, column, *release, None, &html! {
                        strong { (column.name) } " " (texts.is_held) " " (release) ": " (hold)
                    }))
                }
                None => {}
            }
        }
        @if !verbs.is_empty() {
            form.decide method="post" action="/actions" {
                (hidden(view, object))
                label { (texts.environment)
                    select name="environment" {
                        option value="" { (texts.all_environments) }
                        @for column in &board.columns { option value=(column.name) { (column.name) } }
                    }
                }
                label { (texts.release)
                    select name="number" {
                        option value="" { (texts.newest) }
                        @for line in &board.rows { option value=(line.release.number) { (line.release.number) } }
                    }
                }
                label { (texts.reason) input name="reason" maxlength="1000" autocomplete="off"; }
                @if verbs.contains(&"hold") {
                    label { (texts.hold_for) input name="duration" maxlength="20" autocomplete="off" placeholder=(texts.hold_hint); }
                }
                @for verb in &verbs { button name="verb" value=(verb) { (word(view, verb)) } }
            }
        }
    }
}

/// What waits for people, with the button for it.
fn quick(
    view: &View,
    object: &str,
    column: &Column,
    release: u64,
    verb: Option<&str>,
    said: &Markup,
) -> Markup {
    html! {
        form.decide method="post" action="/actions" {
            p { (said) }
            @if let Some(verb) = verb {
                (hidden(view, object))
                input type="hidden" name="environment" value=(column.name);
                input type="hidden" name="number" value=(release);
                button name="verb" value=(verb) { (word(view, verb)) }
            }
        }
    }
}

fn hidden(view: &View, object: &str) -> Markup {
    html! {
        input type="hidden" name="object" value=(object);
        input type="hidden" name="back" value=(view.address);
    }
}

fn word(view: &View, verb: &str) -> &'static str {
    let texts = view.texts;
    match verb {
        "approve" => texts.approve,
        "promote" => texts.promote,
        "rollback" => texts.roll_back,
        "hold" => texts.hold,
        _ => texts.end_hold,
    }
}

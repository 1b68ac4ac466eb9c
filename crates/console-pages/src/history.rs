//! What was delivered and done, and the figures of DORA.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ledger::action::Action;
use ledger::delivery::{Delivery, Outcome};
use ledger::dora::Figures;
use maud::{Markup, html};

use crate::{Mood, Shown, View, element, link};

/// A page of the history.
pub struct History<'a> {
    /// The parameters that were given, as `(name, value)`.
    pub given: Vec<(&'static str, String)>,
    /// Deliveries, the newest first.
    pub deliveries: &'a [Delivery],
    /// `after` of the next page.
    pub next: Option<String>,
    /// What people did, the newest first.
    pub actions: &'a [Action],
    /// Figures of the last 30 days.
    pub figures: Option<&'a Figures>,
    /// Successes and failures of each of the last days, the oldest first.
    pub days: &'a [Day],
}

/// Deliveries of a day.
pub struct Day {
    /// As `2026-11-26`.
    pub date: String,
    /// Those that succeeded.
    pub succeeded: usize,
    /// Those that failed.
    pub failed: usize,
}

/// Shows it.
pub fn show(view: &View, history: &History<'_>) -> Shown {
    let texts = view.texts;
    let given = |wanted: &str| {
        let found = history.given.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    let next = history.next.as_deref().map(|next| {
        let given = history.given.iter().map(|(name, value)| (*name, value.as_str()));
        link::with("/history", &given.chain([("after", next)]).collect::<Vec<_>>())
    });
    let main = html! {
        h1 { (texts.history) }
        form.filter action="/history" role="search" {
            @for (name, label) in [("cluster", texts.cluster), ("namespace", texts.namespace), ("name", texts.name), ("revision", texts.revision), ("since", texts.since_label), ("until", texts.until)] {
                label { (label) " " input name=(name) value=(given(name)) maxlength="300"; }
            }
            button { (texts.search) }
        }
        p { a href="/state?at=1d" { (texts.state_at) " 1d" } }
        @if let Some(figures) = history.figures { (cards(view, figures)) }
        @if !history.days.is_empty() { (chart(view, history.days)) }
        (table(view, history.deliveries, true))
        @if let Some(address) = next {
            nav.pages aria-label=(texts.next_page) { a rel="next" href=(address) { (texts.next_page) } }
        }
        @if !history.actions.is_empty() {
            section { h2 { (texts.actions_by_hand) } (by_hand(view, history.actions)) }
        }
    };
    Shown {
        title: texts.history.to_owned(),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}

/// Deliveries as a table; with their objects if these are not one.
pub fn table(view: &View, deliveries: &[Delivery], has_objects: bool) -> Markup {
    let texts = view.texts;
    html! {
        @if deliveries.is_empty() { p { (texts.no_history) } } @else {
            div.wide tabindex="0" {
                table {
                    thead {
                        tr {
                            th { (texts.when) }
                            th { (texts.outcome) }
                            @if has_objects { th { (texts.what) } }
                            th { (texts.revision) } th { (texts.author) } th { (texts.took) }
                        }
                    }
                    tbody { @for row in deliveries { (line(view, row, has_objects)) } }
                }
            }
        }
    }
}

fn line(view: &View, row: &Delivery, has_objects: bool) -> Markup {
    let texts = view.texts;
    let (class, word) = match row.outcome {
        Outcome::Succeeded => ("ready", texts.succeeded),
        Outcome::Failed => ("failed", texts.failed),
        Outcome::Gap => ("unknown", texts.unknown),
    };
    let is_promotion = row.kind == "Pipeline";
    let commit = match row.origin.is_empty() {
        true => &row.revision,
        false => &row.origin,
    };
    html! {
        tr {
            td.short { (element::ago(view, row.ended)) }
            td { (element::badge(class, word)) @if row.outcome == Outcome::Failed { p.why { (row.reason) " " (row.message) } } }
            @if has_objects {
                td.object {
                    a.name href=(link::object(&row.cluster, &row.kind, &row.namespace, &row.name)) { (row.name) }
                    span.place { (row.kind) " · " (row.namespace) " · " (row.cluster) }
                }
            }
            td {
                // Which release went where, and who asked for it.
                @if is_promotion { (row.revision) " " }
                (element::revision(commit))
                @if is_promotion && row.outcome == Outcome::Succeeded { p.why { (row.message) } }
                @if !row.subject.is_empty() { p.why { (row.subject) } }
            }
            td { (row.author) }
            td.short { (element::duration(row.ended.duration_since(row.began).as_secs())) }
        }
    }
}

/// What people did, as a table.
pub fn by_hand(view: &View, actions: &[Action]) -> Markup {
    let texts = view.texts;
    html! {
        div.wide tabindex="0" {
            table {
                thead { tr { th { (texts.when) } th { (texts.who) } th { (texts.what) } th { (texts.reason) } th { (texts.outcome) } } }
                tbody {
                    @for action in actions {
                        tr {
                            td { (element::ago(view, action.began)) }
                            td { (action.username) }
                            td {
                                (action.verb) " "
                                a.name href=(link::object(&action.cluster, &action.kind, &action.namespace, &action.name)) { (action.name) }
                                span.place { (action.kind) " · " (action.namespace) " · " (action.cluster) }
                            }
                            td { (action.reason) }
                            td { (action.end.word()) " " (action.message) }
                        }
                    }
                }
            }
        }
    }
}

fn cards(view: &View, figures: &Figures) -> Markup {
    let texts = view.texts;
    let seconds = |spread: Option<ledger::dora::Spread>| match spread {
        // Seconds of a window, which is some days long.
        #[allow(clippy::cast_possible_truncation)]
        Some(spread) => element::duration(spread.median as i64),
        None => "–".to_owned(),
    };
    let rate = figures
        .change_failure_rate
        .map(|rate| format!("{:.0} %", rate * 100.0));
    let cards = [
        (
            texts.deployments,
            format!("{:.1} / {}", figures.deployments_per_day, texts.day),
        ),
        (texts.lead_time, seconds(figures.lead_time)),
        (texts.failure_rate, rate.unwrap_or_else(|| "–".to_owned())),
        (texts.recovery, seconds(figures.time_to_recover)),
    ];
    html! {
        dl.cards { @for (word, value) in cards { div { dt { (word) } dd { (value) } } } }
    }
}

/// Height and width of the bars, in units of the picture.
const HEIGHT: usize = 60;
const WIDTH: usize = 12;

fn chart(view: &View, days: &[Day]) -> Markup {
    let texts = view.texts;
    let most = days
        .iter()
        .map(|day| day.succeeded + day.failed)
        .max()
        .unwrap_or_default()
        .max(1);
    let width = days.len() * WIDTH;
    html! {
        figure {
            svg.chart viewBox={"0 0 " (width) " " (HEIGHT)} role="img" aria-label={(texts.deployments) ", 30 " (texts.days)} {
                @for (number, day) in days.iter().enumerate() {
                    @let (x, good, bad) = (number * WIDTH, day.succeeded * HEIGHT / most, day.failed * HEIGHT / most);
                    g {
                        title { (day.date) ": " (day.succeeded) " " (texts.succeeded) ", " (day.failed) " " (texts.failed) }
                        rect.none x=(x) y="0" width=(WIDTH - 2) height=(HEIGHT) {}
                        rect.good x=(x) y=(HEIGHT - good) width=(WIDTH - 2) height=(good) {}
                        rect.bad x=(x) y=(HEIGHT.saturating_sub(good + bad)) width=(WIDTH - 2) height=(bad) {}
                    }
                }
            }
            figcaption { (texts.deployments) ", 30 " (texts.days) }
        }
    }
}

/// Counts deliveries of the last days, so many up to now.
pub fn days(deliveries: &[Delivery], now: Timestamp, count: i64) -> Vec<Day> {
    let date = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for row in deliveries {
        let entry = counts.entry(date(row.ended)).or_default();
        match row.outcome {
            Outcome::Succeeded => entry.0 += 1,
            Outcome::Failed => entry.1 += 1,
            Outcome::Gap => {}
        }
    }
    let all = (0..count).rev().filter_map(|day| {
        let date = date(Timestamp::from_second(now.as_second() - day * 86_400).ok()?);
        let (succeeded, failed) = counts.get(&date).copied().unwrap_or_default();
        Some(Day {
            date,
            succeeded,
            failed,
        })
    });
    all.collect()
}

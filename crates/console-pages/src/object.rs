//! One object: how it is and why, what it is made of, what it applied, what was delivered and done, and what can be done.

use std::sync::Arc;

use delivery_graph::object::{self, text};
use delivery_graph::origin::MADE_OF;
use delivery_graph::tree::{self, Node};
use delivery_graph::walk::{Finding, State};
use fleet::row::{Row, Status};
use fleet::running::Found;
use jiff::Timestamp;
use ledger::action::Action;
use ledger::delivery::Delivery;
use maud::{Markup, html};
use serde_json::Value;

use crate::{Mood, Shown, View, board, changes, element, history, link, list, reasons};

/// Objects of a tree that are shown; the API and `windlass tree` have all.
const MAX_NODES: usize = 500;
/// Images that are shown.
const MAX_IMAGES: usize = 100;

/// An object, and what is known of it.
pub struct Object<'a> {
    /// Its row.
    pub row: &'a Row,
    /// As the cluster has it.
    pub object: &'a Value,
    /// What keeps it from being ready.
    pub why: &'a Finding,
    /// What delivers it, and what it is made of.
    pub trace: &'a Finding,
    /// What it applied; the first one is itself.
    pub tree: &'a [Node],
    /// The same one in other clusters.
    pub others: &'a [Arc<Row>],
    /// What its workloads run, as far as the reader may get their Pods.
    pub running: &'a [Found],
    /// Its deliveries, the newest first; None without a ledger.
    pub deliveries: Option<&'a [Delivery]>,
    /// What people did to it, the newest first.
    pub actions: &'a [Action],
    /// What the reader may do to it.
    pub verbs: &'a [&'static str],
    /// Whether its cluster is asked as the reader, for what the picture has not.
    pub is_asked_as_reader: bool,
}

/// Shows it.
pub fn show(view: &View, shown: &Object<'_>) -> Shown {
    let texts = view.texts;
    let row = shown.row;
    let board = board::of(shown.object, view);
    let laid_out = board.as_ref().map_or(html! {}, |board| board::show(view, board));
    let request = changes::request(view, shown.object);
    let parts = [
        ("cause", cause(view, shown)),
        ("delivery", delivery(view, shown)),
        ("tree", objects(view, shown)),
        ("running", running(view, shown)),
        ("history", past(view, shown)),
        ("conditions", conditions(view, shown.object)),
    ];
    let [cause, delivery, tree, running, history, conditions] = parts.clone().map(|(_, markup)| markup);
    let downloads: Vec<_> = shown.verbs.iter().filter(|verb| **verb == "download").collect();
    let writes: Vec<&str> = shown
        .verbs
        .iter()
        .copied()
        .filter(|verb| *verb != "download" && !board::VERBS.contains(verb))
        .collect();
    let main = html! {
        h1 {
            (row.name) " " (element::place(row)) " "
            button.star type="button" data-star=(link::row(row)) data-name={(row.name) " · " (row.kind) " · " (row.namespace) " · " (row.cluster)}
                aria-pressed="false" aria-label=(texts.favourite) hidden { "★" }
        }
        (cause)
        @if row.kind == "ChangeRequest" { (request) }
        (laid_out)
        @if let Some(board) = &board { (board::decide(view, &list::object_value(row), board, shown.verbs)) }
        @if !writes.is_empty() {
            form.act method="post" action="/actions" {
                input type="hidden" name="object" value=(list::object_value(row));
                (list::actions(view, &row.name, &writes))
            }
        }
        // A pipeline is made of nothing, and applies nothing.
        @if board.is_none() { (delivery) }
        @if shown.is_asked_as_reader && tree::has_inventory(row.kind) {
            (element::asked_for("compared", texts.differences, texts.show_differences, &format!("{}/diff", link::row(row))))
        }
        @if shown.is_asked_as_reader && tree::has_inventory(row.kind) {
            (element::asked_for("values", texts.values, texts.show_values, &format!("{}/values", link::row(row))))
        }
        @if shown.is_asked_as_reader && board.is_some() {
            (element::asked_for("compared", texts.next_releases, texts.show_next_releases, &format!("{}/diff", link::row(row))))
        }
        @if shown.is_asked_as_reader { (comparisons(view, shown)) }
        (tree)
        (running)
        (history)
        @if shown.is_asked_as_reader {
            (element::asked_for("events", texts.events, texts.show_events, &format!("{}/events", link::row(row))))
        }
        @if shown.is_asked_as_reader && tree::has_inventory(row.kind) {
            (element::asked_for("logs", texts.logs, texts.show_logs, &format!("{}/logs", link::row(row))))
        }
        (conditions)
        section {
            h2 { (texts.commands) }
            @for line in commands(row) { (element::command(view, &line)) }
            @if view.has_changes && row.kind != "ChangeRequest" {
                p { a.button href=(format!("{}/edit", link::row(row))) { (texts.edit) } }
            }
            @if !downloads.is_empty() {
                p { a.button href=(format!("/api/v1{}/download", link::row(row))) download { (texts.download) } }
            }
        }
        details {
            summary { (texts.raw) }
            pre tabindex="0" { (serde_json::to_string_pretty(shown.object).unwrap_or_default()) }
        }
    };
    let mood = match row.status {
        Status::Failed => Mood::Bad,
        Status::InProgress => Mood::Busy,
        Status::Ready | Status::Suspended | Status::Unknown => Mood::Good,
    };
    Shown {
        title: format!("{} {}", row.name, row.kind),
        mood,
        main,
        parts: parts
            .into_iter()
            .filter(|(id, _)| board.is_none() || *id != "delivery")
            .chain(board.is_some().then_some(("board", laid_out.clone())))
            .chain((row.kind == "ChangeRequest").then_some(("request", request.clone())))
            .map(|(id, markup)| (id.to_owned(), markup))
            .collect(),
        frame: None,
    }
}

/// The first line of a page: how it is, and the causes if it is not well.
fn cause(view: &View, shown: &Object<'_>) -> Markup {
    let texts = view.texts;
    let row = shown.row;
    // What the reader may not look at is no cause that anyone knows of.
    let mut roots = shown.why.roots();
    roots.retain(|root| root.state != State::Unreadable);
    html! {
        section #cause.cause.well[row.status == Status::Ready] {
            p.head {
                (element::status(view, row.status)) " "
                @if let Some(since) = row.since { span.since { (texts.since_before) " " (element::ago(view, since)) } }
            }
            @for root in roots.iter().take(5) {
                p {
                    @if root.object != shown.why.object { (finding_name(row, root)) ": " }
                    @if !root.reason.is_empty() { strong { (root.reason) } " " }
                    (root.message)
                    @if let Some(text) = reasons::explained(view, &root.reason) { " " span.since { (text) } }
                }
            }
            @if roots.is_empty() { p { (row.message) } }
        }
    }
}

/// The way that a change takes: each step with its time where the ledger tells it, else only what it is made of.
fn delivery(view: &View, shown: &Object<'_>) -> Markup {
    let texts = view.texts;
    let newest = shown.deliveries.and_then(<[Delivery]>::first);
    let made_of: Vec<&Finding> = sources(shown.trace);
    html! {
        section #delivery {
            h2 { (texts.delivery) }
            @if let Some(newest) = newest { (hops(view, newest)) }
            ol.chain role="list" {
                @for source in made_of.iter().rev() { (step(view, shown.row, source, source.role)) }
                (step(view, shown.row, shown.trace, ""))
                @for above in shown.trace.chain().iter().skip(1) { (step(view, shown.row, above, above.role)) }
            }
            (images(view, shown))
        }
    }
}

/// Which images it runs or chose, and why.
fn images(view: &View, shown: &Object<'_>) -> Markup {
    let texts = view.texts;
    html! {
        @for chosen in &shown.trace.images {
            p {
                code { (chosen.image) } " " (texts.chosen_by) " "
                @match link::id(&shown.row.cluster, &chosen.policy) {
                    Some(address) => a href=(address) { (chosen.policy) },
                    None => (chosen.policy),
                }
                @if !chosen.commit.is_empty() { " " (element::revision(&chosen.commit)) }
                @if !chosen.newer.is_empty() { " " (texts.newer) ": " code { (chosen.newer) } }
            }
        }
        @if !shown.why.tags.is_empty() {
            table { tbody { @for judged in &shown.why.tags { tr { th scope="row" { (judged.tag) } td { (judged.verdict) } } } } }
        }
    }
}

fn sources(found: &Finding) -> Vec<&Finding> {
    let mut all = Vec::new();
    for source in found.because.iter().filter(|cause| cause.role == MADE_OF) {
        all.push(source);
        all.extend(sources(source));
    }
    all
}

fn step(view: &View, row: &Row, found: &Finding, role: &str) -> Markup {
    let texts = view.texts;
    let (class, word) = match found.state {
        State::Ready => ("ready", texts.ready),
        State::Behind => ("busy", texts.behind),
        State::NotReady => ("failed", texts.not_ready),
        State::Suspended => ("suspended", texts.suspended),
        State::Absent => ("unknown", texts.absent),
        State::Unreadable => ("unknown", texts.unknown),
    };
    html! {
        li {
            (element::mark(class, word))
            div {
                (finding_name(row, found)) " "
                @match role {
                    MADE_OF => { span.place { (texts.source) } " " },
                    "" => {},
                    role => { span.place { (role) } " " },
                }
                (element::revision(&found.revision))
                @if !found.origin.is_empty() { " " (element::revision(&found.origin)) }
                @if !found.url.is_empty() { p.why { (element::outside(&found.url)) " " (found.path) } }
            }
        }
    }
}

/// The object of a finding, with a way to its page.
fn finding_name(row: &Row, found: &Finding) -> Markup {
    html! {
        @match link::id(&row.cluster, &found.object) {
            Some(address) => a href=(address) { (found.object) },
            None => (found.object),
        }
    }
}

/// The steps of a delivery, with what each took.
fn hops(view: &View, delivery: &Delivery) -> Markup {
    let texts = view.texts;
    let end = match delivery.outcome.word() {
        "Succeeded" => texts.health,
        _ => texts.failed,
    };
    let hops: [(&str, Option<Timestamp>); 5] = [
        (texts.commit, delivery.committed),
        (texts.artifact, delivery.seen),
        (texts.built, delivery.built),
        (texts.applied, delivery.applied),
        (end, Some(delivery.ended)),
    ];
    let known: Vec<(&str, Timestamp)> = hops
        .into_iter()
        .filter_map(|(word, time)| Some((word, time?)))
        .collect();
    html! {
        ol.hops role="list" {
            @for (number, (word, time)) in known.iter().enumerate() {
                li {
                    strong { (word) } " "
                    @match number.checked_sub(1).map(|before| known[before].1) {
                        Some(before) => span.since { "+ " (element::duration(time.duration_since(before).as_secs())) },
                        None => span.since { (element::ago(view, *time)) },
                    }
                }
            }
        }
        @if !delivery.subject.is_empty() {
            p.why { "“" (delivery.subject) "” " (delivery.author) }
        }
    }
}

fn objects(view: &View, shown: &Object<'_>) -> Markup {
    let below = tree::children(shown.tree, 0);
    html! {
        section #tree {
            @if !below.is_empty() {
                h2 { (view.texts.objects) " " span.number { (shown.tree.len() - 1) } }
                (branch(shown, &below))
                @if shown.tree.len() > MAX_NODES { p { "…" } }
            }
        }
    }
}

fn branch(shown: &Object<'_>, numbers: &[usize]) -> Markup {
    html! {
        ul.tree {
            @for number in numbers.iter().filter(|number| **number < MAX_NODES) {
                @let node = &shown.tree[*number];
                @let below = tree::children(shown.tree, *number);
                li {
                    (element::mark(class_of(node.status), node.status))
                    span.place { (node.id.kind) } " "
                    @match link::id(&shown.row.cluster, &node.id.to_string()) {
                        Some(address) => a href=(address) { (node.id.name) },
                        None => (node.id.name),
                    }
                    " " span.place { (node.id.namespace) }
                    @if !matches!(node.status, "Current" | "Unknown") { span.why { " " (node.status) " " (node.message) } }
                    @if !below.is_empty() { (branch(shown, &below)) }
                }
            }
        }
    }
}

/// Releases of Helm that are offered for a comparison.
const MAX_RELEASES: usize = 5;

/// With what it can be compared: itself in other clusters, and earlier releases.
fn comparisons(view: &View, shown: &Object<'_>) -> Markup {
    let own = list::object_value(shown.row);
    let releases = object::list(shown.object, "/status/history").iter();
    let releases = releases.filter_map(|release| release.get("version")?.as_i64());
    let releases: Vec<i64> = releases.take(MAX_RELEASES).collect();
    html! {
        @if !shown.others.is_empty() || releases.len() > 1 {
            p {
                (view.texts.compare_with)
                @for other in shown.others {
                    " " a href=(link::with("/compare", &[("from", &own), ("to", &list::object_value(other))])) { (other.cluster) }
                }
                @for pair in releases.windows(2) {
                    @let (to, from) = (format!("{own}@{}", pair[0]), format!("{own}@{}", pair[1]));
                    " " a href=(link::with("/compare", &[("from", &from), ("to", &to)])) { (pair[1]) " → " (pair[0]) }
                }
            }
        }
    }
}

/// The class of a word of kstatus.
fn class_of(status: &str) -> &'static str {
    match status {
        "Current" => "ready",
        "InProgress" | "Terminating" => "busy",
        "Failed" => "failed",
        _ => "unknown",
    }
}

fn running(view: &View, shown: &Object<'_>) -> Markup {
    let texts = view.texts;
    html! {
        section #running {
            @if !shown.running.is_empty() {
                h2 { (texts.running) }
                div.wide tabindex="0" {
                    table {
                        thead { tr { th { (texts.workload) } th { (texts.image) } th { (texts.digest) } th { (texts.pods) } } }
                        tbody {
                            @for found in shown.running.iter().take(MAX_IMAGES) {
                                tr {
                                    th scope="row" { (found.workload) span.place { (found.namespace) } }
                                    td { code { (found.image) @if !found.tag.is_empty() { ":" (found.tag) } } }
                                    td.mono title=(found.digest) { (found.digest.trim_start_matches("sha256:").get(..12).unwrap_or_default()) }
                                    td {
                                        @match found.ready >= found.pods {
                                            true => (element::badge("ready", texts.ready)),
                                            false => (element::badge("busy", texts.not_ready)),
                                        }
                                        " " (found.ready) "/" (found.pods)
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn past(view: &View, shown: &Object<'_>) -> Markup {
    let texts = view.texts;
    html! {
        section #history {
            @if let Some(deliveries) = shown.deliveries {
                h2 { (texts.history) }
                (history::table(view, deliveries, false))
            }
            @if !shown.actions.is_empty() {
                h2 { (texts.actions_by_hand) }
                (history::by_hand(view, shown.actions))
            }
        }
    }
}

fn conditions(view: &View, shown: &Value) -> Markup {
    let texts = view.texts;
    let conditions = object::list(shown, "/status/conditions");
    html! {
        section #conditions {
            h2 { (texts.conditions) }
            div.wide tabindex="0" {
                table {
                    thead { tr { th { (texts.kind) } th { (texts.status) } th { (texts.reason) } th { (texts.what) } } }
                    tbody {
                        @for condition in conditions.iter().take(32) {
                            tr {
                                th scope="row" { (text(condition, "/type")) }
                                td { (text(condition, "/status")) }
                                td {
                                    (text(condition, "/reason"))
                                    @if let Some(text) = reasons::explained(view, text(condition, "/reason")) { p.why { (text) } }
                                }
                                td { (text(condition, "/message")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What does and shows the same at a prompt.
fn commands(row: &Row) -> Vec<String> {
    let Row {
        kind,
        group,
        namespace,
        name,
        ..
    } = row;
    vec![
        format!("windlass why {kind}/{name} -n {namespace}"),
        format!("windlass reconcile {kind}/{name} -n {namespace}"),
        format!(
            "kubectl get {}.{group} {name} -n {namespace} -o yaml",
            kind.to_lowercase()
        ),
    ]
}

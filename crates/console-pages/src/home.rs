//! What needs a person: failures by their cause, what does not get on, what is suspended, clusters that are away.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ::fleet::picture::Cluster;
use ::fleet::row::{Row, Status};
use api::delivery::Pipeline;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use promotion::board::{Need, board};
use serde_json::Value;

use crate::{Shown, View, element, link, list};

/// What is in progress for longer does not get on.
const STUCK: SignedDuration = SignedDuration::from_mins(10);
/// Objects that are named of each group, and groups.
const MAX_NAMED: usize = 5;
const MAX_GROUPS: usize = 50;

/// The kind of changes that people ask for.
const REQUEST: &str = "ChangeRequest";
/// Reason of one whose pull request was closed without a merge.
const DECLINED: &str = "Closed";

/// Clusters and namespaces.
pub type Places = HashSet<(Arc<str>, Box<str>)>;

/// A pipeline that waits for people.
pub struct Waiting {
    row: Arc<Row>,
    /// The environment, and what it needs.
    needs: Vec<(String, Need)>,
}

impl Waiting {
    /// Reads what a pipeline waits for; None if it waits for no one.
    pub fn of(row: Arc<Row>, object: Value, now: Timestamp) -> Option<Self> {
        let pipeline: Pipeline = serde_json::from_value(object).ok()?;
        if pipeline.spec.suspend {
            return None;
        }
        let columns = board(&pipeline, now).columns.into_iter();
        let needs: Vec<_> = columns
            .filter_map(|column| Some((column.name, column.needs_people?)))
            .collect();
        (!needs.is_empty()).then_some(Self { row, needs })
    }
}

/// What needs people besides objects that are not well.
pub struct Needs<'a> {
    /// All clusters.
    pub clusters: &'a [Cluster],
    /// Pipelines that wait for people.
    pub waiting: &'a [Waiting],
    /// Where the reader may act.
    pub mine: &'a Places,
}

/// Shows it. The rows are all that the reader may get; what is in the places where they may act comes first.
pub fn show(view: &View, rows: &[Arc<Row>], needs: &Needs<'_>) -> Shown {
    let texts = view.texts;
    let Needs { clusters, mine, .. } = *needs;
    let of = |status: Status| rows.iter().filter(move |row| row.status == status);
    let stuck: Vec<&Arc<Row>> = of(Status::InProgress)
        .filter(|row| {
            row.kind != REQUEST
                && row
                    .since
                    .is_some_and(|since| view.now.duration_since(since) > STUCK)
        })
        .collect();
    // A pull request waits for people, however long it is open.
    let open: Vec<&Arc<Row>> = of(Status::InProgress).filter(|row| row.kind == REQUEST).collect();
    // A declined request needs no attention.
    let is_declined = |row: &Row| row.kind == REQUEST && &*row.reason == DECLINED;
    let failed: Vec<&Arc<Row>> = of(Status::Failed).filter(|row| !is_declined(row)).collect();
    let suspended: Vec<&Arc<Row>> = of(Status::Suspended).collect();
    let away: Vec<&Cluster> = clusters.iter().filter(|cluster| cluster.away).collect();
    let sections = [
        (texts.failing, "Failed", by_cause(&failed, mine)),
        (texts.stuck, "InProgress", by_cause(&stuck, mine)),
        (texts.suspended, "Suspended", by_cause(&suspended, mine)),
    ];
    let is_well = sections.iter().all(|(_, _, groups)| groups.is_empty())
        && away.is_empty()
        && needs.waiting.is_empty()
        && open.is_empty();
    let content = html! {
        div #needs {
            @if is_well {
                p.well { (element::badge("ready", texts.ready)) " " (texts.all_well) }
            }
            @if !away.is_empty() {
                section.needs {
                    h2 { (texts.clusters_away) }
                    ul role="list" { @for cluster in &away { (gone(view, cluster)) } }
                }
            }
            @if !needs.waiting.is_empty() {
                section.needs {
                    h2 { (texts.waiting_for_people) " " a.number href="/pipelines" { (needs.waiting.len()) } }
                    ul role="list" { @for one in needs.waiting.iter().take(MAX_GROUPS) { (one.show(view)) } }
                }
            }
            @if !open.is_empty() {
                section.needs {
                    h2 { (texts.open_requests) " " a.number href="/changes" { (open.len()) } }
                    ul role="list" {
                        @for row in open.iter().take(MAX_GROUPS) {
                            li {
                                div.head {
                                    (element::name(row)) (element::place(row))
                                    @if let Some(since) = row.since { span.since { (texts.since_before) " " (element::ago(view, since)) } }
                                }
                                p.why { (row.message) }
                            }
                        }
                    }
                }
            }
            @for (title, status, groups) in &sections {
                @if !groups.is_empty() {
                    section.needs {
                        h2 { (title) " " a.number href=(link::with("/apps", &[("status", status), ("kind", ANY)])) { (groups.iter().map(|group| group.rows.len()).sum::<usize>()) } }
                        ul role="list" { @for group in groups.iter().take(MAX_GROUPS) { (group.show(view)) } }
                    }
                }
            }
        }
    };
    Shown {
        title: match failed.len() {
            0 => texts.needs_you.to_owned(),
            failed => format!("({failed}) {}", texts.needs_you),
        },
        mood: list::mood(failed.len() + away.len(), stuck.len()),
        main: html! {
            h1 { (texts.needs_you) }
            // What the reader has marked is known by their browser alone.
            section #favourites hidden { h2 { (texts.favourites) } ul.named role="list" {} }
            (content)
        },
        parts: vec![("needs".to_owned(), content)],
        frame: None,
    }
}

/// All kinds that deliver: a list of applications has two of them.
const ANY: &str = "GitRepository,OCIRepository,HelmRepository,HelmChart,Bucket,ExternalArtifact,ArtifactGenerator,Kustomization,HelmRelease,ImageRepository,ImagePolicy,ImageUpdateAutomation,Receiver,Provider,Alert";

/// Objects that something is wrong with for one cause.
struct Group<'a> {
    reason: &'a str,
    message: &'a str,
    /// First those where the cause is, then those that wait for them.
    rows: Vec<&'a Row>,
    /// Whether the reader may act on any of them.
    is_mine: bool,
}

/// Steps from an object to what it waits for.
const MAX_STEPS: usize = 5;

/// Groups: the reader's own first, then the largest. What waits for another one that something is wrong with, too, is in the group of that.
fn by_cause<'a>(rows: &[&'a Arc<Row>], mine: &Places) -> Vec<Group<'a>> {
    let known: HashMap<(&str, String), &'a Row> = rows
        .iter()
        .map(|row| ((&*row.cluster, row.id()), &***row))
        .collect();
    let above = |row: &Row| {
        let source = known.get(&(&*row.cluster, row.source.to_string()));
        source
            .or_else(|| known.get(&(&*row.cluster, dependency(row)?)))
            .copied()
    };
    let mut groups: BTreeMap<(&str, &str), Vec<(usize, &Row)>> = BTreeMap::new();
    for row in rows {
        let mut root: &Row = row;
        let mut steps = 0;
        // Of a circle, any is the cause.
        while let Some(next) = above(root).filter(|_| steps < MAX_STEPS) {
            root = next;
            steps += 1;
        }
        groups
            .entry((&root.reason, &root.message))
            .or_default()
            .push((steps, row));
    }
    let mut groups: Vec<Group<'_>> = groups
        .into_iter()
        .map(|((reason, message), mut rows)| {
            rows.sort_by_key(|(steps, _)| *steps);
            Group {
                reason,
                message,
                is_mine: rows
                    .iter()
                    .any(|(_, row)| mine.contains(&(row.cluster.clone(), row.namespace.clone()))),
                rows: rows.into_iter().map(|(_, row)| row).collect(),
            }
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.is_mine, group.rows.len())));
    groups
}

/// What an object says that it depends on, as `Kind/namespace/name`.
fn dependency(row: &Row) -> Option<String> {
    if &*row.reason != "DependencyNotReady" {
        return None;
    }
    let (_, rest) = row.message.split_once('\'')?;
    let (name, _) = rest.split_once('\'')?;
    Some(format!("{}/{name}", row.kind))
}

impl Group<'_> {
    fn show(&self, view: &View) -> Markup {
        let since = self.rows.iter().filter_map(|row| row.since).min();
        html! {
            li {
                div.head {
                    @if !self.reason.is_empty() { strong { (self.reason) } " " }
                    span.number { (self.rows.len()) " " (view.texts.affected) }
                    @if let Some(since) = since { span.since { (view.texts.since_before) " " (element::ago(view, since)) } }
                }
                p.why { (self.message) }
                ul.named role="list" {
                    @for row in self.rows.iter().take(MAX_NAMED) { li { (element::name(row)) (element::place(row)) } }
                    @if self.rows.len() > MAX_NAMED { li { "…" } }
                }
            }
        }
    }
}

impl Waiting {
    fn show(&self, view: &View) -> Markup {
        let texts = view.texts;
        html! {
            li {
                div.head { (element::name(&self.row)) (element::place(&self.row)) }
                @for (environment, need) in self.needs.iter().take(MAX_NAMED) {
                    p.why {
                        strong { (environment) } " "
                        @match need {
                            Need::Approval { release, by, required } => {
                                (texts.needs_approval) " " (release) " (" (by.len()) "/" (required) ")"
                            }
                            Need::Release { release, hold } => { (texts.is_held) " " (release) ": " (hold) }
                        }
                    }
                }
            }
        }
    }
}

fn gone(view: &View, cluster: &Cluster) -> Markup {
    html! {
        li {
            div.head {
                strong { (cluster.name) }
                @if let Some(since) = cluster.since { span.since { (element::ago(view, since)) } }
            }
            p.why { (cluster.message.as_deref().unwrap_or_default()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use delivery_graph::kind;
    use serde_json::json;

    use super::*;

    fn row(kind: &str, name: &str, spec: serde_json::Value, reason: &str, message: &str) -> Arc<Row> {
        let object = json!({
            "kind": kind, "metadata": {"name": name, "namespace": "shop", "generation": 1}, "spec": spec,
            "status": {"observedGeneration": 1, "conditions": [
                {"type": "Ready", "status": "False", "reason": reason, "message": message},
            ]},
        });
        let kind = kind::exact(kind).unwrap();
        Arc::new(Row::new(&"eu".into(), kind, &object))
    }

    #[test]
    fn what_waits_is_in_the_group_of_the_cause() {
        let of_source = json!({"sourceRef": {"kind": "GitRepository", "name": "repo"}});
        let rows = [
            row(
                "Kustomization",
                "web",
                of_source.clone(),
                "ArtifactFailed",
                "no artifact",
            ),
            row(
                "GitRepository",
                "repo",
                json!({}),
                "GitOperationFailed",
                "no branch",
            ),
            row(
                "Kustomization",
                "api",
                json!({}),
                "DependencyNotReady",
                "dependency 'shop/web' is not ready",
            ),
            row(
                "Kustomization",
                "a",
                json!({}),
                "DependencyNotReady",
                "dependency 'shop/b' is not ready",
            ),
            row(
                "Kustomization",
                "b",
                json!({}),
                "DependencyNotReady",
                "dependency 'shop/a' is not ready",
            ),
        ];
        let rows: Vec<&Arc<Row>> = rows.iter().collect();
        let groups = by_cause(&rows, &Places::new());
        let names = |group: &Group<'_>| {
            group
                .rows
                .iter()
                .map(|row| row.name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(groups[0].reason, "GitOperationFailed");
        assert_eq!(names(&groups[0]), ["repo", "web", "api"]);
        assert_eq!(groups.iter().map(|group| group.rows.len()).sum::<usize>(), 5);

        let mut own = Row::clone(rows[1]);
        own.namespace = "bank".into();
        own.message = "another".into();
        let own = Arc::new(own);
        let rows: Vec<&Arc<Row>> = rows.into_iter().chain([&own]).collect();
        let mine = Places::from([("eu".into(), "bank".into())]);
        assert_eq!(
            names(&by_cause(&rows, &mine)[0]),
            ["repo"],
            "the reader's own comes first"
        );
    }
}

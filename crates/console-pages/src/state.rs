//! What was delivered at a time in the past, by the ledger.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ledger::delivery::{Delivery, Outcome};
use maud::{Markup, html};

use crate::{Mood, Shown, View, element, link};

/// Objects that are shown.
const MAX_SHOWN: usize = 500;

/// How an object was.
#[derive(Debug, PartialEq, Eq)]
pub struct Was {
    /// Cluster, kind, namespace and name.
    pub object: (String, String, String, String),
    /// What had been delivered last, and when; None if nothing had.
    pub delivered: Option<(String, Timestamp)>,
    /// Why the newest attempt had failed; None if it had not.
    pub failing: Option<String>,
}

/// Reads off how objects were after these deliveries, which may come in any order.
pub fn after(deliveries: &[Delivery]) -> Vec<Was> {
    let mut newest: Vec<&Delivery> = deliveries.iter().collect();
    newest.sort_by_key(|row| std::cmp::Reverse(row.ended));
    let mut objects: BTreeMap<(&str, &str, &str, &str), Vec<&Delivery>> = BTreeMap::new();
    for row in newest.into_iter().filter(|row| row.outcome != Outcome::Gap) {
        let object = (&*row.kind, &*row.namespace, &*row.name, &*row.cluster);
        objects.entry(object).or_default().push(row);
    }
    let was = objects
        .into_iter()
        .map(|((kind, namespace, name, cluster), rows)| {
            let delivered = rows.iter().find(|row| row.outcome == Outcome::Succeeded);
            let failing = rows.first().filter(|row| row.outcome == Outcome::Failed);
            Was {
                object: (
                    cluster.to_owned(),
                    kind.to_owned(),
                    namespace.to_owned(),
                    name.to_owned(),
                ),
                delivered: delivered.map(|row| {
                    let revision = if row.origin.is_empty() {
                        &row.revision
                    } else {
                        &row.origin
                    };
                    (revision.clone(), row.ended)
                }),
                failing: failing.map(|row| format!("{} {}", row.reason, row.message)),
            }
        });
    was.collect()
}

/// Shows it.
pub fn show(view: &View, at: Timestamp, typed: &str, was: &[Was]) -> Shown {
    let texts = view.texts;
    let main = html! {
        h1 { (texts.state_at) " " time datetime=(at) { (at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()) } }
        form.filter action="/state" role="search" {
            label { (texts.at_hint) " " input name="at" value=(typed) maxlength="64"; }
            button { (texts.show) }
        }
        p.count { (was.len()) " " (texts.of_total) }
        div.wide tabindex="0" {
            table {
                thead { tr { th { (texts.what) } th { (texts.revision) } th { (texts.when) } th { (texts.status) } } }
                tbody { @for one in was.iter().take(MAX_SHOWN) { (line(view, one)) } }
            }
        }
        @if was.len() > MAX_SHOWN { p { "…" } }
    };
    Shown {
        title: format!("{} {typed}", texts.state_at),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}

fn line(view: &View, was: &Was) -> Markup {
    let (cluster, kind, namespace, name) = &was.object;
    html! {
        tr {
            td.object {
                a.name href=(link::object(cluster, kind, namespace, name)) { (name) }
                span.place { (kind) " · " (namespace) " · " (cluster) }
            }
            td { @if let Some((revision, _)) = &was.delivered { (element::revision(revision)) } }
            td.short { @if let Some((_, ended)) = &was.delivered { (element::ago(view, *ended)) } }
            td {
                @match &was.failing {
                    Some(why) => { (element::badge("failed", view.texts.failed)) p.why { (why) } },
                    None => (element::badge("ready", view.texts.ready)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger::delivery::Trigger;

    use super::*;

    fn row(name: &str, outcome: Outcome, revision: &str, ended: i64) -> Delivery {
        let ended = Timestamp::from_second(ended).unwrap();
        Delivery {
            id: format!("{name}{ended}"),
            cluster: "eu".into(),
            kind: "Kustomization".into(),
            namespace: "shop".into(),
            name: name.into(),
            outcome,
            reason: "R".into(),
            message: "m".into(),
            trigger: Trigger::First,
            source: String::new(),
            revision: revision.into(),
            origin: String::new(),
            digest: String::new(),
            author: String::new(),
            subject: String::new(),
            committed: None,
            seen: None,
            began: ended,
            built: None,
            applied: None,
            ended,
            last: ended,
            attempts: 1,
            changes: String::new(),
            causes: String::new(),
            attestation: String::new(),
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn an_object_has_what_succeeded_last() {
        let rows = [
            row("web", Outcome::Succeeded, "a", 10),
            row("web", Outcome::Failed, "c", 30),
            row("web", Outcome::Succeeded, "b", 20),
            row("api", Outcome::Failed, "a", 10),
            row("gap", Outcome::Gap, "", 10),
        ];
        let was = after(&rows);
        let names: Vec<&str> = was.iter().map(|was| was.object.3.as_str()).collect();
        assert_eq!(names, ["api", "web"]);
        assert_eq!(
            (was[0].delivered.as_ref(), was[0].failing.as_deref()),
            (None, Some("R m"))
        );
        let (revision, ended) = was[1].delivered.as_ref().unwrap();
        assert_eq!(
            (revision.as_str(), ended.as_second(), was[1].failing.as_deref()),
            ("b", 20, Some("R m"))
        );
    }
}

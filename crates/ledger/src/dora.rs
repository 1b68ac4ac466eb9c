//! The four figures of DORA, of rows. Pure. docs/operations/ledger.md defines them for people.
//!
//! A **change** is a delivery of another revision, or of something else built of the same one. It is **deployed** with its
//! first success, and **failed** if it failed at any time before the next change, also after a success. An object is
//! **recovered** from its first failure to the next success, of whatever change.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::delivery::{Delivery, Outcome, Trigger};

/// What figures are told for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// All together.
    All,
    /// Each cluster.
    Cluster,
    /// Each namespace, of all clusters.
    Namespace,
    /// Each namespace of each cluster, as `cluster/namespace`.
    Place,
    /// Each object.
    App,
    /// Each value of a label, such as a team; empty where it is absent.
    Label(String),
}

/// Seconds that half, and nine of ten, take at most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Spread {
    /// Half of them.
    pub median: f64,
    /// Nine of ten.
    pub p90: f64,
}

/// The figures of a group in a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Changes that were deployed.
    pub deployments: usize,
    /// The same for each day of the window.
    pub deployments_per_day: f64,
    /// Seconds from the commit to its deployment, where the time of the commit is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_time: Option<Spread>,
    /// Deployments of commits whose time is not known.
    pub unknown_lead_times: usize,
    /// Changes that were tried.
    pub changes: usize,
    /// Those that failed.
    pub failed_changes: usize,
    /// `failedChanges` of `changes`, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_failure_rate: Option<f64>,
    /// Seconds from a failure to the next success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_to_recover: Option<Spread>,
    /// Objects that have failed and did not recover in the window.
    pub not_recovered: usize,
    /// Times of which nothing is known: the figures are too low.
    pub gaps: usize,
}

/// Groups by name.
pub type Groups = BTreeMap<String, Figures>;

/// Computes the figures of rows that ended in a window, in any order.
pub fn figures(rows: &[Delivery], (since, until): (Timestamp, Timestamp), by: &By) -> Groups {
    let mut objects: HashMap<(&str, &str, &str, &str), Vec<&Delivery>> = HashMap::new();
    // What pipelines promote is delivered, and counted, by the applications.
    let counts = |row: &&Delivery| row.kind != "Pipeline" && since <= row.ended && row.ended < until;
    for row in rows.iter().filter(counts) {
        let key = (&*row.cluster, &*row.kind, &*row.namespace, &*row.name);
        objects.entry(key).or_default().push(row);
    }
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for rows in objects.values_mut() {
        rows.sort_by_key(|row| (row.ended, row.began));
        let newest = rows[rows.len() - 1];
        groups.entry(group(newest, by)).or_default().add(rows);
    }
    let days = until.duration_since(since).as_secs_f64() / 86_400.0;
    let told = groups
        .into_iter()
        .map(|(name, group)| (name, group.figures(days)));
    told.collect()
}

fn group(row: &Delivery, by: &By) -> String {
    match by {
        By::All => String::new(),
        By::Cluster => row.cluster.clone(),
        By::Namespace => row.namespace.clone(),
        By::Place => format!("{}/{}", row.cluster, row.namespace),
        By::App => format!("{}/{}/{}/{}", row.cluster, row.kind, row.namespace, row.name),
        By::Label(label) => row.labels.get(label).cloned().unwrap_or_default(),
    }
}

#[derive(Default)]
struct Group {
    figures: Figures,
    lead_times: Vec<f64>,
    recoveries: Vec<f64>,
}

#[derive(Default)]
struct Change {
    deployed: bool,
    failed: bool,
}

impl Group {
    /// Adds the rows of an object, oldest first.
    fn add(&mut self, rows: &[&Delivery]) {
        // What was tried before the window is no change of it.
        let mut change: Option<Change> = None;
        let mut failing: Option<Timestamp> = None;
        let mut deployed: HashSet<&str> = HashSet::new();
        for row in rows {
            if row.outcome == Outcome::Gap {
                self.figures.gaps += 1;
                (change, failing) = (None, None);
                continue;
            }
            if row.trigger != Trigger::Retry {
                self.figures.changes += 1;
                change = Some(Change::default());
            }
            if row.outcome == Outcome::Failed {
                if let Some(change) = change.as_mut().filter(|change| !change.failed) {
                    change.failed = true;
                    self.figures.failed_changes += 1;
                }
                failing.get_or_insert(row.ended);
                continue;
            }
            if let Some(began) = failing.take() {
                self.recoveries.push(seconds(began, row.ended));
            }
            if let Some(change) = change.as_mut().filter(|change| !change.deployed) {
                change.deployed = true;
                self.figures.deployments += 1;
                // Back to an earlier commit is a deployment, but tells nothing of how long commits take.
                if deployed.insert(&row.revision) {
                    match row.committed.filter(|committed| *committed <= row.ended) {
                        Some(committed) => self.lead_times.push(seconds(committed, row.ended)),
                        None => self.figures.unknown_lead_times += 1,
                    }
                }
            }
        }
        self.figures.not_recovered += usize::from(failing.is_some());
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn figures(mut self, days: f64) -> Figures {
        let Figures {
            deployments,
            changes,
            failed_changes,
            ..
        } = self.figures;
        self.figures.deployments_per_day = if days > 0.0 {
            deployments as f64 / days
        } else {
            0.0
        };
        self.figures.change_failure_rate = (changes > 0).then(|| failed_changes as f64 / changes as f64);
        self.figures.lead_time = spread(self.lead_times);
        self.figures.time_to_recover = spread(self.recoveries);
        self.figures
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// By nearest rank: a time that was.
fn spread(mut times: Vec<f64>) -> Option<Spread> {
    times.sort_by(f64::total_cmp);
    let rank = |tenths: usize| {
        let rank = (times.len() * tenths).div_ceil(10);
        times.get(rank.saturating_sub(1)).copied()
    };
    Some(Spread {
        median: rank(5)?,
        p90: rank(9)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
    }

    fn row(
        name: &str,
        revision: &str,
        outcome: Outcome,
        trigger: Trigger,
        ended: i64,
        committed: Option<i64>,
    ) -> Delivery {
        Delivery {
            id: format!("{name}-{ended}"),
            cluster: "here".to_owned(),
            kind: "Kustomization".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            outcome,
            reason: String::new(),
            message: String::new(),
            trigger,
            source: String::new(),
            revision: revision.to_owned(),
            origin: String::new(),
            digest: String::new(),
            author: String::new(),
            subject: String::new(),
            committed: committed.map(at),
            seen: None,
            built: None,
            applied: None,
            began: at(ended),
            ended: at(ended),
            last: at(ended),
            attempts: 1,
            changes: String::new(),
            causes: String::new(),
            attestation: String::new(),
            labels: BTreeMap::from([("team".to_owned(), format!("team of {name}"))]),
        }
    }

    /// A day that was written down, with figures computed by hand beside it.
    fn history() -> Vec<Delivery> {
        use Outcome::{Failed, Gap, Succeeded};
        use Trigger::{Change, First, Retry, Revision};
        vec![
            // web: five changes, four of them deployed, two failed.
            row("web", "1", Succeeded, First, 0, Some(-10)), // lead time 10 minutes
            row("web", "2", Succeeded, Revision, 60, Some(40)), // 20
            row("web", "3", Failed, Revision, 120, Some(100)), // fails at 120 …
            row("web", "3", Failed, Retry, 125, Some(100)),  // … once
            row("web", "4", Succeeded, Revision, 150, Some(145)), // 5; recovered after 30
            row("web", "4", Failed, Retry, 200, Some(145)),  // failed after its success
            row("web", "4", Succeeded, Retry, 210, Some(145)), // recovered after 10; the same deployment
            row("web", "2", Succeeded, Change, 300, Some(40)), // back to an earlier one: no lead time
            // api: begins with what belongs to the day before, has a gap, ends failing.
            row("api", "7", Succeeded, Retry, 10, None),
            row("api", "8", Failed, Revision, 20, None),
            row("api", "", Gap, Retry, 30, None),
            row("api", "9", Succeeded, Revision, 40, None), // its commit is not known
            row("api", "9", Failed, Retry, 50, None),
            // Not of the day.
            row("web", "0", Succeeded, Revision, -5, Some(-7)),
            row("web", "5", Succeeded, Revision, 1440, Some(1439)),
        ]
    }

    #[test]
    fn a_day_has_the_figures_that_were_computed_by_hand() {
        let day = (at(0), at(1440));
        let of = |by: By| figures(&history(), day, &by);
        let apps = of(By::App);
        let web = Figures {
            deployments: 4,
            deployments_per_day: 4.0,
            lead_time: Some(Spread {
                median: 600.0,
                p90: 1200.0,
            }),
            unknown_lead_times: 0,
            changes: 5,
            failed_changes: 2,
            change_failure_rate: Some(0.4),
            time_to_recover: Some(Spread {
                median: 600.0,
                p90: 1800.0,
            }),
            not_recovered: 0,
            gaps: 0,
        };
        assert_eq!(apps["here/Kustomization/shop/web"], web);
        let api = Figures {
            deployments: 1,
            deployments_per_day: 1.0,
            lead_time: None,
            unknown_lead_times: 1,
            changes: 2,
            failed_changes: 2,
            change_failure_rate: Some(1.0),
            time_to_recover: None,
            not_recovered: 1,
            gaps: 1,
        };
        assert_eq!(apps["here/Kustomization/shop/api"], api);
        let all = &of(By::All)[""];
        assert_eq!((all.deployments, all.changes, all.failed_changes), (5, 7, 4));
        assert_eq!(all.lead_time, web.lead_time);
        assert_eq!(of(By::Cluster)["here"], *all);
        assert_eq!(of(By::Namespace)["shop"], *all);
        assert_eq!(of(By::Place)["here/shop"], *all);
        assert_eq!(of(By::Label("team".to_owned()))["team of web"], web);
        assert_eq!(of(By::Label("absent".to_owned()))[""], *all);
    }

    #[test]
    fn nothing_has_no_figures() {
        assert!(figures(&[], (at(0), at(1)), &By::All).is_empty());
        assert!(figures(&history(), (at(5000), at(6000)), &By::All).is_empty());
    }
}

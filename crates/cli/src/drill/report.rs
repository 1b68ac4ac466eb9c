//! What a drill found, for a terminal, for people who were not there, and for programs.

use std::time::Duration;

use jiff::Timestamp;
use manifest::ObjectId;
use serde_json::{Value, json};

use super::compare::Outcome;
use super::time::Waited;
use crate::cluster::output::{Colours, Tone};
use crate::orphans::survey::Survey;
use crate::orphans::{self, counted};

/// An object that nothing delivers.
struct Lost {
    subject: String,
    by: String,
    because: String,
}

/// All of it.
pub(super) struct Report {
    /// Contexts of the cluster in use and of the new one.
    clusters: [String; 2],
    at: Timestamp,
    waited: Waited,
    outcome: Outcome,
    lost: Vec<Lost>,
    by_hand: Vec<(String, Value)>,
    /// What could not be listed.
    pub(super) unseen: Vec<String>,
}

impl Report {
    pub(super) fn new(
        clusters: [String; 2],
        before: &Survey,
        after: &Survey,
        waited: Waited,
        outcome: Outcome,
    ) -> Self {
        let lost = orphans::rows(before, false).into_iter().map(|row| Lost {
            subject: row.subject(),
            by: row.by().to_owned(),
            because: row.because(),
        });
        let by_hand = orphans::set_by_hand(before).into_iter().map(|field| {
            let at = field.write.at.map(|at| format!(", {at}")).unwrap_or_default();
            let (object, path, manager) = (field.object, field.path, &field.write.manager);
            (format!("{object}: {path} ({manager}{at})"), field.value())
        });
        let named = |name: &str, unseen: &[String]| -> Vec<String> {
            unseen.iter().map(|one| format!("{name}: {one}")).collect()
        };
        Self {
            at: Timestamp::now(),
            waited,
            outcome,
            lost: lost.collect(),
            by_hand: by_hand.collect(),
            unseen: [
                named(&clusters[0], &before.unseen),
                named(&clusters[1], &after.unseen),
            ]
            .concat(),
            clusters,
        }
    }

    /// Returns whether Git brings everything back as it is.
    pub(super) fn is_complete(&self) -> bool {
        let Outcome {
            different, missing, ..
        } = &self.outcome;
        different.is_empty() && missing.is_empty() && self.lost.is_empty() && self.waited.missing.is_empty()
    }

    fn took(&self) -> String {
        match self.waited.took {
            Some(took) => format!("{} were ready after {}", self.deliverers(), seconds(took)),
            None if self.waited.missing.is_empty() => format!("{} are ready", self.deliverers()),
            None => format!(
                "{} of {} did not become ready",
                self.waited.missing.len(),
                self.deliverers()
            ),
        }
    }

    fn deliverers(&self) -> String {
        format!(
            "{} Kustomizations, HelmReleases and ResourceSets",
            self.waited.expected
        )
    }

    /// For a terminal.
    pub(super) fn text(&self, colours: Colours) -> String {
        let mut text = String::new();
        let mut section = |title: &str, tone: Tone, lines: Vec<String>| {
            if !lines.is_empty() {
                text.push_str(&format!("{}\n", colours.paint(title, tone)));
                lines
                    .iter()
                    .for_each(|line| text.push_str(&format!("  {line}\n")));
                text.push('\n');
            }
        };
        for (title, lines) in self.sections() {
            section(&title, Tone::Bad, lines);
        }
        text.push_str(&format!("{}\n{}\n", self.took(), self.sum()));
        text
    }

    /// What is not as it should be: a title, and lines.
    fn sections(&self) -> Vec<(String, Vec<String>)> {
        let Outcome {
            different,
            missing,
            added,
            ..
        } = &self.outcome;
        let different = different.iter().flat_map(|(id, changes)| {
            let fields = changes.fields.iter().map(|field| format!("    {field}"));
            let more = (changes.more > 0).then(|| format!("    and {} more", changes.more));
            [id.to_string()].into_iter().chain(fields).chain(more)
        });
        let lost = self.lost.iter().map(|lost| match lost.by.as_str() {
            "" => format!("{}: {}", lost.subject, lost.because),
            by => format!("{}: {} ({by})", lost.subject, lost.because),
        });
        let waited = self.waited.missing.iter().map(|(id, why)| format!("{id}: {why}"));
        let by_hand = self.by_hand.iter().map(|(line, _)| line.clone());
        let ids = |ids: &[ObjectId]| ids.iter().map(ToString::to_string).collect();
        vec![
            ("Not ready in the new cluster".to_owned(), waited.collect()),
            ("Delivered, but not in the new cluster".to_owned(), ids(missing)),
            ("Different in the new cluster".to_owned(), different.collect()),
            ("Only in the new cluster".to_owned(), ids(added)),
            (
                "Nothing delivers them: they would be lost".to_owned(),
                lost.collect(),
            ),
            ("Fields that were set by hand".to_owned(), by_hand.collect()),
        ]
    }

    fn sum(&self) -> String {
        let Outcome {
            equal,
            different,
            missing,
            ..
        } = &self.outcome;
        format!(
            "{} the same, {} different, {} missing; {} would be lost",
            counted(*equal, "object"),
            different.len(),
            missing.len(),
            self.lost.len()
        )
    }

    /// For a file.
    pub(super) fn markdown(&self) -> String {
        let [used, new] = &self.clusters;
        let mut text = format!(
            "# Drill: {used} made anew as {new}\n\n{}, by windlass {}\n\n{}.\n\n{}.\n",
            self.at.strftime("%Y-%m-%d %H:%M UTC"),
            env!("CARGO_PKG_VERSION"),
            self.took(),
            self.sum()
        );
        for (title, lines) in self.sections() {
            if lines.is_empty() {
                text.push_str(&format!("\n## {title}\n\nNone.\n"));
                continue;
            }
            text.push_str(&format!("\n## {title}\n\n"));
            for line in lines {
                // What is indented is a field of the object above.
                let depth = if line.starts_with(' ') { "  " } else { "" };
                text.push_str(&format!("{depth}- `{}`\n", line.trim().replace('`', "'")));
            }
        }
        if !self.unseen.is_empty() {
            text.push_str("\n## Could not be read\n\n");
            self.unseen
                .iter()
                .for_each(|one| text.push_str(&format!("- {one}\n")));
        }
        text
    }

    /// For programs.
    pub(super) fn value(&self) -> Value {
        let Outcome {
            equal,
            different,
            missing,
            added,
        } = &self.outcome;
        let different = different.iter().map(|(id, changes)| {
            let fields: Vec<_> = changes.fields.iter().map(ToString::to_string).collect();
            json!({"object": id, "fields": fields, "more": changes.more})
        });
        let lost = self
            .lost
            .iter()
            .map(|lost| json!({"object": lost.subject, "by": lost.by, "because": lost.because}));
        let not_ready = self
            .waited
            .missing
            .iter()
            .map(|(id, why)| json!({"object": id, "message": why}));
        json!({
            "cluster": self.clusters[0],
            "recreated": self.clusters[1],
            "at": self.at.to_string(),
            "seconds": self.waited.took.map(|took| took.as_secs()),
            "deliverers": self.waited.expected,
            "notReady": not_ready.collect::<Vec<_>>(),
            "equal": equal,
            "different": different.collect::<Vec<_>>(),
            "missing": missing,
            "added": added,
            "lost": lost.collect::<Vec<_>>(),
        "setByHand": self.by_hand.iter().map(|(_, value)| value).collect::<Vec<_>>(),
            "unseen": self.unseen,
        })
    }
}

fn seconds(took: Duration) -> String {
    match took.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

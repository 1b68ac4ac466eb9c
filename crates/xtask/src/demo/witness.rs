//! Watches the demo's objects and says when expectations came true. It guesses nothing: no event, no line.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::StreamExt as _;
use kube::Client;
use kube::api::DynamicObject;
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use testkit::objects;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::story::Story;
use super::world::World;

/// The kinds that appear in the story.
const KINDS: [(&str, &str); 9] = [
    ("source.toolkit.fluxcd.io/v1", "GitRepository"),
    ("source.toolkit.fluxcd.io/v1", "OCIRepository"),
    ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
    ("image.toolkit.fluxcd.io/v1", "ImageRepository"),
    ("image.toolkit.fluxcd.io/v1", "ImagePolicy"),
    ("image.toolkit.fluxcd.io/v1", "ImageUpdateAutomation"),
    ("apps/v1", "Deployment"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
];

/// Objects by `Kind/name`.
#[derive(Debug, Default)]
pub(crate) struct Known(HashMap<String, DynamicObject>);

impl Known {
    /// The object, if it exists.
    pub(crate) fn get(&self, subject: &str) -> Option<&DynamicObject> {
        self.0.get(subject)
    }
}

/// One thing that a watch reported.
#[derive(Debug)]
pub(crate) struct Sighting {
    at: Instant,
    subject: String,
    object: Option<DynamicObject>,
}

type Check = Box<dyn Fn(&Known) -> Option<String> + Send>;

/// Something that shall be seen: the check answers with a detail for the story once it holds.
pub(crate) struct Expectation {
    subject: String,
    verb: &'static str,
    check: Check,
    told_after: Option<usize>,
    checked_after: Option<usize>,
}

/// Expects something of the object `subject` (`Kind/name`).
pub(crate) fn expect(
    subject: &str,
    verb: &'static str,
    check: impl Fn(&Known) -> Option<String> + Send + 'static,
) -> Expectation {
    Expectation {
        subject: subject.to_owned(),
        verb,
        check: Box::new(check),
        told_after: None,
        checked_after: None,
    }
}

impl Expectation {
    /// Two watches may report an effect before its cause: this line waits for the one at `index`.
    pub(crate) fn told_after(mut self, index: usize) -> Self {
        self.told_after = Some(index);
        self
    }

    /// The state before the cause would do as well: nothing counts before the one at `index` was seen.
    pub(crate) fn checked_after(mut self, index: usize) -> Self {
        self.checked_after = Some(index);
        self.told_after(index)
    }
}

/// The watches, and what they have seen.
#[derive(Debug)]
pub(crate) struct Witness {
    known: Known,
    sightings: mpsc::UnboundedReceiver<Sighting>,
    // Ends the watches on drop.
    _watches: JoinSet<()>,
}

impl Witness {
    /// Starts watching `namespace`.
    pub(crate) fn start(client: &Client, namespace: &str) -> Self {
        let (report, sightings) = mpsc::unbounded_channel();
        let mut watches = JoinSet::new();
        for (api_version, kind) in KINDS {
            watches.spawn(watch(
                objects::api(client, api_version, kind, namespace),
                kind,
                report.clone(),
            ));
        }
        Self {
            known: Known::default(),
            sightings,
            _watches: watches,
        }
    }

    /// Returns the objects seen so far.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// Waits for the next sighting and returns its subject.
    pub(crate) async fn next(&mut self) -> Result<String> {
        let Some(sighting) = self.sightings.recv().await else {
            bail!("all watches ended")
        };
        Ok(self.take_note(sighting).1)
    }

    /// Tells each expectation when it comes true, until all have or `limit` has passed.
    pub(crate) async fn follow(
        &mut self,
        story: &Story,
        world: &World,
        expectations: Vec<Expectation>,
        limit: Duration,
    ) -> Result<()> {
        let deadline = tokio::time::Instant::now() + limit;
        let mut health = tokio::time::interval(Duration::from_millis(500));
        // (when it was seen, its detail); told as soon as what it is told after is told.
        let mut seen: Vec<Option<(Instant, String)>> = expectations.iter().map(|_| None).collect();
        let mut told = vec![false; expectations.len()];
        let mut now = Instant::now();
        loop {
            for (index, expectation) in expectations.iter().enumerate() {
                let counts = expectation
                    .checked_after
                    .is_none_or(|cause| seen[cause].is_some());
                if counts && seen[index].is_none() {
                    seen[index] = (expectation.check)(&self.known).map(|detail| (now, detail));
                }
            }
            show(story, &expectations, &seen, &mut told)?;
            if told.iter().all(|told| *told) {
                return Ok(());
            }
            tokio::select! {
                sighting = self.sightings.recv() => {
                    let Some(sighting) = sighting else { bail!("all watches ended") };
                    now = self.take_note(sighting).0;
                }
                _ = health.tick() => world.check_running()?,
                () = tokio::time::sleep_until(deadline) => return self.give_up(&expectations, &told, limit),
            }
        }
    }

    fn take_note(&mut self, sighting: Sighting) -> (Instant, String) {
        let Sighting { at, subject, object } = sighting;
        match object {
            Some(object) => self.known.0.insert(subject.clone(), object),
            None => self.known.0.remove(&subject),
        };
        (at, subject)
    }

    fn give_up(&self, expectations: &[Expectation], told: &[bool], limit: Duration) -> Result<()> {
        let missing = expectations.iter().zip(told).filter(|(_, told)| !**told);
        let missing: Vec<String> = missing
            .map(|(expectation, _)| {
                let last = self.known.get(&expectation.subject);
                format!(
                    "  {} {}; last seen: {}",
                    expectation.subject,
                    expectation.verb,
                    describe(last)
                )
            })
            .collect();
        bail!("not seen within {} s:\n{}", limit.as_secs(), missing.join("\n"))
    }
}

fn show(
    story: &Story,
    expectations: &[Expectation],
    seen: &[Option<(Instant, String)>],
    told: &mut [bool],
) -> Result<()> {
    // One pass is enough when causes stand before their effects, which chapters keep to.
    for (index, expectation) in expectations.iter().enumerate() {
        let cause_is_told = expectation.told_after.is_none_or(|cause| told[cause]);
        if let (false, true, Some((at, detail))) = (told[index], cause_is_told, &seen[index]) {
            story.seen(*at, &expectation.subject, expectation.verb, detail)?;
            told[index] = true;
        }
    }
    Ok(())
}

fn describe(object: Option<&DynamicObject>) -> String {
    let Some(object) = object else {
        return "it does not exist".to_owned();
    };
    match objects::condition(object, "Ready") {
        Some((status, reason, message)) => format!("Ready={status} {reason}: {message}"),
        None => format!("{:#}", object.data.get("status").cloned().unwrap_or_default()),
    }
}

async fn watch(api: Api<DynamicObject>, kind: &'static str, report: mpsc::UnboundedSender<Sighting>) {
    let mut events = watcher(api, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        let (object, exists) = match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => (object, true),
            Ok(watcher::Event::Delete(object)) => (object, false),
            Ok(watcher::Event::Init | watcher::Event::InitDone) => continue,
            // The watch comes back by itself; a cluster that is gone is noticed elsewhere.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let subject = format!("{kind}/{}", object.name_any());
        let sighting = Sighting {
            at: Instant::now(),
            subject,
            object: exists.then_some(object),
        };
        if report.send(sighting).is_err() {
            return;
        }
    }
}

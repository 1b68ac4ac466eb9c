//! The walk from an object to what keeps it from being ready. Pure: it walks over objects that were fetched, and names those
//! that it would look at next.

use std::collections::BTreeMap;

use api::meta::TRUE;
use api::meta::condition_types::FROZEN;
use futures::future::join_all;
use manifest::ObjectId;
use serde::Serialize;
use serde_json::Value;

use crate::images::{self, ChosenImage, Judged};
use crate::object::{self, Link, ready, text};
use crate::origin::Origin;
use crate::pipelines::{Standing, standings};
use crate::{Objects, kind, one_line};

/// Result of looking up an object.
pub enum Lookup {
    /// The object as it is.
    Found(Value),
    /// It does not exist.
    Absent,
    /// The API server did not show it, for this reason.
    Refused(String),
}

/// Objects fetched so far.
pub type Fetched = BTreeMap<ObjectId, Lookup>;

/// How an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// It is as it should be.
    Ready,
    /// Ready, with an older revision than its source has.
    Behind,
    /// It is not, and says why.
    NotReady,
    /// Its controller leaves it alone.
    Suspended,
    /// It does not exist.
    Absent,
    /// It may not be looked at.
    Unreadable,
}

/// An object on the way to the cause.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Kind, namespace and name.
    pub object: String,
    /// Its role for the object that led to it.
    pub role: &'static str,
    /// How it is.
    pub state: State,
    /// A word for what is wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The problem, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Revision that it has, or has applied.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Revision that was tried last, if it is another one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub attempted: String,
    /// The commit that an artifact without one in its revision was made of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// Where a source is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The folder of its source.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What an ImagePolicy says about the newest tags; only of what was asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Judged>,
    /// How the environments of a Pipeline stand; only of what was asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<Standing>,
    /// Who chose the images that it runs; only of what was asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ChosenImage>,
    /// The commit that it came from; only of what was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
    /// True if it fails because of the object in question, and not the reverse.
    #[serde(skip)]
    pub follows: bool,
    /// True if it was reported before, with everything that it waits for.
    #[serde(skip)]
    pub is_again: bool,
    /// Objects that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Finding>,
}

impl Finding {
    /// Returns whether it, or anything that it needs, is not as it should be.
    fn is_trouble(&self) -> bool {
        self.state != State::Ready || self.is_again || self.because.iter().any(Self::is_trouble)
    }

    /// The ends of the ways: where the causes are, each once.
    pub fn roots(&self) -> Vec<&Finding> {
        let mut roots = self.ends();
        roots.retain(|end| !end.is_again);
        roots
    }

    fn ends(&self) -> Vec<&Finding> {
        let mut ends: Vec<_> = self.because.iter().flat_map(Finding::ends).collect();
        let is_bad = self.state != State::Ready || self.is_again;
        if ends.is_empty() && is_bad && !self.follows {
            ends.push(self);
        }
        ends
    }
}

/// Walks from an object until nothing more is wanted.
pub async fn walk_over(objects: &dyn Objects, root: &ObjectId) -> Finding {
    let mut fetched = Fetched::new();
    loop {
        let mut wanted = Vec::new();
        let found = walk(root, &fetched, &mut wanted);
        if wanted.is_empty() {
            return found;
        }
        wanted.sort();
        wanted.dedup();
        let lookups = wanted.into_iter().map(async |id| {
            let lookup = objects.of_flux(&id).await;
            (id, lookup)
        });
        fetched.extend(join_all(lookups).await);
    }
}

/// Walks from an object. What it wants to look at and was not fetched yet is added to `wanted`.
pub fn walk(root: &ObjectId, fetched: &Fetched, wanted: &mut Vec<ObjectId>) -> Finding {
    let mut walk = Walk {
        fetched,
        wanted,
        path: Vec::new(),
        told: BTreeMap::new(),
    };
    walk.visit("object", root)
}

struct Walk<'a> {
    fetched: &'a Fetched,
    wanted: &'a mut Vec<ObjectId>,
    /// From the root to where it is.
    path: Vec<ObjectId>,
    /// Objects that were visited, with their state and whether anything is wrong with them or with what they
    /// need. Without this, shared dependencies would be reported again and again, twice as often with each
    /// level.
    told: BTreeMap<ObjectId, (State, bool)>,
}

impl Walk<'_> {
    fn visit(&mut self, role: &'static str, id: &ObjectId) -> Finding {
        let plain = |state, message: &str| Finding {
            message: message.to_owned(),
            ..finding(id.to_string(), role, state)
        };
        if let Some(at) = self.path.iter().position(|before| before == id) {
            let circle: Vec<_> = self.path[at..]
                .iter()
                .chain([id])
                .map(ToString::to_string)
                .collect();
            return plain(
                State::NotReady,
                &format!("waits for itself: {}", circle.join(" → ")),
            );
        }
        match self.told.get(id) {
            Some(&(state, true)) => {
                return Finding {
                    is_again: true,
                    ..plain(state, "see above")
                };
            }
            Some(&(state, false)) => return plain(state, ""),
            None => {}
        }
        let found = match self.fetched.get(id) {
            None => {
                self.wanted.push(id.clone());
                plain(State::Ready, "")
            }
            Some(Lookup::Absent) => plain(State::Absent, "does not exist"),
            Some(Lookup::Refused(why)) => plain(State::Unreadable, why),
            Some(Lookup::Found(object)) => {
                self.path.push(id.clone());
                let finding = self.look(role, id, object);
                self.path.pop();
                finding
            }
        };
        self.told.insert(id.clone(), (found.state, found.is_trouble()));
        found
    }

    fn look(&mut self, role: &'static str, id: &ObjectId, object: &Value) -> Finding {
        let mut found = about(role, id, object);
        let links = object::links(object);
        if let Some(newer) = self.newer_revision(object, &links)
            && found.state == State::Ready
        {
            found.state = State::Behind;
            found.message = format!("{newer} is there and not applied yet");
        }
        // What a ready object depends on does not matter to who waits for it, but where its content comes from does: a source
        // that cannot be fetched keeps everything as it was.
        let matters = |link: &Link| {
            found.state != State::Ready
                || matches!(
                    link.word,
                    "source" | "chart" | "included" | "image" | "policy" | "application"
                )
        };
        for link in links.into_iter().filter(matters) {
            let cause = self.visit(link.word, &link.id);
            if cause.is_trouble() {
                found.because.push(cause);
            }
        }
        if self.path.len() == 1 {
            found.tags = self.judged_tags(object);
            found.environments = standings(object);
        }
        if found.state == State::NotReady {
            let failing = failing_objects(object);
            found
                .because
                .extend(failing.into_iter().map(|failing| self.failing(failing)));
        }
        found
    }

    /// The revision of the source, when it is not the one that was applied.
    fn newer_revision(&self, object: &Value, links: &[Link]) -> Option<String> {
        if text(object, "/kind") != "Kustomization" {
            return None;
        }
        let source = links.iter().find(|link| link.word == "source")?;
        let Some(Lookup::Found(source)) = self.fetched.get(&source.id) else {
            return None;
        };
        let there = object::revision(source);
        (!there.is_empty() && there != object::revision(object)).then(|| there.to_owned())
    }

    /// What a policy says about the newest tags of its image.
    fn judged_tags(&self, object: &Value) -> Vec<Judged> {
        let links = object::links(object);
        let image = links.iter().find(|link| link.word == "image");
        match image.and_then(|image| self.fetched.get(&image.id)) {
            Some(Lookup::Found(repository)) => images::judge(object, repository),
            _ => Vec::new(),
        }
    }

    /// An object that was applied and is not well. Those of Flux are looked into.
    fn failing(&mut self, failing: Failing) -> Finding {
        if let Some(id) = kind::parse_id(&failing.object) {
            let found = self.visit("applied", &id);
            if found.is_trouble() {
                return found;
            }
        }
        Finding {
            reason: failing.cause,
            message: failing.message,
            ..finding(failing.object, "applied", State::NotReady)
        }
    }
}

/// Returns what an object of Flux says about itself.
pub fn about(role: &'static str, id: &ObjectId, object: &Value) -> Finding {
    let condition = ready(object);
    let state = match () {
        () if object::is_suspended(object) => State::Suspended,
        () if object::is_ready(object) => State::Ready,
        () => State::NotReady,
    };
    let is_deleted = !text(object, "/metadata/deletionTimestamp").is_empty();
    let waits = object::condition(object, FROZEN).filter(|frozen| frozen.status == TRUE);
    // A failure from before the Freeze is the cause, and says what waits as well.
    let is_all =
        |frozen: &object::Condition<'_>| condition.status == TRUE || condition.reason == frozen.reason;
    if let Some(frozen) = waits.filter(is_all)
        && state != State::Suspended
        && !is_deleted
    {
        let state = match condition.status == TRUE {
            true => State::Behind,
            false => State::NotReady,
        };
        return Finding {
            reason: frozen.reason.to_owned(),
            message: one_line(frozen.message),
            ..described(id, role, object, state)
        };
    }
    let mut message = one_line(condition.message);
    if state == State::Suspended {
        message = format!("nothing is done for it before it is resumed; before that: {message}");
    } else if !object::is_observed(object) {
        message = format!("its controller has not looked at its newest spec yet; before that: {message}");
    }
    if is_deleted {
        message = format!("it is being deleted; {message}");
    }
    Finding {
        reason: condition.reason.to_owned(),
        message: if state == State::Ready {
            standing(object)
        } else {
            message
        },
        ..described(id, role, object, state)
    }
}

/// Returns what the metadata, spec and revisions of an object say, without its conditions.
fn described(id: &ObjectId, role: &'static str, object: &Value, state: State) -> Finding {
    let revision = object::revision(object).to_owned();
    let attempted = object::attempted(object);
    Finding {
        attempted: if attempted == revision {
            String::new()
        } else {
            attempted.to_owned()
        },
        revision,
        origin: origin(object).to_owned(),
        url: text(object, "/spec/url").to_owned(),
        ..finding(id.to_string(), role, state)
    }
}

/// What an object that is ready still waits for: the pull requests of an automation, and its markers without effect.
fn standing(object: &Value) -> String {
    if text(object, "/kind") != "ImageUpdateAutomation" {
        return String::new();
    }
    let notes = ["Proposed", "MarkersIgnored"].map(|kind| object::condition(object, kind));
    let notes = notes.into_iter().flatten().filter(|note| note.status == "True");
    let lines = notes.flat_map(|note| note.message.lines().map(one_line));
    lines.collect::<Vec<_>>().join("; ")
}

/// The commit behind an artifact whose revision is none.
fn origin(object: &Value) -> &str {
    const OF_ARTIFACT: &str = "/status/artifact/metadata/org.opencontainers.image.revision";
    let pointers = [
        "/status/lastAppliedOriginRevision",
        OF_ARTIFACT,
        "/status/observedSourceArtifactRevision",
    ];
    let found = pointers.into_iter().map(|pointer| text(object, pointer));
    found
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// Makes a finding about which only so much is known.
pub fn finding(object: String, role: &'static str, state: State) -> Finding {
    Finding {
        object,
        role,
        state,
        reason: String::new(),
        message: String::new(),
        revision: String::new(),
        attempted: String::new(),
        origin: String::new(),
        url: String::new(),
        path: String::new(),
        tags: Vec::new(),
        environments: Vec::new(),
        images: Vec::new(),
        from: None,
        follows: false,
        is_again: false,
        because: Vec::new(),
    }
}

/// An object that was applied and is not well, as the one who applied it says.
#[derive(Debug, PartialEq, Eq)]
struct Failing {
    object: String,
    cause: String,
    message: String,
}

/// Where apply-controller lists what failed: docs/operations/why.md.
const WHY: &str = "windlass.dev/why";

fn failing_objects(object: &Value) -> Vec<Failing> {
    let metadata = object.pointer("/status/history/0/metadata");
    let listed = metadata
        .and_then(|metadata| metadata.get(WHY))
        .and_then(Value::as_str);
    let listed: Option<Vec<Value>> = listed.and_then(|text| serde_json::from_str(text).ok());
    let from_list = |entry: &Value| {
        let of = |key: &str| {
            entry
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let place = match (of("file"), entry.get("line").and_then(Value::as_u64)) {
            (file, _) if file.is_empty() => String::new(),
            (file, Some(line)) => format!("{file}:{line}: "),
            (file, None) => format!("{file}: "),
        };
        let failing = Failing {
            object: of("object"),
            cause: if of("cause").is_empty() {
                of("status")
            } else {
                of("cause")
            },
            message: format!("{place}{}", one_line(&of("message"))),
        };
        (!failing.object.is_empty()).then_some(failing)
    };
    match listed {
        Some(entries) => entries.iter().filter_map(from_list).collect(),
        None => in_message(ready(object).message),
    }
}

/// Reads what Flux's message of a failed health check names: `[Deployment/shop/web status: 'InProgress': …, …]`.
fn in_message(message: &str) -> Vec<Failing> {
    const STATUS: &str = " status: '";
    let mut starts = Vec::new();
    for (at, _) in message.match_indices(STATUS) {
        let start = message[..at]
            .rfind(|c: char| c == '[' || c.is_whitespace())
            .map_or(0, |before| before + 1);
        starts.push((start, at));
    }
    let failing = |(number, &(start, at)): (usize, &(usize, usize))| {
        let end = starts.get(number + 1).map_or(message.len(), |next| next.0);
        let (status, said) = message[at + STATUS.len()..end].split_once('\'')?;
        Some(Failing {
            object: message[start..at].to_owned(),
            cause: status.to_owned(),
            message: said.trim_matches([':', ',', ' ', ']']).to_owned(),
        })
    };
    starts.iter().enumerate().filter_map(failing).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(status: &str, reason: &str, suspend: bool) -> (State, String) {
        let object = json!({
            "kind": "Kustomization", "metadata": {"name": "app", "namespace": "ns", "generation": 1},
            "spec": {"suspend": suspend},
            "status": {"observedGeneration": 1, "conditions": [
                {"type": "Ready", "status": status, "reason": reason, "message": "ready; frozen: r2 waits"},
                {"type": "Frozen", "status": "True", "reason": "Frozen", "message": "r2 waits"},
            ]},
        });
        let found = about("object", &object::id(&object), &object);
        (found.state, found.message)
    }

    #[test]
    fn what_waits_is_said_unless_something_else_failed() {
        let waits = "r2 waits".to_owned();
        assert_eq!(
            said("True", "ReconciliationSucceeded", false),
            (State::Behind, waits.clone())
        );
        assert_eq!(said("False", "Frozen", false), (State::NotReady, waits));
        let (state, message) = said("False", "HealthCheckFailed", false);
        assert_eq!((state, &*message), (State::NotReady, "ready; frozen: r2 waits"));
        assert_eq!(said("True", "ReconciliationSucceeded", true).0, State::Suspended);
    }
}

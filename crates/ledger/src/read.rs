//! What an object says of its deliveries, and a source of its commits. Pure.
//!
//! Whoever may write a status writes what they like: texts are cut, times that cannot be are passed over.

use std::collections::BTreeMap;

use delivery_graph::kind::Kind;
use delivery_graph::{object, one_line};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::delivery::Outcome;

/// Bytes of a message and of other texts of one line; of reports.
const MAX_TEXT: usize = 1000;
const MAX_REPORT: usize = 8192;
/// Bytes of a signed statement.
const MAX_ENVELOPE: usize = 32 * 1024;
/// Entries of a history; Flux keeps five.
const MAX_ENTRIES: usize = 16;
/// Where a full history of a Kustomization ends.
const FULL: usize = 5;
/// Environments of a pipeline.
const MAX_ENVIRONMENTS: usize = 50;
const MAX_LABELS: usize = 32;
/// A clock may be ahead of ours by so much.
const AHEAD: SignedDuration = SignedDuration::from_mins(10);

/// An object and what it says of its deliveries.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Cluster.
    pub cluster: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Its uid: an object that is made anew begins anew.
    pub uid: String,
    /// The source or chart.
    pub source: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Outcomes, oldest first.
    pub told: Vec<Told>,
    /// Whether there may have been more than are told.
    pub is_cut: bool,
}

/// An outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Digest of what was built, or number of the Helm release.
    pub digest: String,
    /// How it went.
    pub outcome: Outcome,
    /// A word for it.
    pub reason: String,
    /// What is said of it; of the newest alone.
    pub message: String,
    /// What was delivered.
    pub revision: String,
    /// The commit behind it, where an artifact tells one.
    pub origin: String,
    /// When it was so for the first time.
    pub first: Timestamp,
    /// When it was so for the last time.
    pub last: Timestamp,
    /// How long it took, the last time.
    pub took: SignedDuration,
    /// When the objects were built that were changed last, as Windlass tells it.
    pub built: Option<Timestamp>,
    /// When they were applied.
    pub applied: Option<Timestamp>,
    /// How often it was so.
    pub total: i64,
    /// Which fields have changed.
    pub changes: String,
    /// Which objects failed.
    pub causes: String,
    /// The signed statement about a promotion.
    pub attestation: String,
}

/// A revision that a source has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Cluster.
    pub cluster: String,
    /// The source: `GitRepository/namespace/name`.
    pub source: String,
    /// The revision.
    pub revision: String,
    /// When the commit was made, where the source tells it.
    pub committed: Option<Timestamp>,
    /// When the source had it.
    pub seen: Timestamp,
    /// Who made it.
    pub author: String,
    /// First line of its message.
    pub subject: String,
}

/// Reads an object of delivery; None for other kinds, and if nothing was delivered yet.
pub fn subject(cluster: &str, kind: &Kind, object: &Value, now: Timestamp) -> Option<Subject> {
    let (mut told, is_cut) = match kind.kind {
        "Kustomization" => of_kustomization(object),
        "HelmRelease" => of_release(object),
        "Pipeline" => of_pipeline(object),
        _ => return None,
    };
    told.retain(|told| told.last <= now + AHEAD && told.first <= told.last);
    // Histories begin with the newest, and their times are whole seconds.
    told.reverse();
    told.sort_by_key(|told| told.last);
    if let Some(newest) = told.last_mut().filter(|_| kind.kind != "Pipeline") {
        let ready = object::ready(object);
        // What is said now need not be of the newest outcome: it may be at work on the next one.
        if ready.reason == newest.reason || kind.kind == "HelmRelease" {
            newest.message = cut(&one_line(ready.message), MAX_TEXT);
        }
    }
    let mut made_of = object::links(object).into_iter();
    let source = made_of.find(|link| matches!(link.word, "source" | "chart"));
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten().take(MAX_LABELS);
    (!told.is_empty()).then(|| Subject {
        cluster: cluster.to_owned(),
        kind: kind.kind.to_owned(),
        namespace: cut(object::namespace(object), MAX_TEXT),
        name: cut(object::name(object), MAX_TEXT),
        uid: cut(object::text(object, "/metadata/uid"), MAX_TEXT),
        source: source
            .map(|link| cut(&link.id.to_string(), MAX_TEXT))
            .unwrap_or_default(),
        labels: labels
            .filter_map(|(key, value)| Some((cut(key, MAX_TEXT), cut(value.as_str()?, MAX_TEXT))))
            .collect(),
        told,
        is_cut,
    })
}

/// Reads what a source has; None for other kinds, and if it has nothing.
pub fn revision(cluster: &str, kind: &Kind, object: &Value) -> Option<Revision> {
    let artifact = object.pointer("/status/artifact")?;
    let text = |key: &str| artifact.get(key).and_then(Value::as_str).unwrap_or_default();
    let metadata = |key: &str| {
        artifact
            .get("metadata")
            .and_then(|metadata| metadata.get(key)?.as_str())
    };
    let created = metadata("org.opencontainers.image.created");
    Some(Revision {
        cluster: cluster.to_owned(),
        source: cut(
            &format!(
                "{}/{}/{}",
                kind.kind,
                object::namespace(object),
                object::name(object)
            ),
            MAX_TEXT,
        ),
        revision: cut(&one_line(text("revision")), MAX_TEXT),
        committed: created.and_then(|time| time.parse().ok()),
        seen: text("lastUpdateTime").parse().ok()?,
        author: cut(
            &one_line(metadata("windlass.dev/author").unwrap_or_default()),
            MAX_TEXT,
        ),
        subject: cut(
            &one_line(metadata("windlass.dev/subject").unwrap_or_default()),
            MAX_TEXT,
        ),
    })
}

/// The entries of the history, or what the conditions say where there is none: Flux has it since 2.7.
fn of_kustomization(object: &Value) -> (Vec<Told>, bool) {
    let history = object::list(object, "/status/history");
    let entries = history.iter().take(MAX_ENTRIES);
    let told: Vec<Told> = entries.filter_map(entry).collect();
    if history.is_empty() {
        return (of_conditions(object).into_iter().collect(), true);
    }
    (told, history.len() >= FULL)
}

fn entry(entry: &Value) -> Option<Told> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let metadata = |key: &str| {
        let metadata = entry.get("metadata").and_then(|metadata| metadata.get(key));
        metadata.and_then(Value::as_str).unwrap_or_default()
    };
    let reason = cut(&one_line(text("lastReconciledStatus")), MAX_TEXT);
    let outcome = match reason.as_str() {
        "ReconciliationSucceeded" => Outcome::Succeeded,
        // At work, waiting for another, or given up for a newer revision.
        "" | "Progressing" | "ProgressingWithRetry" | "DependencyNotReady" | "HealthCheckCanceled" => {
            return None;
        }
        _ => Outcome::Failed,
    };
    Some(Told {
        digest: cut(&one_line(text("digest")), MAX_TEXT),
        outcome,
        reason,
        message: String::new(),
        revision: cut(&one_line(metadata("revision")), MAX_TEXT),
        origin: cut(&one_line(metadata("originRevision")), MAX_TEXT),
        first: text("firstReconciled").parse().ok()?,
        last: text("lastReconciled").parse().ok()?,
        took: duration(text("lastReconciledDuration")),
        built: metadata("windlass.dev/built").parse().ok(),
        applied: metadata("windlass.dev/applied").parse().ok(),
        total: entry
            .get("totalReconciliations")
            .and_then(Value::as_i64)?
            .clamp(1, i64::from(u32::MAX)),
        changes: cut(metadata("windlass.dev/changes"), MAX_REPORT),
        causes: cut(metadata("windlass.dev/why"), MAX_REPORT),
        attestation: envelope(metadata("windlass.dev/statement")),
    })
}

/// An envelope. A part of one is of no use.
fn envelope(text: &str) -> String {
    let is_whole = text.len() <= MAX_ENVELOPE && !text.contains(char::is_control);
    Some(text).filter(|_| is_whole).unwrap_or_default().to_owned()
}

/// The promotions that ended, of all environments.
fn of_pipeline(object: &Value) -> (Vec<Told>, bool) {
    let environments = object::list(object, "/status/environments").iter();
    let entries = environments.take(MAX_ENVIRONMENTS).flat_map(|environment| {
        let history = object::list(environment, "/history").iter();
        history
            .take(MAX_ENTRIES)
            .filter_map(|entry| promotion(object, object::text(environment, "/name"), entry))
    });
    let mut told: Vec<Told> = entries.collect();
    told.sort_by_key(|told| std::cmp::Reverse(told.last));
    (told, false)
}

fn promotion(pipeline: &Value, environment: &str, entry: &Value) -> Option<Told> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let (outcome, reason) = match text("outcome") {
        "Succeeded" => (Outcome::Succeeded, "PromotionSucceeded"),
        _ => (Outcome::Failed, "PromotionFailed"),
    };
    let number = entry.get("release")?.as_u64()?;
    let commit = cut(&one_line(text("commit")), MAX_TEXT);
    let ended: Timestamp = text("ended").parse().ok()?;
    let began = text("began").parse().unwrap_or(ended);
    let targets = object::list(entry, "/targets").iter().filter_map(Value::as_str);
    let mut message = targets.collect::<Vec<_>>().join(", ");
    for (word, text) in [("asked for by ", text("asked")), ("", text("message"))] {
        if !text.is_empty() {
            message = format!("{message}: {word}{text}");
        }
    }
    let mut releases = object::list(pipeline, "/status/releases").iter();
    let release = releases.find(|release| release.get("number").and_then(Value::as_u64) == Some(number));
    let values = release.and_then(|release| release.get("values")?.as_object());
    let values = values.into_iter().flatten();
    let values = values.filter_map(|(field, value)| Some(format!("{field} {}", value.as_str()?)));
    Some(Told {
        digest: commit.clone(),
        outcome,
        reason: reason.to_owned(),
        message: cut(&one_line(&message), MAX_TEXT),
        revision: cut(&one_line(&format!("{environment}: release {number}")), MAX_TEXT),
        origin: commit,
        first: ended,
        last: ended,
        took: ended.duration_since(began).max(SignedDuration::ZERO),
        built: None,
        applied: None,
        total: 1,
        changes: cut(
            &values.map(|line| one_line(&line)).collect::<Vec<_>>().join("\n"),
            MAX_REPORT,
        ),
        causes: String::new(),
        attestation: envelope(text("attestation")),
    })
}

fn of_conditions(object: &Value) -> Option<Told> {
    let ready = object::ready(object);
    let conditions = object::list(object, "/status/conditions").iter();
    let mut conditions = conditions.filter(|condition| object::text(condition, "/type") == "Ready");
    let ready_condition = conditions.next()?;
    let outcome = match object::text(ready_condition, "/status") {
        "True" => Outcome::Succeeded,
        "False" => Outcome::Failed,
        _ => return None,
    };
    let revision = match outcome {
        Outcome::Succeeded => object::text(object, "/status/lastAppliedRevision"),
        _ => object::text(object, "/status/lastAttemptedRevision"),
    };
    let at = object::text(ready_condition, "/lastTransitionTime")
        .parse()
        .ok()?;
    Some(Told {
        digest: String::new(),
        outcome,
        reason: cut(&one_line(ready.reason), MAX_TEXT),
        message: String::new(),
        revision: cut(&one_line(revision), MAX_TEXT),
        origin: String::new(),
        first: at,
        last: at,
        took: SignedDuration::ZERO,
        built: None,
        applied: None,
        total: 1,
        changes: String::new(),
        causes: String::new(),
        attestation: String::new(),
    })
}

/// The releases that Flux still knows. A number that is missing between two of them is a gap, which [`fold`](crate::fold) sees.
fn of_release(object: &Value) -> (Vec<Told>, bool) {
    let history = object::list(object, "/status/history").iter().take(MAX_ENTRIES);
    let told = history.filter_map(|entry| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let reason = cut(&one_line(text("status")), MAX_TEXT);
        let outcome = match reason.as_str() {
            "deployed" | "superseded" | "uninstalled" => Outcome::Succeeded,
            "failed" => Outcome::Failed,
            _ => return None, // at work
        };
        let at = text("lastDeployed").parse().ok()?;
        let number = entry.get("version").and_then(Value::as_i64)?;
        let chart = format!("{}@{}", text("chartName"), text("chartVersion"));
        Some(Told {
            digest: format!("v{number}"),
            outcome,
            reason,
            message: String::new(),
            revision: cut(&one_line(&chart), MAX_TEXT),
            origin: String::new(),
            first: at,
            last: at,
            took: SignedDuration::ZERO,
            built: None,
            applied: None,
            total: 1,
            changes: String::new(),
            causes: String::new(),
            attestation: String::new(),
        })
    });
    (told.collect(), false)
}

/// Reads `1m2.5s`, as Go writes it; zero if it is something else.
fn duration(text: &str) -> SignedDuration {
    let read = text.parse::<SignedDuration>().unwrap_or_default();
    read.clamp(SignedDuration::ZERO, SignedDuration::from_hours(24))
}

/// The beginning of a text, without what no store takes: PostgreSQL refuses a NUL, and with it the row.
fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    text[..end].replace('\0', "")
}

#[cfg(test)]
mod tests {
    use delivery_graph::kind;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-25T12:00:00Z".parse().unwrap()
    }

    fn kustomization(history: &Value) -> Value {
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "labels": {"team": "shop"}},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "repo"}},
            "status": {"history": history, "conditions": [{
                "type": "Ready", "status": "False", "reason": "HealthCheckFailed", "message": "it\nis ill",
                "lastTransitionTime": "2026-11-25T10:00:00Z",
            }]},
        })
    }

    fn read(object: &Value) -> Option<Subject> {
        let kind = kind::exact(object["kind"].as_str().unwrap()).unwrap();
        subject("here", kind, object, now())
    }

    #[test]
    fn a_history_is_read_from_the_oldest_on() {
        let entry = |status: &str, last: &str| {
            json!({
                "digest": "sha256:1", "firstReconciled": "2026-11-25T10:00:00Z", "lastReconciled": last,
                "lastReconciledDuration": "1m2.5s", "lastReconciledStatus": status, "totalReconciliations": 3,
                "metadata": {
                    "revision": "main@sha1:a", "windlass.dev/changes": "c", "windlass.dev/why": "[]",
                    "windlass.dev/built": "2026-11-25T09:59:59.250Z", "windlass.dev/applied": "soon",
                    "windlass.dev/statement": "{}",
                },
            })
        };
        let object = kustomization(&json!([
            entry("HealthCheckFailed", "2026-11-25T11:00:00Z"),
            entry("ReconciliationSucceeded", "2026-11-25T10:30:00Z"),
            entry("Progressing", "2026-11-25T11:30:00Z"),
            entry("BuildFailed", "2036-11-25T11:30:00Z"),
            entry("BuildFailed", "2006-11-25T11:30:00Z"),
            entry("BuildFailed", "today"),
        ]));
        let read = read(&object).unwrap();
        assert_eq!(
            (&*read.source, &*read.uid, read.is_cut),
            ("GitRepository/shop/repo", "u", true)
        );
        assert_eq!(read.labels["team"], "shop");
        let built = "2026-11-25T09:59:59.250Z".parse().ok();
        assert_eq!((read.told[0].built, read.told[0].applied), (built, None));
        assert_eq!(read.told[0].attestation, "{}");
        let outcomes: Vec<_> = read
            .told
            .iter()
            .map(|told| (told.outcome, &*told.message))
            .collect();
        assert_eq!(
            outcomes,
            [(Outcome::Succeeded, ""), (Outcome::Failed, "it is ill")]
        );
        let failed = &read.told[1];
        assert_eq!((failed.total, &*failed.revision), (3, "main@sha1:a"));
        assert_eq!(failed.took, SignedDuration::from_millis(62_500));
        assert_eq!((&*failed.changes, &*failed.causes), ("c", "[]"));
    }

    #[test]
    fn without_a_history_the_conditions_are_read() {
        let read = read(&kustomization(&json!([]))).unwrap();
        assert_eq!(
            (read.told.len(), read.told[0].outcome, read.is_cut),
            (1, Outcome::Failed, true)
        );
        let nothing =
            json!({"apiVersion": "v1", "kind": "Kustomization", "metadata": {"name": "a", "namespace": "b"}});
        let kind = kind::exact("Kustomization").unwrap();
        assert_eq!(subject("here", kind, &nothing, now()), None);
    }

    #[test]
    fn releases_are_read_by_their_numbers() {
        let release = |version: i64, status: &str, at: &str| {
            json!({
                "version": version, "status": status, "chartName": "web", "chartVersion": "1.2.3", "lastDeployed": at,
                "firstDeployed": at, "digest": "sha256:1", "name": "web", "namespace": "shop",
            })
        };
        let object = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
            "spec": {"chartRef": {"kind": "OCIRepository", "name": "web"}},
            "status": {"history": [
                release(8, "pending-upgrade", "2026-11-25T11:40:00Z"),
                release(7, "failed", "2026-11-25T11:30:00Z"),
                release(6, "superseded", "2026-11-25T10:30:00Z"),
            ]},
        });
        let read = read(&object).unwrap();
        let told: Vec<_> = read
            .told
            .iter()
            .map(|told| (&*told.digest, told.outcome, &*told.revision))
            .collect();
        assert_eq!(
            told,
            [
                ("v6", Outcome::Succeeded, "web@1.2.3"),
                ("v7", Outcome::Failed, "web@1.2.3")
            ]
        );
    }

    #[test]
    fn texts_are_cut() {
        let long = "ä\0".repeat(100_000);
        let object = kustomization(&json!([{
            "digest": long, "firstReconciled": "2026-11-25T10:00:00Z", "lastReconciled": "2026-11-25T10:00:00Z",
            "lastReconciledDuration": long, "lastReconciledStatus": long, "totalReconciliations": -5,
            "metadata": {"revision": long, "windlass.dev/changes": long, "windlass.dev/statement": long},
        }]));
        let told = read(&object).unwrap().told.remove(0);
        let lengths = [&told.digest, &told.revision, &told.changes].map(String::len);
        assert!(
            lengths[0] <= 1000 && lengths[1] <= 1000 && lengths[2] <= 8192,
            "{lengths:?}"
        );
        let all = format!("{told:?}");
        assert!(!all.contains("\\0") && !all.contains('\0'), "a NUL is left");
        assert_eq!((told.total, told.took), (1, SignedDuration::ZERO));
        assert_eq!(told.attestation, "");
    }

    #[test]
    fn a_source_tells_its_commit() {
        let kind = kind::exact("GitRepository").unwrap();
        let object = json!({
            "metadata": {"name": "repo", "namespace": "shop"},
            "status": {"artifact": {
                "revision": "main@sha1:a", "lastUpdateTime": "2026-11-25T10:00:00Z",
                "metadata": {"org.opencontainers.image.created": "2026-11-25T09:00:00Z", "windlass.dev/author": "Ana"},
            }},
        });
        let found = revision("here", kind, &object).unwrap();
        assert_eq!(
            (&*found.source, &*found.author),
            ("GitRepository/shop/repo", "Ana")
        );
        assert_eq!(found.committed.unwrap().to_string(), "2026-11-25T09:00:00Z");
        assert_eq!(revision("here", kind, &json!({})), None);
    }

    #[test]
    fn promotions_of_all_environments_are_told() {
        let entry = |release: u64, commit: &str, ended: &str, more: Value| {
            let mut entry = json!({"release": release, "targets": ["eu", "us"], "outcome": "Succeeded", "commit": commit,
                "began": "2026-01-01T10:00:00Z", "ended": ended});
            let more = more.as_object().cloned().unwrap();
            entry.as_object_mut().unwrap().extend(more);
            entry
        };
        let failed = json!({"outcome": "Failed", "asked": "ana: incident\n12", "message": "crash"});
        let pipeline = json!({
            "kind": "Pipeline", "metadata": {"name": "shop", "namespace": "team", "uid": "u"},
            "status": {
                "releases": [{"number": 2, "values": {"HelmRelease/shop: chart": "1.1.0", "Kustomization/shop: image a": "v2"}}],
                "environments": [
                    {"name": "dev"},
                    {"name": "staging", "history": [entry(2, "abc", "2026-01-01T10:01:00Z", json!({})), json!("nonsense")]},
                    {"name": "production", "history": [
                        entry(1, "ccc", "2026-01-01T10:03:00Z", failed),
                        entry(2, "bbb", "2026-01-01T10:02:00Z", json!({})),
                        entry(3, "ddd", "2999-01-01T10:02:00Z", json!({})),
                    ]},
                ],
            },
        });
        let kind = delivery_graph::kind::exact("Pipeline").unwrap();
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let subject = subject("c", kind, &pipeline, now).unwrap();
        let told: Vec<_> = subject
            .told
            .iter()
            .map(|told| (&*told.revision, &*told.message, &*told.changes))
            .collect();
        let changes = "HelmRelease/shop: chart 1.1.0\nKustomization/shop: image a v2";
        let expected = [
            ("staging: release 2", "eu, us", changes),
            ("production: release 2", "eu, us", changes),
            (
                "production: release 1",
                "eu, us: asked for by ana: incident 12: crash",
                "",
            ),
        ];
        assert_eq!(told, expected);
        assert_eq!(subject.told[2].outcome, Outcome::Failed);

        // Folded twice it is the same.
        let rows: Vec<_> = crate::fold::fold(&[], &subject)
            .into_iter()
            .map(|change| match change {
                crate::fold::Change::Insert(row) | crate::fold::Change::Move(row) => *row,
            })
            .collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].began.to_string(), "2026-01-01T10:00:00Z");
        let newest_first: Vec<_> = rows.into_iter().rev().collect();
        assert_eq!(crate::fold::fold(&newest_first, &subject), []);

        // The statement about a promotion may be signed later; the one of an older promotion goes from the status, and stays here.
        let attested = |envelope: &str| {
            let mut pipeline = pipeline.clone();
            pipeline["status"]["environments"][1]["history"][0]["attestation"] = json!(envelope);
            let subject = super::subject("c", kind, &pipeline, now).unwrap();
            crate::fold::fold(&newest_first, &subject)
        };
        let changes = attested("{}");
        let [crate::fold::Change::Move(row)] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!((&*row.attestation, &*row.revision), ("{}", "staging: release 2"));
        let signed = std::slice::from_ref(&**row);
        assert_eq!(
            crate::fold::fold(
                signed,
                &Subject {
                    told: vec![subject.told[0].clone()],
                    ..subject
                }
            ),
            []
        );
        assert_eq!(attested(&"x".repeat(MAX_ENVELOPE + 1)), [], "a part is of no use");
    }
}

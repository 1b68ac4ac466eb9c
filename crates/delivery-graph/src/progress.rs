//! How far a revision has come: which objects should run it, which do, and what is missing. Pure.

use std::collections::{BTreeMap, BTreeSet};

use manifest::ObjectId;
use serde_json::Value;

use crate::object::{self, ready, text};

/// Everything that takes part, as the cluster has it.
pub type Objects = BTreeMap<ObjectId, Value>;

/// A revision that is awaited, and the sources that had it.
pub struct Delivery {
    wanted: String,
    /// A source that has moved on to something newer has had the revision: its users need not go back to it.
    had: BTreeSet<ObjectId>,
}

/// How far it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Those that run it.
    pub done: Vec<ObjectId>,
    /// Those that do not yet, and why.
    pub missing: Vec<(ObjectId, String)>,
    /// Those that tried it, and will try again at most.
    pub failed: Vec<(ObjectId, String)>,
}

impl Progress {
    /// Returns whether everything that should run it does. Nothing at all is not everything.
    pub fn is_done(&self) -> bool {
        !self.done.is_empty() && self.missing.is_empty() && self.failed.is_empty()
    }

    /// Returns the counts in a few words.
    pub fn summary(&self) -> String {
        let (done, open) = (self.done.len(), self.missing.len());
        match self.failed.len() {
            0 => format!("{done} ready, {open} to come"),
            failed => format!("{done} ready, {open} to come, {failed} failed"),
        }
    }
}

/// The revision of the source that a chart was made of.
const OF_CHART: &str = "/status/observedSourceArtifactRevision";

/// Fewer characters of a digest name too much by chance; Git itself shortens to 7.
const SHORTEST: usize = 7;

impl Delivery {
    /// Awaits a revision; None when it is too short to name one.
    pub fn from_revision(revision: &str) -> Option<Self> {
        let is_hex = revision.bytes().all(|byte| byte.is_ascii_hexdigit());
        let long_enough = if is_hex {
            revision.len() >= SHORTEST
        } else {
            !revision.is_empty()
        };
        long_enough.then(|| Self {
            wanted: revision.to_owned(),
            had: BTreeSet::new(),
        })
    }

    /// Looks how far it is. Only what is in the namespace counts, if one is given; sources may be anywhere.
    pub fn progress(&mut self, objects: &Objects, namespace: Option<&str>) -> Progress {
        for (id, object) in objects.iter().filter(|(id, _)| is_artifact(id)) {
            if self.is_wanted(object) {
                self.had.insert(id.clone());
            }
        }
        let mut progress = Progress::default();
        let coming = self.coming(objects);
        for (id, object) in objects.iter().filter(|(id, _)| !is_artifact(id)) {
            let here = namespace.is_none_or(|namespace| namespace == id.namespace);
            if !here || object::is_suspended(object) {
                continue;
            }
            let Some(source) = content_of(object, objects) else {
                continue;
            };
            if !self.had.contains(&source) && !coming.contains(&source) {
                continue;
            }
            match self.missing(object, &source, objects) {
                None => progress.done.push(id.clone()),
                Some(why) if has_failed(object, objects.get(&source)) => {
                    progress.failed.push((id.clone(), why));
                }
                Some(why) => progress.missing.push((id.clone(), why)),
            }
        }
        if self.had.is_empty() {
            progress.missing = self.without(objects, namespace);
        }
        progress
    }

    /// Report while no source has the revision: the revisions of the sources that objects here are made of.
    fn without(&self, objects: &Objects, namespace: Option<&str>) -> Vec<(ObjectId, String)> {
        let here = |id: &ObjectId| namespace.is_none_or(|namespace| namespace == id.namespace);
        let users = objects
            .iter()
            .filter(|(id, object)| !is_artifact(id) && here(id) && !object::is_suspended(object));
        let used: BTreeSet<_> = users
            .filter_map(|(_, object)| content_of(object, objects))
            .collect();
        let why = |id: &ObjectId| {
            let wanted = &self.wanted;
            match objects
                .get(id)
                .map(|object| (object::revision(object), ready(object)))
            {
                None => format!("has to have {wanted}, and does not exist"),
                Some((revision, condition)) if condition.status != "True" => {
                    let at = if revision.is_empty() { "nothing" } else { revision };
                    format!(
                        "does not have {wanted} but {at}: {}: {}",
                        condition.reason, condition.message
                    )
                }
                Some((revision, _)) => format!("does not have {wanted} but {revision}"),
            }
        };
        used.into_iter().map(|id| (id.clone(), why(&id))).collect()
    }

    /// Sources of the same address and reference as one that had the revision get there too.
    fn coming(&self, objects: &Objects) -> BTreeSet<ObjectId> {
        let place = |object: &Value| {
            let url = text(object, "/spec/url").to_owned();
            (!url.is_empty()).then(|| (url, object.pointer("/spec/ref").cloned()))
        };
        let had: Vec<_> = self
            .had
            .iter()
            .filter_map(|id| Some((&id.kind, place(objects.get(id)?)?)))
            .collect();
        let is_coming = |(id, object): &(&ObjectId, &Value)| {
            let place = place(object);
            !object::is_suspended(object)
                && had
                    .iter()
                    .any(|(kind, had)| **kind == id.kind && Some(had) == place.as_ref())
        };
        let mut coming: BTreeSet<_> = objects
            .iter()
            .filter(is_coming)
            .map(|(id, _)| id.clone())
            .collect();
        // A chart is re-created of every revision of its source, even if its version stays.
        let charts = objects.iter().filter(|(id, object)| {
            let of_source = |link: &object::Link| self.had.contains(&link.id) || coming.contains(&link.id);
            id.kind == "HelmChart"
                && is_of_commits(object)
                && !object::is_suspended(object)
                && object::links(object).iter().any(of_source)
        });
        let charts: Vec<_> = charts.map(|(id, _)| id.clone()).collect();
        coming.extend(charts);
        coming
    }

    /// Returns whether an artifact is of the revision.
    fn is_wanted(&self, object: &Value) -> bool {
        const ORIGIN: &str = "/status/artifact/metadata/org.opencontainers.image.revision";
        let revisions = [
            object::revision(object),
            text(object, ORIGIN),
            text(object, OF_CHART),
        ];
        revisions
            .into_iter()
            .any(|revision| names(revision, &self.wanted))
    }

    /// Missing steps until an object runs its source's revision; None when nothing is missing.
    fn missing(&self, object: &Value, source: &ObjectId, objects: &Objects) -> Option<String> {
        let Some(artifact) = objects.get(source) else {
            return Some(format!("{source} does not exist"));
        };
        if !self.had.contains(source) {
            let made_of = match text(artifact, OF_CHART) {
                "" => String::new(),
                revision => format!(", made of {revision}"),
            };
            let revision = object::revision(artifact);
            return Some(format!("{source} is at {revision} still{made_of}"));
        }
        let condition = ready(object);
        let told = || match (condition.reason, condition.message) {
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        };
        if !has_run(object, artifact) {
            return Some(format!(
                "{} is not applied yet: {}",
                object::revision(artifact),
                told()
            ));
        }
        (!object::is_ready(object)).then(told)
    }
}

/// Returns whether an object runs what an artifact holds.
fn has_run(object: &Value, artifact: &Value) -> bool {
    let there = object::revision(artifact);
    if text(object, "/kind") == "Kustomization" {
        return object::revision(object) == there;
    }
    // helm-controller writes `<version>+<digest>` for charts of an OCIRepository, and the digest beside it.
    let digest = text(object, "/status/lastAttemptedRevisionDigest");
    let of_artifact = there.rsplit_once('@').map_or(there, |(_, digest)| digest);
    object::attempted(object) == there || !digest.is_empty() && digest == of_artifact
}

/// Returns whether the newest run of an object was about an artifact, and failed. One that waits for another has not run.
fn has_failed(object: &Value, artifact: Option<&Value>) -> bool {
    let there = artifact.map_or("", object::revision);
    let has_tried =
        object::attempted(object) == there || artifact.is_some_and(|artifact| has_run(object, artifact));
    let failed = ready(object).status == "False" && !object::is_in_progress(object);
    object::is_stalled(object) || failed && has_tried && object::is_observed(object)
}

/// The artifact that an object is made of: that of a source or of a HelmChart. A HelmRelease whose chart is not there yet
/// is made of its chart's source.
fn content_of(object: &Value, objects: &Objects) -> Option<ObjectId> {
    let links = object::links(object);
    let link = links
        .into_iter()
        .find(|link| matches!(link.word, "source" | "chart"))?;
    let source = object.pointer("/spec/chart/spec/sourceRef");
    if objects.contains_key(&link.id) || source.is_none() {
        return Some(link.id);
    }
    let spec = serde_json::json!({"kind": "HelmChart", "spec": {"sourceRef": source},
        "metadata": {"namespace": object::namespace(object)}});
    object::links(&spec).into_iter().next().map(|link| link.id)
}

/// The index of a HelmRepository has a revision too, but who waits for a chart waits for the chart's.
fn is_of_commits(chart: &Value) -> bool {
    text(chart, "/spec/sourceRef/kind") != "HelmRepository"
}

fn is_artifact(id: &ObjectId) -> bool {
    !matches!(id.kind.as_str(), "Kustomization" | "HelmRelease")
}

/// Returns whether a revision (`main@sha1:0123…`, `v1@sha256:…`, `1.2.3`) is the one that is named, by a part or the beginning
/// of its digest.
fn names(revision: &str, wanted: &str) -> bool {
    if revision.is_empty() {
        return false;
    }
    let (tag, digest) = revision.rsplit_once('@').unwrap_or((revision, revision));
    let hash = digest.rsplit_once(':').map_or(digest, |(_, hash)| hash);
    let is_hash = wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) && wanted.len() >= SHORTEST;
    revision == wanted || tag == wanted || digest == wanted || is_hash && hash.starts_with(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;
    use serde_json::json;

    const OLD: &str = "main@sha1:aaaaaaaaaa";
    const NEW: &str = "main@sha1:bbbbbbbbbb";

    fn object(kind: &str, name: &str, spec: Value, status: Value) -> Value {
        let known = kind::exact(kind).unwrap();
        let mut object = json!({"apiVersion": format!("{}/{}", known.group, known.version), "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "generation": 1}, "spec": spec, "status": status});
        object["status"]["observedGeneration"] = 1.into();
        object
    }

    fn source(name: &str, revision: &str) -> Value {
        let spec = json!({"url": "https://git.example/app", "ref": {"branch": "main"}});
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"artifact": {"revision": revision}, "conditions": ready});
        object("GitRepository", name, spec, status)
    }

    fn app(name: &str, source: &str, revision: &str, ready: &str) -> Value {
        let spec = json!({"sourceRef": {"kind": "GitRepository", "name": source}});
        let ready = json!([{"type": "Ready", "status": ready, "reason": "R", "message": "told"}]);
        object(
            "Kustomization",
            name,
            spec,
            json!({"lastAppliedRevision": revision, "conditions": ready}),
        )
    }

    fn progress(delivery: &mut Delivery, objects: &[Value]) -> (Vec<String>, Vec<String>) {
        let objects = objects
            .iter()
            .map(|object| (object::id(object), object.clone()))
            .collect();
        let progress = delivery.progress(&objects, Some("shop"));
        let told = progress.missing.iter().chain(&progress.failed);
        (
            progress.done.iter().map(|id| id.name.clone()).collect(),
            told.map(|(id, why)| format!("{}: {why}", id.name)).collect(),
        )
    }

    fn check(objects: &[Value], done: &[&str], missing: &[&str]) {
        let mut delivery = Delivery::from_revision("bbbbbbb").unwrap();
        let told = progress(&mut delivery, objects);
        assert_eq!(
            (told.0, told.1),
            (
                done.iter().map(ToString::to_string).collect(),
                missing.iter().map(ToString::to_string).collect()
            )
        );
    }

    #[test]
    fn nothing_is_done_before_a_source_has_the_revision() {
        check(
            &[source("app", OLD), app("web", "app", OLD, "True")],
            &[],
            &["app: does not have bbbbbbb but main@sha1:aaaaaaaaaa"],
        );
        assert!(!Progress::default().is_done());
    }

    #[test]
    fn everything_made_of_a_source_with_the_revision_counts() {
        check(
            &[
                source("app", NEW),
                app("web", "app", NEW, "True"),
                app("db", "app", OLD, "True"),
                app("broken", "app", NEW, "False"),
                app("other", "elsewhere", OLD, "True"),
            ],
            &["web"],
            &[
                "db: main@sha1:bbbbbbbbbb is not applied yet: R: told",
                "broken: R: told",
            ],
        );
    }

    #[test]
    fn what_tried_and_failed_is_told_apart_from_what_waits() {
        let mut tried = app("tried", "app", OLD, "False");
        tried["status"]["lastAttemptedRevision"] = NEW.into();
        let all = [source("app", NEW), tried, app("waits", "app", OLD, "False")];
        let objects = all
            .iter()
            .map(|object| (object::id(object), object.clone()))
            .collect();
        let progress = Delivery::from_revision("bbbbbbb")
            .unwrap()
            .progress(&objects, None);
        let names =
            |list: &[(ObjectId, String)]| list.iter().map(|(id, _)| id.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&progress.failed), names(&progress.missing)),
            (vec!["tried".to_owned()], vec!["waits".to_owned()])
        );
    }

    #[test]
    fn what_is_suspended_is_not_awaited() {
        let mut suspended = app("db", "app", OLD, "True");
        suspended["spec"]["suspend"] = true.into();
        check(
            &[source("app", NEW), app("web", "app", NEW, "True"), suspended],
            &["web"],
            &[],
        );
    }

    #[test]
    fn a_second_source_of_the_same_branch_is_awaited_too() {
        let mut other_branch = source("other", OLD);
        other_branch["spec"]["ref"] = json!({"branch": "next"});
        check(
            &[
                source("app", NEW),
                source("late", OLD),
                other_branch,
                app("web", "app", NEW, "True"),
                app("db", "late", OLD, "True"),
                app("x", "other", OLD, "True"),
            ],
            &["web"],
            &["db: GitRepository/shop/late is at main@sha1:aaaaaaaaaa still"],
        );
    }

    #[test]
    fn a_source_that_moved_on_has_had_the_revision() {
        let mut delivery = Delivery::from_revision("bbbbbbbbbb").unwrap();
        let newer = "main@sha1:cccccccccc";
        progress(
            &mut delivery,
            &[source("app", NEW), app("web", "app", OLD, "True")],
        );
        let told = progress(
            &mut delivery,
            &[source("app", newer), app("web", "app", newer, "True")],
        );
        assert_eq!(told.0, ["web"]);
    }

    #[test]
    fn releases_run_the_chart_that_was_made_of_the_revision() {
        let chart = |observed: &str| {
            let spec = json!({"sourceRef": {"kind": "GitRepository", "name": "app"}});
            let status =
                json!({"artifact": {"revision": "1.0.0"}, "observedSourceArtifactRevision": observed});
            object("HelmChart", "shop-web", spec, status)
        };
        let ready = json!([{"type": "Ready", "status": "True", "message": "told"}]);
        let spec = json!({"chart": {"spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}}}});
        let release = object(
            "HelmRelease",
            "web",
            spec,
            json!({"lastAttemptedRevision": "1.0.0", "conditions": ready}),
        );
        check(&[source("app", NEW), chart(NEW), release.clone()], &["web"], &[]);
        check(
            &[source("app", NEW), chart(OLD), release.clone()],
            &[],
            &["web: HelmChart/shop/shop-web is at 1.0.0 still, made of main@sha1:aaaaaaaaaa"],
        );
        // There is no chart yet.
        check(
            &[source("app", NEW), release],
            &[],
            &["web: main@sha1:bbbbbbbbbb is not applied yet: told"],
        );
        let digest = "sha256:bbbbbbbbbb";
        let oci = object(
            "OCIRepository",
            "web",
            json!({}),
            json!({"artifact": {"revision": format!("1.0.0@{digest}")}}),
        );
        let spec = json!({"chartRef": {"kind": "OCIRepository", "name": "web"}});
        let status = json!({"lastAttemptedRevision": "1.0.0+bbbb", "lastAttemptedRevisionDigest": digest, "conditions": ready});
        check(&[oci, object("HelmRelease", "web", spec, status)], &["web"], &[]);
    }

    #[test]
    fn a_revision_is_named_by_tag_digest_or_the_beginning_of_a_hash() {
        for (revision, wanted, fits) in [
            ("main@sha1:0123456789", "0123456789", true),
            ("main@sha1:0123456789", "0123456", true),
            ("main@sha1:0123456789", "sha1:0123456789", true),
            ("v1@sha256:0123456789", "v1", true),
            ("1.2.3", "1.2.3", true),
            ("main@sha1:0123456789", "3456789", false),
            ("", "0123456", false),
        ] {
            assert_eq!(names(revision, wanted), fits, "{revision} {wanted}");
        }
        assert!(
            Delivery::from_revision("abcdef").is_none()
                && Delivery::from_revision("").is_none()
                && Delivery::from_revision("v1").is_some()
        );
    }
}

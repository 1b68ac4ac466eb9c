//! Freezes: to which Kustomizations, HelmReleases and ResourceSets they apply, and until when nothing new is delivered to them.
//!
//! What cannot be understood freezes: a mistake in a Freeze must not let through what it was made to stop.

use std::collections::BTreeMap;
use std::fmt;

use api::delivery::{DriftCorrection, FREEZE_EXCEPTION, Freeze, FreezeKind};
use api::meta::Delivers;
use jiff::Timestamp;
use kube::core::{Selector, SelectorExt as _};
use manifest::pattern::{is_like, is_like_any};

use crate::window::{self, Gate};

/// How a Freeze names the cluster that it is in.
pub const IN_CLUSTER: &str = "in-cluster";
/// Freezes that are looked at one after the other for the time at which all have ended.
const MAX_IN_A_ROW: usize = 10;
/// Freezes of one object. Their windows take time to look at, and tenants may make as many as they like.
const MAX_COVERING: usize = 20;
/// Exceptions of one object.
const MAX_EXCEPTIONS: usize = 50;
/// Characters of a reason that messages repeat.
const MAX_REASON: usize = 200;

/// What a Freeze may apply to.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its kind.
    pub kind: FreezeKind,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    labels: Option<&'a BTreeMap<String, String>>,
    /// The Secret or ConfigMap that leads to another cluster.
    cluster: Option<&'a str>,
    exceptions: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// An object of one of the kinds. Its exceptions count only if `accepts_exceptions`.
    pub fn new<K: Delivers>(kind: FreezeKind, object: &'a K, accepts_exceptions: bool) -> Self {
        let meta = object.meta();
        let annotations = meta.annotations.as_ref().filter(|_| accepts_exceptions);
        let secret = |config: &'a api::meta::KubeConfigReference| {
            let secret = config.secret_ref.as_ref().map(|reference| &*reference.name);
            secret.or(config.config_map_ref.as_ref().map(|reference| &*reference.name))
        };
        Self {
            kind,
            namespace: meta.namespace.as_deref().unwrap_or_default(),
            name: meta.name.as_deref().unwrap_or_default(),
            labels: meta.labels.as_ref(),
            cluster: object.kube_config().and_then(secret),
            exceptions: annotations
                .and_then(|all| all.get(FREEZE_EXCEPTION))
                .map(String::as_str),
        }
    }
}

/// Returns whether a Freeze applies to an object at some time. Only those in the namespace `of_controllers` reach into others.
pub fn covers(freeze: &Freeze, subject: &Subject<'_>, of_controllers: &str) -> bool {
    let (spec, own) = (&freeze.spec, namespace(freeze));
    let is_near = match spec.namespaces.as_slice() {
        [] => own == subject.namespace,
        patterns if own == of_controllers => is_like_any(patterns, subject.namespace),
        // What it names elsewhere is not its to freeze; its own namespace is.
        patterns => own == subject.namespace && is_like_any(patterns, own),
    };
    let is_named = spec.apps.is_empty()
        || spec
            .apps
            .iter()
            .any(|app| app.kind.is_none_or(|kind| kind == subject.kind) && is_like(&app.name, subject.name));
    let cluster = subject.cluster.unwrap_or(IN_CLUSTER);
    is_near
        && is_named
        && (spec.clusters.is_empty() || is_like_any(&spec.clusters, cluster))
        && is_selected(freeze, subject)
}

fn is_selected(freeze: &Freeze, subject: &Subject<'_>) -> bool {
    let Some(selector) = &freeze.spec.selector else {
        return true;
    };
    let unlabelled = BTreeMap::new();
    match Selector::try_from(selector.of_kubernetes()) {
        Ok(selector) => selector.matches(subject.labels.unwrap_or(&unlabelled)),
        Err(_) => true,
    }
}

fn is_excepted(freeze: &Freeze, subject: &Subject<'_>) -> bool {
    let name = id(freeze);
    let listed = subject.exceptions.unwrap_or_default().split(',');
    listed.take(MAX_EXCEPTIONS).any(|listed| listed.trim() == name)
}

/// Freezes that are in force for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// One of them, by `namespace/name`.
    pub freeze: String,
    /// Why there is that one.
    pub reason: String,
    /// When the last of them ends; None if none can say.
    pub until: Option<Timestamp>,
    /// Whether drift is corrected meanwhile.
    pub corrects_drift: bool,
    /// What in that one could not be understood.
    pub problem: Option<String>,
}

impl fmt::Display for InForce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self
            .until
            .and_then(|until| Timestamp::from_second(until.as_second()).ok())
        {
            Some(until) => write!(formatter, "until {until}")?,
            None => write!(formatter, "until it is ended")?,
        }
        let reason: String = self.reason.chars().take(MAX_REASON).collect();
        write!(formatter, " by Freeze {}: {reason}", self.freeze)?;
        match &self.problem {
            Some(problem) => write!(formatter, " (it applies at all times, since {problem})"),
            None => Ok(()),
        }
    }
}

/// Returns what freezes an object at a time, of all Freezes that there are.
pub fn in_force<'a>(
    freezes: impl IntoIterator<Item = &'a Freeze>,
    subject: &Subject<'_>,
    of_controllers: &str,
    now: Timestamp,
) -> Option<InForce> {
    let applies = |freeze: &&Freeze| covers(freeze, subject, of_controllers) && !is_excepted(freeze, subject);
    let mut covering: Vec<_> = freezes.into_iter().filter(applies).collect();
    if let [first, ..] = covering.as_slice()
        && covering.len() > MAX_COVERING
    {
        return Some(InForce {
            freeze: id(first),
            reason: first.spec.reason.clone(),
            until: None,
            corrects_drift: false,
            problem: Some(format!("more than {MAX_COVERING} Freezes apply")),
        });
    }
    covering.sort_by_key(|freeze| id(freeze));
    let frozen: Vec<_> = covering
        .iter()
        .filter_map(|freeze| Some((*freeze, phase(freeze, now)?)))
        .collect();
    // The one that lasts longest says why.
    let longest = |(_, phase): &&(&Freeze, Phase)| phase.until.unwrap_or(Timestamp::MAX);
    let (freeze, first) = frozen.iter().max_by_key(longest)?;
    Some(InForce {
        freeze: id(freeze),
        reason: freeze.spec.reason.clone(),
        until: end(&covering, first.until),
        corrects_drift: frozen
            .iter()
            .all(|(freeze, _)| freeze.spec.drift_correction != Some(DriftCorrection::Pause)),
        problem: first.problem.clone(),
    })
}

/// When no Freeze is in force any more; None if that cannot be known.
fn end(covering: &[&Freeze], first: Option<Timestamp>) -> Option<Timestamp> {
    let mut end = first?;
    for _ in 0..MAX_IN_A_ROW {
        let frozen: Vec<_> = covering.iter().filter_map(|freeze| phase(freeze, end)).collect();
        if frozen.is_empty() {
            return Some(end);
        }
        for phase in frozen {
            end = end.max(phase.until?);
        }
    }
    None
}

/// A Freeze while it is in force.
struct Phase {
    until: Option<Timestamp>,
    problem: Option<String>,
}

fn phase(freeze: &Freeze, now: Timestamp) -> Option<Phase> {
    let spec = &freeze.spec;
    let last = spec.until.as_ref().map(|until| until.0);
    let has_begun = spec.from.as_ref().is_none_or(|from| from.0 <= now);
    let is_over = last.is_some_and(|last| last <= now);
    if spec.suspend || !has_begun || is_over {
        return None;
    }
    let next = match (spec.closed.as_slice(), spec.open.as_slice()) {
        ([], []) => Ok(None),
        ([], open) => match window::gate(open, now) {
            Ok(Gate::Open) => return None,
            Ok(Gate::Opens(time)) => Ok(Some(time)),
            Err(error) => Err(error),
        },
        (closed, _) => match window::gate(closed, now) {
            Ok(Gate::Open) => window::closes(closed, now),
            Ok(Gate::Opens(_)) => return None,
            Err(error) => Err(error),
        },
    };
    let (next, problem) = match next {
        Ok(next) => (next, None),
        Err(error) => (None, Some(error.to_string())),
    };
    Some(Phase {
        until: [next, last].into_iter().flatten().min(),
        problem,
    })
}

fn namespace(freeze: &Freeze) -> &str {
    freeze.metadata.namespace.as_deref().unwrap_or_default()
}

/// Returns how messages and exceptions name a Freeze.
pub fn id(freeze: &Freeze) -> String {
    let name = freeze.metadata.name.as_deref().unwrap_or_default();
    format!("{}/{name}", namespace(freeze))
}

#[cfg(test)]
mod tests {
    use api::helm::HelmRelease;
    use api::kustomize::Kustomization;
    use serde_json::{Value, json};

    use super::*;

    const PLATFORM: &str = "windlass-system";

    fn freeze(namespace: &str, name: &str, spec: Value) -> Freeze {
        let mut object = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        object["spec"]["reason"] = json!(format!("because of {name}"));
        serde_json::from_value(object).unwrap()
    }

    fn app(namespace: &str, name: &str, more: Value) -> Kustomization {
        let mut object = json!({
            "metadata": {"name": name, "namespace": namespace, "labels": {"tier": "web"}},
            "spec": {"interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "a"}},
        });
        for (key, value) in more.as_object().unwrap() {
            object[key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn covered(freeze: &Freeze, object: &Kustomization) -> bool {
        covers(
            freeze,
            &Subject::new(FreezeKind::Kustomization, object, true),
            PLATFORM,
        )
    }

    fn at(freezes: &[Freeze], object: &Kustomization, now: &str) -> String {
        let subject = Subject::new(FreezeKind::Kustomization, object, true);
        let found = in_force(freezes, &subject, PLATFORM, now.parse().unwrap());
        found.map_or_else(|| "open".to_owned(), |found| found.to_string())
    }

    #[test]
    fn only_the_platform_freezes_the_namespaces_of_others() {
        let web = app("shop", "web", json!({}));
        for (namespace, namespaces, expected) in [
            ("shop", json!([]), true),
            ("other", json!([]), false),
            ("other", json!(["*"]), false),
            ("shop", json!(["sh*"]), true),
            ("shop", json!(["other"]), false),
            (PLATFORM, json!([]), false),
            (PLATFORM, json!(["prod-*", "sh*p"]), true),
            (PLATFORM, json!(["sho"]), false),
        ] {
            let spec = json!({"namespaces": namespaces});
            assert_eq!(
                covered(&freeze(namespace, "f", spec.clone()), &web),
                expected,
                "{namespace} {spec}"
            );
        }
    }

    #[test]
    fn apps_are_chosen_by_name_label_and_cluster() {
        let here = app("shop", "web", json!({}));
        let spec = json!({
            "interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "a"},
            "kubeConfig": {"secretRef": {"name": "prod-eu"}},
        });
        let there = app("shop", "web", json!({"spec": spec}));
        for (spec, expected) in [
            (json!({"apps": [{"name": "w*"}]}), (true, true)),
            (
                json!({"apps": [{"name": "api"}, {"kind": "HelmRelease", "name": "web"}]}),
                (false, false),
            ),
            (
                json!({"apps": [{"kind": "Kustomization", "name": "web"}]}),
                (true, true),
            ),
            (
                json!({"selector": {"matchLabels": {"tier": "web"}}}),
                (true, true),
            ),
            (
                json!({"selector": {"matchLabels": {"tier": "db"}}}),
                (false, false),
            ),
            // A selector without sense freezes.
            (
                json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
                (true, true),
            ),
            (json!({"clusters": ["prod-*"]}), (false, true)),
            (json!({"clusters": ["in-cluster"]}), (true, false)),
        ] {
            let freeze = freeze("shop", "f", spec.clone());
            assert_eq!(
                (covered(&freeze, &here), covered(&freeze, &there)),
                expected,
                "{spec}"
            );
        }
        let release: HelmRelease = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"}, "spec": {"interval": "1m"},
        }))
        .unwrap();
        let subject = Subject::new(FreezeKind::HelmRelease, &release, true);
        let of_releases = freeze(
            "shop",
            "f",
            json!({"apps": [{"kind": "HelmRelease", "name": "*"}]}),
        );
        assert!(covers(&of_releases, &subject, PLATFORM) && !covered(&of_releases, &here));
    }

    #[test]
    fn it_lasts_until_the_last_one_has_ended() {
        let web = app("shop", "web", json!({}));
        let first = freeze("shop", "a", json!({"until": "2026-12-01T00:00:00Z"}));
        let second = freeze(
            "shop",
            "b",
            json!({"from": "2026-11-30T00:00:00Z", "until": "2026-12-02T00:00:00Z"}),
        );
        let both = [first, second];
        let says = |time: &str, name: &str| format!("until {time} by Freeze shop/{name}: because of {name}");
        let (day, end) = ("2026-11-29T00:00:00Z", "2026-12-02T00:00:00Z");
        assert_eq!(at(&both, &web, day), says(end, "a"));
        assert_eq!(at(&both, &web, "2026-11-30T00:00:00Z"), says(end, "b"));
        assert_eq!(at(&both, &web, "2026-12-02T00:00:00Z"), "open");
        let for_good = [freeze("shop", "c", json!({})), both[0].clone()];
        assert_eq!(
            at(&for_good, &web, day),
            "until it is ended by Freeze shop/c: because of c"
        );
        let suspended = [freeze("shop", "c", json!({"suspend": true}))];
        assert_eq!(at(&suspended, &web, day), "open");
    }

    #[test]
    fn windows_of_the_week_open_and_close_it() {
        let web = app("shop", "web", json!({}));
        let hours = json!([{"days": ["Mon", "Tue", "Wed", "Thu"], "from": "09:00", "to": "16:00", "timeZone": "Europe/Berlin"}]);
        let open = [freeze("shop", "f", json!({"open": hours}))];
        assert_eq!(at(&open, &web, "2026-11-26T10:00:00Z"), "open");
        let says = "until 2026-11-30T08:00:00Z by Freeze shop/f: because of f";
        assert_eq!(at(&open, &web, "2026-11-26T15:00:00Z"), says);
        let closed = [freeze("shop", "f", json!({"closed": hours}))];
        let says = "until 2026-11-26T15:00:00Z by Freeze shop/f: because of f";
        assert_eq!(at(&closed, &web, "2026-11-26T10:00:00Z"), says);
        assert_eq!(at(&closed, &web, "2026-11-26T15:00:00Z"), "open");
        let wrong = json!([{"from": "09:00", "to": "16:00", "timeZone": "Mars/Base"}]);
        for key in ["open", "closed"] {
            let wrong = [freeze("shop", "f", json!({key: wrong}))];
            let says = "until it is ended by Freeze shop/f: because of f (it applies at all times, since there is no time \
                        zone 'Mars/Base')";
            assert_eq!(at(&wrong, &web, "2026-11-26T10:00:00Z"), says);
        }
    }

    #[test]
    fn exceptions_name_the_freeze_and_count_where_they_are_guarded() {
        let annotations = json!({FREEZE_EXCEPTION: "shop/a, shop/b"});
        let metadata = json!({"name": "web", "namespace": "shop", "annotations": annotations});
        let web = app("shop", "web", json!({"metadata": metadata}));
        let [a, c] = ["a", "c"].map(|name| freeze("shop", name, json!({})));
        let now = "2026-11-26T10:00:00Z";
        assert_eq!(at(std::slice::from_ref(&a), &web, now), "open");
        assert_eq!(
            at(&[a.clone(), c], &web, now),
            "until it is ended by Freeze shop/c: because of c"
        );
        let unguarded = Subject::new(FreezeKind::Kustomization, &web, false);
        assert!(in_force([&a], &unguarded, PLATFORM, now.parse().unwrap()).is_some());
    }

    #[test]
    fn too_many_to_look_at_freeze() {
        let web = app("shop", "web", json!({}));
        let all: Vec<_> = (0..=MAX_COVERING)
            .map(|number| freeze("shop", &format!("f{number}"), json!({"suspend": true})))
            .collect();
        let now = "2026-11-26T10:00:00Z";
        assert_eq!(at(&all[1..], &web, now), "open");
        assert!(at(&all, &web, now).ends_with("since more than 20 Freezes apply)"));
    }

    #[test]
    fn drift_is_corrected_unless_one_forbids_it() {
        let web = app("shop", "web", json!({}));
        let subject = Subject::new(FreezeKind::Kustomization, &web, true);
        let [goes_on, pauses] =
            ["Continue", "Pause"].map(|way| freeze("shop", way, json!({"driftCorrection": way})));
        let now = "2026-11-26T10:00:00Z".parse().unwrap();
        let corrects = |freezes: &[&Freeze]| {
            let found = in_force(freezes.iter().copied(), &subject, PLATFORM, now);
            found.is_some_and(|found| found.corrects_drift)
        };
        assert!(corrects(&[&goes_on]) && !corrects(&[&goes_on, &pauses]));
    }
}

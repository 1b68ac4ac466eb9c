//! HelmReleases and Kustomizations as far as pipelines care: what they carry, how they are, who applied them.
//!
//! They are watched without the rest of their specs and inventories, which would be most of the memory.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::marker::PhantomData;
use std::sync::Arc;

use api::delivery::AppKind;
use api::meta::{Condition, condition_types, reasons};
use controller_kit::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use promotion::observe::Health;
use promotion::values::{Field, Fields, fields, reference};
use serde::Deserialize;
use serde_json::Value;

/// Labels of what a Kustomization applied.
const OWNER_NAME: &str = "kustomize.toolkit.fluxcd.io/name";
const OWNER_NAMESPACE: &str = "kustomize.toolkit.fluxcd.io/namespace";
/// Ends of the entries in an inventory that are applications.
const APPLICATIONS: [&str; 4] = [
    "_helm.toolkit.fluxcd.io_HelmRelease",
    "_kustomize.toolkit.fluxcd.io_Kustomization",
    "_source.toolkit.fluxcd.io_OCIRepository",
    "_source.toolkit.fluxcd.io_GitRepository",
];
/// Characters of a message of an application that are kept.
const MAX_MESSAGE: usize = 300;

/// An application of one kind.
#[derive(Deserialize)]
#[serde(bound = "")]
pub(crate) struct App<K> {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "spec")]
    spec: Arc<Spec>,
    #[serde(default)]
    status: Status,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

/// What is read of the spec.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Spec {
    fields: Fields,
    suspend: bool,
    /// What a source follows.
    reference: Value,
    /// Kind, namespace and name of what a Kustomization or a chart is made of.
    pub(crate) source: Option<(String, String, String)>,
    /// Path of a Kustomization.
    pub(crate) path: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: Option<i64>,
    /// The condition Ready alone.
    #[serde(deserialize_with = "conditions")]
    conditions: Vec<Condition>,
    /// Of a HelmRelease: the newest.
    #[serde(deserialize_with = "history")]
    history: Vec<Snapshot>,
    /// Of a source.
    artifact: Option<Artifact>,
    last_applied_revision: String,
    last_attempted_revision: String,
    last_attempted_revision_digest: String,
    /// Of a Kustomization: its applications.
    #[serde(deserialize_with = "applications")]
    inventory: Arc<BTreeSet<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Snapshot {
    chart_version: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Artifact {
    revision: String,
}

/// What is known of an application.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    pub(crate) fields: Fields,
    pub(crate) health: Health,
    /// Its labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// The Kustomization that its labels name.
    pub(crate) owner: Option<ObjectKey>,
    /// Kind and place of what it is made of.
    source: Option<(String, ObjectKey)>,
    /// Revision of a source's artifact.
    artifact: String,
    /// Revisions and digests that were applied or tried.
    runs: Vec<String>,
}

impl Facts {
    /// Returns whether it is made of a source, and has not tried the source's artifact yet. What it has tried, its health is about.
    pub(crate) fn is_behind(&self, kind: &str, source: &ObjectKey, facts: &Facts) -> bool {
        let is_made_of = self
            .source
            .as_ref()
            .is_some_and(|(of, key)| of == kind && key == source);
        let there = facts.artifact.as_str();
        let digest = there.rsplit_once('@').map_or(there, |(_, digest)| digest);
        let has_run = self.runs.iter().any(|run| run == there || run == digest);
        is_made_of && !there.is_empty() && !has_run
    }

    /// Kind and place of what it is made of.
    pub(crate) fn source(&self) -> Option<&(String, ObjectKey)> {
        self.source.as_ref()
    }

    /// The revision of a source's artifact.
    pub(crate) fn artifact(&self) -> &str {
        &self.artifact
    }
}

impl<K: Resource<DynamicType = ()>> App<K> {
    pub(crate) fn facts(&self) -> Facts {
        let status = &self.status;
        let own = self.metadata.namespace.as_deref().unwrap_or_default();
        let source = self.spec.source.as_ref().map(|(kind, namespace, name)| {
            let namespace = if namespace.is_empty() { own } else { namespace };
            (kind.clone(), ObjectKey::new(namespace, name.as_str()))
        });
        let runs = [
            &status.last_applied_revision,
            &status.last_attempted_revision,
            &status.last_attempted_revision_digest,
        ];
        Facts {
            fields: self.fields(),
            health: self.health(),
            labels: self.labels().cloned().unwrap_or_default(),
            owner: self.owner(),
            source,
            artifact: self.revision().to_owned(),
            runs: runs.into_iter().filter(|run| !run.is_empty()).cloned().collect(),
        }
    }

    fn revision(&self) -> &str {
        let artifact = self.status.artifact.as_ref();
        artifact.map_or("", |artifact| artifact.revision.as_str())
    }

    /// Its labels.
    pub(crate) fn labels(&self) -> Option<&BTreeMap<String, String>> {
        self.metadata.labels.as_ref()
    }

    /// Changes when something that matters does.
    pub(crate) fn fingerprint(&self) -> impl PartialEq + Send + use<K> {
        let ready = self.ready().map(|ready| {
            (
                ready.status.clone(),
                ready.reason.clone(),
                ready.observed_generation,
            )
        });
        let history = self.status.history.first().cloned();
        let seen = self.status.observed_generation == self.metadata.generation;
        let runs = (
            self.revision().to_owned(),
            self.status.last_applied_revision.clone(),
            self.status.last_attempted_revision_digest.clone(),
        );
        let mut labels = DefaultHasher::new();
        self.metadata.labels.hash(&mut labels);
        (
            self.metadata.generation,
            seen,
            ready,
            history,
            labels.finish(),
            runs,
        )
    }

    /// What its spec has; a range of chart versions is the version that is installed.
    fn fields(&self) -> Fields {
        let kind = match &*K::kind(&()) {
            "OCIRepository" => AppKind::OCIRepository,
            "GitRepository" => AppKind::GitRepository,
            _ => AppKind::HelmRelease,
        };
        if matches!(kind, AppKind::OCIRepository | AppKind::GitRepository) {
            return reference(kind, &self.spec.reference, self.revision());
        }
        let mut fields = self.spec.fields.clone();
        if let Some(version) = fields.get_mut(&Field::Chart)
            && !is_exact(version)
        {
            match self
                .status
                .history
                .first()
                .filter(|one| !one.chart_version.is_empty())
            {
                Some(installed) => version.clone_from(&installed.chart_version),
                None => drop(fields.remove(&Field::Chart)),
            }
        }
        fields
    }

    fn ready(&self) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.type_ == condition_types::READY)
    }

    fn health(&self) -> Health {
        if self.spec.suspend {
            return Health::Progressing("it is suspended".to_owned());
        }
        let is_observed = self.status.observed_generation == self.metadata.generation;
        // A spec that fails is not observed by the status: its condition says that it was tried.
        let has_failed = |ready: &Condition| {
            ready.status == "False" && ready.observed_generation == self.metadata.generation
        };
        if !is_observed && !self.ready().is_some_and(has_failed) {
            return Health::Progressing("its newest spec has not been reconciled yet".to_owned());
        }
        let Some(ready) = self.ready() else {
            return Health::Progressing("it has not been reconciled yet".to_owned());
        };
        let plain = ready
            .message
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c });
        let message: String = plain.take(MAX_MESSAGE).collect();
        let waits = [
            reasons::DEPENDENCY_NOT_READY,
            reasons::FROZEN,
            reasons::PROGRESSING,
        ];
        match ready.status.as_str() {
            "True" => Health::Ready,
            "False" if !waits.contains(&ready.reason.as_str()) => Health::Failed(message),
            _ => Health::Progressing(message),
        }
    }

    fn owner(&self) -> Option<ObjectKey> {
        let labels = self.metadata.labels.as_ref()?;
        Some(ObjectKey::new(
            labels.get(OWNER_NAMESPACE)?.as_str(),
            labels.get(OWNER_NAME)?.as_str(),
        ))
    }
}

impl<K> App<K> {
    /// What its spec says about where it is built from.
    pub(crate) fn spec(&self) -> Arc<Spec> {
        self.spec.clone()
    }

    /// The revision that it applied last.
    pub(crate) fn applied_revision(&self) -> &str {
        &self.status.last_applied_revision
    }

    /// Returns whether its inventory has an application, by `namespace_name_group_kind`.
    pub(crate) fn has_applied(&self, id: &str) -> bool {
        self.status.inventory.contains(id)
    }
}

/// Returns whether a version of a chart is one version, and no range.
fn is_exact(version: &str) -> bool {
    let numbers = version.strip_prefix('v').unwrap_or(version);
    let core = numbers.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<_> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number) && !numbers.contains([' ', ',', '|'])
}

fn spec<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Arc<Spec>, D::Error> {
    let spec = Value::deserialize(deserializer)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let source = match spec["chartRef"].is_object() {
        true => &spec["chartRef"],
        false => &spec["sourceRef"],
    };
    Ok(Arc::new(Spec {
        fields: fields(&spec),
        suspend: spec["suspend"].as_bool().unwrap_or_default(),
        source: source.is_object().then(|| {
            (
                text(&source["kind"]),
                text(&source["namespace"]),
                text(&source["name"]),
            )
        }),
        path: text(&spec["path"]),
        reference: spec["ref"].clone(),
    }))
}

/// What says which object it is, and its labels.
fn metadata<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let ObjectMeta {
        name,
        namespace,
        uid,
        labels,
        generation,
        resource_version,
        deletion_timestamp,
        ..
    } = ObjectMeta::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name,
        namespace,
        uid,
        labels,
        generation,
        resource_version,
        deletion_timestamp,
        ..ObjectMeta::default()
    })
}

fn conditions<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let mut conditions = Option::<Vec<Condition>>::deserialize(deserializer)?.unwrap_or_default();
    conditions.retain(|condition| condition.type_ == condition_types::READY);
    conditions.shrink_to_fit();
    Ok(conditions)
}

fn history<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Snapshot>, D::Error> {
    let mut history = Option::<Vec<Snapshot>>::deserialize(deserializer)?.unwrap_or_default();
    history.truncate(1);
    history.shrink_to_fit();
    Ok(history)
}

fn applications<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<BTreeSet<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Inventory {
        entries: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
    }
    let inventory = Option::<Inventory>::deserialize(deserializer)?.unwrap_or_default();
    let ids = inventory.entries.into_iter().map(|entry| entry.id);
    Ok(Arc::new(
        ids.filter(|id| APPLICATIONS.iter().any(|end| id.ends_with(end)))
            .collect(),
    ))
}

impl<K> Clone for App<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            spec: self.spec.clone(),
            status: self.status.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> std::fmt::Debug for App<K> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("App").field(&self.metadata.name).finish()
    }
}

impl<K: Resource<DynamicType = ()>> Resource for App<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use api::helm::HelmRelease;
    use serde_json::json;

    use super::*;
    use api::source::OCIRepository;

    fn app(spec: &Value, status: &Value) -> App<HelmRelease> {
        let labels = json!({OWNER_NAME: "apps", OWNER_NAMESPACE: "team"});
        let metadata = json!({"name": "shop", "namespace": "eu", "generation": 2, "labels": labels});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    fn ready(status: &str, reason: &str) -> Value {
        json!({"observedGeneration": 2, "conditions": [{"type": "Ready", "status": status, "reason": reason,
            "message": "words\nof it", "lastTransitionTime": "2026-11-26T00:00:00Z"}]})
    }

    #[test]
    fn health_is_that_of_the_newest_spec() {
        let health = |status: &Value| app(&json!({}), status).facts().health;
        assert_eq!(health(&ready("True", "UpgradeSucceeded")), Health::Ready);
        assert_eq!(
            health(&ready("False", "UpgradeFailed")),
            Health::Failed("words of it".to_owned())
        );
        let waits = Health::Progressing("words of it".to_owned());
        assert_eq!(health(&ready("False", "DependencyNotReady")), waits);
        assert_eq!(health(&ready("Unknown", "Progressing")), waits);
        let mut old = ready("True", "UpgradeSucceeded");
        old["observedGeneration"] = json!(1);
        assert!(matches!(health(&old), Health::Progressing(_)));
        // Neither apply-controller nor Flux's writes the generation of what fails into the status.
        let mut failed = ready("False", "BuildFailed");
        failed["observedGeneration"] = json!(1);
        assert!(
            matches!(health(&failed), Health::Progressing(_)),
            "it failed before"
        );
        failed["conditions"][0]["observedGeneration"] = json!(2);
        assert!(matches!(health(&failed), Health::Failed(_)));
        assert!(matches!(health(&json!({})), Health::Progressing(_)));
        let suspended = app(&json!({"suspend": true}), &ready("True", "UpgradeSucceeded"));
        assert!(matches!(suspended.facts().health, Health::Progressing(_)));
    }

    #[test]
    fn what_is_made_of_a_source_is_behind_until_it_has_tried_its_artifact() {
        let source = json!({"metadata": {"name": "shop", "namespace": "eu", "generation": 1},
            "spec": {"ref": {"semver": "1.x"}}, "status": {"artifact": {"revision": "1.1.0@sha256:bb"}}});
        let source: App<OCIRepository> = serde_json::from_value(source).unwrap();
        let (source, key) = (source.facts(), ObjectKey::new("eu", "shop"));
        assert_eq!(source.fields.values().collect::<Vec<_>>(), ["1.1.0"]);
        let spec = json!({"chartRef": {"kind": "OCIRepository", "name": "shop"}});
        let is_behind = |status: Value| {
            app(&spec, &status)
                .facts()
                .is_behind("OCIRepository", &key, &source)
        };
        assert!(is_behind(
            json!({"lastAttemptedRevision": "1.0.0+aa", "lastAttemptedRevisionDigest": "sha256:aa"})
        ));
        assert!(!is_behind(
            json!({"lastAttemptedRevision": "1.1.0+bb", "lastAttemptedRevisionDigest": "sha256:bb"})
        ));
        assert!(!is_behind(json!({"lastAppliedRevision": "1.1.0@sha256:bb"})));
        let other = app(
            &json!({"chartRef": {"kind": "OCIRepository", "name": "other"}}),
            &json!({}),
        )
        .facts();
        assert!(
            !other.is_behind("OCIRepository", &key, &source),
            "it is made of another one"
        );
    }

    #[test]
    fn a_range_is_the_version_that_is_installed() {
        let chart = |version: &str| json!({"chart": {"spec": {"version": version}}});
        let mut status = ready("True", "UpgradeSucceeded");
        status["history"] = json!([{"chartVersion": "1.4.2"}, {"chartVersion": "1.4.1"}]);
        let of = |spec: &Value, status: &Value| app(spec, status).facts().fields.get(&Field::Chart).cloned();
        assert_eq!(of(&chart("1.x"), &status).as_deref(), Some("1.4.2"));
        assert_eq!(
            of(&chart("v1.4.1-rc.1+x"), &status).as_deref(),
            Some("v1.4.1-rc.1+x")
        );
        assert_eq!(of(&chart(">=1.0.0"), &json!({})), None);
        assert_eq!(of(&chart("1.0.0 - 2.0.0"), &json!({})), None);
    }

    #[test]
    fn only_applications_of_an_inventory_are_kept() {
        let entries = json!([{"id": "eu_shop_helm.toolkit.fluxcd.io_HelmRelease", "v": "v2"}, {"id": "eu_x__ConfigMap", "v": "v1"}]);
        let app = app(
            &json!({"path": "./apps", "sourceRef": {"kind": "GitRepository", "name": "fleet"}}),
            &json!({"inventory": {"entries": entries}}),
        );
        assert!(app.has_applied("eu_shop_helm.toolkit.fluxcd.io_HelmRelease"));
        assert_eq!(app.status.inventory.len(), 1);
        assert_eq!(app.facts().owner, Some(ObjectKey::new("team", "apps")));
        let source = ("GitRepository".to_owned(), String::new(), "fleet".to_owned());
        assert_eq!(
            (app.spec().source.clone(), app.spec().path.as_str()),
            (Some(source), "./apps")
        );
    }
}

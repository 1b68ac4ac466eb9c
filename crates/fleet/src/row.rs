//! What lists, filters and streams show of an object. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use cel_expression::Scope;
use delivery_graph::kind::{self, Kind};
use delivery_graph::{object, one_line, tree};
use go_semver::Version;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Characters of a text; the object has the rest.
const MAX_TEXT: usize = 300;
/// Labels that are kept.
const MAX_LABELS: usize = 32;

/// Where an object is. Rows are in this order: kinds as the data moves, then by namespace, name and cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Index in [`kind::ALL`].
    kind: u8,
    /// Namespace of the object.
    pub namespace: Arc<str>,
    /// Name of the object.
    pub name: Arc<str>,
    /// The cluster that it is in.
    pub cluster: Arc<str>,
}

impl Key {
    /// The key of an object.
    pub fn new(cluster: &Arc<str>, kind: &'static Kind, namespace: &str, name: &str) -> Self {
        let index = kind::ALL.iter().position(|one| one == kind).unwrap_or_default();
        Self {
            kind: u8::try_from(index).unwrap_or(u8::MAX),
            namespace: namespace.into(),
            name: name.into(),
            cluster: cluster.clone(),
        }
    }

    /// The kind of the object.
    pub fn kind(&self) -> &'static Kind {
        let index = usize::from(self.kind);
        &kind::ALL[index.min(kind::ALL.len() - 1)]
    }

    /// Reads what [`to_string`](ToString::to_string) wrote: `Kind/namespace/name/cluster`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let cluster = parts.next()?.into();
        Some(Self::new(&cluster, kind::exact(kind)?, namespace, name))
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            namespace,
            name,
            cluster,
            ..
        } = self;
        write!(f, "{}/{namespace}/{name}/{cluster}", self.kind().kind)
    }
}

/// How an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum Status {
    /// It is not as it should be, and its controller says why.
    Failed,
    /// Its controller is at work on it, or waits for something.
    InProgress,
    /// Its controller leaves it alone.
    Suspended,
    /// It is as it should be.
    Ready,
    /// Nothing is known.
    Unknown,
}

impl Status {
    /// As in answers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::InProgress => "InProgress",
            Self::Suspended => "Suspended",
            Self::Ready => "Ready",
            Self::Unknown => "Unknown",
        }
    }
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The cluster that it is in.
    #[schema(value_type = String)]
    pub cluster: Arc<str>,
    /// API group of the kind.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Namespace.
    #[schema(value_type = String)]
    pub namespace: Box<str>,
    /// Name.
    #[schema(value_type = String)]
    pub name: Box<str>,
    /// How it is.
    pub status: Status,
    /// A word for what is wrong.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub reason: Box<str>,
    /// What its controller says of it, in one line of at most 300 characters.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub message: Box<str>,
    /// Revision that it has, or has applied.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub revision: Box<str>,
    /// The source, chart or image that it is made of: `GitRepository/namespace/name`.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub source: Box<str>,
    /// Where a source has its content from.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub repository: Box<str>,
    /// The chart that is delivered.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub chart: Box<str>,
    /// The version of the chart, or that the revision is.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub version: Box<str>,
    /// Version of what the chart deploys.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub app_version: Box<str>,
    /// What applied it, as its labels say: `Kustomization/namespace/name`.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(value_type = String)]
    pub owner: Box<str>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// Since when it is as it is: the time of the last change of the condition Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// Differs when its history has another outcome: nothing else of a row need differ when other values are delivered.
    #[serde(skip)]
    #[schema(ignore)]
    outcomes: u64,
    #[serde(skip)]
    #[schema(ignore)]
    scope: Kept,
}

/// The row for filters, made when the first one asks: as a value of CEL it takes longer to make than to look at.
#[derive(Default)]
struct Kept(OnceLock<Scope>);

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true // it follows from the rest of the row
    }
}

impl Eq for Kept {}

impl Clone for Kept {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl Row {
    /// `Kind/namespace/name`, as `source` and `owner` of others name it.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.kind, self.namespace, self.name)
    }

    /// Columns of a table.
    pub const COLUMNS: &[&str] = &[
        "cluster",
        "kind",
        "namespace",
        "name",
        "status",
        "reason",
        "revision",
        "source",
        "repository",
        "chart",
        "version",
        "appVersion",
        "owner",
        "since",
        "message",
    ];

    /// The row of an object of a kind of Flux.
    pub fn new(cluster: &Arc<str>, kind: &'static Kind, object: &Value) -> Self {
        let node = tree::node(None, object::id(object), "", Some(object));
        let ready = object::ready(object);
        let status = match node.status {
            "Current" => Status::Ready,
            "Failed" => Status::Failed,
            "InProgress" | "Terminating" => Status::InProgress,
            "Suspended" => Status::Suspended,
            _ => Status::Unknown,
        };
        let (chart, revision) = (object::chart(object), object::revision(object));
        let version = match chart.version {
            "" if kind.kind == "ImagePolicy" => revision,
            // v1.2.3@sha1:…
            "" => revision.split_once('@').map_or("", |(name, _)| name),
            version => version,
        };
        let version = if Version::parse(version).is_ok() {
            version
        } else {
            ""
        };
        let owner = object::owner(object).map(|id| id.to_string());
        let made_of = object::links(object).into_iter();
        let mut made_of = made_of.filter(|link| matches!(link.word, "source" | "chart" | "image"));
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten().take(MAX_LABELS);
        let since = object::list(object, "/status/conditions").iter();
        let mut since = since.filter(|condition| object::text(condition, "/type") == "Ready");
        Self {
            cluster: cluster.clone(),
            group: kind.group,
            kind: kind.kind,
            namespace: object::namespace(object).into(),
            name: object::name(object).into(),
            status,
            reason: shortened(ready.reason),
            message: shortened(ready.message),
            revision: shortened(revision),
            repository: shortened(&object::repository(object)),
            chart: shortened(chart.name),
            version: shortened(version),
            app_version: shortened(chart.app_version),
            owner: shortened(&owner.unwrap_or_default()),
            source: shortened(&made_of.next().map(|link| link.id.to_string()).unwrap_or_default()),
            labels: labels
                .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
                .collect(),
            since: since
                .next()
                .and_then(|ready| object::text(ready, "/lastTransitionTime").parse().ok()),
            outcomes: outcomes(object),
            scope: Kept::default(),
        }
    }
}

impl Row {
    /// The row for a filter: all fields are there, empty ones too, so that an expression may ask for any.
    pub fn variables(&self) -> Scope {
        self.scope.0.get_or_init(|| self.scope()).clone()
    }

    fn scope(&self) -> Scope {
        let mut row = json!({
            "reason": "", "message": "", "revision": "", "source": "", "labels": {}, "since": "", "repository": "",
            "chart": "", "version": "", "appVersion": "", "owner": "",
        });
        if let (Value::Object(all), Ok(Value::Object(own))) = (&mut row, serde_json::to_value(self)) {
            all.extend(own);
        }
        Scope::of_object(&json!({"row": row}))
    }
}

/// A number for the outcomes in the history of an object, but not for how often and when they came.
fn outcomes(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in object::list(object, "/status/history") {
        for field in [
            "/digest",
            "/lastReconciledStatus",
            "/metadata/revision",
            "/version",
            "/status",
        ] {
            entry.pointer(field).map(Value::to_string).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn shortened(text: &str) -> Box<str> {
    let line = one_line(text);
    match line.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &line[..end]).into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_how_an_object_is() {
        let object = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "app", "namespace": "shop", "generation": 2, "labels": {"team": "web"}},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "repo"}},
            "status": {"observedGeneration": 2, "lastAppliedRevision": "main@sha1:1", "conditions": [{
                "type": "Ready", "status": "False", "reason": "HealthCheckFailed", "message": format!("a\n{}", "b".repeat(400)),
                "lastTransitionTime": "2026-11-25T10:00:00Z",
            }]},
        });
        let kind = kind::exact("Kustomization").unwrap();
        let row = Row::new(&"here".into(), kind, &object);
        assert_eq!((row.status, &*row.reason), (Status::Failed, "HealthCheckFailed"));
        assert_eq!(row.message.chars().count(), 301);
        assert!(row.message.starts_with("a bb"));
        assert_eq!(&*row.source, "GitRepository/shop/repo");
        assert_eq!(&*row.revision, "main@sha1:1");
        assert_eq!(row.labels.get("team").map(|label| &**label), Some("web"));
        assert_eq!(row.since.unwrap().to_string(), "2026-11-25T10:00:00Z");
        assert_eq!((&*row.version, &*row.owner), ("", ""));
        let mut release = json!({
            "metadata": {"name": "web", "namespace": "shop", "labels": {
                "kustomize.toolkit.fluxcd.io/name": "app", "kustomize.toolkit.fluxcd.io/namespace": "shop",
            }},
            "kind": "HelmRelease", "status": {"history": [{"chartName": "podinfo", "chartVersion": "6.5.0"}]},
        });
        let row = Row::new(&"here".into(), kind::exact("HelmRelease").unwrap(), &release);
        assert_eq!((&*row.chart, &*row.version), ("podinfo", "6.5.0"));
        assert_eq!(&*row.owner, "Kustomization/shop/app");
        release["kind"] = json!("Kustomization");
        release["status"] = json!({"lastAppliedRevision": "v1.4@sha1:1"});
        assert_eq!(&*Row::new(&"here".into(), kind, &release).version, "v1.4");
        let nothing = Row::new(
            &"here".into(),
            kind,
            &json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}),
        );
        assert_eq!(
            nothing.status,
            Status::InProgress,
            "no controller has looked at it"
        );
    }

    #[test]
    fn a_row_differs_when_something_else_was_delivered() {
        let row = |digest: &str, last: &str| {
            let kind = kind::exact("Kustomization").unwrap();
            let entry = json!({"digest": digest, "lastReconciledStatus": "ReconciliationSucceeded", "lastReconciled": last});
            Row::new(
                &"here".into(),
                kind,
                &json!({"kind": "Kustomization", "status": {"history": [entry]}}),
            )
        };
        assert_eq!(row("a", "1"), row("a", "2"));
        assert_ne!(row("a", "1"), row("b", "1"));
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let key = Key::new(&"a/b".into(), kind::exact("HelmRelease").unwrap(), "shop", "web");
        assert_eq!(key.to_string(), "HelmRelease/shop/web/a/b");
        assert_eq!(Key::parse("HelmRelease/shop/web/a/b"), Some(key));
        for text in ["", "Pod/a/b/c", "HelmRelease/a/b", "HelmRelease"] {
            assert_eq!(Key::parse(text), None, "{text}");
        }
    }
}

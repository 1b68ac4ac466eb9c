//! Plan of an installation: compares every object of the release with the one in the cluster by a dry-run
//! apply.

use std::collections::HashSet;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use manifest::{Object, ObjectId};
use serde_json::Value;

use super::helm::{FIELD_MANAGER, Platform};
use super::{RELEASE, objects};
use crate::cluster::Failure;
use crate::cluster::output::{self, Cell, Colours, Tone};

const AT_ONCE: usize = 8;
/// Helm's annotations of the release that an object is of: its name and namespace.
pub(crate) const OWNER: [&str; 2] = ["meta.helm.sh/release-name", "meta.helm.sh/release-namespace"];

/// Change to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Created,
    /// It is there and no one's, or someone else's.
    TakenOver,
    Changed,
    Unchanged,
    Deleted,
}

impl Change {
    fn word(self) -> (&'static str, Tone) {
        match self {
            Self::Created => ("create", Tone::Good),
            Self::TakenOver => ("take over", Tone::Open),
            Self::Changed => ("change", Tone::Open),
            Self::Unchanged => ("unchanged", Tone::Plain),
            Self::Deleted => ("delete", Tone::Bad),
        }
    }
}

/// Plan of an installation.
pub(crate) struct Plan {
    pub(crate) changes: Vec<(ObjectId, Change)>,
}

impl Plan {
    /// Compares what would be released with the cluster, and with what the revision before had.
    pub(crate) async fn make(
        platform: &Platform,
        manifest: &str,
        before: Option<&str>,
    ) -> Result<Self, Failure> {
        let wanted = objects::of_manifest(manifest)?;
        let kept: HashSet<ObjectId> = wanted.iter().map(Object::id).collect();
        let compared = stream::iter(wanted.into_iter().map(|object| compare(platform, object)));
        let mut changes: Vec<_> = compared.buffered(AT_ONCE).try_collect().await?;
        for object in objects::of_manifest(before.unwrap_or_default())? {
            let id = object.id();
            let is_kept = object.annotation("helm.sh/resource-policy") == Some("keep");
            if !kept.contains(&id) && !is_kept {
                changes.push((id, Change::Deleted));
            }
        }
        Ok(Self { changes })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes
            .iter()
            .all(|(_, change)| *change == Change::Unchanged)
    }

    pub(crate) fn with(&self, wanted: Change) -> impl Iterator<Item = &ObjectId> {
        self.changes
            .iter()
            .filter(move |(_, change)| *change == wanted)
            .map(|(id, _)| id)
    }

    /// As a table.
    pub(crate) fn shown(&self, colours: Colours) -> String {
        let rows: Vec<Vec<Cell>> = self
            .changes
            .iter()
            .map(|(id, change)| {
                let (word, tone) = change.word();
                vec![Cell::toned(word, tone), id.to_string().into()]
            })
            .collect();
        output::table(&["CHANGE", "OBJECT"], &rows, colours)
    }
}

async fn compare(platform: &Platform, mut object: Object) -> Result<(ObjectId, Change), Failure> {
    for (key, value) in OWNER.into_iter().zip([RELEASE, &platform.namespace]) {
        object.set_annotation(key, value);
    }
    let mapper = platform.engine.mapper();
    let located = objects::locate(&platform.client, mapper, object, &platform.namespace).await?;
    let id = located.id();
    let Some(live) = located.live().await? else {
        return Ok((id, Change::Created));
    };
    if !is_ours(&live.metadata, &platform.namespace) {
        return Ok((id, Change::TakenOver));
    }
    let applied = located.apply(FIELD_MANAGER, true).await?;
    let change = match content(live) == content(applied) {
        true => Change::Unchanged,
        false => Change::Changed,
    };
    Ok((id, change))
}

/// Returns whether a live object says that it is of our release.
pub(crate) fn is_ours(live: &ObjectMeta, namespace: &str) -> bool {
    let annotations = live.annotations.as_ref();
    let says = |key: &str| annotations.and_then(|all| all.get(key)).map(String::as_str);
    says(OWNER[0]) == Some(RELEASE) && says(OWNER[1]) == Some(namespace)
}

/// Returns whether a live object says that it is of any release.
pub(crate) fn is_released(live: &ObjectMeta) -> bool {
    let annotations = live.annotations.iter().flatten();
    annotations
        .into_iter()
        .any(|(key, _)| OWNER.contains(&key.as_str()))
}

/// Reduces an object to the parts that a dry run does not change by itself.
pub(crate) fn content(mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    object.metadata.resource_version = None;
    object.metadata.generation = None;
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_what_becomes_of_each_object() {
        let id = |name: &str| ObjectId {
            group: String::new(),
            kind: "Service".to_owned(),
            namespace: "n".to_owned(),
            name: name.to_owned(),
        };
        let plan = Plan {
            changes: vec![(id("a"), Change::Created), (id("b"), Change::Unchanged)],
        };
        assert!(!plan.is_empty());
        assert_eq!(
            plan.shown(Colours::none()),
            "CHANGE     OBJECT\ncreate     Service/n/a\nunchanged  Service/n/b\n"
        );
        assert_eq!(plan.with(Change::Created).count(), 1);
    }
}

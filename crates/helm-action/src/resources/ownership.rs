//! Ownership of objects: Helm's label and annotations, and the refusal of objects that belong to someone
//! else.
//!
//! Words are Helm's (`existingResourceConflict`, `requireAdoption`); unlike Helm, all objects that stand in the way are told
//! at once.

use std::collections::HashMap;

use futures::{FutureExt, StreamExt as _};
use manifest::{Object, ObjectId};
use serde_json::Value;

use super::Resource;
use crate::{Cluster, Error, ErrorKind};

const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "Helm");
const NAME: &str = "meta.helm.sh/release-name";
const NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Release that is to own an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
}

impl Release<'_> {
    /// Makes an object the release's.
    pub(crate) fn mark(self, object: &mut Object) {
        object.set_label(MANAGED_BY.0, MANAGED_BY.1);
        object.set_annotation(NAME, self.name);
        object.set_annotation(NAMESPACE, self.namespace);
    }

    /// Returns whether a live object says that it is another release's.
    pub(crate) fn is_of_another(self, live: &Value) -> bool {
        let says = |key, own: &str| entry(live, "annotations", key).is_some_and(|value| value != own);
        says(NAME, self.name) || says(NAMESPACE, self.namespace)
    }

    /// Says why a live object is not the release's; None if it is.
    pub(crate) fn problem(self, live: &Value) -> Option<String> {
        let problems: Vec<String> = [
            ("label", "labels", MANAGED_BY.0, MANAGED_BY.1),
            ("annotation", "annotations", NAME, self.name),
            ("annotation", "annotations", NAMESPACE, self.namespace),
        ]
        .into_iter()
        .filter_map(|(what, field, key, wanted)| {
            let problem = match entry(live, field, key) {
                None => format!("missing key {key:?}: must be set to {wanted:?}"),
                Some(value) if value == wanted => return None,
                Some(value) => format!("key {key:?} must equal {wanted:?}: current value is {value:?}"),
            };
            Some(format!("{what} validation error: {problem}"))
        })
        .collect();
        (!problems.is_empty()).then(|| format!("invalid ownership metadata; {}", problems.join("; ")))
    }
}

/// Reads an entry of labels or annotations of a live object.
pub(crate) fn entry<'a>(live: &'a Value, field: &str, key: &str) -> Option<&'a str> {
    live.get("metadata")?.get(field)?.get(key)?.as_str()
}

/// Reads the metadata of those of the objects that are there.
pub(crate) async fn existing_of(
    cluster: &Cluster,
    resources: &[&Resource],
) -> Result<HashMap<ObjectId, Value>, Error> {
    let named = resources.iter().filter(|resource| !resource.is_named_by_server());
    let reads = named.map(|resource| async move {
        let found = cluster.engine.read_metadata_one(&resource.at).await;
        found
            .map(|found| found.map(|live| (resource.id(), live)))
            .map_err(|failure| {
                let text = format!("could not get information about the resource {resource}: {failure}");
                Error::new(ErrorKind::Cluster, text)
            })
    });
    let width = cluster.engine.settings().concurrency.max(1);
    // Boxed, so that a caller of any lifetime may send them to another thread.
    let reads: Vec<_> = reads.map(FutureExt::boxed).collect();
    let mut reads = futures::stream::iter(reads).buffered(width);
    let mut existing = HashMap::new();
    while let Some(read) = reads.next().await {
        existing.extend(read?);
    }
    Ok(existing)
}

/// Refuses if any of the objects is there and not the release's; returns those that are there.
pub(crate) async fn check_all(
    cluster: &Cluster,
    resources: &[&Resource],
    release: Release<'_>,
) -> Result<HashMap<ObjectId, Value>, Error> {
    let existing = existing_of(cluster, resources).await?;
    let problems = resources.iter().filter_map(|resource| {
        let problem = release.problem(existing.get(&resource.id())?)?;
        Some(format!(
            "{resource} exists and cannot be imported into the current release: {problem}"
        ))
    });
    let problems: Vec<String> = problems.collect();
    if problems.is_empty() {
        Ok(existing)
    } else {
        Err(Error::new(ErrorKind::Ownership, join_problems(&problems)))
    }
}

/// So many are told; the rest are counted.
const TOLD: usize = 5;

fn join_problems(problems: &[String]) -> String {
    let mut text = problems[..problems.len().min(TOLD)].join(" && ");
    if problems.len() > TOLD {
        text += &format!(" && and {} more", problems.len() - TOLD);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OURS: Release<'static> = Release {
        name: "web",
        namespace: "apps",
    };

    #[test]
    fn problems_are_told_in_helms_words() {
        let check = |live: Value, expected: Option<&str>| {
            assert_eq!(OURS.problem(&live).as_deref(), expected);
        };
        let ours = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "apps"}}});
        check(ours.clone(), None);
        assert!(!OURS.is_of_another(&ours));
        check(
            json!({"metadata": {}}),
            Some(
                "invalid ownership metadata; label validation error: missing key \"app.kubernetes.io/managed-by\": must be set to \"Helm\"; \
                 annotation validation error: missing key \"meta.helm.sh/release-name\": must be set to \"web\"; \
                 annotation validation error: missing key \"meta.helm.sh/release-namespace\": must be set to \"apps\"",
            ),
        );
        assert!(!OURS.is_of_another(&json!({"metadata": {}})));
        let mut other = ours;
        other["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("db");
        check(
            other.clone(),
            Some(
                "invalid ownership metadata; annotation validation error: key \"meta.helm.sh/release-name\" must equal \"web\": \
                 current value is \"db\"",
            ),
        );
        assert!(OURS.is_of_another(&other));
    }

    #[test]
    fn an_object_is_marked() {
        let mut object = Object::new(serde_json::Map::new(), None);
        OURS.mark(&mut object);
        assert_eq!(OURS.problem(&object.into_value()), None);
    }
}

//! The kinds of a server, reduced from its discovery document. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kube::core::ApiResource;
use manifest::GroupVersionKind;
use serde::Deserialize;

use super::resource::Resource;

/// Kinds by group, kind and version.
#[derive(Default)]
pub(super) struct Catalog {
    /// By group and kind; versions of a kind in the server's order of preference.
    kinds: HashMap<String, HashMap<String, Vec<Arc<Resource>>>>,
    /// Groups whose own server did not answer when the document was made.
    stale: HashSet<String>,
}

/// `apidiscovery.k8s.io/v2 APIGroupDiscoveryList`, as far as it is needed.
#[derive(Deserialize)]
pub(super) struct Document {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: GroupMetadata,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct GroupMetadata {
    /// Absent for the core group.
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    freshness: String,
    #[serde(default)]
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    kind: String,
}

impl Catalog {
    /// Adds all kinds of a document.
    pub(super) fn add(&mut self, document: Document) {
        for group in document.items {
            for version in group.versions {
                if version.freshness == "Stale" {
                    self.stale.insert(group.metadata.name.clone());
                }
                let resources = version.resources.into_iter();
                resources
                    .filter_map(|r| resource(&group.metadata.name, &version.version, r))
                    .for_each(|r| self.insert(r));
            }
        }
    }

    /// Adds a kind in one version, or replaces it.
    pub(super) fn insert(&mut self, resource: Resource) {
        let group = self.kinds.entry(resource.api.group.clone()).or_default();
        let versions = group.entry(resource.api.kind.clone()).or_default();
        match versions
            .iter_mut()
            .find(|known| known.api.version == resource.api.version)
        {
            Some(known) => *known = Arc::new(resource),
            None => versions.push(Arc::new(resource)),
        }
    }

    /// Finds a kind in a version.
    pub(super) fn get(&self, gvk: &GroupVersionKind) -> Option<Arc<Resource>> {
        self.versions(&gvk.group, &gvk.kind)
            .iter()
            .find(|r| r.api.version == gvk.version)
            .cloned()
    }

    /// Finds a kind in the version that the server prefers.
    pub(super) fn any_version(&self, group: &str, kind: &str) -> Option<Arc<Resource>> {
        self.versions(group, kind).first().cloned()
    }

    /// Returns the kinds whose objects can be listed, in the versions that the server prefers, in a fixed order.
    pub(super) fn listable(&self) -> Vec<Arc<Resource>> {
        let preferred = self.kinds.values().flat_map(HashMap::values);
        let preferred = preferred.filter_map(|versions| versions.first());
        let mut all: Vec<_> = preferred.filter(|kind| kind.watchable).cloned().collect();
        all.sort_by(|a, b| (&a.api.group, &a.api.plural).cmp(&(&b.api.group, &b.api.plural)));
        all
    }

    /// Lists API versions, and kinds in them, in a fixed order.
    pub(super) fn api_versions(&self) -> Vec<String> {
        let all = self.kinds.values().flat_map(HashMap::values).flatten();
        let mut found: Vec<String> = all
            .flat_map(|resource| {
                let version = resource.api.api_version.clone();
                [format!("{version}/{}", resource.api.kind), version]
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// Returns whether the group's server did not answer.
    pub(super) fn is_stale(&self, group: &str) -> bool {
        self.stale.contains(group)
    }

    /// Returns the number of kinds.
    pub(super) fn len(&self) -> usize {
        self.kinds.values().map(HashMap::len).sum()
    }

    fn versions(&self, group: &str, kind: &str) -> &[Arc<Resource>] {
        self.kinds
            .get(group)
            .and_then(|kinds| kinds.get(kind))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}

fn resource(group: &str, version: &str, listed: Listed) -> Option<Resource> {
    let gvk = GroupVersionKind {
        group: group.into(),
        version: version.into(),
        kind: listed.response_kind?.kind,
    };
    let can = |verb: &str| listed.verbs.iter().any(|v| v == verb);
    Some(Resource {
        namespaced: listed.scope == "Namespaced",
        watchable: can("list") && can("watch"),
        api: ApiResource {
            api_version: gvk.api_version(),
            group: gvk.group,
            version: gvk.version,
            kind: gvk.kind,
            plural: listed.resource,
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        let resource = |plural: &str, kind: &str, scope: &str| {
            json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": scope,
                "verbs": ["get", "list", "watch", "patch"], "subresources": [{"subresource": "status"}]})
        };
        let document = json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "apps"}, "versions": [
                {"version": "v1", "freshness": "Current", "resources": [resource("deployments", "Deployment", "Namespaced")]},
                {"version": "v1beta1", "freshness": "Current", "resources": [resource("deployments", "Deployment", "Namespaced")]}]},
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
            {"metadata": {}, "versions": [{"version": "v1", "resources": [resource("namespaces", "Namespace", "Cluster"),
                {"resource": "bindings", "responseKind": {"kind": "Binding"}, "scope": "Namespaced", "verbs": ["create"]}]}]}]});
        let mut catalog = Catalog::default();
        catalog.add(serde_json::from_value(document).unwrap());
        catalog
    }

    #[test]
    fn kinds_are_found_with_their_scope() {
        let catalog = catalog();
        let deployment = catalog
            .get(&GroupVersionKind::new("apps/v1", "Deployment"))
            .unwrap();
        assert!(deployment.namespaced && deployment.watchable);
        assert_eq!(
            (
                deployment.api.plural.as_str(),
                deployment.api.api_version.as_str()
            ),
            ("deployments", "apps/v1")
        );
        assert!(
            !catalog
                .get(&GroupVersionKind::new("v1", "Namespace"))
                .unwrap()
                .namespaced
        );
        assert!(
            !catalog
                .get(&GroupVersionKind::new("v1", "Binding"))
                .unwrap()
                .watchable
        );
        assert!(
            catalog
                .get(&GroupVersionKind::new("apps/v2", "Deployment"))
                .is_none()
        );
    }

    #[test]
    fn a_version_that_is_gone_gives_way_to_the_preferred_one() {
        assert_eq!(
            catalog().any_version("apps", "Deployment").unwrap().api.version,
            "v1"
        );
        assert!(catalog().any_version("apps", "Gone").is_none());
    }

    #[test]
    fn groups_whose_server_is_away_are_remembered() {
        assert!(catalog().is_stale("metrics.k8s.io"));
        assert!(!catalog().is_stale("apps"));
    }
}

//! The CustomResourceDefinitions: whether those in the cluster are ones that ours can replace, and what hangs on them.

use std::time::Duration;

use delivery_graph::{kind, object};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use manifest::{Object, ObjectId};
use serde_json::json;

use super::controllers::{IMAGES, PIPELINES, RESOURCE_SETS};
use super::helm::FIELD_MANAGER;
use super::{Platform, RELEASE, objects, plan};
use crate::cluster::{Cluster, Failure};

/// A definition, ours beside the one in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    /// None: it is not there.
    pub(crate) live: Option<Live>,
    /// The versions that ours serves, the one that is stored first.
    pub(crate) served: Vec<String>,
}

/// The relevant parts of a definition in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// In which version objects are stored now.
    pub(crate) storage: String,
    /// In which objects may be stored.
    pub(crate) stored: Vec<String>,
}

impl Definition {
    /// Returns whether the chart installs it beside these components: some kinds come with their controller only.
    pub(crate) fn comes_with(&self, has: impl Fn(&str) -> bool) -> bool {
        let (kind, group) = self.name.split_once('.').unwrap_or_default();
        match (kind, group) {
            (_, api::meta::IMAGE_GROUP) => has(IMAGES),
            ("changepolicies", api::delivery::GROUP) => has(IMAGES) || has(PIPELINES),
            ("pipelines", api::delivery::GROUP) => has(PIPELINES),
            ("environmentpolicies", api::delivery::GROUP) => has(RESOURCE_SETS),
            _ => true,
        }
    }

    /// Says why ours cannot take the place of the one in the cluster.
    pub(crate) fn problem(&self) -> Option<String> {
        let live = self.live.as_ref()?;
        let unknown = |version: &&String| !self.served.contains(version);
        if unknown(&&live.storage) {
            return Some(format!(
                "{} stores {}, which Windlass does not know ({}): it is of another version of Flux than 2.9",
                self.name,
                live.storage,
                self.served.join(", ")
            ));
        }
        let old: Vec<&str> = live.stored.iter().filter(unknown).map(String::as_str).collect();
        (!old.is_empty()).then(|| {
            format!(
                "{} may hold objects stored as {}: run `flux migrate` of Flux 2.9 first",
                self.name,
                old.join(", ")
            )
        })
    }
}

fn versions_of(definition: &CustomResourceDefinition) -> Vec<String> {
    let mut versions: Vec<_> = definition.spec.versions.iter().collect();
    versions.sort_by_key(|version| !version.storage);
    versions.iter().map(|version| version.name.clone()).collect()
}

fn live_of(definition: &CustomResourceDefinition) -> Live {
    let storage = definition.spec.versions.iter().find(|version| version.storage);
    let status = definition.status.as_ref();
    Live {
        storage: storage.map(|version| version.name.clone()).unwrap_or_default(),
        stored: status
            .and_then(|status| status.stored_versions.clone())
            .unwrap_or_default(),
    }
}

/// Compares all of ours with those in the cluster.
pub(crate) async fn compare(client: &Client) -> Result<Vec<Definition>, Failure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let listed = definitions.list(&ListParams::default()).await;
    let listed = listed.map_err(|error| Failure::request("list customresourcedefinitions", error))?;
    let ours = api::crd::all();
    Ok(ours
        .iter()
        .map(|ours| {
            let name = ours.name_any();
            let live = listed.items.iter().find(|live| live.name_any() == name);
            Definition {
                live: live.map(live_of),
                served: versions_of(ours),
                name,
            }
        })
        .collect())
}

/// Finds those that are there, of no release, and would not be changed by ours: a release may have them without being asked.
pub(crate) async fn equal_to_ours(
    platform: &Platform,
    manifest: &str,
    there: &[ObjectId],
) -> Result<Vec<ObjectId>, Failure> {
    let mut equal = Vec::new();
    for object in objects::of_manifest(manifest)? {
        if !is_definition(&object) || !there.contains(&object.id()) {
            continue;
        }
        let mapper = platform.engine.mapper();
        let located = objects::locate(&platform.client, mapper, object, "").await?;
        let Some(live) = located.live().await? else {
            continue;
        };
        let applied = located.apply(FIELD_MANAGER, true).await?;
        if !plan::is_released(&live.metadata) && live.data["spec"] == applied.data["spec"] {
            equal.push(located.id());
        }
    }
    Ok(equal)
}

fn is_definition(object: &Object) -> bool {
    let gvk = object.gvk();
    gvk.group == "apiextensions.k8s.io" && gvk.kind == "CustomResourceDefinition"
}

/// Puts the marks of the release onto definitions, so that it may have them.
pub(crate) async fn adopt(platform: &Platform, adopted: &[ObjectId]) -> Result<(), Failure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(platform.client.clone());
    let marks = json!({"metadata": {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {plan::OWNER[0]: RELEASE, plan::OWNER[1]: platform.namespace}}});
    let parameters = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    for ObjectId { name, .. } in adopted {
        let marked = definitions
            .patch_metadata(name, &parameters, &Patch::Merge(&marks))
            .await;
        marked.map_err(|error| Failure::request(format!("take over the definition {name}"), error))?;
    }
    Ok(())
}

/// How many objects of each kind there are: they go with their definitions.
pub(crate) async fn count(cluster: &Cluster) -> Result<Vec<(&'static kind::Kind, usize)>, Failure> {
    let mut counts = Vec::new();
    for kind in &kind::ALL {
        let found = cluster.list(kind, None, None).await?.unwrap_or_default();
        if !found.is_empty() {
            counts.push((kind, found.len()));
        }
    }
    Ok(counts)
}

/// `2 gitrepositories, 1 kustomization`.
pub(crate) fn counted(counts: &[(&'static kind::Kind, usize)]) -> String {
    let one = |(kind, count): &(&'static kind::Kind, usize)| match count {
        1 => format!("1 {}", kind.kind.to_lowercase()),
        _ => format!("{count} {}", kind.plural),
    };
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Takes the finalizers from all objects. No controller is left that could do what they wait for, and none is to: what was
/// delivered stays.
pub(crate) async fn unbind(cluster: &Cluster) -> Result<(), Failure> {
    for kind in &kind::ALL {
        for object in cluster.list(kind, None, None).await?.unwrap_or_default() {
            if object::list(&object, "/metadata/finalizers").is_empty() {
                continue;
            }
            let patch = json!({"metadata": {"finalizers": null}});
            let id = object::id(&object);
            cluster.merge(&id, "take the finalizers from", &patch).await?;
        }
    }
    Ok(())
}

/// Deletes the definitions with all objects, and waits until they are gone.
pub(crate) async fn delete(platform: &Platform, timeout: Duration) -> Result<(), Failure> {
    let mut gone = Vec::new();
    for definition in api::crd::all() {
        let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": definition.name_any()}});
        let object = objects::of_value(&object);
        let located = objects::locate(&platform.client, platform.engine.mapper(), object, "").await?;
        located.delete().await?;
        gone.push(located.at());
    }
    for at in gone {
        platform.wait_gone(&at, timeout).await?;
    }
    Ok(())
}

/// Takes the marks of the release from the definitions that are kept, so that another release may have them. Those of another
/// release are not ours to change.
pub(crate) async fn release(client: &Client, namespace: &str) -> Result<(), Failure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = json!({"metadata": {
        "annotations": {"meta.helm.sh/release-name": null, "meta.helm.sh/release-namespace": null},
        "labels": {"app.kubernetes.io/managed-by": null, "app.kubernetes.io/name": null,
            "app.kubernetes.io/instance": null, "helm.sh/chart": null}}});
    for definition in api::crd::all() {
        let name = definition.name_any();
        let live = definitions.get_metadata_opt(&name).await;
        let live = live.map_err(|error| Failure::request(format!("get the definition {name}"), error))?;
        if !live.is_some_and(|live| plan::is_ours(&live.metadata, namespace)) {
            continue;
        }
        let parameters = PatchParams::default();
        match definitions
            .patch_metadata(&name, &parameters, &Patch::Merge(&patch))
            .await
        {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(Failure::request(format!("change the definition {name}"), error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in;

    fn problem(storage: &str, stored: &[&str]) -> Option<String> {
        let definition = Definition {
            name: "things".to_owned(),
            live: Some(Live {
                storage: storage.to_owned(),
                stored: stored.iter().map(ToString::to_string).collect(),
            }),
            served: vec!["v1".to_owned(), "v1beta3".to_owned()],
        };
        definition.problem()
    }

    #[test]
    fn kinds_come_with_their_controllers() {
        let missing = |components: &[&str]| -> Vec<String> {
            let all = api::crd::all().into_iter().map(|definition| Definition {
                name: definition.name_any(),
                live: None,
                served: Vec::new(),
            });
            let missing = all.filter(|one| !one.comes_with(|component| components.contains(&component)));
            missing
                .map(|one| one.name.split('.').next().unwrap().to_owned())
                .collect()
        };
        let delivery = |names: &[&str], missing: &[String]| {
            names.iter().all(|name| missing.iter().any(|one| one == name))
        };
        let none = missing(&[]);
        assert!(delivery(
            &[
                "changepolicies",
                "pipelines",
                "environmentpolicies",
                "imagepolicies"
            ],
            &none
        ));
        assert!(!delivery(&["freezes"], &none) && !delivery(&["previews"], &none));
        assert_eq!(missing(&[IMAGES, RESOURCE_SETS]), ["pipelines"]);
        assert!(!delivery(&["changepolicies"], &missing(&[PIPELINES])));
    }

    #[test]
    fn a_definition_is_replaced_only_if_ours_serves_all_that_may_be_stored() {
        assert_eq!(problem("v1", &["v1"]), None);
        assert_eq!(problem("v1beta3", &["v1beta3", "v1"]), None);
        assert!(
            problem("v1", &["v1beta1", "v1"])
                .unwrap()
                .contains("`flux migrate`")
        );
        assert!(
            problem("v2", &["v2"])
                .unwrap()
                .contains("another version of Flux")
        );
    }

    #[tokio::test]
    async fn only_marks_of_our_release_are_taken_away() {
        let (address, asked) = stand_in::serve(|request| {
            let release = if request.what.contains("gitrepositories") {
                "n"
            } else {
                "other"
            };
            let definition = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a",
                "annotations": {"meta.helm.sh/release-name": "windlass", "meta.helm.sh/release-namespace": release}}});
            (200, String::new(), definition.to_string())
        });
        release(&Cluster::at(&address).client(), "n").await.unwrap();
        let asked = asked.lock().unwrap();
        let changed: Vec<&str> = asked
            .iter()
            .map(|request| request.what.as_str())
            .filter(|what| what.starts_with("PATCH "))
            .collect();
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert!(changed[0].contains("gitrepositories"), "{changed:?}");
    }

    #[test]
    fn objects_are_counted_by_kind() {
        let counts = [(&kind::ALL[0], 2), (&kind::ALL[7], 1)];
        assert_eq!(counted(&counts), "2 gitrepositories, 1 kustomization");
    }
}

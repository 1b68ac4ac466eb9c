//! Finds what would put Flux back: a Kustomization or HelmRelease that delivers it, or flux-operator.

use delivery_graph::{kind, object};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use manifest::{GroupVersionKind, ObjectId};
use serde_json::Value;

use super::snapshot::inventory;
use crate::cluster::{Cluster, Failure};
use crate::platform::controllers::Controller;
use crate::platform::{Platform, objects};

/// Those that deliver one of these objects and are at work.
pub(crate) async fn deliverers(cluster: &Cluster, objects: &[ObjectId]) -> Result<Vec<ObjectId>, Failure> {
    let mut found = Vec::new();
    for kind in ["Kustomization", "HelmRelease"]
        .into_iter()
        .filter_map(kind::exact)
    {
        let all = cluster.list(kind, None, None).await?.unwrap_or_default();
        found.extend(all.iter().filter(|one| delivers(one, objects)).map(object::id));
    }
    Ok(found)
}

fn delivers(object: &Value, objects: &[ObjectId]) -> bool {
    !object::is_suspended(object) && inventory(object).iter().any(|(id, _)| objects.contains(id))
}

/// Says what to do about them.
pub(crate) fn advice_lines(deliverers: &[ObjectId]) -> Vec<String> {
    let line = |id: &ObjectId| {
        let name = format!("{}/{}", id.kind.to_lowercase(), id.name);
        format!(
            "{id} delivers Flux's own objects and would put them back: `windlass suspend {name} -n {}`, or give --suspend-self",
            id.namespace
        )
    };
    deliverers.iter().map(line).collect()
}

/// Instances of flux-operator that are at work, and what to do about them.
pub(crate) async fn operators(platform: &Platform) -> Result<Vec<String>, Failure> {
    let gvk = GroupVersionKind::new("fluxcd.controlplane.io/v1", "FluxInstance");
    let resource = platform.engine.mapper().resolve_any_version(&gvk).await;
    // A question without an answer is no "no": the operator would undo the takeover.
    let resource = resource.map_err(|error| Failure::Request {
        what: "look for flux-operator".to_owned(),
        why: error.to_string(),
    })?;
    let Some(resource) = resource else {
        return Ok(Vec::new());
    };
    let api: Api<DynamicObject> = Api::all_with(platform.client.clone(), &resource.api);
    let listed = api.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(|error| Failure::request("list fluxinstances", error))?;
    let is_at_work = |annotations: &std::collections::BTreeMap<String, String>| {
        annotations.get(RECONCILE).map(String::as_str) != Some("disabled")
    };
    let instances = listed.items.iter().map(|instance| &instance.metadata);
    let at_work = instances.filter(|metadata| is_at_work(&metadata.annotations.clone().unwrap_or_default()));
    Ok(at_work
        .map(|metadata| {
            let (name, namespace) = (metadata.name.as_deref(), metadata.namespace.as_deref());
            let (name, namespace) = (name.unwrap_or_default(), namespace.unwrap_or_default());
            format!(
                "FluxInstance/{namespace}/{name} keeps Flux in place: \
                 `kubectl -n {namespace} annotate fluxinstance/{name} {RECONCILE}=disabled`"
            )
        })
        .collect())
}

/// The newest Flux whose objects ours can take over.
const NEWEST: (u32, u32) = (2, 9);

/// Controllers of a Flux that may have written what ours do not know.
pub(super) fn newer(rivals: &[Controller]) -> Vec<String> {
    let is_newer = |rival: &&Controller| {
        let mut parts = rival.version.trim_start_matches('v').split('.');
        let mut next = || parts.next()?.parse::<u32>().ok();
        next().zip(next()).is_some_and(|version| version > NEWEST)
    };
    let line = |rival: &Controller| {
        format!(
            "{} is of Flux {}, and Windlass knows Flux up to {}.{}: take a newer Windlass",
            rival.id, rival.version, NEWEST.0, NEWEST.1
        )
    };
    rivals.iter().filter(is_newer).map(line).collect()
}

/// Deployments that cannot be replaced in place, as no one may change which Pods are theirs.
pub(crate) async fn selectors(
    platform: &Platform,
    manifest: &str,
    taken: &[ObjectId],
) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let wanted = objects::of_manifest(manifest)?.into_iter();
    for object in wanted.filter(|object| object.gvk().kind == "Deployment" && taken.contains(&object.id())) {
        let mapper = platform.engine.mapper();
        let located = objects::locate(&platform.client, mapper, object, &platform.namespace).await?;
        let Some(live) = located.live().await? else {
            continue;
        };
        let wanted = located.object.value().get("spec").map(|spec| &spec["selector"]);
        if wanted != Some(&live.data["spec"]["selector"]) {
            let id = located.id();
            found.push(format!(
                "{id} has another selector than the chart's, which cannot be changed: give ours another name (`--set \
                 source.name=…` and so on), so that it is scaled down and not replaced"
            ));
        }
    }
    Ok(found)
}

const RECONCILE: &str = "fluxcd.controlplane.io/reconcile";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn an_operator_that_cannot_be_looked_for_is_not_taken_for_absent() {
        let (address, _) = crate::stand_in::serve(|_| (500, String::new(), "no".to_owned()));
        let platform = Platform::new(&Cluster::at(&address));
        let said = operators(&platform).await.unwrap_err().to_string();
        assert!(said.starts_with("failed to look for flux-operator: "), "{said}");
    }

    #[test]
    fn a_flux_that_is_newer_than_ours_is_refused() {
        let rival = |version: &str| Controller {
            id: ObjectId::parse_inventory_id("n_a_apps_Deployment").unwrap(),
            component: "source-controller".to_owned(),
            is_ours: false,
            is_shared: false,
            version: version.to_owned(),
            image: String::new(),
            wanted: 1,
            ready: 1,
            is_going: false,
            is_current: true,
            release: None,
        };
        for (version, count) in [
            ("v2.9.4", 0),
            ("2.8.0", 0),
            ("v2.10.0", 1),
            ("v3.0.0-rc.1", 1),
            ("", 0),
        ] {
            assert_eq!(newer(&[rival(version)]).len(), count, "{version}");
        }
    }

    #[test]
    fn only_who_is_not_suspended_puts_something_back() {
        let flux = ObjectId::parse_inventory_id("flux-system_source-controller_apps_Deployment").unwrap();
        let object = |suspend: bool, id: &str| {
            json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"name": "flux-system", "namespace": "flux-system"}, "spec": {"suspend": suspend},
                "status": {"inventory": {"entries": [{"id": id, "v": "v1"}]}}})
        };
        let objects = [flux.clone()];
        assert!(delivers(&object(false, &flux.inventory_id()), &objects));
        assert!(!delivers(&object(true, &flux.inventory_id()), &objects));
        assert!(!delivers(&object(false, "n_a__ConfigMap"), &objects));
        let said = advice_lines(&[object::id(&object(false, ""))]);
        assert!(
            said[0].contains("`windlass suspend kustomization/flux-system -n flux-system`"),
            "{}",
            said[0]
        );
    }
}

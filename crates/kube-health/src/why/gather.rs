//! Reads from the API server what [`super::first_cause`] needs: a handful of bounded requests.

use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Selector, TypeMeta};
use kube::{Api, Client};
use manifest::ObjectId;
use serde_json::Value;

use super::{Evidence, first_cause, worst_pod};
use crate::fields::text_or;

/// Pods that are looked at; the first of them that is in trouble will do.
const PODS: u32 = 50;
/// ReplicaSets that are looked at for the newest; a Deployment keeps ten by default.
const REPLICA_SETS: u32 = 50;
/// Events that are read per object; they come in no useful order.
const EVENTS: u32 = 100;
/// Claims that are looked at per Pod.
const CLAIMS: usize = 5;
/// The Deployment controller numbers its ReplicaSets with this.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Tells whether causes can be found for objects of this kind.
pub fn is_supported(id: &ObjectId) -> bool {
    matches!(
        (id.group.as_str(), id.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job")
            | ("", "Pod" | "PersistentVolumeClaim")
    )
}

/// Looks up the first cause of what is wrong with an object; None for kinds that are not supported, or no cause.
///
/// # Errors
///
/// What the API server answers: most often that this client may not list Pods or Events.
pub async fn gather(client: &Client, id: &ObjectId) -> kube::Result<Option<String>> {
    if !is_supported(id) {
        return Ok(None);
    }
    let reader = Reader {
        client,
        namespace: &id.namespace,
    };
    let Some(workload) = reader.get(&id.group, &id.kind, &id.name).await? else {
        return Ok(None);
    };
    let mut evidence = Evidence {
        workload,
        ..Evidence::default()
    };
    match id.kind.as_str() {
        "Pod" => evidence.pods = vec![evidence.workload.clone()],
        "PersistentVolumeClaim" => {}
        "Deployment" => {
            evidence.replica_set = reader.newest_replica_set(&evidence.workload).await?;
            if let Some(replica_set) = &evidence.replica_set {
                evidence.pods = reader.pods_of(replica_set).await?;
            }
        }
        _ => evidence.pods = reader.pods_of(&evidence.workload).await?,
    }
    reader.add_events(&mut evidence).await?;
    Ok(first_cause(&evidence))
}

struct Reader<'a> {
    client: &'a Client,
    namespace: &'a str,
}

impl Reader<'_> {
    async fn newest_replica_set(&self, deployment: &Value) -> kube::Result<Option<Value>> {
        let owned = self
            .owned_by(deployment, "apps", "ReplicaSet", REPLICA_SETS)
            .await?;
        let revision = |replica_set: &Value| -> u64 {
            let annotations = replica_set.pointer("/metadata/annotations");
            let number = annotations.and_then(|all| all.get(REVISION)?.as_str()?.parse().ok());
            number.unwrap_or_default()
        };
        Ok(owned.into_iter().max_by_key(revision))
    }

    async fn pods_of(&self, owner: &Value) -> kube::Result<Vec<Value>> {
        self.owned_by(owner, "", "Pod", PODS).await
    }

    /// Lists what the owner's selector selects and its uid owns.
    async fn owned_by(&self, owner: &Value, group: &str, kind: &str, limit: u32) -> kube::Result<Vec<Value>> {
        let selector = owner.pointer("/spec/selector").cloned().unwrap_or_default();
        let selector = serde_json::from_value(selector)
            .map(selector_text)
            .unwrap_or_default();
        if selector.is_empty() {
            return Ok(Vec::new());
        }
        let list = self
            .list(group, kind, &ListParams::default().labels(&selector).limit(limit))
            .await?;
        let uid = text_or(owner, "metadata.uid", "");
        let is_owned = |object: &Value| {
            let owners = object
                .pointer("/metadata/ownerReferences")
                .and_then(Value::as_array);
            owners
                .into_iter()
                .flatten()
                .any(|reference| text_or(reference, "uid", "") == uid)
        };
        Ok(list.into_iter().filter(is_owned).collect())
    }

    /// Reads the events on the object that is to blame, and the claims when a Pod waits for them.
    async fn add_events(&self, evidence: &mut Evidence) -> kube::Result<()> {
        let Some((pod, trouble)) = worst_pod(&evidence.pods) else {
            let blamed = evidence.replica_set.as_ref().unwrap_or(&evidence.workload);
            evidence.events = self.events_on(blamed).await?;
            return Ok(());
        };
        let (pod, trouble) = (pod.clone(), trouble.clone());
        if trouble.explained_by.is_some() {
            evidence.events = self.events_on(&pod).await?;
        }
        if trouble.asks_for_claims {
            for name in claim_names(&pod) {
                // A claim that does not exist is named by the scheduler.
                let Some(claim) = self.get("", "PersistentVolumeClaim", name).await? else {
                    continue;
                };
                evidence.events.extend(self.events_on(&claim).await?);
                evidence.claims.push(claim);
            }
        }
        Ok(())
    }

    async fn events_on(&self, object: &Value) -> kube::Result<Vec<Value>> {
        let uid = text_or(object, "metadata.uid", "");
        let params = ListParams::default()
            .fields(&format!("involvedObject.uid={uid}"))
            .limit(EVENTS);
        self.list("", "Event", &params).await
    }

    async fn get(&self, group: &str, kind: &str, name: &str) -> kube::Result<Option<Value>> {
        let (api, resource) = self.api(group, kind);
        Ok(api.get_opt(name).await?.map(|object| whole(object, &resource)))
    }

    async fn list(&self, group: &str, kind: &str, params: &ListParams) -> kube::Result<Vec<Value>> {
        let (api, resource) = self.api(group, kind);
        Ok(api
            .list(params)
            .await?
            .items
            .into_iter()
            .map(|object| whole(object, &resource))
            .collect())
    }

    /// The kinds of this module have all been v1 since Kubernetes 1.9, and have regular plurals.
    fn api(&self, group: &str, kind: &str) -> (Api<DynamicObject>, ApiResource) {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        (
            Api::namespaced_with(self.client.clone(), self.namespace, &resource),
            resource,
        )
    }
}

fn selector_text(selector: k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector) -> String {
    Selector::try_from(selector)
        .map(|selector| selector.to_string())
        .unwrap_or_default()
}

fn claim_names(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let names = volumes
        .into_iter()
        .flatten()
        .map(|volume| text_or(volume, "persistentVolumeClaim.claimName", ""));
    names.filter(|name| !name.is_empty()).take(CLAIMS)
}

/// Objects of a list come without their types.
fn whole(mut object: DynamicObject, resource: &ApiResource) -> Value {
    object.metadata.managed_fields = None;
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    serde_json::to_value(object).unwrap_or_default()
}

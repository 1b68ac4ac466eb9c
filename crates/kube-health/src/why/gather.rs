//! Reads from the API server what [`super::first_cause`] needs: a handful of bounded requests.

use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Selector, TypeMeta};
use kube::{Api, Client};
use manifest::ObjectId;
use serde_json::Value;

use super::evidence::Evidence;
use super::{Cause, Kind, event, first_cause, worst_pod};
use crate::fields::text_or;

/// Pods that are looked at; the first of them that is in trouble will do.
const PODS: u32 = 50;
/// ReplicaSets that are looked at for the newest; a Deployment keeps ten by default.
const REPLICA_SETS: u32 = 50;
/// Jobs that are looked at for the newest of a CronJob.
const JOBS: u32 = 200;
/// Events that are read per object; they come in no useful order.
const EVENTS: u32 = 100;
/// Claims that are looked at per Pod.
const CLAIMS: usize = 5;
/// The Deployment controller numbers its ReplicaSets with this.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Warnings of other kinds are told when they are not older than this: no one says of them that they are settled.
const FRESH: SignedDuration = SignedDuration::from_mins(15);

/// Returns whether there are Pods or a claim to look into; of other kinds only the last warning is told.
fn is_looked_into(id: &ObjectId) -> bool {
    matches!(
        (id.group.as_str(), id.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job" | "CronJob")
            | ("", "Pod" | "PersistentVolumeClaim")
    )
}

/// Looks up the first cause of what is wrong with an object; None when none was found.
///
/// What this client may not read is passed over; if nothing else tells of a cause, the cause is that.
///
/// # Errors
///
/// What else the API server answers, or that it does not.
pub async fn gather(client: &Client, id: &ObjectId) -> kube::Result<Option<Cause>> {
    let reader = Reader {
        client,
        // Where the events on objects of the cluster are.
        namespace: if id.namespace.is_empty() {
            "default"
        } else {
            &id.namespace
        },
        denied: OnceLock::new(),
    };
    if !is_looked_into(id) {
        let events = reader.events_by_name(id).await?;
        let since = Timestamp::now() - FRESH;
        return Ok(event::last_warning_since(&events, since)
            .map(|event| Cause::of_object(Kind::Event, event::reason_and_message(event))));
    }
    let mut evidence = Evidence::default();
    if let Some(workload) = reader.get(&id.group, &id.kind, &id.name).await? {
        evidence.workload = workload;
        reader.add_pods(id, &mut evidence).await?;
        reader.add_events(&mut evidence).await?;
    }
    evidence.denied = reader.denied.into_inner();
    Ok(first_cause(&evidence))
}

struct Reader<'a> {
    client: &'a Client,
    namespace: &'a str,
    /// The first refusal.
    denied: OnceLock<String>,
}

impl Reader<'_> {
    /// Goes from the object to its Pods.
    async fn add_pods(&self, id: &ObjectId, evidence: &mut Evidence) -> kube::Result<()> {
        let workload = &evidence.workload;
        match id.kind.as_str() {
            "PersistentVolumeClaim" => {}
            "Pod" => evidence.pods = vec![workload.clone()],
            "Deployment" | "CronJob" => {
                evidence.child = if id.kind == "CronJob" {
                    self.newest_job(workload).await?
                } else {
                    self.newest_replica_set(workload).await?
                };
                evidence.pods = match &evidence.child {
                    Some(child) => self.pods_of(child).await?,
                    // Who may not look at ReplicaSets may still look at Pods, old ones included.
                    None if self.denied.get().is_some() => {
                        self.selected_by(workload, "", "Pod", PODS).await?
                    }
                    None => Vec::new(),
                };
            }
            _ => evidence.pods = self.pods_of(workload).await?,
        }
        Ok(())
    }

    /// A CronJob has no selector.
    async fn newest_job(&self, cron_job: &Value) -> kube::Result<Option<Value>> {
        let jobs = self
            .list("batch", "Job", &ListParams::default().limit(JOBS))
            .await?;
        let owned = jobs.into_iter().filter(|job| is_owned_by(job, cron_job));
        Ok(owned.max_by_key(|job| text_or(job, "metadata.creationTimestamp", "").to_owned()))
    }

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
        let mut selected = self.selected_by(owner, group, kind, limit).await?;
        selected.retain(|object| is_owned_by(object, owner));
        Ok(selected)
    }

    async fn selected_by(
        &self,
        owner: &Value,
        group: &str,
        kind: &str,
        limit: u32,
    ) -> kube::Result<Vec<Value>> {
        let selector = owner.pointer("/spec/selector").cloned().unwrap_or_default();
        let selector = serde_json::from_value(selector)
            .map(selector_text)
            .unwrap_or_default();
        if selector.is_empty() {
            return Ok(Vec::new());
        }
        let params = ListParams::default().labels(&selector).limit(limit);
        self.list(group, kind, &params).await
    }

    /// Reads the events on the object that is to blame, and the claims when a Pod waits for them.
    async fn add_events(&self, evidence: &mut Evidence) -> kube::Result<()> {
        let Some((pod, trouble)) = worst_pod(&evidence.pods) else {
            let blamed = evidence.child.as_ref().unwrap_or(&evidence.workload);
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

    async fn events_by_name(&self, id: &ObjectId) -> kube::Result<Vec<Value>> {
        let (kind, name) = (&id.kind, &id.name);
        let params = ListParams::default()
            .fields(&format!("involvedObject.kind={kind},involvedObject.name={name}"))
            .limit(EVENTS);
        let mut events = self.list("", "Event", &params).await?;
        events.retain(|event| {
            let version = text_or(event, "involvedObject.apiVersion", "");
            version.rsplit_once('/').map_or("", |(group, _)| group) == id.group
        });
        Ok(events)
    }

    async fn get(&self, group: &str, kind: &str, name: &str) -> kube::Result<Option<Value>> {
        let (api, resource) = self.api(group, kind);
        let found = self.unless_denied(api.get_opt(name).await)?;
        Ok(found.flatten().map(|object| whole(object, &resource)))
    }

    async fn list(&self, group: &str, kind: &str, params: &ListParams) -> kube::Result<Vec<Value>> {
        let (api, resource) = self.api(group, kind);
        let listed = self.unless_denied(api.list(params).await)?;
        let items = listed.into_iter().flat_map(|list| list.items);
        Ok(items.map(|object| whole(object, &resource)).collect())
    }

    /// Remembers a refusal, and goes on without the answer.
    fn unless_denied<T>(&self, answer: kube::Result<T>) -> kube::Result<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                // The first one counts: it is nearest to the object.
                let _ = self.denied.set(status.message.clone());
                Ok(None)
            }
            Err(error) => Err(error),
        }
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

fn is_owned_by(object: &Value, owner: &Value) -> bool {
    let uid = text_or(owner, "metadata.uid", "");
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    owners
        .into_iter()
        .flatten()
        .any(|reference| text_or(reference, "uid", "") == uid)
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

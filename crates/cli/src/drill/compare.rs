//! The same objects in two clusters, field by field.

use std::collections::{BTreeMap, HashMap, HashSet};

use delivery_graph::field_managers::bystanders;
use delivery_graph::object;
use delivery_graph::orphans::Maker;
use kube_apply::FieldChanges;
use manifest::ObjectId;
use manifest_edit::live;
use serde_json::Value;

use crate::cluster::anything::Served;
use crate::cluster::{Cluster, Failure};
use crate::orphans::survey::{Seen, Survey};

/// As many fields are shown of an object.
const FIELDS: usize = 8;
/// What sets most of the fields in both.
const MANAGER: &str = "kustomize-controller";

/// What came of comparing.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// How many objects are the same.
    pub(super) equal: usize,
    /// Those that are not, from the cluster in use to the new one.
    pub(super) different: BTreeMap<ObjectId, FieldChanges>,
    /// Those that the new cluster does not have.
    pub(super) missing: Vec<ObjectId>,
    /// Those that only the new cluster has.
    pub(super) added: Vec<ObjectId>,
}

/// Compares all that is delivered into the first cluster with what the second one has.
pub(super) async fn compare(
    (used, before): (&Cluster, &Survey),
    (new, after): (&Cluster, &Survey),
) -> Result<Outcome, Failure> {
    let (wanted, there) = (listed(before), listed(after));
    let mut outcome = Outcome {
        added: there.difference(&wanted).map(|id| (*id).clone()).collect(),
        ..Outcome::default()
    };
    outcome.added.sort();
    for kind in &before.kinds {
        let is_of = |id: &&&ObjectId| id.kind == kind.resource.kind && id.group == kind.resource.group;
        let ids: HashSet<&ObjectId> = wanted.iter().filter(is_of).copied().collect();
        if ids.is_empty() {
            continue;
        }
        let old = objects(used, kind, &ids).await?;
        let mut found = match served(after, kind) {
            Some(kind) => objects(new, kind, &ids).await?,
            None => HashMap::new(),
        };
        for (id, old) in old {
            let Some(new) = found.remove(&id) else {
                outcome.missing.push(id);
                continue;
            };
            let changes = changes(&id, &old, &new);
            match changes.is_empty() {
                true => outcome.equal += 1,
                false => _ = outcome.different.insert(id, changes),
            }
        }
    }
    outcome.missing.sort();
    Ok(outcome)
}

/// Delivered objects, without the records of Helm releases: their history differs in each cluster.
fn listed(survey: &Survey) -> HashSet<&ObjectId> {
    let is_listed = |seen: &&Seen| seen.maker == Maker::Delivered && !seen.is_record;
    survey
        .objects
        .iter()
        .filter(is_listed)
        .map(|seen| &seen.id)
        .collect()
}

fn served<'s>(survey: &'s Survey, kind: &Served) -> Option<&'s Served> {
    let is_it =
        |one: &&Served| one.resource.kind == kind.resource.kind && one.resource.group == kind.resource.group;
    survey.kinds.iter().find(is_it)
}

/// The objects of a kind that are asked for.
async fn objects(
    cluster: &Cluster,
    kind: &Served,
    ids: &HashSet<&ObjectId>,
) -> Result<HashMap<ObjectId, Value>, Failure> {
    let keep = |mut object: Value| {
        object["apiVersion"] = kind.resource.api_version.clone().into();
        object["kind"] = kind.resource.kind.clone().into();
        let id = object::id(&object);
        ids.contains(&id).then_some((id, object))
    };
    Ok(cluster
        .list_everywhere(&kind.resource, keep)
        .await?
        .into_iter()
        .collect())
}

/// What differs between two objects, but for what the API server and controllers fill in.
fn changes(id: &ObjectId, old: &Value, new: &Value) -> FieldChanges {
    let is_secret = id.group.is_empty() && id.kind == "Secret";
    let mut before = cleaned(old);
    // For the manager and the time of each difference.
    before["metadata"]["managedFields"] = old["metadata"]["managedFields"].clone();
    FieldChanges::up_to(FIELDS, &before, &cleaned(new), MANAGER, is_secret)
}

fn cleaned(object: &Value) -> Value {
    let metadata = serde_json::from_value(object["metadata"].clone()).unwrap_or_default();
    let bystanders = bystanders(&metadata);
    live::manifest(object, |manager| bystanders.contains(manager))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(old: &Value, new: &Value) -> Vec<String> {
        let id = object::id(old);
        changes(&id, old, new)
            .fields
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn what_a_cluster_fills_in_does_not_differ() {
        let service = |address: &str, uid: &str| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "n", "uid": uid},
                "spec": {"clusterIP": address, "clusterIPs": [address], "ports": [{"port": 80, "targetPort": 80}]},
                "status": {"loadBalancer": {"ingress": [address]}}})
        };
        assert!(changed(&service("10.0.0.1", "u"), &service("10.0.0.2", "v")).is_empty());
    }

    #[test]
    fn a_field_that_was_set_by_hand_differs_and_says_by_what() {
        let map = |value: &str, more: Value| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", "managedFields": more},
                "data": {"a": value}})
        };
        let managed = json!([{"manager": "k9s", "operation": "Update", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}]);
        assert_eq!(
            changed(&map("2", managed), &map("1", json!([]))),
            ["data.a: \"2\" → \"1\" (was set by k9s at 2026-01-01T00:00:00Z)"]
        );
    }

    #[test]
    fn the_content_of_a_secret_is_not_shown() {
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"}, "data": {"a": value}});
        let said = changed(&secret("aHVudGVyMg=="), &secret("aHVudGVyMw==")).join("\n");
        assert!(
            !said.is_empty() && !said.contains("aHVudGVy") && !said.contains("hunter"),
            "{said}"
        );
    }
}

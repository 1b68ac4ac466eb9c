//! Lists the metadata of all objects of a cluster, and finds out who made each.

use std::collections::HashSet;

use delivery_graph::field_managers::{self, Program, Write};
use delivery_graph::kind;
use delivery_graph::object::{list, text};
use delivery_graph::orphans::{self, Delivered, Maker, Release};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use manifest::ObjectId;
use serde_json::Value;

use crate::cluster::anything::Served;
use crate::cluster::{Cluster, Failure};

/// As many lists are read at the same time.
const AT_ONCE: usize = 8;
/// Kinds that list what they have made.
const DELIVERERS: [&str; 3] = ["Kustomization", "HelmRelease", "ResourceSet"];
/// Kinds whose containers are the programs of the cluster.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// An object, and who made it.
pub(crate) struct Seen {
    pub(crate) id: ObjectId,
    pub(crate) maker: Maker,
    pub(crate) created: Option<Timestamp>,
    /// Whether it is what Helm knows of a release by.
    pub(crate) is_record: bool,
    /// What people's tools, and those for delivery that are not ours, have set in it.
    pub(crate) writes: Vec<Write>,
}

/// All that could be seen.
pub(crate) struct Survey {
    pub(crate) objects: Vec<Seen>,
    /// How the kinds that were looked at are served.
    pub(crate) kinds: Vec<Served>,
    /// What could not be listed, and why: a line each.
    pub(crate) unseen: Vec<String>,
}

/// Looks at all kinds, or at those that are named, in one namespace or in the whole cluster.
pub(crate) async fn take(
    cluster: &Cluster,
    namespace: Option<&str>,
    words: &[String],
) -> Result<Survey, Failure> {
    let delivered = delivered(cluster).await?;
    let (served, mut unseen) = cluster.all_served().await?;
    let wanted: Vec<Served> = match words {
        [] => served.iter().filter(|one| is_wanted(one)).cloned().collect(),
        words => {
            let mut wanted = Vec::new();
            for word in words {
                let served = cluster.served(word).await?;
                if !wanted.contains(&served) {
                    wanted.push(served);
                }
            }
            wanted
        }
    };
    let programs = programs(cluster, &served).await;
    let kinds: Vec<Served> = wanted
        .into_iter()
        .filter(|one| one.namespaced || namespace.is_none())
        .collect();
    let lists = kinds.iter().map(|one| {
        let see = |metadata| seen(&one.resource, &metadata, &delivered, &programs);
        cluster.list_metadata(&one.resource, namespace, see)
    });
    let mut lists = stream::iter(lists).buffered(AT_ONCE);
    let mut objects = Vec::new();
    while let Some(found) = lists.next().await {
        match found {
            Ok(found) => objects.extend(found),
            Err(failure) => unseen.push(failure.to_string()),
        }
    }
    drop(lists);
    Ok(Survey {
        objects,
        kinds,
        unseen,
    })
}

/// What is kept of an object.
fn seen(
    resource: &ApiResource,
    metadata: &ObjectMeta,
    delivered: &Delivered,
    programs: &HashSet<String>,
) -> Seen {
    let id = ObjectId {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    let is_of_interest = |write: &Write| {
        matches!(
            Program::from_manager(&write.manager),
            Program::Person | Program::Tool
        )
    };
    Seen {
        maker: orphans::maker(&id, metadata, delivered, programs),
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
        is_record: orphans::is_record(&id, metadata),
        writes: field_managers::writes(metadata).filter(is_of_interest).collect(),
        id,
    }
}

fn is_wanted(served: &Served) -> bool {
    let resource = &served.resource;
    served.is_listed && !orphans::is_passing(&resource.group, &resource.kind)
}

/// All Kustomizations, HelmReleases and ResourceSets that deliver into this cluster.
pub(crate) async fn deliverers(cluster: &Cluster) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for kind in DELIVERERS.into_iter().filter_map(kind::exact) {
        found.extend(cluster.list(kind, None, None).await?.unwrap_or_default());
    }
    found.retain(|object| !orphans::is_remote(object));
    Ok(found)
}

/// What they have delivered. A deliverer may be in any namespace, whichever one is looked at.
async fn delivered(cluster: &Cluster) -> Result<Delivered, Failure> {
    let mut delivered = Delivered::default();
    for object in deliverers(cluster).await? {
        delivered.add(&object);
        if text(&object, "/kind") == "HelmRelease" {
            add_release(&mut delivered, object);
        }
    }
    Ok(delivered)
}

fn add_release(delivered: &mut Delivered, object: Value) {
    // One that this version cannot read has no release that it could know.
    let Ok(object) = serde_json::from_value(object) else {
        return;
    };
    let release = Release {
        namespace: flux_spec::release::names::release_namespace(&object),
        name: flux_spec::release::names::release_name(&object),
    };
    delivered.add_release(release, &flux_spec::release::names::storage_namespace(&object));
}

/// Names of the containers of all workloads. Without rights on those, fewer controllers are known by name.
async fn programs(cluster: &Cluster, served: &[Served]) -> HashSet<String> {
    let is_workload =
        |one: &&Served| one.resource.group == "apps" && WORKLOADS.contains(&one.resource.kind.as_str());
    let mut programs = HashSet::new();
    for one in served.iter().filter(is_workload) {
        let found = cluster.list_everywhere(&one.resource, names_of_containers).await;
        programs.extend(found.unwrap_or_default().into_iter().flatten());
    }
    programs
}

fn names_of_containers(workload: Value) -> Option<Vec<String>> {
    let containers = list(&workload, "/spec/template/spec/containers").iter();
    Some(containers.map(|one| text(one, "/name").to_owned()).collect())
}

//! Which images run where: what Pods of all clusters say of their containers.
//!
//! Kept are a few hundred bytes of a Pod. Whoever answers a caller names the places whose Pods they may get.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use go_semver::Constraints;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt as _;
use manifest::ObjectId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::version;

/// Pods of one cluster; a cluster may be run by someone who wishes the others no good.
const MAX_PODS: usize = 150_000;
/// Containers of a Pod, and bytes of a name of an image.
const MAX_CONTAINERS: usize = 64;
const MAX_NAME: usize = 512;
/// Rows of an answer if nothing else is asked for, and at most.
const USUAL_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
/// Workloads whose appliers are looked for.
const MAX_WORKLOADS: usize = 2000;

/// The Pods. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Running(Arc<RwLock<State>>);

#[derive(Default)]
struct State {
    clusters: BTreeMap<Arc<str>, BTreeMap<Place, Known>>,
    /// Namespaces whose Pods are not known as they are now; an empty one stands for all.
    missing: BTreeMap<Arc<str>, BTreeSet<Box<str>>>,
}

/// Namespace and name of a Pod.
type Place = (Box<str>, Box<str>);

struct Known {
    /// What made it: `Deployment/web`.
    workload: Box<str>,
    containers: Box<[Container]>,
}

struct Container {
    /// With its registry, as the Pod has it.
    image: Box<str>,
    tag: Box<str>,
    /// Of what runs, as the node tells it: `sha256:…`.
    digest: Box<str>,
    ready: bool,
}

/// What is asked for. All that is given must hold.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Parameters {
    /// The image: its whole name without tag, or the end of it, such as `log4j-app` or `team/log4j-app`.
    pub image: String,
    /// Range of versions that its tag is in, such as `<1.4.2`. What follows the number, as in `1.4.1-alpine`, is passed over.
    pub version: String,
    /// Beginning of the digest that runs, with or without `sha256:`.
    pub digest: String,
    /// Clusters, separated by commas.
    pub cluster: String,
    /// Namespaces, separated by commas.
    pub namespace: String,
    /// Rows: 100 by default, 1000 at most.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub after: String,
}

/// Parameters that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {problem}")]
pub struct Error {
    parameter: &'static str,
    problem: String,
}

/// A question that was understood.
#[derive(Debug)]
pub struct Question {
    image: String,
    version: Option<Constraints>,
    digest: String,
    clusters: Vec<String>,
    namespaces: Vec<String>,
    limit: usize,
    after: String,
}

/// An image that runs somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Found {
    /// The image without tag.
    pub image: String,
    /// Its tag, as the Pods name it.
    pub tag: String,
    /// Digest of what runs; empty while nothing was pulled.
    pub digest: String,
    /// Cluster.
    pub cluster: String,
    /// Namespace of the Pods.
    pub namespace: String,
    /// What made them: `Deployment/web`.
    pub workload: String,
    /// How many there are.
    pub pods: usize,
    /// How many of their containers are ready.
    pub ready: usize,
}

impl Found {
    /// Columns of a table.
    pub const COLUMNS: &[&str] = &[
        "image",
        "tag",
        "digest",
        "cluster",
        "namespace",
        "workload",
        "pods",
        "ready",
    ];
}

/// A page of images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Page {
    /// The rows, by image, tag and place.
    pub items: Vec<Found>,
    /// `after` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Rows of all pages.
    pub total: usize,
    /// Clusters that run any of it.
    pub clusters: BTreeSet<String>,
    /// Clusters in question whose Pods are not known as they are now, or which do not say which of them you may get:
    /// they may run it, too.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<String>,
}

impl Running {
    /// Puts in a Pod, or its newest state. One that has ended runs nothing.
    pub fn put(&self, cluster: &Arc<str>, pod: &Pod) {
        let place = place(pod);
        let known = known(pod);
        let mut state = self.write();
        let pods = state.clusters.entry(cluster.clone()).or_default();
        match known {
            Some(known) if pods.len() < MAX_PODS || pods.contains_key(&place) => {
                pods.insert(place, known);
            }
            Some(_) => {}
            None => drop(pods.remove(&place)),
        }
    }

    /// Takes out a Pod.
    pub fn remove(&self, cluster: &Arc<str>, pod: &Pod) {
        if let Some(pods) = self.write().clusters.get_mut(cluster) {
            pods.remove(&place(pod));
        }
    }

    /// Takes out what a new list (of a namespace, unless that is empty) does not have.
    pub fn listed(&self, cluster: &Arc<str>, namespace: &str, found: &HashSet<Place>) {
        let mut state = self.write();
        if let Some(pods) = state.clusters.get_mut(cluster) {
            let is_elsewhere = |place: &Place| !namespace.is_empty() && *place.0 != *namespace;
            pods.retain(|place, _| is_elsewhere(place) || found.contains(place));
        }
        state
            .missing
            .entry(cluster.clone())
            .or_default()
            .remove(namespace);
    }

    /// Notes that the Pods of a cluster (in a namespace, unless that is empty) are not watched: what is known of them gets old.
    pub fn failing(&self, cluster: &Arc<str>, namespace: &str) {
        let mut state = self.write();
        state
            .missing
            .entry(cluster.clone())
            .or_default()
            .insert(namespace.into());
    }

    /// Those of these clusters that a question is about and whose Pods are not known as they are now.
    pub fn unknown(
        &self,
        question: &Question,
        clusters: impl IntoIterator<Item = Arc<str>>,
    ) -> BTreeSet<String> {
        let state = self.read();
        let asked = clusters
            .into_iter()
            .filter(|cluster| question.is_in_cluster(cluster));
        let is_known = |cluster: &Arc<str>| state.missing.get(cluster).is_some_and(BTreeSet::is_empty);
        let unknown = asked.filter(|cluster| !is_known(cluster));
        unknown.map(|cluster| cluster.to_string()).collect()
    }

    /// Takes out a cluster.
    pub fn forget(&self, cluster: &str) {
        let mut state = self.write();
        state.clusters.remove(cluster);
        state.missing.remove(cluster);
    }

    /// The places that a question is about and that have Pods: cluster and namespace.
    pub fn places(&self, question: &Question) -> BTreeSet<(Arc<str>, Box<str>)> {
        let state = self.read();
        let mut places = BTreeSet::new();
        for (cluster, pods) in &state.clusters {
            for ((namespace, _), known) in pods {
                let is_one = question.is_in(cluster, namespace)
                    && known.containers.iter().any(|container| question.has(container));
                if is_one && !places.contains(&(cluster.clone(), namespace.clone())) {
                    places.insert((cluster.clone(), namespace.clone()));
                }
            }
        }
        places
    }

    /// What runs in these places.
    pub fn find(&self, question: &Question, places: &BTreeSet<(Arc<str>, Box<str>)>) -> Page {
        let state = self.read();
        let mut rows: BTreeMap<String, Found> = BTreeMap::new();
        for (cluster, namespace) in places {
            let Some(pods) = state.clusters.get(cluster) else {
                continue;
            };
            let of_namespace = pods.range((namespace.clone(), "".into())..);
            for (_, known) in of_namespace.take_while(|((other, _), _)| other == namespace) {
                known.count(cluster, namespace, |container| question.has(container), &mut rows);
            }
        }
        let total = rows.len();
        let clusters = rows.values().map(|row| row.cluster.clone()).collect();
        let after = rows.split_off(&question.after);
        let mut rest = after.into_iter().filter(|(key, _)| *key != question.after);
        let page: Vec<(String, Found)> = rest.by_ref().take(question.limit).collect();
        let last = page.last().map(|(key, _)| key.clone());
        Page {
            next: rest.next().and(last),
            items: page.into_iter().map(|(_, row)| row).collect(),
            total,
            clusters,
            unknown: BTreeSet::new(),
        }
    }

    /// The workloads that run it in these places, as far as their kinds are known: who applied them can be looked for.
    pub fn workloads(
        &self,
        question: &Question,
        places: &BTreeSet<(Arc<str>, Box<str>)>,
    ) -> BTreeSet<(Arc<str>, ObjectId)> {
        let state = self.read();
        let mut found = BTreeSet::new();
        for (cluster, namespace) in places {
            let Some(pods) = state.clusters.get(cluster) else {
                continue;
            };
            let of_namespace = pods.range((namespace.clone(), "".into())..);
            for ((namespace, _), known) in of_namespace.take_while(|((other, _), _)| other == namespace) {
                let runs_it = known.containers.iter().any(|container| question.has(container));
                let id = workload_id(namespace, &known.workload).filter(|_| runs_it);
                found.extend(id.map(|id| (cluster.clone(), id)));
                if found.len() >= MAX_WORKLOADS {
                    return found;
                }
            }
        }
        found
    }

    /// What these workloads of a cluster run, in these namespaces.
    pub fn of_workloads(
        &self,
        cluster: &str,
        namespaces: &BTreeSet<Box<str>>,
        workloads: &HashSet<ObjectId>,
    ) -> Vec<Found> {
        let state = self.read();
        let mut rows: BTreeMap<String, Found> = BTreeMap::new();
        let Some(pods) = state.clusters.get(cluster) else {
            return Vec::new();
        };
        for namespace in namespaces {
            let of_namespace = pods.range((namespace.clone(), "".into())..);
            for (_, known) in of_namespace.take_while(|((other, _), _)| other == namespace) {
                if workload_id(namespace, &known.workload).is_some_and(|id| workloads.contains(&id)) {
                    known.count(cluster, namespace, |_| true, &mut rows);
                }
            }
        }
        rows.into_values().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Adds those of its containers that are asked about to the rows of their images.
    fn count(
        &self,
        cluster: &str,
        namespace: &str,
        is_asked: impl Fn(&Container) -> bool,
        rows: &mut BTreeMap<String, Found>,
    ) {
        let mut counted = HashSet::new();
        for container in self.containers.iter().filter(|container| is_asked(container)) {
            let Container {
                image,
                tag,
                digest,
                ready,
            } = container;
            let workload = &self.workload;
            let key = format!("{image}:{tag}@{digest} {cluster}/{namespace}/{workload}");
            let row = rows.entry(key.clone()).or_insert_with(|| Found {
                image: image.to_string(),
                tag: tag.to_string(),
                digest: digest.to_string(),
                cluster: cluster.to_owned(),
                namespace: namespace.to_owned(),
                workload: workload.to_string(),
                pods: 0,
                ready: 0,
            });
            row.ready += usize::from(*ready);
            row.pods += usize::from(counted.insert(key));
        }
    }
}

impl Question {
    /// Reads the parameters.
    ///
    /// # Errors
    /// With the parameter that cannot be used, and why.
    pub fn read(parameters: &Parameters) -> Result<Self, Error> {
        for (parameter, text) in [
            ("image", &parameters.image),
            ("version", &parameters.version),
            ("digest", &parameters.digest),
            ("cluster", &parameters.cluster),
            ("namespace", &parameters.namespace),
            ("after", &parameters.after),
        ] {
            if text.len() > 4 * MAX_NAME {
                let problem = format!("it is longer than {} bytes", 4 * MAX_NAME);
                return Err(Error { parameter, problem });
            }
        }
        let range = version::range(&parameters.version).map_err(|problem| Error {
            parameter: "version",
            problem,
        })?;
        let limit = parameters.limit.unwrap_or(USUAL_LIMIT);
        if limit == 0 || limit > MAX_LIMIT {
            let problem = format!("it must be from 1 to {MAX_LIMIT}");
            return Err(Error {
                parameter: "limit",
                problem,
            });
        }
        let words = |text: &str| {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        Ok(Self {
            image: parameters.image.clone(),
            version: range,
            digest: parameters.digest.trim_start_matches("sha256:").to_owned(),
            clusters: words(&parameters.cluster),
            namespaces: words(&parameters.namespace),
            limit,
            after: parameters.after.clone(),
        })
    }

    /// About an image in all places.
    ///
    /// # Errors
    /// When its name is too long.
    pub fn of_image(image: &str) -> Result<Self, Error> {
        Self::read(&Parameters {
            image: image.to_owned(),
            ..Parameters::default()
        })
    }

    /// Returns whether the question is about a cluster.
    pub fn is_in_cluster(&self, cluster: &str) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|one| one == cluster)
    }

    fn is_in(&self, cluster: &str, namespace: &str) -> bool {
        let any = |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        self.is_in_cluster(cluster) && any(&self.namespaces, namespace)
    }

    fn has(&self, container: &Container) -> bool {
        let name = &*container.image;
        let is_named = self.image.is_empty() || {
            let before = name.strip_suffix(self.image.as_str());
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let digest = || container.digest.trim_start_matches("sha256:");
        is_named
            && (self.digest.is_empty() || digest().starts_with(&self.digest))
            && self
                .version
                .as_ref()
                .is_none_or(|range| version::is_within(range, &container.tag))
    }
}

/// Where a Pod is.
pub fn place(pod: &Pod) -> Place {
    (pod.namespace().unwrap_or_default().into(), pod.name_any().into())
}

fn known(pod: &Pod) -> Option<Known> {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) {
        return None;
    }
    let none = Vec::new();
    let statuses = |list: Option<&Vec<ContainerStatus>>| list.unwrap_or(&none).clone();
    let of_status = |name: &str| {
        let status = status?;
        let lists = [&status.container_statuses, &status.init_container_statuses];
        let mut all = lists.into_iter().flat_map(|list| statuses(list.as_ref()));
        all.find(|status| status.name == name)
    };
    let spec = pod.spec.as_ref()?;
    // Of those that begin before the others, only sidecars go on.
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let containers = spec.containers.iter().chain(sidecars).take(MAX_CONTAINERS);
    let containers = containers.map(|container| {
        let status = of_status(&container.name);
        let (image, tag, named) = split(container.image.as_deref().unwrap_or_default());
        let running = status.as_ref().map_or("", |status| status.image_id.as_str());
        let digest = running.rsplit_once('@').map_or(running, |(_, digest)| digest);
        let digest = if digest.starts_with("sha256:") {
            digest
        } else {
            named
        };
        Container {
            image: cut(image),
            tag: cut(tag),
            digest: cut(digest),
            ready: status.is_some_and(|status| status.ready),
        }
    });
    let containers = containers.collect();
    Some(Known {
        workload: workload(pod),
        containers,
    })
}

/// The name, the tag and the digest of a reference.
fn split(reference: &str) -> (&str, &str, &str) {
    let (rest, digest) = reference.split_once('@').unwrap_or((reference, ""));
    match rest.rsplit_once(':') {
        // What follows the colon of a port is a path.
        Some((name, tag)) if !tag.contains('/') => (name, tag, digest),
        _ => (rest, if digest.is_empty() { "latest" } else { "" }, digest),
    }
}

/// Which object `Deployment/web` is.
fn workload_id(namespace: &str, workload: &str) -> Option<ObjectId> {
    let (kind, name) = workload.split_once('/')?;
    let group = match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps",
        "Job" | "CronJob" => "batch",
        "Pod" => "",
        _ => return None,
    };
    Some(ObjectId {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// The workload that created a Pod. The name of a ReplicaSet is that of its Deployment, followed by the hash of the template.
fn workload(pod: &Pod) -> Box<str> {
    let owners = pod.owner_references().iter();
    let Some(owner) = owners.into_iter().find(|owner| owner.controller == Some(true)) else {
        return cut(&format!("Pod/{}", pod.name_any()));
    };
    let hash = pod.labels().get("pod-template-hash");
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash.as_str())?.strip_suffix('-'));
    match deployment.filter(|_| owner.kind == "ReplicaSet") {
        Some(name) => cut(&format!("Deployment/{name}")),
        None => cut(&format!("{}/{}", owner.kind, owner.name)),
    }
}

fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(MAX_NAME)].into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, image: &str, id: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "namespace": "shop", "labels": {"pod-template-hash": "5d"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "uid": "u", "controller": true}],
            },
            "spec": {"containers": [{"name": "web", "image": image}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "web", "image": image, "imageID": id, "ready": true, "restartCount": 0},
            ]},
        }))
        .unwrap()
    }

    fn ask(running: &Running, change: impl Fn(&mut Parameters)) -> Page {
        let mut parameters = Parameters::default();
        change(&mut parameters);
        let question = Question::read(&parameters).unwrap();
        running.find(&question, &running.places(&question))
    }

    fn tags(page: &Page) -> Vec<&str> {
        page.items.iter().map(|row| row.tag.as_str()).collect()
    }

    #[test]
    fn an_image_is_found_by_name_version_and_digest() {
        let running = Running::default();
        let here = Arc::from("here");
        for (name, image, id) in [
            (
                "a",
                "registry.example.com:5000/team/web:1.4.1-alpine",
                "registry.example.com/team/web@sha256:aa",
            ),
            (
                "b",
                "registry.example.com:5000/team/web:1.4.1-alpine",
                "registry.example.com/team/web@sha256:aa",
            ),
            (
                "c",
                "registry.example.com:5000/team/web:1.4.2",
                "docker-pullable://web@sha256:bb",
            ),
            ("d", "other-web:v0.9", ""),
            ("e", "web@sha256:cc", ""),
            ("f", "web", "something"),
        ] {
            running.put(&here, &pod(name, image, id));
        }
        let old = ask(&running, |p| {
            (p.image, p.version) = ("web".into(), "<1.4.2".into());
        });
        assert_eq!(tags(&old), ["1.4.1-alpine"]);
        let row = &old.items[0];
        assert_eq!((row.pods, row.ready, &*row.digest), (2, 2, "sha256:aa"));
        assert_eq!(
            (&*row.workload, &*row.image),
            ("Deployment/web", "registry.example.com:5000/team/web")
        );
        assert_eq!(old.clusters, BTreeSet::from(["here".to_owned()]));
        let question = Question::read(&Parameters {
            image: "web".to_owned(),
            version: "<1.4.2".to_owned(),
            ..Parameters::default()
        });
        let question = question.unwrap();
        let workloads = running.workloads(&question, &running.places(&question));
        let ids: Vec<String> = workloads.iter().map(|(_, id)| id.inventory_id()).collect();
        assert_eq!(ids, ["shop_web_apps_Deployment"]);
        assert_eq!(
            tags(&ask(&running, |p| p.version = "<1.4.2".into())),
            ["v0.9", "1.4.1-alpine"]
        );
        assert_eq!(
            tags(&ask(&running, |p| p.image = "team/web".into())),
            ["1.4.1-alpine", "1.4.2"]
        );
        assert_eq!(tags(&ask(&running, |p| p.image = "eam/web".into())), [""; 0]);
        assert_eq!(tags(&ask(&running, |p| p.digest = "sha256:b".into())), ["1.4.2"]);
        assert_eq!(tags(&ask(&running, |p| p.digest = "cc".into())), [""]);
        assert_eq!(ask(&running, |p| p.namespace = "bank".into()).total, 0);
        // Pages.
        let first = ask(&running, |p| p.limit = Some(3));
        assert_eq!((first.items.len(), first.total), (3, 5));
        let second = ask(&running, |p| {
            (p.limit, p.after) = (Some(3), first.next.clone().unwrap());
        });
        assert_eq!((second.items.len(), &second.next), (2, &None));
        // What ends runs nothing any more.
        let mut ended = pod("c", "x", "");
        ended.status.as_mut().unwrap().phase = Some("Succeeded".to_owned());
        running.put(&here, &ended);
        running.remove(&here, &pod("d", "", ""));
        running.listed(&here, "other", &HashSet::new());
        running.listed(&here, "", &HashSet::from([place(&pod("a", "", ""))]));
        assert_eq!(ask(&running, |_| {}).items[0].pods, 1);
        let question = Question::read(&Parameters::default()).unwrap();
        let unknown = || running.unknown(&question, [here.clone(), Arc::from("there")]);
        assert_eq!(unknown(), BTreeSet::from(["there".to_owned()]));
        running.failing(&here, "shop");
        running.listed(&here, "other", &HashSet::new());
        assert_eq!(unknown().len(), 2);
        running.forget("here");
        assert_eq!(ask(&running, |_| {}).total, 0);
    }

    #[test]
    fn a_hostile_pod_takes_little() {
        let running = Running::default();
        let containers: Vec<Value> = (0..1000)
            .map(|number| json!({"name": format!("c{number}"), "image": "ä".repeat(10_000)}))
            .collect();
        let pod = json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"containers": containers}});
        running.put(&Arc::from("here"), &serde_json::from_value(pod).unwrap());
        let page = ask(&running, |_| {});
        assert_eq!((page.items.len(), page.items[0].image.len()), (1, MAX_NAME));
        assert_eq!(&*page.items[0].workload, "Pod/a");
        for (field, value) in [("version", "<<1"), ("image", &*"x".repeat(5000))] {
            let mut parameters = Parameters::default();
            match field {
                "version" => parameters.version = value.to_owned(),
                _ => parameters.image = value.to_owned(),
            }
            assert!(
                Question::read(&parameters)
                    .unwrap_err()
                    .to_string()
                    .starts_with(field)
            );
        }
    }
}

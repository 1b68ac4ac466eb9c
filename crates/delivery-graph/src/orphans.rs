//! Who made each object of a cluster, and so which objects nothing delivers. Pure.
//!
//! It lists what a re-creation from Git would not bring back. It is no defence: the author of an object chooses its managers, labels and
//! owners.

use std::collections::{BTreeMap, HashMap, HashSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use manifest::ObjectId;
use serde_json::Value;

use crate::field_managers::{self, Program};
use crate::object::{self, list, text};

/// A release of Helm: its name, and the namespace that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Release {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Who made an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// A Kustomization, HelmRelease or ResourceSet, which lists it.
    Delivered,
    /// Another object owns it.
    Owned,
    /// Kubernetes itself.
    Kubernetes,
    /// A program in the cluster, by its field manager.
    Controller(String),
    /// A person, with the tool of this field manager.
    Person(String),
    /// `helm`, by hand or from a pipeline.
    Helm(Release),
    /// What its labels name, which does not deliver it any more, or does so from another cluster.
    LeftBehind {
        /// What the labels name.
        by: ObjectId,
        /// Whether that is in this cluster.
        exists: bool,
    },
    /// Another tool for delivery, by its field manager.
    Tool(String),
    /// A program that is not known, by its field manager; empty if there is none.
    Unknown(String),
}

impl Maker {
    /// Returns whether a re-creation from Git would not bring the object back, as far as can be known.
    pub fn is_orphan(&self) -> bool {
        !matches!(
            self,
            Self::Delivered | Self::Owned | Self::Kubernetes | Self::Controller(_)
        )
    }

    /// The word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Owned => "owned",
            Self::Kubernetes => "kubernetes",
            Self::Controller(_) => "controller",
            Self::Person(_) => "person",
            Self::Helm(_) => "helm",
            Self::LeftBehind { .. } => "left-behind",
            Self::Tool(_) => "tool",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// What is delivered into a cluster.
#[derive(Debug, Default)]
pub struct Delivered {
    objects: HashSet<ObjectId>,
    /// What delivers, and whether it lists its objects.
    deliverers: HashMap<ObjectId, bool>,
    releases: HashSet<Release>,
    /// Releases by the namespace that their records are in.
    records: HashSet<Release>,
}

impl Delivered {
    /// Adds a Kustomization, HelmRelease or ResourceSet. One that delivers into another cluster is left out.
    pub fn add(&mut self, deliverer: &Value) {
        if is_remote(deliverer) {
            return;
        }
        let inventory = deliverer.pointer("/status/inventory/entries");
        self.deliverers.insert(object::id(deliverer), inventory.is_some());
        let entries = list(deliverer, "/status/inventory/entries").iter();
        let parsed = entries.filter_map(|entry| ObjectId::parse_inventory_id(text(entry, "/id")).ok());
        self.objects.extend(parsed);
    }

    /// Adds the release of a HelmRelease, whose records may be in another namespace.
    pub fn add_release(&mut self, release: Release, storage_namespace: &str) {
        self.records.insert(Release {
            namespace: storage_namespace.to_owned(),
            name: release.name.clone(),
        });
        self.releases.insert(release);
    }

    /// Returns whether something lists the object.
    pub fn has(&self, id: &ObjectId) -> bool {
        self.objects.contains(id)
    }
}

/// Returns whether something delivers into another cluster.
pub fn is_remote(deliverer: &Value) -> bool {
    deliverer.pointer("/spec/kubeConfig").is_some()
}

/// Says who made an object, of which only the metadata is known. `programs` are the names of the containers that run in the cluster:
/// controllers are field managers by the name of their program, which is often that of the container.
pub fn maker(
    id: &ObjectId,
    metadata: &ObjectMeta,
    delivered: &Delivered,
    programs: &HashSet<String>,
) -> Maker {
    if delivered.has(id) {
        return Maker::Delivered;
    }
    if is_of_kubernetes(id, metadata) {
        return Maker::Kubernetes;
    }
    // The owner is there, even if it may not be seen: Kubernetes deletes what has lost its owners.
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    if !owners.is_empty() {
        return Maker::Owned;
    }
    let marked = of_helm(id, metadata, delivered).or_else(|| of_labels(metadata, delivered));
    if let Some(maker) = marked {
        return maker;
    }
    let Some(manager) = field_managers::made_by(metadata) else {
        return Maker::Unknown(String::new());
    };
    let name = manager.to_owned();
    match Program::from_manager(manager) {
        Program::Person => Maker::Person(name),
        Program::Tool => Maker::Tool(name),
        Program::Kubernetes => Maker::Kubernetes,
        Program::Controller => Maker::Controller(name),
        Program::Unknown if programs.contains(manager) => Maker::Controller(name),
        Program::Unknown => Maker::Unknown(name),
    }
}

/// Returns whether objects of a kind are transient: status of the cluster and its machines, which comes back by itself.
pub fn is_passing(group: &str, kind: &str) -> bool {
    match group {
        "" => matches!(kind, "Event" | "Node" | "Endpoints" | "ComponentStatus"),
        "apps" => kind == "ControllerRevision",
        "storage.k8s.io" => matches!(kind, "CSINode" | "VolumeAttachment" | "CSIStorageCapacity"),
        "networking.k8s.io" => matches!(kind, "IPAddress" | "ServiceCIDR"),
        "certificates.k8s.io" => kind == "CertificateSigningRequest",
        "coordination.k8s.io"
        | "discovery.k8s.io"
        | "events.k8s.io"
        | "internal.apiserver.k8s.io"
        | "metrics.k8s.io" => true,
        _ => false,
    }
}

/// Returns whether every cluster has the object.
fn is_of_kubernetes(id: &ObjectId, metadata: &ObjectMeta) -> bool {
    let has =
        |of: &Option<BTreeMap<String, String>>, key: &str| of.as_ref().is_some_and(|of| of.contains_key(key));
    let is_known = match (id.group.as_str(), id.kind.as_str(), id.name.as_str()) {
        ("", "Namespace", name) => {
            matches!(
                name,
                "default" | "kube-system" | "kube-public" | "kube-node-lease"
            )
        }
        ("", "ConfigMap", name) => name == "kube-root-ca.crt",
        ("", "ServiceAccount", name) => name == "default",
        ("", "Service", name) => name == "kubernetes" && id.namespace == "default",
        ("", "PersistentVolume", _) => has(&metadata.annotations, "pv.kubernetes.io/provisioned-by"),
        ("scheduling.k8s.io", "PriorityClass", name) => name.starts_with("system-"),
        _ => false,
    };
    let labels = [
        "kubernetes.io/bootstrapping",
        "kube-aggregator.kubernetes.io/automanaged",
        "addonmanager.kubernetes.io/mode",
    ];
    is_known
        || labels.iter().any(|label| has(&metadata.labels, label))
        || has(&metadata.annotations, "apf.kubernetes.io/autoupdate-spec")
}

/// Returns whether it is what Helm knows of a release by.
pub fn is_record(id: &ObjectId, metadata: &ObjectMeta) -> bool {
    let owner = metadata.labels.as_ref().and_then(|labels| labels.get("owner"));
    matches!(id.kind.as_str(), "Secret" | "ConfigMap")
        && owner.is_some_and(|owner| owner == "helm")
        && id.name.starts_with("sh.helm.release.v1.")
}

/// What the marks of Helm say of records and objects of releases.
fn of_helm(id: &ObjectId, metadata: &ObjectMeta, delivered: &Delivered) -> Option<Maker> {
    let label = |key: &str| metadata.labels.as_ref()?.get(key).map(String::as_str);
    let annotation = |key: &str| metadata.annotations.as_ref()?.get(key).cloned();
    if is_record(id, metadata) {
        let release = Release {
            namespace: id.namespace.clone(),
            name: label("name")?.to_owned(),
        };
        return Some(match delivered.records.contains(&release) {
            true => Maker::Delivered,
            false => Maker::Helm(release),
        });
    }
    let release = Release {
        namespace: annotation("meta.helm.sh/release-namespace")?,
        name: annotation("meta.helm.sh/release-name")?,
    };
    if !delivered.releases.contains(&release) {
        return Some(Maker::Helm(release));
    }
    // A HelmRelease of an older Flux lists nothing. One that lists its objects does not list this one.
    let by = labelled(metadata);
    let lists = by.is_some_and(|by| delivered.deliverers.get(&by) == Some(&true));
    (!lists).then_some(Maker::Delivered)
}

/// What the labels of Flux say.
fn of_labels(metadata: &ObjectMeta, delivered: &Delivered) -> Option<Maker> {
    let by = labelled(metadata)?;
    Some(match delivered.deliverers.get(&by) {
        Some(false) => Maker::Delivered,
        found => Maker::LeftBehind {
            exists: found.is_some(),
            by,
        },
    })
}

/// The Kustomization or HelmRelease that the labels name.
fn labelled(metadata: &ObjectMeta) -> Option<ObjectId> {
    let labels = metadata.labels.as_ref()?;
    object::owner_by(|label| labels.get(label).map(String::as_str))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind;

    fn of(id: &str, metadata: Value) -> Maker {
        let mut delivered = Delivered::default();
        delivered.add(&json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "apps", "namespace": "flux-system"},
            "status": {"inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}]}},
        }));
        delivered.add(&json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "remote", "namespace": "flux-system"}, "spec": {"kubeConfig": {}},
            "status": {"inventory": {"entries": [{"id": "shop_far_apps_Deployment", "v": "v1"}]}},
        }));
        delivered.add(&json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "redis", "namespace": "flux-system"},
        }));
        let release = Release {
            namespace: "shop".to_owned(),
            name: "redis".to_owned(),
        };
        delivered.add_release(release, "flux-system");
        let id = ObjectId::parse_inventory_id(id).expect("an id");
        let metadata = serde_json::from_value(metadata).expect("metadata");
        let programs = HashSet::from(["trivy".to_owned()]);
        maker(&id, &metadata, &delivered, &programs)
    }

    fn managed(manager: &str) -> Value {
        json!({"managedFields": [{"manager": manager, "operation": "Update", "fieldsV1": {"f:data": {}}}]})
    }

    fn flux(kind: &str, name: &str) -> ObjectId {
        kind::exact(kind).expect("a kind").id("flux-system", name)
    }

    #[test]
    fn what_an_inventory_lists_is_delivered() {
        assert_eq!(
            of("shop_web_apps_Deployment", managed("kubectl")),
            Maker::Delivered
        );
        let elsewhere = of("shop_far_apps_Deployment", managed("kubectl"));
        assert_eq!(elsewhere, Maker::Person("kubectl".to_owned()));
    }

    #[test]
    fn field_managers_tell_people_from_programs() {
        for (manager, expected) in [
            ("kubectl-create", Maker::Person("kubectl-create".to_owned())),
            ("Terraform", Maker::Tool("Terraform".to_owned())),
            ("kubelet", Maker::Kubernetes),
            ("vault-operator", Maker::Controller("vault-operator".to_owned())),
            ("trivy", Maker::Controller("trivy".to_owned())),
            ("something", Maker::Unknown("something".to_owned())),
        ] {
            assert_eq!(of("shop_a__ConfigMap", managed(manager)), expected, "{manager}");
        }
        assert_eq!(of("shop_a__ConfigMap", json!({})), Maker::Unknown(String::new()));
        assert_eq!(
            of("shop_kube-root-ca.crt__ConfigMap", managed("kubectl")),
            Maker::Kubernetes
        );
        let owned = json!({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"}]});
        assert_eq!(of("shop_a__ConfigMap", owned), Maker::Owned);
    }

    #[test]
    fn releases_are_those_of_a_helm_release_or_of_helm() {
        let object = |namespace: &str, name: &str| json!({"annotations": {"meta.helm.sh/release-namespace": namespace, "meta.helm.sh/release-name": name}});
        let helm = |namespace: &str, name: &str| {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            Maker::Helm(Release { namespace, name })
        };
        assert_eq!(of("shop_a__ConfigMap", object("shop", "redis")), Maker::Delivered);
        assert_eq!(
            of("shop_a__ConfigMap", object("shop", "own")),
            helm("shop", "own")
        );
        let record = |name: &str| json!({"labels": {"owner": "helm", "name": name}});
        let of_record = |namespace: &str, name: &str| {
            of(
                &format!("{namespace}_sh.helm.release.v1.{name}.v1__Secret"),
                record(name),
            )
        };
        assert_eq!(of_record("flux-system", "redis"), Maker::Delivered);
        assert_eq!(of_record("shop", "redis"), helm("shop", "redis"));
    }

    #[test]
    fn labels_of_what_does_not_list_the_object_are_left_behind() {
        let labels = |group: &str, name: &str| {
            let group = format!("{group}.toolkit.fluxcd.io");
            json!({"labels": {format!("{group}/name"): name, format!("{group}/namespace"): "flux-system"}})
        };
        let left = |by: ObjectId, exists: bool| Maker::LeftBehind { by, exists };
        let found = of("shop_a__ConfigMap", labels("kustomize", "apps"));
        assert_eq!(found, left(flux("Kustomization", "apps"), true));
        let found = of("shop_a__ConfigMap", labels("kustomize", "gone"));
        assert_eq!(found, left(flux("Kustomization", "gone"), false));
        // A HelmRelease without an inventory is one of an older Flux.
        assert_eq!(of("shop_a__ConfigMap", labels("helm", "redis")), Maker::Delivered);
    }
}

//! `windlass tree`: what a Kustomization or HelmRelease has applied, what those among it have applied, and how all of it is.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use clap::Args;
use futures::StreamExt as _;
use futures::stream;
use kube::core::ApiResource;
use kube_health::verdict::{self, Status};
use manifest::ObjectId;
use serde_json::{Value, json};

use crate::cluster::object::{self, list, text};
use crate::cluster::output::{self, Colours, Tone, one_line};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, kind, print};

/// What was typed.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME, or KIND NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Show only Kustomizations and HelmReleases
    #[arg(long)]
    compact: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// As many objects are read at the same time. More is of no use over a few connections.
const AT_ONCE: usize = 16;

/// An object of the tree. Its children are found by its number.
struct Node {
    parent: Option<usize>,
    id: ObjectId,
    /// The version in which it was applied.
    version: String,
    status: &'static str,
    message: String,
}

/// Reads, and prints.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let target = kind::one_target(&flags.words)?;
    if !has_inventory(target.kind.kind) {
        let message = format!(
            "{} have no inventory; only Kustomizations and HelmReleases have one",
            target.kind.plural
        );
        return Err(Failure::Usage(message));
    }
    cluster::run(&flags.cluster, async |cluster| {
        let root = cluster.need(&target.id(&cluster.namespace)).await?;
        let nodes = grow(&cluster, &root, flags.compact).await;
        match flags.output {
            Output::Json | Output::Yaml => print(&output::document(&value(&nodes, 0), flags.output)?),
            Output::Name => print(
                &nodes
                    .iter()
                    .map(|node| format!("{}\n", node.id))
                    .collect::<String>(),
            ),
            Output::Table | Output::Wide => print(&shown(&nodes, Colours::of_terminal())),
        }
    })
}

fn has_inventory(kind: &str) -> bool {
    matches!(kind, "Kustomization" | "HelmRelease")
}

async fn grow(cluster: &Cluster, root: &Value, compact: bool) -> Vec<Node> {
    let mut nodes = vec![node(None, object::id(root), "", Some(root))];
    let mut seen = HashSet::from([nodes[0].id.clone()]);
    let mut kinds = Kinds::default();
    let mut level = applied(root, compact)
        .into_iter()
        .map(|child| (0, child))
        .collect::<Vec<_>>();
    while !level.is_empty() {
        for (_, (id, version)) in &level {
            kinds.learn(cluster, &id.group, version).await;
        }
        let read = stream::iter(level.iter().map(async |(_, (id, version))| {
            match kinds.resource(id, version) {
                Ok(resource) => cluster
                    .get_any(id, resource)
                    .await
                    .map_err(|error| reason(&error)),
                Err(why) => Err(why),
            }
        }));
        let objects: Vec<_> = read.buffered(AT_ONCE).collect().await;
        let mut next = Vec::new();
        for ((parent, (id, version)), object) in level.into_iter().zip(objects) {
            let number = nodes.len();
            match object {
                Ok(object) => {
                    // Whoever applies itself, or is applied twice, is followed once.
                    let new = seen.insert(id.clone());
                    let inventory = object.as_ref().filter(|_| new && kind::of(&id).is_some());
                    let children = inventory
                        .map(|object| applied(object, compact))
                        .unwrap_or_default();
                    next.extend(children.into_iter().map(|child| (number, child)));
                    nodes.push(node(Some(parent), id, &version, object.as_ref()));
                }
                Err(why) => nodes.push(Node {
                    parent: Some(parent),
                    id,
                    version,
                    status: "Unknown",
                    message: why,
                }),
            }
        }
        level = next;
    }
    nodes
}

/// What an object of Flux has applied in this cluster: ids and versions.
fn applied(object: &Value, compact: bool) -> Vec<(ObjectId, String)> {
    let id = object::id(object);
    if !has_inventory(&id.kind) || object.pointer("/spec/kubeConfig").is_some() {
        return Vec::new();
    }
    let entries = list(object, "/status/inventory/entries").iter();
    let parsed = entries.filter_map(|entry| {
        let id = ObjectId::parse_inventory_id(text(entry, "/id")).ok()?;
        Some((id, text(entry, "/v").to_owned()))
    });
    parsed
        .filter(|(id, _)| !compact || has_inventory(&id.kind) && kind::of(id).is_some())
        .collect()
}

fn node(parent: Option<usize>, id: ObjectId, version: &str, object: Option<&Value>) -> Node {
    let (status, message) = match object {
        None => ("NotFound", String::new()),
        Some(object) if kind::of(&id).is_some() => of_flux(object),
        Some(object) => {
            let verdict = verdict::compute(object);
            let is_well = verdict.status == Status::Current;
            let message = if is_well { String::new() } else { verdict.message };
            (word(verdict.status), message)
        }
    };
    Node {
        parent,
        id,
        version: version.to_owned(),
        status,
        message: one_line(&message),
    }
}

/// How an object of Flux is. kstatus says of all that will be tried again that it is in progress, even after it failed.
fn of_flux(object: &Value) -> (&'static str, String) {
    let condition = object::ready(object);
    let told = || match condition.reason {
        "" => condition.message.to_owned(),
        reason => format!("{reason}: {}", condition.message),
    };
    if object::is_suspended(object) {
        ("Suspended", String::new())
    } else if object::is_ready(object) && object.pointer("/spec/kubeConfig").is_some() {
        ("Current", "its objects are in another cluster".to_owned())
    } else if object::is_ready(object) {
        ("Current", String::new())
    } else if condition.status == "False" && object::is_observed(object) && !object::is_in_progress(object) {
        ("Failed", told())
    } else {
        (word(Status::InProgress), told())
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Current => "Current",
        Status::InProgress => "InProgress",
        Status::Failed => "Failed",
        Status::Terminating => "Terminating",
        Status::NotFound => "NotFound",
        Status::Unknown => "Unknown",
    }
}

/// The paths of the kinds that the cluster serves, by group and version.
#[derive(Default)]
struct Kinds(HashMap<(String, String), Result<Vec<ApiResource>, String>>);

impl Kinds {
    async fn learn(&mut self, cluster: &Cluster, group: &str, version: &str) {
        if let Entry::Vacant(entry) = self.0.entry((group.to_owned(), version.to_owned())) {
            let served = cluster
                .resources(group, version)
                .await
                .map_err(|error| reason(&error));
            entry.insert(served);
        }
    }

    fn resource(&self, id: &ObjectId, version: &str) -> Result<&ApiResource, String> {
        match self.0.get(&(id.group.clone(), version.to_owned())) {
            Some(Err(why)) => Err(why.clone()),
            Some(Ok(served)) => served
                .iter()
                .find(|resource| resource.kind == id.kind)
                .ok_or_else(|| format!("the cluster has no {} in version {version}", id.kind)),
            None => Err(format!("the kinds of version {version} are not known")),
        }
    }
}

fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => one_line(&error.to_string()),
    }
}

fn children(nodes: &[Node], parent: usize) -> Vec<usize> {
    (0..nodes.len())
        .filter(|&number| nodes[number].parent == Some(parent))
        .collect()
}

fn shown(nodes: &[Node], colours: Colours) -> String {
    let mut text = String::new();
    write(nodes, 0, ["", ""], colours, &mut text);
    text
}

/// Writes a node and what is below it; `[first, rest]` stand before its line and before those of its children.
fn write(nodes: &[Node], number: usize, [first, rest]: [&str; 2], colours: Colours, text: &mut String) {
    let node = &nodes[number];
    let tone = match node.status {
        "Current" => Tone::Good,
        "InProgress" | "Suspended" | "Terminating" | "Unknown" => Tone::Open,
        _ => Tone::Bad,
    };
    let status = colours.paint(node.status, tone);
    let message = if node.message.is_empty() {
        String::new()
    } else {
        format!(": {}", node.message)
    };
    text.push_str(&format!("{first}{} {status}{message}\n", node.id));
    let children = children(nodes, number);
    for (place, &child) in children.iter().enumerate() {
        let (branch, below) = if place + 1 == children.len() {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        let (first, rest) = (format!("{rest}{branch}"), format!("{rest}{below}"));
        write(nodes, child, [&first, &rest], colours, text);
    }
}

fn value(nodes: &[Node], number: usize) -> Value {
    let node = &nodes[number];
    let mut value = json!({
        "group": node.id.group, "kind": node.id.kind, "namespace": node.id.namespace, "name": node.id.name,
        "status": node.status,
    });
    if !node.version.is_empty() {
        value["version"] = node.version.as_str().into();
    }
    if !node.message.is_empty() {
        value["message"] = node.message.as_str().into();
    }
    let children: Vec<_> = children(nodes, number)
        .into_iter()
        .map(|child| self::value(nodes, child))
        .collect();
    if !children.is_empty() {
        value["objects"] = children.into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kustomization(entries: &[&str]) -> Value {
        let entries: Vec<_> = entries.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "app", "namespace": "shop", "generation": 1},
            "status": {"inventory": {"entries": entries}, "observedGeneration": 1,
                       "conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    #[test]
    fn the_inventory_is_what_was_applied_here() {
        let mut object = kustomization(&[
            "shop_web_apps_Deployment",
            "shop_child_kustomize.toolkit.fluxcd.io_Kustomization",
            "broken",
        ]);
        let ids = |object: &Value, compact| {
            applied(object, compact)
                .iter()
                .map(|(id, _)| id.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            ids(&object, false),
            ["Deployment/shop/web", "Kustomization/shop/child"]
        );
        assert_eq!(ids(&object, true), ["Kustomization/shop/child"]);
        object["spec"] = json!({"kubeConfig": {"secretRef": {"name": "far"}}});
        assert!(ids(&object, false).is_empty());
    }

    #[test]
    fn the_tree_shows_every_object_below_the_one_that_applied_it() {
        let of = |kind: &str, name: &str| ObjectId {
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            ..ObjectId::default()
        };
        let flux = |name: &str| {
            kind::exact("Kustomization")
                .map(|kind| kind.id("shop", name))
                .unwrap()
        };
        let mut failed = kustomization(&[]);
        failed["status"]["conditions"] = json!([
            {"type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no\nsuch file"},
            {"type": "Reconciling", "status": "True", "reason": "ProgressingWithRetry"}]);
        let there = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        let claim =
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}});
        let nodes = [
            node(None, flux("app"), "", Some(&kustomization(&[]))),
            node(Some(0), flux("child"), "v1", Some(&failed)),
            node(Some(0), of("ConfigMap", "gone"), "v1", None),
            node(Some(1), of("ConfigMap", "x"), "v1", Some(&there)),
            node(Some(1), of("PersistentVolumeClaim", "data"), "v1", Some(&claim)),
        ];
        let pending = verdict::compute(&claim).message;
        assert_eq!(
            shown(&nodes, Colours::none()),
            format!(
                "Kustomization/shop/app Current\n\
                 ├── Kustomization/shop/child Failed: BuildFailed: no such file\n\
                 │   ├── ConfigMap/shop/x Current\n\
                 │   └── PersistentVolumeClaim/shop/data InProgress: {pending}\n\
                 └── ConfigMap/shop/gone NotFound\n"
            )
        );
        let value = value(&nodes, 0);
        assert_eq!(value["objects"][0]["objects"][1]["status"], "InProgress");
        assert_eq!(value["objects"][1]["version"], "v1");
    }
}

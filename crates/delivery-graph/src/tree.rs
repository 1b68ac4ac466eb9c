//! Tree of applied objects: what an object of Flux has applied, what that has applied, and so on.

use std::collections::HashSet;

use futures::StreamExt as _;
use futures::stream;
use kube_health::verdict::{self, Status};
use manifest::ObjectId;
use serde_json::{Value, json};

use crate::object::{self, list, text};
use crate::walk::Lookup;
use crate::{Objects, kind, one_line};

/// As many objects are read at the same time. More is of no use over a few connections.
const AT_ONCE: usize = 16;

/// An object of the tree. Its children are found by its number.
pub struct Node {
    /// The node that applied it.
    pub parent: Option<usize>,
    /// Which object it is.
    pub id: ObjectId,
    /// The version in which it was applied.
    pub version: String,
    /// A word of kstatus for how it is.
    pub status: &'static str,
    /// The problem, in one line.
    pub message: String,
}

/// Returns whether objects of a kind list what they applied.
pub fn has_inventory(kind: &str) -> bool {
    matches!(kind, "Kustomization" | "HelmRelease")
}

/// Returns whether other objects build upon those of a kind: policies upon image repositories, and so on.
pub fn has_followers(kind: &str) -> bool {
    matches!(kind, "ImageRepository" | "ImagePolicy" | "ImageUpdateAutomation")
}

/// Reads what builds upon an object of images: the policies of a repository, the automations that apply them, the sources
/// that those write to.
pub async fn follow(objects: &dyn Objects, root: &Value) -> Vec<Node> {
    let mut nodes = vec![node(None, object::id(root), "", Some(root))];
    let (policies, automations) = (
        listed(objects, "ImagePolicy").await,
        listed(objects, "ImageUpdateAutomation").await,
    );
    let mut level = vec![(0, root.clone())];
    while let Some((parent, followed)) = level.pop() {
        let id = object::id(&followed);
        let followers: Vec<Value> = match id.kind.as_str() {
            "ImageRepository" => upon(&policies, &id, "image"),
            "ImagePolicy" => upon(&automations, &id, "policy"),
            _ => {
                let links = object::links(&followed).into_iter();
                for link in links.filter(|link| link.word == "source") {
                    nodes.push(match objects.of_flux(&link.id).await {
                        Lookup::Found(source) => node(Some(parent), link.id, "", Some(&source)),
                        Lookup::Absent => node(Some(parent), link.id, "", None),
                        Lookup::Refused(why) => Node {
                            parent: Some(parent),
                            id: link.id,
                            version: String::new(),
                            status: "Unknown",
                            message: why,
                        },
                    });
                }
                continue;
            }
        };
        for follower in followers {
            nodes.push(node(Some(parent), object::id(&follower), "", Some(&follower)));
            level.push((nodes.len() - 1, follower));
        }
    }
    nodes
}

async fn listed(objects: &dyn Objects, kind: &str) -> Vec<Value> {
    match kind::exact(kind) {
        Some(kind) => objects.list(kind).await,
        None => Vec::new(),
    }
}

/// The objects that refer to another one.
fn upon(objects: &[Value], id: &ObjectId, word: &str) -> Vec<Value> {
    let refers = |object: &&Value| {
        object::links(object)
            .iter()
            .any(|link| link.word == word && link.id == *id)
    };
    objects.iter().filter(refers).cloned().collect()
}

/// Reads what an object of Flux has applied, and what those have, down to the leaves.
pub async fn grow(objects: &dyn Objects, root: &Value, compact: bool) -> Vec<Node> {
    let mut nodes = vec![node(None, object::id(root), "", Some(root))];
    let mut seen = HashSet::from([nodes[0].id.clone()]);
    let mut level = applied(root, compact)
        .into_iter()
        .map(|child| (0, child))
        .collect::<Vec<_>>();
    while !level.is_empty() {
        // Made first: a closure over references does not live in a future that goes from thread to thread.
        let reads: Vec<_> = level
            .iter()
            .map(|(_, (id, version))| objects.any(id, version))
            .collect();
        let found: Vec<_> = stream::iter(reads).buffered(AT_ONCE).collect().await;
        let mut next = Vec::new();
        for ((parent, (id, version)), object) in level.into_iter().zip(found) {
            let number = nodes.len();
            let object = match object {
                Lookup::Found(object) => Ok(Some(object)),
                Lookup::Absent => Ok(None),
                Lookup::Refused(why) => Err(why),
            };
            match object {
                Ok(object) => {
                    // Whoever applies itself, or is applied twice, is followed once.
                    let new = seen.insert(id.clone());
                    let inventory = object.as_ref().filter(|_| new && kind::kind_of(&id).is_some());
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

/// Objects that an object of Flux has applied in this cluster: ids and versions.
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
        .filter(|(id, _)| !compact || has_inventory(&id.kind) && kind::kind_of(id).is_some())
        .collect()
}

/// Makes a node of an object; None is one that is not there.
pub fn node(parent: Option<usize>, id: ObjectId, version: &str, object: Option<&Value>) -> Node {
    let (status, message) = match object {
        None => ("NotFound", String::new()),
        Some(object) if kind::kind_of(&id).is_some() => of_flux(object),
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

/// Returns the numbers of the nodes below one.
pub fn children(nodes: &[Node], parent: usize) -> Vec<usize> {
    (0..nodes.len())
        .filter(|&number| nodes[number].parent == Some(parent))
        .collect()
}

/// Returns a node and what is below it as JSON.
pub fn value(nodes: &[Node], number: usize) -> Value {
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
}

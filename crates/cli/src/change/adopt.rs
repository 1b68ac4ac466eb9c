//! `windlass adopt`: objects that were made by hand become manifests in the repository of a Kustomization, by pull request. Once it is
//! merged, the Kustomization applies them; they are the same objects.

use std::collections::BTreeMap;

use api::delivery::FileChange;
use clap::Args;
use delivery_diff::{Action, Archives, Proposed, Reader, place_of, proposed};
use delivery_graph::field_managers::bystanders;
use delivery_graph::object::{self, inventory_ids, text};
use delivery_graph::one_line;
use manifest::ObjectId;
use serde_json::Value;

use super::{Change, How, finish, named, named_kind};
use crate::cluster::{self, Cluster, Failure, anything};
use crate::create::documents;

/// Command line of `adopt`.
#[derive(Debug, Args)]
pub(crate) struct Adopt {
    /// Objects of any kind but Secret, as KIND/NAME… or KIND NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Kustomization that will apply them; defaults to the one with the most objects in their namespace
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    kustomization: Option<String>,

    /// Folder of the new files in the repository; defaults to that of the Kustomization
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,

    #[command(flatten)]
    how: How,
}

/// Writes manifests of objects, and proposes them.
pub(crate) fn run(flags: &Adopt) -> Result<(), Failure> {
    let names = match flags.words.as_slice() {
        [kind, name] if !kind.contains('/') && !name.contains('/') => {
            vec![anything::one_named(&flags.words)?]
        }
        words => {
            let each = words
                .iter()
                .map(|word| anything::one_named(std::slice::from_ref(word)));
            each.collect::<Result<Vec<_>, _>>()?
        }
    };
    cluster::run(&flags.how.cluster, async |cluster| {
        let mut found = Vec::new();
        for name in &names {
            let live = cluster.need_named(name).await?;
            refuse(&live)?;
            found.push(live);
        }
        let kustomization = match &flags.kustomization {
            Some(word) => named(&cluster, "Kustomization", word)?,
            None => likely(&cluster, &found).await?,
        };
        let built = cluster.need(&kustomization).await?;
        let (repository, folder) = place_of(&built).map_err(Failure::NotReady)?;
        if let Some(id) = found
            .iter()
            .map(object::id)
            .find(|id| object::has_applied(&built, id))
        {
            return Err(Failure::Usage(format!(
                "{id} is applied by {kustomization} already"
            )));
        }
        let folder = flags.folder.as_deref().unwrap_or(&folder).trim_matches('/');
        let files = found
            .iter()
            .map(|live| file(live, folder))
            .collect::<Result<Vec<_>, _>>()?;
        let reader = Reader::new(cluster.client());
        let outcome = proposed(reader, Archives::default(), &kustomization, &files).await;
        keeps_names(&kustomization, &files, &outcome.map_err(Failure::NotReady)?)?;
        let title = match found.as_slice() {
            [live] => format!("Adopt {}/{}", text(live, "/kind"), object::name(live)),
            more => format!("Adopt {} objects", more.len()),
        };
        let change = Change {
            kustomization,
            repository,
            files,
            title,
        };
        finish(&cluster, change, &flags.how).await
    })
}

/// Refuses what must not be in Git, and what comes from somewhere else.
fn refuse(live: &Value) -> Result<(), Failure> {
    let id = object::id(live);
    let problem = if id.group.is_empty() && id.kind == "Secret" {
        "a Secret must not be in Git as it is: encrypt its manifest with sops, and commit it yourself"
            .to_owned()
    } else if let Some(owner) = object::list(live, "/metadata/ownerReferences").first() {
        let owner = format!("{}/{}", text(owner, "/kind"), text(owner, "/name"));
        format!("{} owns it: adopt that one", one_line(&owner))
    } else if let Some(by) = object::owner(live) {
        format!(
            "its labels say that {by} applies it. If `windlass orphans` lists it all the same, remove the labels first"
        )
    } else if let Some(release) = live.pointer("/metadata/annotations/meta.helm.sh~1release-name") {
        let release = one_line(release.as_str().unwrap_or_default());
        format!(
            "it belongs to the release {release} of Helm: make a HelmRelease of that name, which takes it over"
        )
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!("{id}: {problem}")))
}

/// The Kustomization that applies most objects in the namespace of those that are adopted.
async fn likely(cluster: &Cluster, found: &[Value]) -> Result<ObjectId, Failure> {
    let usage = |why: &str| Failure::Usage(format!("{why}: name a Kustomization with --kustomization"));
    let namespace = object::namespace(&found[0]);
    if namespace.is_empty() {
        return Err(usage("the objects are in no namespace"));
    }
    if found.iter().any(|live| object::namespace(live) != namespace) {
        return Err(usage("the objects are in several namespaces"));
    }
    let kind = named_kind("Kustomization")?;
    let all = cluster.list(kind, None, None).await?.unwrap_or_default();
    match most(&all, namespace).as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(usage(&format!(
            "no Kustomization applies anything in namespace {namespace}"
        ))),
        [one, other, ..] => Err(usage(&format!(
            "{one} and {other} apply as much in namespace {namespace}"
        ))),
    }
}

/// Those that apply most in a namespace, of what is in Git and goes into this cluster.
fn most(all: &[Value], namespace: &str) -> Vec<ObjectId> {
    let start = format!("{namespace}_");
    let mut by_count: BTreeMap<usize, Vec<ObjectId>> = BTreeMap::new();
    for one in all {
        let count = inventory_ids(one).filter(|id| id.starts_with(&start)).count();
        if count > 0 && place_of(one).is_ok() && one.pointer("/spec/kubeConfig").is_none() {
            by_count.entry(count).or_default().push(object::id(one));
        }
    }
    by_count.pop_last().map(|(_, ids)| ids).unwrap_or_default()
}

/// The new file of an object.
fn file(live: &Value, folder: &str) -> Result<FileChange, Failure> {
    let metadata = serde_json::from_value(live["metadata"].clone()).unwrap_or_default();
    let bystanders = bystanders(&metadata);
    let manifest = manifest_edit::live::manifest(live, |manager| bystanders.contains(manager));
    // Names of roles may have colons.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let name = format!("{}-{}", text(live, "/kind").to_lowercase(), object::name(live));
    let name = name.replace(|letter| !is_plain(letter), "-");
    let path = match folder {
        "" => format!("{name}.yaml"),
        folder => format!("{folder}/{name}.yaml"),
    };
    Ok(FileChange {
        path,
        content: documents(&[manifest])?,
        ..FileChange::default()
    })
}

/// Refuses files of which the Kustomization would make other objects than those that are there.
fn keeps_names(kustomization: &ObjectId, files: &[FileChange], outcome: &Proposed) -> Result<(), Failure> {
    let entries = outcome.sections.iter().flat_map(|section| &section.objects);
    let is_of = |file: &str, path: &str| {
        let rest = file.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    for entry in entries.filter(|entry| entry.action == Action::Created) {
        let from = entry.file.as_deref().unwrap_or_default();
        if files.iter().any(|file| is_of(from, &file.path)) {
            return Err(Failure::Usage(format!(
                "{kustomization} would make {} of it, which is not there: its targetNamespace, or a prefix in a kustomization.yaml, \
                 changes names. Choose another one with --kustomization, or another folder with --folder",
                entry.object
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kustomization(name: &str, spec: Value, entries: &[&str]) -> Value {
        let entries: Vec<_> = entries.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": name, "namespace": "flux-system"}, "spec": spec,
            "status": {"inventory": {"entries": entries}},
        })
    }

    #[test]
    fn the_kustomization_is_the_one_that_applies_most_in_the_namespace() {
        let git = json!({"sourceRef": {"kind": "GitRepository", "name": "fleet"}});
        let remote = json!({"sourceRef": git["sourceRef"], "kubeConfig": {"secretRef": {"name": "far"}}});
        let oci = json!({"sourceRef": {"kind": "OCIRepository", "name": "fleet"}});
        let many = ["shop_a__ConfigMap", "shop_b__ConfigMap", "shop_c__ConfigMap"];
        let all = [
            kustomization(
                "infra",
                git.clone(),
                &["shop_a__ConfigMap", "other_a__ConfigMap", "other_b__ConfigMap"],
            ),
            kustomization("shop", git.clone(), &many[..2]),
            kustomization(
                "shop-x",
                git,
                &[
                    "shop-x_a__ConfigMap",
                    "shop-x_b__ConfigMap",
                    "shop-x_c__ConfigMap",
                ],
            ),
            kustomization("remote", remote, &many),
            kustomization("oci", oci, &many),
        ];
        let names = |namespace: &str| {
            let found = most(&all, namespace);
            found.iter().map(|id| id.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names("shop"), ["shop"]);
        assert_eq!(names("shop-x"), ["shop-x"]);
        assert!(names("none").is_empty());
    }

    #[test]
    fn what_comes_from_somewhere_else_is_refused() {
        let refused = |kind: &str, metadata: Value| {
            let live = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
            refuse(&live).map_err(|failure| failure.to_string())
        };
        assert_eq!(
            refused("ConfigMap", json!({"name": "a", "namespace": "n"})),
            Ok(())
        );
        let said = refused("Secret", json!({"name": "a", "namespace": "n"})).unwrap_err();
        assert!(
            said.starts_with("Secret/n/a: a Secret must not be in Git"),
            "{said}"
        );
        let owned = json!({"name": "a", "ownerReferences": [{"kind": "Any", "name": "b"}]});
        assert_eq!(
            refused("ConfigMap", owned).unwrap_err(),
            "ConfigMap/a: Any/b owns it: adopt that one"
        );
        let helm = json!({"name": "a", "annotations": {"meta.helm.sh/release-name": "redis"}});
        assert!(
            refused("ConfigMap", helm)
                .unwrap_err()
                .contains("release redis of Helm")
        );
    }

    #[test]
    fn a_file_has_a_name_that_every_system_takes() {
        let live = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "team:Read"}});
        let made = file(&live, "apps/shop").expect("a file");
        assert_eq!(made.path, "apps/shop/clusterrole-team-Read.yaml");
        assert!(made.content.contains("name: team:Read"), "{}", made.content);
    }
}

//! `windlass export`: objects of delivery as manifests that can be applied again, with the words of `flux export`.

mod backup;

use std::path::PathBuf;

use clap::Args;
use delivery_graph::kind::Kind;
use delivery_graph::object::text;
use kube::Api;
use serde_json::{Map, Value};
use sops::age::Recipient;

use crate::cluster::select::Selection;
use crate::cluster::{self, Cluster, Failure, Scope, print, select};
use crate::create::documents;

/// Command line of `export`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME…, KIND NAME…, or KIND, sources, images or all with --all
    #[arg(value_name = "OBJECT", required_unless_present = "out")]
    words: Vec<String>,

    /// Select all objects of the kinds in the namespace
    #[arg(long)]
    all: bool,

    /// Include the Secrets that the objects fetch with; with --out, all Secrets and ConfigMaps that they reference
    #[arg(long)]
    with_credentials: bool,

    /// Write all objects of delivery to files in this folder, for `windlass restore`: those of --namespace, or of all namespaces
    #[arg(long, value_name = "FOLDER", requires = "all", conflicts_with = "words")]
    out: Option<PathBuf>,

    /// age recipients to encrypt the Secrets in the files for, with SOPS
    #[arg(long, value_name = "RECIPIENT", value_delimiter = ',', value_parser = Recipient::parse, requires_all = ["out", "with_credentials"])]
    age: Vec<Recipient>,

    #[command(flatten)]
    scope: Scope,
}

/// Exports. `report_line` is for what was written to files.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    if let Some(folder) = &flags.out {
        let namespace = flags.scope.cluster.named_namespace();
        let backup = backup::Backup {
            folder,
            recipients: &flags.age,
            with_credentials: flags.with_credentials,
            namespace: namespace.as_deref().filter(|_| !flags.scope.all_namespaces),
        };
        return cluster::run(&flags.scope.cluster, async |cluster| {
            backup.write(&cluster, &report_line).await
        });
    }
    let selection = select::select(&flags.words)?;
    let is_all = flags.all || flags.scope.all_namespaces;
    match &selection {
        Selection::Kinds(_) if !is_all => {
            return Err(Failure::Usage("name objects, or give --all".to_owned()));
        }
        Selection::Targets(_) if is_all => {
            return Err(Failure::Usage("give either names or --all".to_owned()));
        }
        _ => {}
    }
    cluster::run(&flags.scope.cluster, async |cluster| {
        let namespace = (!flags.scope.all_namespaces).then_some(cluster.namespace.as_str());
        let found = match selection {
            Selection::Targets(targets) => {
                let mut found = Vec::new();
                for target in targets {
                    found.push(cluster.need(&target.id(&cluster.namespace)).await?);
                }
                found
            }
            Selection::Kinds(kinds) => of_kinds(&cluster, &kinds, namespace).await?,
        };
        let mut all = Vec::new();
        let mut secrets: Vec<(String, String)> = Vec::new();
        for object in &found {
            let secret = (
                text(object, "/metadata/namespace").to_owned(),
                text(object, "/spec/secretRef/name").to_owned(),
            );
            if flags.with_credentials && !secret.1.is_empty() && !secrets.contains(&secret) {
                all.extend(credentials(&cluster, &secret).await?);
                secrets.push(secret);
            }
            all.push(declared(object));
        }
        print(&documents(&all)?)
    })
}

async fn of_kinds(
    cluster: &Cluster,
    kinds: &[&'static Kind],
    namespace: Option<&str>,
) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for kind in kinds {
        found.extend(cluster.list(kind, namespace, None).await?.unwrap_or_default());
    }
    Ok(found)
}

/// The Secret of an object; one that is not there is left out, as the object says itself that it is missing.
async fn credentials(
    cluster: &Cluster,
    (namespace, name): &(String, String),
) -> Result<Option<Value>, Failure> {
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(cluster.client(), namespace);
    let found = secrets.get_opt(name).await;
    let found = found.map_err(|error| Failure::request(format!("get Secret/{namespace}/{name}"), error))?;
    let Some(secret) = found else {
        return Ok(None);
    };
    let mut value = serde_json::to_value(secret).map_err(|error| Failure::Write(error.to_string()))?;
    value["apiVersion"] = "v1".into();
    value["kind"] = "Secret".into();
    Ok(Some(declared(&value)))
}

/// An object as it was declared: without its status, and without what the API server and controllers add.
fn declared(object: &Value) -> Value {
    let mut all: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    all.remove("status");
    let metadata = manifest_edit::live::metadata(&object["metadata"]);
    all.insert("metadata".to_owned(), metadata);
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_controllers_add_is_left_out() {
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "finalizers": ["f"],
                "labels": {"kustomize.toolkit.fluxcd.io/name": "k", "kustomize.toolkit.fluxcd.io/namespace": "n"},
                "annotations": {"reconcile.fluxcd.io/requestedAt": "now", "team": "web"},
            },
            "spec": {"url": "https://example.com"}, "status": {"conditions": []},
        });
        assert_eq!(
            declared(&object),
            json!({
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
                "metadata": {"name": "a", "namespace": "n", "annotations": {"team": "web"}},
                "spec": {"url": "https://example.com"},
            })
        );
    }
}

//! Applications and ApplicationSets of Argo CD.

use std::path::PathBuf;

use clap::Args;
use delivery_import::{Imported, argocd};
use serde_json::Value;

use super::of_path;
use crate::cluster::{self, Cluster, ClusterFlags, Failure};

/// Kinds that are read from a cluster. What an ApplicationSet has made is there as Applications.
const KINDS: [&str; 2] = ["applications.argoproj.io", "appprojects.argoproj.io"];

/// Command line of `import argocd`.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Files and folders with manifests, - for standard input; by default, the cluster is asked
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Folder to write to, a file for each application and each source; if one of the files is there already, nothing is written
    #[arg(long, value_name = "FOLDER")]
    pub(super) output_folder: Option<PathBuf>,

    /// Namespace of the new objects
    #[arg(long, short, value_name = "NAME", default_value = "flux-system")]
    namespace: String,

    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Reads, and converts.
pub(super) fn import(flags: &Flags) -> Result<Imported, Failure> {
    let objects = match flags.files.as_slice() {
        [] => {
            let cluster = ClusterFlags::of_context(flags.kubeconfig.clone(), flags.context.clone());
            cluster::run(&cluster, async |cluster| of_cluster(&cluster).await)?
        }
        files => {
            let mut objects = Vec::new();
            for file in files {
                objects.extend(of_path(file)?);
            }
            objects
        }
    };
    Ok(argocd::import(&objects, &flags.namespace))
}

async fn of_cluster(cluster: &Cluster) -> Result<Vec<Value>, Failure> {
    let mut objects = Vec::new();
    for word in KINDS {
        let served = cluster.served(word).await?;
        let keep = |mut object: Value| {
            object["apiVersion"] = served.resource.api_version.clone().into();
            object["kind"] = served.resource.kind.clone().into();
            Some(object)
        };
        objects.extend(cluster.list_everywhere(&served.resource, keep).await?);
    }
    Ok(objects)
}

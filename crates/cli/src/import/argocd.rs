//! Applications and ApplicationSets of Argo CD.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use delivery_import::{Imported, argocd};
use serde_json::Value;

use super::of_path;
use crate::cluster::{self, Cluster, ClusterFlags, Failure};

/// Kinds that are read from a cluster. What an ApplicationSet has made is there as Applications.
const KINDS: [&str; 2] = ["applications.argoproj.io", "appprojects.argoproj.io"];

/// More are not looked at.
const MOST_FILES: usize = 500_000;

/// Command line of `import argocd`.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Files and folders with manifests, - for standard input; by default, the cluster is asked
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    files: Vec<PathBuf>,

    /// A clone of a repository that generators of ApplicationSets look into: its address and the folder
    #[arg(long = "checkout", value_name = "URL=FOLDER", value_parser = checkout)]
    checkouts: Vec<(String, PathBuf)>,

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
    let checkouts = Clones(&flags.checkouts);
    Ok(argocd::import(&objects, &flags.namespace, &checkouts))
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

fn checkout(text: &str) -> Result<(String, PathBuf), String> {
    // Addresses may have a query.
    let (url, folder) = text.rsplit_once('=').ok_or("it must be URL=FOLDER")?;
    if !Path::new(folder).is_dir() {
        return Err(format!("{folder} is no folder"));
    }
    Ok((plain(url).to_owned(), PathBuf::from(folder)))
}

/// An address without what makes no difference.
fn plain(url: &str) -> &str {
    url.trim_end_matches('/').trim_end_matches(".git")
}

/// Clones of repositories by their addresses.
struct Clones<'a>(&'a [(String, PathBuf)]);

impl Clones<'_> {
    fn folder(&self, url: &str) -> Option<&Path> {
        let found = self.0.iter().find(|(known, _)| known == plain(url));
        found.map(|(_, folder)| folder.as_path())
    }
}

impl argocd::Checkouts for Clones<'_> {
    fn files(&self, url: &str) -> Result<Option<Vec<String>>, String> {
        let Some(folder) = self.folder(url) else {
            return Ok(None);
        };
        let mut files = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(below) = folders.pop() {
            let here = folder.join(&below);
            let failed = |error: io::Error| format!("failed to read {}: {error}", here.display());
            for entry in fs::read_dir(&here).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = match below.as_str() {
                    "" => name,
                    below => format!("{below}/{name}"),
                };
                // Links are not followed.
                match entry.file_type().map_err(failed)? {
                    kind if kind.is_dir() && path != ".git" => folders.push(path),
                    kind if kind.is_file() => files.push(path),
                    _ => {}
                }
                if files.len() + folders.len() > MOST_FILES {
                    return Err(format!("{} has more than {MOST_FILES} files", folder.display()));
                }
            }
        }
        files.sort();
        Ok(Some(files))
    }

    fn read(&self, url: &str, path: &str) -> Result<String, String> {
        let path = self.folder(url).unwrap_or(Path::new("")).join(path);
        let failed = |error: io::Error| format!("failed to read {}: {error}", path.display());
        fs::read_to_string(&path).map_err(failed)
    }
}

//! `windlass import`: what other tools deliver, as objects of Flux, in files that people would have written.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use delivery_import::{Imported, Note, argocd};
use serde_json::Value;

use crate::cluster::{self, Cluster, ClusterFlags, Failure, print};
use crate::create::documents;
use crate::new;

/// Kinds that are read from a cluster. What an ApplicationSet has made is there as Applications.
const KINDS: [&str; 2] = ["applications.argoproj.io", "appprojects.argoproj.io"];
/// A larger file is no list of applications.
const MAX_FILE: u64 = 16 << 20;

/// Command line of `import`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// Applications and ApplicationSets of Argo CD, from files or from the cluster.
    Argocd(Argocd),
}

#[derive(Debug, Args)]
struct Argocd {
    /// Files and folders with manifests, - for standard input; by default, the cluster is asked
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Folder to write to, a file for each application and each source; if one of the files is there already, nothing is written
    #[arg(long, value_name = "FOLDER")]
    output_folder: Option<PathBuf>,

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

/// Reads, and writes. `report_line` is for what does not carry over.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let From::Argocd(flags) = &flags.from;
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
    let imported = argocd::import(&objects, &flags.namespace);
    if imported.applications.is_empty() {
        imported.notes.iter().for_each(|note| report_line(&line(note)));
        return Err(Failure::NotReady("no Application was found".to_owned()));
    }
    match &flags.output_folder {
        None => {
            let all: Vec<Value> = imported
                .sources
                .values()
                .chain(imported.applications.values().flatten())
                .cloned()
                .collect();
            print(&documents(&all)?)?;
        }
        Some(folder) => {
            let files = files(&imported)?;
            new::write(folder, &files)?;
            print(&files.keys().map(|path| format!("{path}\n")).collect::<String>())?;
        }
    }
    imported.notes.iter().for_each(|note| report_line(&line(note)));
    Ok(())
}

fn line(note: &Note) -> String {
    let Note {
        application,
        field,
        text,
    } = note;
    let place = match field.as_str() {
        "" => application.clone(),
        field => format!("{application}: {field}"),
    };
    delivery_graph::one_line(&format!("{place}: {text}"))
}

/// A file for each application, and one for each source.
fn files(imported: &Imported) -> Result<BTreeMap<String, String>, Failure> {
    let mut files = BTreeMap::new();
    for (name, source) in &imported.sources {
        files.insert(
            format!("sources/{name}.yaml"),
            documents(std::slice::from_ref(source))?,
        );
    }
    for (name, objects) in &imported.applications {
        // A name from a file may be anything.
        if name.contains(['/', '\\']) || name.starts_with('.') || name.is_empty() {
            return Err(Failure::Usage(format!("{name:?} is no name of an Application")));
        }
        files.insert(format!("{name}.yaml"), documents(objects)?);
    }
    Ok(files)
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

/// The objects of a file, or of all YAML files of a folder and those below.
fn of_path(path: &Path) -> Result<Vec<Value>, Failure> {
    let failed = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    if path.is_dir() {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| failed(error.to_string()))? {
            let entry = entry.map_err(|error| failed(error.to_string()))?;
            let kind = entry.file_type().map_err(|error| failed(error.to_string()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
            if !name.starts_with('.') && (kind.is_dir() || kind.is_file() && is_yaml) {
                entries.push(entry.path());
            }
        }
        entries.sort();
        let mut objects = Vec::new();
        for entry in entries {
            objects.extend(of_path(&entry)?);
        }
        return Ok(objects);
    }
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin().take(MAX_FILE).read_to_string(&mut text),
        _ => fs::File::open(path).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text)),
    };
    read.map_err(|error| failed(error.to_string()))?;
    let name = path.display().to_string();
    let objects = manifest::read_objects(&text, &name).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(objects.into_iter().map(manifest::Object::into_value).collect())
}

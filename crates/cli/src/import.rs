//! `windlass import`: what other tools deliver, as objects of Flux, in files that people would have written.

mod argocd;
mod helm;
mod helmfile;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use clap::{Args, Subcommand};
use delivery_import::{Imported, Note};
use serde_json::Value;

use crate::cluster::{Failure, print};
use crate::create::documents;
use crate::new;

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
    Argocd(argocd::Flags),
    /// Releases that helm has made in the cluster.
    Helm(helm::Flags),
    /// Releases of a helmfile.
    Helmfile(helmfile::Flags),
}

/// Reads, and writes. `report_line` is for what does not carry over.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let (imported, folder, none) = match &flags.from {
        From::Argocd(flags) => (
            argocd::import(flags)?,
            &flags.output_folder,
            "no Application was found",
        ),
        From::Helm(flags) => (
            helm::import(flags, &report_line)?,
            &flags.output_folder,
            "no release was found that could be imported",
        ),
        From::Helmfile(flags) => (
            helmfile::import(flags)?,
            &flags.output_folder,
            "the helmfile has no release that could be imported",
        ),
    };
    write(&imported, folder.as_deref(), none, report_line)
}

fn write(
    imported: &Imported,
    folder: Option<&Path>,
    none: &str,
    report_line: impl Fn(&str),
) -> Result<(), Failure> {
    if imported.applications.is_empty() {
        imported.notes.iter().for_each(|note| report_line(&line(note)));
        return Err(Failure::NotReady(none.to_owned()));
    }
    match folder {
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
            let files = files(imported)?;
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
            return Err(Failure::Usage(format!("{name:?} is no name of an application")));
        }
        files.insert(format!("{name}.yaml"), documents(objects)?);
    }
    Ok(files)
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
    let text = read(path).map_err(|error| failed(error.to_string()))?;
    let name = path.display().to_string();
    let objects = manifest::read_objects(&text, &name).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(objects.into_iter().map(manifest::Object::into_value).collect())
}

/// The text of a file, or of standard input.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    match path.to_str() {
        Some("-") => io::stdin().take(MAX_FILE).read_to_string(&mut text)?,
        _ => fs::File::open(path)?.take(MAX_FILE).read_to_string(&mut text)?,
    };
    Ok(text)
}

//! `windlass new`: something to start from.

mod layout;

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::cluster::{Failure, print};
use layout::{Layout, Wanted};

/// Command line of `new`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write the folders of a repository that clusters are delivered from.
    Repo(Repo),
}

#[derive(Debug, Args)]
struct Repo {
    /// Folder to write to; if one of the files is there already, nothing is written
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,

    /// How clusters and teams are spread over repositories
    #[arg(long, value_enum, default_value_t)]
    layout: Layout,

    /// Names of the clusters, which are the environments, in the order in which changes reach them
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "staging,production"
    )]
    clusters: Vec<String>,

    /// Names of the tenants: teams with a namespace and an account of their own
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tenants: Vec<String>,

    /// Address of the folder in which the repositories of the tenants are, such as https://github.com/org
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Namespace of the controllers
    #[arg(long, short, value_name = "NAME", default_value = "flux-system")]
    namespace: String,

    /// List the files without writing them
    #[arg(long)]
    dry_run: bool,
}

/// Writes.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let What::Repo(repo) = &flags.what;
    let wanted = Wanted {
        layout: repo.layout,
        clusters: &repo.clusters,
        tenants: &repo.tenants,
        url: repo.url.as_deref(),
        namespace: &repo.namespace,
    };
    let files = wanted.files().map_err(Failure::Usage)?;
    if !repo.dry_run {
        write(&repo.folder, &files)?;
    }
    let listed: String = files.keys().map(|path| format!("{path}\n")).collect();
    let next = match repo.dry_run {
        true => String::new(),
        false => wanted.next(&repo.folder.display().to_string()),
    };
    print(&format!("{listed}{next}"))
}

/// Writes all files, or none if one of them is there already.
pub(crate) fn write(folder: &Path, files: &BTreeMap<String, String>) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| Failure::Write(format!("{}: {error}", path.display()));
    for path in files.keys() {
        let path = folder.join(path);
        match fs::symlink_metadata(&path) {
            Ok(_) => {
                return Err(Failure::Usage(format!(
                    "{} is there already; give an empty folder",
                    path.display()
                )));
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
    for (path, text) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        }
        let file = fs::OpenOptions::new().write(true).create_new(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_there_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let files = BTreeMap::from([
            ("a/b.yaml".to_owned(), "b".to_owned()),
            ("c.yaml".to_owned(), "c".to_owned()),
        ]);
        fs::write(folder.path().join("c.yaml"), "theirs").unwrap();
        let refused = write(folder.path(), &files).unwrap_err().to_string();
        assert!(refused.contains("c.yaml is there already"), "{refused}");
        assert!(!folder.path().join("a").exists());
        fs::remove_file(folder.path().join("c.yaml")).unwrap();
        write(folder.path(), &files).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("a/b.yaml")).unwrap(), "b");
    }
}

//! Recorded cases as folders to build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;

use crate::contest::Work;

/// A folder to build.
#[derive(Debug)]
pub struct Case {
    /// The root of its tree.
    pub tree: PathBuf,
    /// The folder that is built, below the root.
    pub path: String,
    /// Flags.
    pub flags: Vec<String>,
}

impl Work for Case {
    fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        command
            .arg("build")
            .arg(self.tree.join(&self.path))
            .args(&self.flags);
        command
    }

    fn line(&self) -> String {
        format!("{}\t{}\t{}", self.tree.display(), self.path, self.flags.join(" "))
    }
}

/// The project's own cases: each has its tree beside the recorded answer.
pub fn own(folder: &Path) -> Result<Vec<Case>> {
    let cases = folders(folder)?
        .into_iter()
        .filter(|case| case.join("input").is_dir());
    Ok(cases.map(|case| described(&case, case.join("input"))).collect())
}

/// Cases whose trees are archives, unpacked into `scratch`.
pub fn packed(folder: &Path, scratch: &Path) -> Result<Vec<Case>> {
    let unpack = |case: PathBuf| {
        let name = case.file_name().context("a case without a name")?;
        // Some cases look for files above their tree.
        let tree = scratch.join(name).join("root");
        fs::create_dir_all(&tree)?;
        let archive = fs::File::open(case.join("input.tgz"))?;
        tar::Archive::new(GzDecoder::new(archive)).unpack(&tree)?;
        Ok(described(&case, tree.canonicalize()?))
    };
    folders(folder)?.into_iter().map(unpack).collect()
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut folders = entries.collect::<Result<Vec<_>>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}

fn described(case: &Path, tree: PathBuf) -> Case {
    let text = |name: &str| fs::read_to_string(case.join(name)).unwrap_or_default();
    Case {
        tree,
        path: text("path.txt").trim().to_owned(),
        flags: text("flags.txt").split_whitespace().map(str::to_owned).collect(),
    }
}

//! Writes the generated files of the repository: the CRDs (from the types of crate `api`), the gRPC code (from
//! `proto/`), the chart's README (from its values) and the reference of the API (from both).
//!
//! Every generator returns the files it wants as text, in memory; this module writes them, or, with `--check`,
//! compares them with what is committed and names each file that differs, is missing or is left over. So there
//! is one rule for what "stale" means, and a check never touches the tree.

mod chart;
mod crds;
mod generated;
mod proto;
mod reference;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use generated::Generated;

/// Arguments of `xtask generate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Compare with what is committed, write nothing, and fail when a file is stale.
    #[arg(long)]
    check: bool,
}

/// Writes, or with `--check` compares, every generated folder.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = repository_root()?;
    let mut folders = vec![chart::generate(&root)?, reference::generate(&root)?];
    folders.extend(crds::generate()?);
    folders.extend(proto::generate(&root)?);
    let mut stale = Vec::new();
    for generated in &folders {
        stale.extend(stale_files(&root, generated)?);
        if !arguments.check {
            write(&root, generated)?;
        }
    }
    report(arguments.check, &stale)
}

#[allow(clippy::print_stdout, reason = "the answer of a command line tool")]
fn report(check: bool, stale: &[PathBuf]) -> Result<()> {
    let names: Vec<String> = stale.iter().map(|path| path.display().to_string()).collect();
    if check && !names.is_empty() {
        bail!("stale, run `make generate`:\n  {}", names.join("\n  "));
    }
    for name in names {
        println!("{name}");
    }
    Ok(())
}

/// The files of the folder that differ from what the generator wants, are missing, or are left over.
fn stale_files(root: &Path, generated: &Generated) -> Result<Vec<PathBuf>> {
    let folder = root.join(generated.folder);
    let mut names = left_over(&folder, generated)?;
    names.extend(generated.files.keys().cloned());
    let mut stale = Vec::new();
    for name in names {
        let present = fs::read(folder.join(&name)).ok();
        if present.as_ref() != generated.files.get(&name) {
            stale.push(Path::new(generated.folder).join(name));
        }
    }
    Ok(stale)
}

fn write(root: &Path, generated: &Generated) -> Result<()> {
    let folder = root.join(generated.folder);
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    for name in left_over(&folder, generated)? {
        let path = folder.join(&name);
        fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
    }
    for (name, content) in &generated.files {
        let path = folder.join(name);
        // An unchanged file keeps its modification time, so that cargo does not rebuild what includes it.
        if fs::read(&path).ok().as_ref() != Some(content) {
            fs::write(&path, content).with_context(|| format!("failed to write {}", path.display()))?;
        }
    }
    Ok(())
}

/// Files that the generator does not want.
fn left_over(folder: &Path, generated: &Generated) -> Result<BTreeSet<String>> {
    if !generated.is_whole {
        return Ok(BTreeSet::new());
    }
    let mut names = present_files(folder)?;
    names.retain(|name| !generated.files.contains_key(name));
    Ok(names)
}

/// Names of the plain files in the folder; none when there is no such folder.
fn present_files(folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    if !folder.is_dir() {
        return Ok(names);
    }
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("failed to list {}", folder.display()))?;
        if entry.path().is_file() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// The folder above `crates/xtask`.
fn repository_root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .with_context(|| format!("failed to find the repository at {}", root.display()))
}

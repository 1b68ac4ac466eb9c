//! The release once more, in another place: whoever builds the tag must get the same digests.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Digests, Release};
use crate::images::commands::read;
use crate::images::compile::Place;
use crate::images::compile_all;

/// Clones the commit, compiles and packs it with none of the folders of the first time, and compares.
pub(super) fn again(release: &Release<'_>, made: &Digests, report: &mut impl Write) -> Result<()> {
    let folder = tempfile::tempdir().context("failed to create a folder")?;
    let root = folder.path().join("another-place");
    let git = |arguments: &[&str], at: &Path| read(Command::new("git").current_dir(at).args(arguments));
    let (from, to) = (release.root.to_string_lossy(), root.to_string_lossy());
    git(&["clone", "--quiet", "--no-checkout", &from, &to], folder.path())?;
    git(&["checkout", "--quiet", "--detach", &release.commit.id], &root)?;
    let here = Place::here()?;
    let place = Place {
        target: folder.path().join("built"),
        cargo_home: folder.path().join("crates"),
        root,
    };
    copy_crates(&here.cargo_home, &place.cargo_home)?;
    let platforms: Vec<_> = release.folders.iter().map(|(platform, _)| *platform).collect();
    let folders = compile_all(release.programs, &platforms, &place)?;
    let second = Release {
        root: &place.root,
        folders: &folders,
        out: &folder.path().join("release"),
        repository: None,
        key: None,
        ..*release
    };
    let second = second.make(&mut std::io::sink())?;
    compare(made, &second)?;
    writeln!(
        report,
        "made twice, in two places: {} digests are equal",
        made.len()
    )?;
    Ok(())
}

/// Fails with the names of what differs.
pub(super) fn compare(first: &Digests, second: &Digests) -> Result<()> {
    ensure!(
        first.len() == second.len(),
        "{} files and images became {}",
        first.len(),
        second.len()
    );
    let differing = first.iter().zip(second).filter(|(one, other)| one != other);
    let differing: Vec<_> = differing
        .map(|((name, one), (_, other))| format!("{name}: {one} became {other}"))
        .collect();
    ensure!(
        differing.is_empty(),
        "made twice, in two places, and not equal:\n{}",
        differing.join("\n")
    );
    Ok(())
}

/// Gives another cargo home the crates that this one has downloaded, as links where the file system is the same.
fn copy_crates(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to create {}", to.display()))?;
    let registry = from.join("registry");
    let copied = |arguments: &[&str]| read(Command::new("cp").args(arguments).arg(&registry).arg(to));
    copied(&["-al"]).or_else(|_| copied(&["-a"])).map(drop)
}

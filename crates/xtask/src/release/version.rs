//! The version: it stands in Cargo.toml, in Chart.yaml and in a tag, and is the same in all three.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::images::commands::read;
use crate::images::commit::Commit;

const CARGO: &str = "Cargo.toml";
const CHART: &str = "charts/windlass/Chart.yaml";
const CHANGELOG: &str = "docs/CHANGELOG.md";
const UNRELEASED: &str = "## Unreleased\n";

/// The version of the workspace.
pub(super) fn of(root: &Path) -> Result<String> {
    let text = text(root, CARGO)?;
    let line = version_line(&text)?;
    let version = line.split('"').nth(1);
    Ok(version
        .with_context(|| format!("{CARGO} has no version"))?
        .to_owned())
}

/// Checks that the commit is the one that the version's tag names, and nothing else.
pub(super) fn check_tag(root: &Path, version: &str, commit: &Commit) -> Result<()> {
    ensure!(
        commit.clean,
        "the tree differs from commit {}: commit what is to be in the release, or use --trial",
        commit.id
    );
    let tag = format!("v{version}");
    let tags = read(
        Command::new("git")
            .arg("-C")
            .arg(root)
            .args(["tag", "--points-at", "HEAD"]),
    )?;
    ensure!(
        tags.lines().any(|line| line == tag),
        "commit {} does not have the tag {tag}: `make release-prepare VERSION=…` writes a version, commit it, then `git tag -s {tag}`; or use --trial",
        commit.id
    );
    Ok(())
}

/// Writes a version into the tree.
pub(super) fn prepare(root: &Path, version: &str, report: &mut impl Write) -> Result<()> {
    let parts: Vec<_> = version
        .split(['-', '+'])
        .next()
        .unwrap_or_default()
        .split('.')
        .collect();
    let is_number = |part: &&str| {
        part.parse::<u32>()
            .is_ok_and(|number| number.to_string() == **part)
    };
    if parts.len() != 3 || !parts.iter().all(is_number) || version.contains('+') {
        bail!("{version} is no version such as 1.2.3 or 1.2.3-rc.1");
    }
    let cargo = text(root, CARGO)?;
    let line = version_line(&cargo)?;
    let chart = text(root, CHART)?;
    let chart: Vec<_> = chart
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((key @ ("version" | "appVersion"), _)) => format!("{key}: {version}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let changelog = text(root, CHANGELOG)?;
    ensure!(
        changelog.contains(UNRELEASED),
        "{CHANGELOG} has no section \"Unreleased\""
    );
    let released = format!("{UNRELEASED}\n## {version}\n");
    for (name, content) in [
        (
            CARGO,
            cargo.replacen(line, &format!("version = \"{version}\""), 1),
        ),
        (CHART, chart.concat()),
        (CHANGELOG, changelog.replacen(UNRELEASED, &released, 1)),
    ] {
        fs::write(root.join(name), content).with_context(|| format!("failed to write {name}"))?;
        writeln!(report, "{name}: {version}")?;
    }
    read(
        Command::new("cargo")
            .current_dir(root)
            .args(["update", "--workspace", "--offline"]),
    )?;
    writeln!(
        report,
        "Cargo.lock: {version}\nread the changes, then: git commit -am 'release: {version}' && git tag -s v{version}"
    )?;
    Ok(())
}

/// The line of the workspace's version: the first one of Cargo.toml that begins with it.
fn version_line(cargo: &str) -> Result<&str> {
    let mut lines = cargo.lines();
    let line = lines.find(|line| line.starts_with("version = \""));
    line.with_context(|| format!("{CARGO} has no version"))
}

fn text(root: &Path, name: &str) -> Result<String> {
    fs::read_to_string(root.join(name)).with_context(|| format!("failed to read {name}"))
}

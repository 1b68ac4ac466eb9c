//! Images of our own programs in a registry of the test, as `make images` makes them.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use testkit::Registry;
use testkit::controller::{development_program, program};

/// The repository that images are pushed to, below the registry's address.
pub const REPOSITORY: &str = "windlass";
/// Their tag.
pub const TAG: &str = "test";

const CONTROLLERS: [&str; 9] = [
    "source-controller",
    "apply-controller",
    "helm-controller",
    "notification-controller",
    "image-controller",
    "pipeline-controller",
    "resource-set-controller",
    "windlass-controllers",
    "console",
];

/// Packs the programs that tests run, without what only a debugger needs, and pushes the images.
pub async fn push(registry: &Registry) -> Result<()> {
    let repository = format!("{}/{REPOSITORY}", registry.address());
    tokio::task::spawn_blocking(move || pack(&repository)).await?
}

fn pack(repository: &str) -> Result<()> {
    let work: TempDir = testkit::scratch::directory("images")?;
    let programs = work.path().join("programs");
    fs::create_dir(&programs).context("failed to make a folder")?;
    for name in CONTROLLERS {
        let mut strip = Command::new("strip");
        said(strip.arg("-o").arg(programs.join(name)).arg(program(name)?))?;
    }
    let mut images = Command::new(development_program("xtask")?);
    images.args(["images", "--repository", repository, "--tag", TAG, "--programs"]);
    images.arg(&programs).arg("--out").arg(work.path().join("images"));
    said(images.args(CONTROLLERS))
}

fn said(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("failed to start {command:?}"))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {problem}",
        output.status
    );
    Ok(())
}

//! Commands that the build of images runs, and their output.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::image_name;

/// An image that was built.
pub(super) struct Image {
    pub(super) program: String,
    /// Name and tag.
    pub(super) reference: String,
    pub(super) digest: String,
    /// Bytes to pull.
    pub(super) size: u64,
}

impl Image {
    /// Name, without registry and tag.
    pub(super) fn name(&self) -> &str {
        image_name(&self.program)
    }
}

/// The platform that images are for: this machine's.
pub(super) fn host() -> Result<String> {
    let version = read(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// Runs a program to its end and gives what it printed.
pub(super) fn read(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("failed to start {name}; is it installed?"))?;
    if !output.status.success() {
        bail!(
            "{name} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} printed something else than text"))
}

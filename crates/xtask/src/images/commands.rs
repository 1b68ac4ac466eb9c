//! Programs that the build of images runs, and their output.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Runs a program to its end and gives what it printed.
pub(crate) fn read(command: &mut Command) -> Result<String> {
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

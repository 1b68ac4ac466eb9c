//! Builds the programs that tests and the demo run beside our controllers; see `testkit::tools`.

use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;
use testkit::tools::{self, Tool};

/// Arguments of `xtask tools`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Also build kubectl, which no test needs.
    #[arg(long)]
    kubectl: bool,
}

/// Builds what is missing, and says where everything is.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |tool: &&Tool| arguments.kubectl || **tool != Tool::Kubectl;
    let wanted: Vec<Tool> = tools::ALL.iter().filter(wanted).copied().collect();
    let started = Instant::now();
    let mut out = std::io::stdout();
    let mut said = Ok(());
    tools::ensure(&wanted, &mut |line| {
        if said.is_ok() {
            said = writeln!(out, "{line}");
        }
    })?;
    for package in tools::PACKAGES {
        package.ensure(&mut |line| {
            if said.is_ok() {
                said = writeln!(out, "{line}");
            }
        })?;
    }
    said?;
    for tool in &wanted {
        writeln!(out, "{:<24} {}", tool.name(), tools::path(*tool)?.display())?;
    }
    for package in tools::PACKAGES {
        writeln!(out, "{:<24} {}", package.name(), package.path()?.display())?;
    }
    writeln!(
        out,
        "all tools are there ({:.1} s)",
        started.elapsed().as_secs_f64()
    )?;
    Ok(())
}

//! Builds the programs that tests and the demo run beside our controllers; see `testkit::tools`.

use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;
use testkit::tools;

/// Builds what is missing, and says where everything is.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let mut out = std::io::stdout();
    let mut said = Ok(());
    tools::ensure(tools::ALL, &mut |line| {
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
    if said.is_ok() && !tools::is_gitea_built()? {
        said = writeln!(out, "building Gitea: about four minutes on two cores");
    }
    let gitea = tools::gitea()?;
    let dex = tools::dex()?;
    said?;
    for tool in tools::ALL {
        writeln!(out, "{:<24} {}", tool.name(), tools::path(*tool)?.display())?;
    }
    for package in tools::PACKAGES {
        writeln!(out, "{:<24} {}", package.name(), package.path()?.display())?;
    }
    writeln!(out, "{:<24} {}", "gitea", gitea.program.display())?;
    writeln!(out, "{:<24} {}", "dex", dex.program.display())?;
    writeln!(
        out,
        "all tools are there ({:.1} s)",
        started.elapsed().as_secs_f64()
    )?;
    Ok(())
}

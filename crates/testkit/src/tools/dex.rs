//! The real Dex, in the version that `hack/dex/go.mod` pins.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::folders::{cache_directory, hack_directory};
use super::go_module::GoModule;
use super::once;

const MODULE: &str = "github.com/dexidp/dex";

/// A Dex that was built.
#[derive(Debug, Clone)]
pub struct Dex {
    /// The program.
    pub program: PathBuf,
    /// Folder with its pages.
    pub pages: PathBuf,
}

/// Where Dex is, once it is built, which takes a minute on two cores and is done once.
pub fn dex() -> Result<Dex> {
    let module = GoModule::read(&hack_directory().join("dex"))?;
    let version = module.version(MODULE)?;
    let program = cache_directory()?.join(format!("dex-{version}")).join("dex");
    once::put(&program, |unfinished| {
        let mut go = Command::new("go");
        go.current_dir(&module.directory)
            .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
            .arg(unfinished)
            .arg(format!("{MODULE}/cmd/dex"))
            .env("CGO_ENABLED", "1") // its stores are compiled in, SQLite among them
            .env("GOTOOLCHAIN", format!("go{}", module.go))
            .env_remove("GOFLAGS");
        let output = go.output().context("failed to run go, which builds Dex")?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "failed to build Dex: {told}");
        Ok(())
    })?;
    Ok(Dex {
        program,
        pages: module.download(MODULE)?.join("web"),
    })
}

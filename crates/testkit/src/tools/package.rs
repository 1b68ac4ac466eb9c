//! Programs of other languages that tests run beside us: object stores, from PyPI, npm and the Go module proxy.
//!
//! Each lies in `<cache>/tools/<name>-V/`, is put there once by its own installer, at one version, and is complete when
//! the file `installed` is there. What cannot be installed makes the test fail and says what is missing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::folders::cache_directory;

/// A program that is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Package {
    /// Amazon's services, from PyPI: S3, STS, ECR.
    Moto,
    /// Azure's Blob Storage, from npm.
    Azurite,
    /// Google Cloud Storage, a Go module.
    FakeGcsServer,
    /// Flux's command line, a Go module.
    Flux,
}

/// All of them.
pub const PACKAGES: &[Package] = &[
    Package::Moto,
    Package::Azurite,
    Package::FakeGcsServer,
    Package::Flux,
];

const NEEDS_GO: &str = "Go, and a connection to its module proxy";

impl Package {
    /// Its name where it comes from.
    pub fn name(self) -> &'static str {
        match self {
            Self::Moto => "moto",
            Self::Azurite => "azurite",
            Self::FakeGcsServer => "fake-gcs-server",
            Self::Flux => "flux",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Self::Moto => "5.2.1",
            Self::Azurite => "3.35.0",
            Self::FakeGcsServer => "v1.56.1",
            Self::Flux => "v2.9.5",
        }
    }

    fn directory(self) -> Result<PathBuf> {
        Ok(cache_directory()?.join(format!("{}-{}", self.name(), self.version())))
    }

    /// The program itself, once it is installed.
    pub fn path(self) -> Result<PathBuf> {
        Ok(self.directory()?.join(match self {
            Self::Moto => "bin/moto_server",
            Self::Azurite => "node_modules/.bin/azurite-blob",
            Self::FakeGcsServer => "fake-gcs-server",
            Self::Flux => "flux",
        }))
    }

    /// Installs it if it is not there. May be called by several processes at once: one installs, the others wait.
    pub fn ensure(self, progress: &mut dyn FnMut(&str)) -> Result<()> {
        let directory = self.directory()?;
        let stamp = directory.join("installed");
        if stamp.is_file() {
            return Ok(());
        }
        fs::create_dir_all(&directory).with_context(|| format!("failed to make {}", directory.display()))?;
        let lock = File::create(directory.join(".lock"))?;
        lock.lock().context("failed to lock the tool cache")?;
        if stamp.is_file() {
            return Ok(());
        }
        progress(&format!(
            "installing {} {}; this is done once",
            self.name(),
            self.version()
        ));
        self.install(&directory)?;
        File::create(stamp)?;
        Ok(())
    }

    fn install(self, directory: &Path) -> Result<()> {
        let version = self.version();
        match self {
            Self::Moto => {
                let python = "Python 3.10 or newer with its venv module (python3, python3-venv)";
                run(
                    Command::new("python3").args(["-m", "venv"]).arg(directory),
                    python,
                )?;
                let mut pip = Command::new(directory.join("bin/pip"));
                pip.args(["install", "--quiet", "--disable-pip-version-check"])
                    .arg(format!("moto[server]=={version}"));
                run(&mut pip, "a connection to PyPI").map(drop)
            }
            Self::Azurite => {
                let mut npm = Command::new("npm");
                npm.args([
                    "install",
                    "--no-audit",
                    "--no-fund",
                    "--ignore-scripts",
                    "--prefix",
                ])
                .arg(directory)
                .arg(format!("azurite@{version}"));
                run(
                    &mut npm,
                    "Node.js 18 or newer with npm, and a connection to the npm registry",
                )
                .map(drop)
            }
            Self::FakeGcsServer => {
                let mut go = Command::new("go");
                go.args(["install", "-trimpath"])
                    .arg(format!("github.com/fsouza/fake-gcs-server@{version}"))
                    .env("GOBIN", directory)
                    .env("CGO_ENABLED", "0")
                    .env_remove("GOFLAGS");
                run(&mut go, NEEDS_GO).map(drop)
            }
            Self::Flux => install_flux(directory, version),
        }
    }
}

/// Flux's command line embeds manifests that only its release makes, and replaces modules: `go install` refuses both. So it
/// is built from a copy of its module with an empty manifest.
fn install_flux(directory: &Path, version: &str) -> Result<()> {
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json"])
        .arg(format!("github.com/fluxcd/flux2/v2@{version}"))
        .current_dir(directory)
        .env_remove("GOFLAGS");
    let downloaded: serde_json::Value = serde_json::from_slice(&run(&mut go, NEEDS_GO)?)?;
    let module = downloaded["Dir"].as_str().context("go names no folder")?;
    // What was left of an attempt that did not end.
    let copy = directory.join("module");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    let mut cp = Command::new("cp");
    cp.args(["-r", "--no-preserve=mode", module]).arg(&copy);
    run(&mut cp, "GNU cp")?;
    let manifests = copy.join("cmd/flux/manifests");
    fs::create_dir_all(&manifests)?;
    fs::write(manifests.join("none.yaml"), "# none\n")?;
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-mod=readonly", "-ldflags"])
        .arg(format!(
            "-s -w -X main.VERSION={}",
            version.trim_start_matches('v')
        ))
        .arg("-o")
        .arg(directory.join("flux"))
        .arg("./cmd/flux")
        .current_dir(&copy)
        .env("CGO_ENABLED", "0")
        .env_remove("GOFLAGS");
    run(&mut go, NEEDS_GO)?;
    fs::remove_dir_all(&copy).context("failed to remove the copy of the module")
}

/// Runs it to its end, and returns what it printed.
fn run(command: &mut Command, needs: &str) -> Result<Vec<u8>> {
    let program = command.get_program().display().to_string();
    let output = command
        .output()
        .with_context(|| format!("`{program}` does not run; it takes {needs}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("`{program}` failed; it takes {needs}:\n{}", said.trim())
}

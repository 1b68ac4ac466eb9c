//! The real helm, in the versions that `hack/oracle/helm/go.mod` pins and under the paths where `hack/record-helm-cases`
//! keeps them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::folders::{cache_directory, hack_directory};
use super::go_module::GoModule;
use super::once;

/// Where helm is, once it is built, which takes minutes and is done once.
pub fn helm() -> Result<PathBuf> {
    built("helm.sh/helm/v4")
}

/// Where Helm 3 is, in the same way.
pub fn helm_3() -> Result<PathBuf> {
    built("helm.sh/helm/v3")
}

fn built(package: &str) -> Result<PathBuf> {
    let module = GoModule::read(&hack_directory().join("oracle/helm"))?;
    let version = module.version(package)?;
    let path = cache_directory()?.join(format!("helm-{version}")).join("helm");
    once::put(&path, |unfinished| build(&module, package, version, unfinished))?;
    Ok(path)
}

/// Runs helm without a home, a cluster and a network, and returns what it prints.
pub fn run_helm(arguments: &[&str], folder: &Path) -> Result<String> {
    let mut command = Command::new(helm()?);
    command.args(arguments).current_dir(folder).env_clear();
    for (name, value) in [
        ("HOME", folder.to_string_lossy().as_ref()),
        ("KUBECONFIG", "/dev/null"),
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("HTTPS_PROXY", "http://127.0.0.1:1"),
    ] {
        command.env(name, value);
    }
    let output = command.output().context("failed to run helm")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("helm {} failed: {said}", arguments.join(" "));
    }
    String::from_utf8(output.stdout).context("helm printed something else than text")
}

fn build(module: &GoModule, package: &str, version: &str, unfinished: &Path) -> Result<()> {
    let output = Command::new("go")
        .current_dir(&module.directory)
        .args(["build", "-trimpath", "-ldflags"])
        .arg(format!("-s -w -X {package}/internal/version.version={version}"))
        .arg("-o")
        .arg(unfinished)
        .arg(format!("{package}/cmd/helm"))
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", format!("go{}", module.go))
        .env_remove("GOFLAGS")
        .output()
        .context("failed to run go, which builds helm")?;
    if !output.status.success() {
        bail!(
            "failed to build helm: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

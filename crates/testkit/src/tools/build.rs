//! Builds programs with `go build`: one at a time (Go uses all cores itself), under a lock, renamed into place.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::Tool;
use super::go_module::GoModule;
use crate::process::Process;

/// A sign of life during a long build.
const STILL_BUILDING: Duration = Duration::from_secs(20);

/// Builds each of `missing` to its path, unless another process did so while we waited for the lock.
pub(super) fn build(
    missing: &[(Tool, PathBuf)],
    module: &GoModule,
    cache: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    fs::create_dir_all(cache).with_context(|| format!("failed to make {}", cache.display()))?;
    let lock = File::create(cache.join(".lock")).context("failed to open the lock of the tool cache")?;
    if lock.try_lock().is_err() {
        progress("waiting for another process that is building tools");
        lock.lock().context("failed to lock the tool cache")?;
    }
    let missing: Vec<_> = missing.iter().filter(|(_, path)| !path.is_file()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    check_go(module)?;
    progress(&format!(
        "building {} tool(s) into {}; this is done once",
        missing.len(),
        cache.display()
    ));
    for (number, (tool, path)) in missing.iter().enumerate() {
        let step = format!("[{}/{}] {}", number + 1, missing.len(), tool.name());
        build_one(*tool, path, module, &step, progress)?;
    }
    Ok(())
}

fn build_one(
    tool: Tool,
    path: &Path,
    module: &GoModule,
    step: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let version = module.version(tool.module())?;
    progress(&format!(
        "{step} {version}: usually {} on 2 cores",
        tool.usual_build_time()
    ));
    let directory = path
        .parent()
        .expect("a tool's path has the tool's directory before it");
    fs::create_dir_all(directory).with_context(|| format!("failed to make {}", directory.display()))?;
    let unfinished = directory.join(format!(".{}.{}", tool.name(), std::process::id()));
    let log = directory.join("build.log");
    // A log of an earlier failure would be shown as this one's.
    let _ = fs::remove_file(&log);
    let mut command = Command::new("go");
    command
        .current_dir(&module.directory)
        .args([
            "build",
            "-mod=readonly",
            "-trimpath",
            "-ldflags",
            &link_flags(module)?,
            "-o",
        ])
        .arg(&unfinished)
        .arg(tool.package())
        .env("CGO_ENABLED", "0")
        .env_remove("GOFLAGS");
    let started = Instant::now();
    let go = Process::start("go build", command, &log)?;
    let status = wait_with_signs_of_life(&go, |elapsed| {
        progress(&format!("{step}: still building, {} s", elapsed.as_secs()));
    });
    if !status.success() {
        bail!(
            "failed to build {} from {}:\n{}",
            tool.name(),
            tool.package(),
            go.log_tail(20)
        );
    }
    fs::rename(&unfinished, path).with_context(|| format!("failed to put {} in place", path.display()))?;
    progress(&format!("{step}: built in {} s", started.elapsed().as_secs()));
    Ok(())
}

fn wait_with_signs_of_life(process: &Process, mut say: impl FnMut(Duration)) -> ExitStatus {
    let started = Instant::now();
    let mut next = STILL_BUILDING;
    loop {
        if let Some(status) = process.exit_status() {
            return status;
        }
        if started.elapsed() >= next {
            next += STILL_BUILDING;
            say(started.elapsed());
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Without these stamps the components call themselves v0.0.0, and kubectl and the API server compare versions.
fn link_flags(module: &GoModule) -> Result<String> {
    let version = module.version(Tool::KubeApiserver.module())?;
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    Ok(["component-base/version", "client-go/pkg/version"].iter().fold(
        "-s -w".to_owned(),
        |flags, package| {
            format!(
                "{flags} -X k8s.io/{package}.gitVersion={version} -X k8s.io/{package}.gitMajor={major} \
             -X k8s.io/{package}.gitMinor={minor}"
            )
        },
    ))
}

/// Asks Go for its version inside the module, where it would also fetch the toolchain that go.mod asks for.
fn check_go(module: &GoModule) -> Result<()> {
    let advice = format!(
        "install Go {} or newer from https://go.dev/dl/ and put it on PATH",
        module.go
    );
    let output = Command::new("go")
        .args(["env", "GOVERSION"])
        .current_dir(&module.directory)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            bail!("Go is needed to build the test tools, but `go` does not run ({error}): {advice}")
        }
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("Go is needed to build the test tools, but `go env` failed ({said}): {advice}");
    }
    let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if is_at_least(&found, &module.go) {
        return Ok(());
    }
    bail!(
        "Go {} is needed to build the test tools, this is {found}: {advice}",
        module.go
    )
}

fn is_at_least(found: &str, wanted: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> {
        let text = text.trim_start_matches("go");
        let part = |part: &str| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        text.split('.').take(2).map(part).collect()
    };
    numbers(found) >= numbers(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_are_compared_by_number() {
        for (found, wanted, enough) in [
            ("go1.26.8", "1.26.0", true),
            ("go1.26rc1", "1.26.0", true),
            ("go1.100.0", "1.26.0", true),
            ("go2.0", "1.26.0", true),
            ("go1.9.7", "1.26.0", false),
            ("go1.25.10", "1.26.0", false),
            ("devel", "1.26.0", false),
        ] {
            assert_eq!(is_at_least(found, wanted), enough, "{found} for {wanted}");
        }
    }

    #[test]
    fn the_version_is_stamped_into_both_packages_that_report_it() {
        let module = GoModule::read(&crate::tools::folders::hack_directory()).unwrap();
        let flags = link_flags(&module).unwrap();
        let version = module.version("k8s.io/kubernetes").unwrap();
        assert!(
            flags.contains(&format!("component-base/version.gitVersion={version} ")),
            "{flags}"
        );
        assert!(flags.contains("client-go/pkg/version.gitMajor=1 "), "{flags}");
    }
}

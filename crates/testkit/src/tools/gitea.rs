//! The real Gitea, in the version that `hack/gitea/go.mod` pins.
//!
//! Its go.mod has replacements, which count only in the main module, so it is built inside a copy of its own folder. The
//! copy stays: the program reads templates and translations from it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::folders::{cache_directory, hack_directory};
use super::go_module::GoModule;
use super::once;

const MODULE: &str = "code.gitea.io/gitea";
/// Parts of the module that the program reads.
const READ: [&str; 3] = ["options", "public", "templates"];

/// A Gitea that was built.
#[derive(Debug, Clone)]
pub struct Gitea {
    /// The program.
    pub program: PathBuf,
    /// Folder with its templates and translations.
    pub files: PathBuf,
}

/// Returns whether [`gitea`] has nothing to build.
pub fn is_gitea_built() -> Result<bool> {
    let module = GoModule::read(&hack_directory().join("gitea"))?;
    Ok(place(module.version(MODULE)?)?.program.exists())
}

/// Where a version of Gitea is or will be.
fn place(version: &str) -> Result<Gitea> {
    let folder = cache_directory()?.join(format!("gitea-{version}"));
    Ok(Gitea {
        program: folder.join("gitea"),
        files: folder.join("files"),
    })
}

/// Where Gitea is, once it is built, which takes four minutes on two cores and is done once.
pub fn gitea() -> Result<Gitea> {
    let module = GoModule::read(&hack_directory().join("gitea"))?;
    let version = module.version(MODULE)?;
    let gitea = place(version)?;
    let folder = gitea.program.parent().context("Gitea has no folder")?;
    once::put(&gitea.program, |unfinished| {
        let copy = tempfile::tempdir_in(folder).context("failed to make a folder for Gitea's source")?;
        let source = copy.path().join("source");
        run(Command::new("cp")
            .arg("-r")
            .arg(module.download(MODULE)?)
            .arg(&source))?;
        run(Command::new("chmod").arg("-R").arg("u+w").arg(&source))?;
        let mut go = Command::new("go");
        go.current_dir(&source)
            .args(["build", "-trimpath", "-ldflags"])
            .arg(format!(
                "-s -w -X main.Version={}",
                version.trim_start_matches('v')
            ))
            .args(["-tags", "sqlite sqlite_unlock_notify", "-o"])
            .arg(unfinished)
            .arg(".")
            .env("CGO_ENABLED", "1") // SQLite is in C
            .env("GOTOOLCHAIN", format!("go{}", module.go))
            .env_remove("GOFLAGS");
        run(&mut go)?;
        let files = copy.path().join("files");
        std::fs::create_dir(&files)?;
        for part in READ {
            std::fs::rename(source.join(part), files.join(part))
                .with_context(|| format!("Gitea's module has no folder {part}"))?;
        }
        let _ = std::fs::remove_dir_all(&gitea.files); // of a build that was interrupted
        std::fs::rename(&files, &gitea.files).context("failed to put Gitea's files in place")
    })?;
    Ok(gitea)
}

fn run(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output();
    let output = output.with_context(|| {
        format!(
            "failed to run {:?}, which Gitea's build needs",
            command.get_program()
        )
    })?;
    if !output.status.success() {
        bail!(
            "failed to build Gitea: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output.stdout)
}

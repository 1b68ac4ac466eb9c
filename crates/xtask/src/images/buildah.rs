//! buildah, which packs images without a daemon, without privileges it does not have, and without touching what others stored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use testkit::tools::repository_root;

use super::commands::read;
use super::commit::Commit;
use super::platform::Platform;

/// A storage of its own, gone with its folder.
pub(super) struct Buildah {
    folder: PathBuf,
}

impl Buildah {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new("buildah");
        command
            .arg("--storage-driver=vfs")
            .arg("--root")
            .arg(self.folder.join("storage"))
            .arg("--runroot")
            .arg(self.folder.join("run"))
            .arg(name);
        command
    }

    /// Makes an image out of a folder.
    pub(super) fn build(
        &self,
        context: &Path,
        program: &str,
        reference: &str,
        platform: Platform,
        commit: &Commit,
    ) -> Result<()> {
        let mut command = self.command("build");
        command
            .args(["--isolation=chroot", "--format=oci", "--quiet"])
            .arg(format!("--platform={platform}"))
            .arg(format!("--timestamp={}", commit.time.as_second()))
            .arg(format!("--build-arg=PROGRAM={program}"))
            .arg("--file")
            .arg(repository_root().join("Containerfile"));
        for (key, value) in [
            ("title", program),
            ("revision", &commit.id),
            ("version", env!("CARGO_PKG_VERSION")),
            ("licenses", "Apache-2.0"),
        ] {
            command.arg(format!("--label=org.opencontainers.image.{key}={value}"));
        }
        // Its own version is of no interest to who runs the image, and changes the digest.
        command.arg("--identity-label=false");
        command.arg("--tag").arg(reference).arg(context);
        read(&mut command).map(drop)
    }

    /// Makes an index of images, in their order.
    pub(super) fn index(&self, reference: &str, images: &[String]) -> Result<()> {
        read(self.command("manifest").arg("create").arg(reference))?;
        for image in images {
            read(self.command("manifest").arg("add").arg(reference).arg(image))?;
        }
        Ok(())
    }

    /// Writes an image or an index as an OCI layout, in the place of what is there, and gives its digest.
    pub(super) fn write_layout(
        &self,
        reference: &str,
        is_index: bool,
        layout: &Path,
        tag: &str,
    ) -> Result<String> {
        if layout.exists() {
            fs::remove_dir_all(layout).with_context(|| format!("failed to remove {}", layout.display()))?;
        }
        self.push(reference, is_index, &format!("oci:{}:{tag}", layout.display()))
    }

    /// Pushes an image or an index to a repository of a registry, or to another transport of containers/image, and gives its digest.
    pub(super) fn push(&self, reference: &str, is_index: bool, to: &str) -> Result<String> {
        let digest = self.folder.join("digest");
        let is_loopback = ["localhost:", "127.0.0.1:"]
            .iter()
            .any(|host| to.starts_with(host));
        let mut command = if is_index {
            let mut command = self.command("manifest");
            command.args(["push", "--all"]);
            command
        } else {
            self.command("push")
        };
        command
            .args(["--format=oci", "--quiet", "--digestfile"])
            .arg(&digest)
            // Registries of tests and of the demo.
            .arg(format!("--tls-verify={}", !is_loopback))
            .arg(reference)
            .arg(if to.starts_with("oci:") {
                to.to_owned()
            } else {
                format!("docker://{to}")
            });
        read(&mut command)?;
        let digest = fs::read_to_string(&digest).context("buildah wrote no digest")?;
        Ok(digest.trim().to_owned())
    }
}

//! Reads what we need of `hack/go.mod`: the Go version, versions of required modules, and the `tool` lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The parsed part of a go.mod file.
#[derive(Debug)]
pub(super) struct GoModule {
    pub(super) directory: PathBuf,
    /// The `go` line, such as `1.26.0`.
    pub(super) go: String,
    versions: BTreeMap<String, String>,
    tools: BTreeSet<String>,
}

impl GoModule {
    /// Reads `directory/go.mod`.
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let file = directory.join("go.mod");
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        Ok(Self::parse(directory, &text))
    }

    fn parse(directory: &Path, text: &str) -> Self {
        let mut module = Self {
            directory: directory.to_owned(),
            go: String::new(),
            versions: BTreeMap::new(),
            tools: BTreeSet::new(),
        };
        let mut block: Option<String> = None;
        for line in text.lines() {
            let words: Vec<&str> = line
                .split("//")
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .collect();
            match (block.as_deref(), words.as_slice()) {
                (Some(_), [")"]) => block = None,
                (None, [directive, "("]) => block = Some((*directive).to_owned()),
                (None, ["go", version]) => module.go = (*version).to_owned(),
                (Some("require"), [name, version]) | (None, ["require", name, version]) => {
                    module.versions.insert((*name).to_owned(), (*version).to_owned());
                }
                (Some("tool"), [package]) | (None, ["tool", package]) => {
                    module.tools.insert((*package).to_owned());
                }
                _ => {}
            }
        }
        module
    }

    /// Has Go download a required module, whose hash `go.sum` pins; its folder in Go's cache.
    pub(super) fn download(&self, name: &str) -> Result<PathBuf> {
        let mut go = Command::new("go");
        let download = go
            .current_dir(&self.directory)
            .args(["mod", "download", "-json", name]);
        let output = download.env_remove("GOFLAGS").output();
        let output = output.with_context(|| format!("failed to run go, which downloads {name}"))?;
        let problem = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "failed to download {name}: {problem}");
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("go mod download printed no JSON")?;
        let folder = answer["Dir"]
            .as_str()
            .context("go mod download names no folder")?;
        Ok(Path::new(folder).to_owned())
    }

    /// The version that is required of the module `name`.
    pub(super) fn version(&self, name: &str) -> Result<&str> {
        let version = self.versions.get(name).map(String::as_str);
        version.with_context(|| {
            format!(
                "{} requires no module {name}",
                self.directory.join("go.mod").display()
            )
        })
    }

    /// Returns whether `package` is on a `tool` line.
    #[cfg(test)]
    pub(super) fn has_tool(&self, package: &str) -> bool {
        self.tools.contains(package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_single_lines_and_comments_are_understood() {
        let text = "module m\n\ngo 1.26.0\n\nreplace (\n\ta.b/c => a.b/c v9.9.9\n)\n\ntool x.y/cmd/z\n\n\
                    require a.b/c v1.2.3 // indirect\nrequire (\n\td.e/f v0.1.0\n)\n";
        let module = GoModule::parse(Path::new("hack"), text);
        assert_eq!(module.go, "1.26.0");
        assert_eq!(module.version("a.b/c").unwrap(), "v1.2.3");
        assert_eq!(module.version("d.e/f").unwrap(), "v0.1.0");
        assert!(module.has_tool("x.y/cmd/z"));
        assert_eq!(
            module.version("g.h/i").unwrap_err().to_string(),
            "hack/go.mod requires no module g.h/i"
        );
    }
}

//! A release: all that users download, made of one tagged commit, described and signed.
//!
//! `release --prepare VERSION` writes the version into the tree, which a person reads, commits and tags. `release` then compiles, packs and
//! signs; with a repository it pushes images, the chart, signatures and attestations. `--check` makes everything a second time in
//! another place and compares.

mod archive;
mod chart;
mod check;
mod notes;
mod publish;
mod version;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use signature::cosign::SigningKey;
use testkit::tools::repository_root;

use crate::images::commit::Commit;
use crate::images::compile::Place;
use crate::images::platform::Platform;
use crate::images::{Described, PROGRAMS, Packing, compile_all, write_json};

/// The program that is an archive of its own.
const COMMAND: &str = "windlass";
/// Where the digests of all files stand, as `sha256sum` writes them.
const CHECKSUMS: &str = "checksums.txt";

/// Arguments of `xtask release`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Write this version into the tree, and the changes up to now under its name in the changelog; nothing is built.
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["key", "repository", "platforms", "check"])]
    prepare: Option<String>,
    /// Folder for the release; a release that is there is replaced.
    #[arg(long, default_value = "target/dist")]
    out: PathBuf,
    /// Platforms, separated by commas, such as linux/amd64,linux/arm64; this machine's if there is none.
    #[arg(long, value_delimiter = ',')]
    platforms: Vec<Platform>,
    /// File with the private key to sign with: PEM, ECDSA with P-256 or Ed25519, without a passphrase.
    #[arg(long)]
    key: Option<PathBuf>,
    /// Where images and the chart are pushed to, such as registry.example.com/windlass.
    #[arg(long)]
    repository: Option<String>,
    /// Make the release of a commit without a tag, or of a tree that differs from it: a trial.
    #[arg(long)]
    trial: bool,
    /// Make everything a second time, in another place, and fail if a digest differs.
    #[arg(long)]
    check: bool,
    /// Programs of a trial; all if none is named. The command is always one of them.
    #[arg(value_parser = PROGRAMS, requires = "trial")]
    names: Vec<String>,
}

/// Makes a release, or prepares one.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = repository_root();
    let mut report = std::io::stdout();
    if let Some(version) = &arguments.prepare {
        return version::prepare(&root, version, &mut report);
    }
    let commit = Commit::of(&root)?;
    let version = version::of(&root)?;
    if !arguments.trial {
        version::check_tag(&root, &version, &commit)?;
    }
    let key = match &arguments.key {
        Some(path) => {
            let pem = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
            Some(SigningKey::from_pem(&pem).with_context(|| format!("{}", path.display()))?)
        }
        None => None,
    };
    let is_wanted = |name: &&str| {
        arguments.names.is_empty() || *name == COMMAND || arguments.names.iter().any(|wanted| wanted == name)
    };
    let programs: Vec<&str> = PROGRAMS.into_iter().filter(is_wanted).collect();
    let folders = compile_all(&programs, &arguments.platforms, &Place::here()?)?;
    let release = Release {
        root: &root,
        version: &version,
        commit: &commit,
        folders: &folders,
        programs: &programs,
        out: &root.join(&arguments.out),
        repository: arguments.repository.as_deref(),
        key: key.as_ref(),
    };
    let made = release.make(&mut report)?;
    if arguments.check {
        check::again(&release, &made, &mut report)?;
    }
    Ok(())
}

/// What a release is made of.
struct Release<'a> {
    root: &'a Path,
    version: &'a str,
    commit: &'a Commit,
    /// Where the programs of each platform are.
    folders: &'a [(Platform, PathBuf)],
    /// The programs that become images.
    programs: &'a [&'a str],
    out: &'a Path,
    repository: Option<&'a str>,
    key: Option<&'a SigningKey>,
}

/// What a release has, by name: a file's or an image's digest. Equal for every build of a commit.
type Digests = Vec<(String, String)>;

impl Release<'_> {
    /// Makes all files, then pushes, and writes a line for each.
    fn make(&self, report: &mut impl std::io::Write) -> Result<Digests> {
        remove(self.out)?;
        let images = self.images(report)?;
        let mut digests: Digests = images
            .iter()
            .map(|made| (format!("image {}", made.image.name()), made.image.digest.clone()))
            .collect();
        let (archives, chart) = self.archives()?;
        digests.extend(archives.iter().cloned());

        let notes = notes::write(self.root, self.version, self.repository, &images)?;
        self.write("notes.md", notes.as_bytes())?;
        write_json(&self.out.join("provenance.json"), &self.provenance(&archives))?;
        self.sign(&archives)?;
        if let Some(repository) = self.repository {
            let chart = chart.oci(self.version, self.commit)?;
            let pushed = publish::run(repository, self.key, &images, &chart, &self.provenance(&archives))?;
            for line in pushed {
                writeln!(report, "{line}")?;
            }
        }
        writeln!(report, "{}", self.out.display())?;
        if self.key.is_none() {
            writeln!(report, "nothing is signed: no key is given (KEY=file)")?;
        }
        Ok(digests)
    }

    fn images(&self, report: &mut impl std::io::Write) -> Result<Vec<Described>> {
        let packing = Packing {
            tag: self.version,
            out: &self.out.join("images"),
            repository: self.repository,
            is_described: true,
            folders: self.folders,
            commit: self.commit,
        };
        packing.run(self.programs, report)
    }

    /// Writes the archives of the command, and the chart. Returns their names and digests.
    fn archives(&self) -> Result<(Digests, chart::Package)> {
        let mut digests = Digests::new();
        let mut add = |name: String, content: &[u8]| -> Result<()> {
            self.write(&name, content)?;
            digests.push((name, sha256(content)));
            Ok(())
        };
        for (platform, folder) in self.folders {
            let name = format!(
                "{COMMAND}_{}_linux_{}.tar.gz",
                self.version,
                platform.architecture()
            );
            let content = archive::of(&folder.join(COMMAND), &self.root.join("LICENSE"), self.commit)?;
            add(name, &content)?;
        }
        let chart = chart::package(self.root)?;
        ensure!(
            chart.version() == self.version,
            "charts/windlass/Chart.yaml has version {}, Cargo.toml {}",
            chart.version(),
            self.version
        );
        add(format!("{COMMAND}-{}.tgz", self.version), &chart.content)?;
        Ok((digests, chart))
    }

    /// Writes the digests of all files, and with a key their signature and that of the provenance.
    fn sign(&self, archives: &[(String, String)]) -> Result<()> {
        if let Some(key) = self.key {
            let envelope = key.attest(&self.provenance(archives))?;
            self.write("provenance.intoto.jsonl", format!("{envelope}\n").as_bytes())?;
        }
        let mut names = files_of(self.out)?;
        names.extend(
            files_of(&self.out.join("images"))?
                .into_iter()
                .map(|name| format!("images/{name}")),
        );
        let mut checksums = String::new();
        for name in names {
            let path = self.out.join(&name);
            let content = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
            checksums.push_str(&format!("{}  {name}\n", sha256(&content)));
        }
        self.write(CHECKSUMS, checksums.as_bytes())?;
        if let Some(key) = self.key {
            let signature = key.sign(checksums.as_bytes())?;
            self.write(&format!("{CHECKSUMS}.sig"), signature.as_bytes())?;
        }
        Ok(())
    }

    /// What the archives and the chart were built of.
    fn provenance(&self, archives: &[(String, String)]) -> Value {
        let subjects = archives
            .iter()
            .map(|(name, digest)| json!({"name": name, "digest": {"sha256": digest}}));
        json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": subjects.collect::<Vec<_>>(),
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": "https://windlass.dev/build/make-release/v1",
                    "externalParameters": {"version": self.version},
                    "internalParameters": {"clean": self.commit.clean},
                    "resolvedDependencies": [{"name": "source", "digest": {"gitCommit": self.commit.id}}],
                },
                "runDetails": {"builder": {"id": "https://windlass.dev/build/make-release"}},
            },
        })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.out.join(name);
        fs::write(&path, content).with_context(|| format!("failed to write {}", path.display()))
    }
}

/// Removes the release of before, and nothing else that the folder may hold.
fn remove(out: &Path) -> Result<()> {
    if !out.exists() {
        return Ok(());
    }
    let failed = || format!("failed to remove {}", out.display());
    let is_empty = fs::read_dir(out).with_context(failed)?.next().is_none();
    ensure!(
        is_empty || out.join(CHECKSUMS).exists(),
        "{} is not empty, and holds no release: name another folder (OUT=folder)",
        out.display()
    );
    fs::remove_dir_all(out).with_context(failed)
}

/// Names of the files of a folder, without those of folders in it, sorted.
fn files_of(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn sha256(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

#[cfg(test)]
mod tests;

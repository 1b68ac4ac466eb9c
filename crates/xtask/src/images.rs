//! Container images of the programs, without a container engine: cargo builds, buildah packs.
//!
//! The same commit, built by the same tools, gives the same digest: programs do not know where they were built, files carry the
//! time of the commit, and the certificates come from a crate that Cargo.lock pins.
//! Beside each image lie what is in it (SPDX) and what it was built of (in-toto, SLSA).

mod buildah;
mod certificates;
pub(crate) mod commands;
pub(crate) mod commit;
pub(crate) mod compile;
mod inventory;
pub(crate) mod platform;
mod provenance;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testkit::tools::repository_root;

use crate::demo::registry_sign;
use buildah::Buildah;
use commit::Commit;
use compile::{Place, compile};
use platform::Platform;

/// Every program that has an image.
pub(crate) const PROGRAMS: [&str; 10] = [
    "source-controller",
    "apply-controller",
    "helm-controller",
    "notification-controller",
    "image-controller",
    "pipeline-controller",
    "resource-set-controller",
    "windlass-controllers",
    "console",
    "windlass",
];

/// Returns the name of a program's image: as Flux names its own, so that `flux version` lists it.
fn image_name(program: &str) -> &str {
    match program {
        "apply-controller" => "kustomize-controller",
        other => other,
    }
}

/// Arguments of `xtask images`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where images are pushed to, such as registry.example.com/windlass; without it the registry of the demo, if one runs.
    #[arg(long)]
    repository: Option<String>,
    /// Tag of the images; the commit if there is none.
    #[arg(long)]
    tag: Option<String>,
    /// Folder for the images (as OCI layouts) and their descriptions.
    #[arg(long, default_value = "target/images")]
    out: PathBuf,
    /// Platforms, separated by commas, such as linux/amd64,linux/arm64; this machine's if there is none.
    #[arg(long, value_delimiter = ',')]
    platforms: Vec<Platform>,
    /// Folder with programs that are there already, for this machine's platform, instead of building them; these images get no descriptions.
    #[arg(long, conflicts_with = "platforms")]
    programs: Option<PathBuf>,
    /// Only compile the programs as images have them, and print where they are.
    #[arg(long, conflicts_with = "programs")]
    only_programs: bool,
    /// Programs to pack; all if none is named.
    #[arg(value_parser = PROGRAMS)]
    names: Vec<String>,
}

/// Builds, packs, describes and, if asked to, pushes.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let commit = Commit::of(&repository_root())?;
    let names: Vec<&str> = if arguments.names.is_empty() {
        PROGRAMS.to_vec()
    } else {
        arguments.names.iter().map(String::as_str).collect()
    };
    let mut report = std::io::stdout();
    let folders = match &arguments.programs {
        Some(folder) => vec![(Platform::host()?, folder.clone())],
        None => compile_all(&names, &arguments.platforms, &Place::here()?)?,
    };
    if arguments.only_programs {
        for (_, folder) in folders {
            writeln!(report, "{}", folder.display())?;
        }
        return Ok(());
    }
    let repository = arguments.repository.clone().or_else(|| {
        let demo = registry_sign::find()?;
        Some(format!("{demo}/windlass"))
    });
    if !commit.clean {
        writeln!(
            report,
            "the tree differs from commit {}: these images are not reproducible",
            commit.id
        )?;
    }
    let packing = Packing {
        tag: arguments.tag.as_deref().unwrap_or(&commit.id),
        out: &repository_root().join(&arguments.out),
        repository: repository.as_deref(),
        // Of programs that were not built here, nothing is known.
        is_described: arguments.programs.is_none(),
        folders: &folders,
        commit: &commit,
    };
    packing.run(&names, &mut report)?;
    if repository.is_none() {
        writeln!(
            report,
            "pushed nowhere: no repository is given (IMAGE_REPOSITORY=host/path), and no demo runs (make demo)"
        )?;
    }
    Ok(())
}

/// Compiles programs for each platform, and gives the folders they are in. Without platforms, for this machine's.
pub(crate) fn compile_all(
    programs: &[&str],
    platforms: &[Platform],
    place: &Place,
) -> Result<Vec<(Platform, PathBuf)>> {
    let host = [Platform::host()?];
    let platforms = if platforms.is_empty() { &host } else { platforms };
    let compiled = platforms
        .iter()
        .map(|platform| Ok((*platform, compile(programs, *platform, place)?)));
    compiled.collect()
}

/// An image that was built, for one platform or for several.
pub(crate) struct Image {
    pub(crate) program: String,
    /// Name and tag.
    pub(crate) reference: String,
    /// Of the index, if it is for several platforms.
    pub(crate) digest: String,
    /// Of the image for each platform.
    pub(crate) platforms: Vec<(Platform, String)>,
    /// Bytes of all blobs.
    size: u64,
}

impl Image {
    /// Name, without registry and tag.
    pub(crate) fn name(&self) -> &str {
        image_name(&self.program)
    }
}

/// An image, and what is said of it.
pub(crate) struct Described {
    pub(crate) image: Image,
    /// In-toto statements about it.
    pub(crate) statements: Vec<Value>,
}

/// How images are made out of programs.
pub(crate) struct Packing<'a> {
    pub(crate) tag: &'a str,
    /// Folder for the images and their descriptions.
    pub(crate) out: &'a Path,
    /// Where to push to.
    pub(crate) repository: Option<&'a str>,
    pub(crate) is_described: bool,
    /// Where the programs of each platform are.
    pub(crate) folders: &'a [(Platform, PathBuf)],
    pub(crate) commit: &'a Commit,
}

impl Packing<'_> {
    /// Packs, describes and pushes; writes a line for each image.
    pub(crate) fn run(&self, programs: &[&str], report: &mut impl std::io::Write) -> Result<Vec<Described>> {
        let work = tempfile::tempdir().context("failed to create a folder")?;
        let buildah = Buildah::new(work.path());
        let mut made = Vec::new();
        for program in programs {
            let image = self.pack(&buildah, work.path(), program)?;
            let statements = if self.is_described {
                self.describe(&image)?
            } else {
                Vec::new()
            };
            let at = match self.repository {
                Some(repository) => push(&buildah, &image, repository)?,
                None => self.out.join(program).display().to_string(),
            };
            let megabytes = image.size as f64 / (1024.0 * 1024.0);
            writeln!(
                report,
                "{program:<24} {megabytes:5.1} MiB  {}  {at}",
                image.digest
            )?;
            made.push(Described { image, statements });
        }
        Ok(made)
    }

    /// Makes the image of one program and writes it to a folder of its name in `out`.
    fn pack(&self, buildah: &Buildah, work: &Path, program: &str) -> Result<Image> {
        let reference = format!("{}:{}", image_name(program), self.tag);
        let mut references = Vec::new();
        for (platform, folder) in self.folders {
            let context = work.join("context").join(platform.architecture());
            let context = stage(&context, program, &folder.join(program))?;
            let own = if self.folders.len() == 1 {
                reference.clone()
            } else {
                format!("{reference}-{}", platform.architecture())
            };
            buildah.build(&context, program, &own, *platform, self.commit)?;
            references.push(own);
        }
        let is_index = references.len() > 1;
        if is_index {
            buildah.index(&reference, &references)?;
        }
        fs::create_dir_all(self.out).with_context(|| format!("failed to create {}", self.out.display()))?;
        let layout = self.out.join(program);
        let digest = buildah.write_layout(&reference, is_index, &layout, self.tag)?;
        let digests = if is_index {
            manifests_of(&layout, &digest)?
        } else {
            vec![digest.clone()]
        };
        ensure!(
            digests.len() == self.folders.len(),
            "{reference} has {} images for {} platforms",
            digests.len(),
            self.folders.len()
        );
        let platforms = self.folders.iter().map(|(platform, _)| *platform);
        Ok(Image {
            size: size(&layout)?,
            platforms: platforms.zip(digests).collect(),
            program: program.to_owned(),
            reference,
            digest,
        })
    }

    /// Writes what an image holds and what it was built of beside it, and returns the statements that can be signed.
    fn describe(&self, image: &Image) -> Result<Vec<Value>> {
        let program = &image.program;
        let provenance = provenance::statement_of(image, self.repository, self.commit)?;
        write_json(&self.out.join(format!("{program}.provenance.json")), &provenance)?;
        let mut statements = vec![provenance];
        for (platform, digest) in &image.platforms {
            let document = inventory::spdx_document(program, *platform, self.commit)?;
            let architecture = platform.architecture();
            write_json(
                &self.out.join(format!("{program}.{architecture}.spdx.json")),
                &document,
            )?;
            statements.push(provenance::inventory_of(image.name(), digest, &document));
        }
        Ok(statements)
    }
}

/// Pushes an image, and returns where it is now.
fn push(buildah: &Buildah, image: &Image, repository: &str) -> Result<String> {
    let at = format!("{repository}/{}", image.reference);
    let pushed = buildah.push(&image.reference, image.platforms.len() > 1, &at)?;
    ensure!(
        pushed == image.digest,
        "{at} got digest {pushed}, the image has {}",
        image.digest
    );
    Ok(at)
}

/// Digests of the images of an index, in its order.
fn manifests_of(layout: &Path, index: &str) -> Result<Vec<String>> {
    let path = layout.join("blobs").join(index.replace(':', "/"));
    let text = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let index: Value = serde_json::from_slice(&text).context("the index is no JSON")?;
    let manifests = index["manifests"].as_array().into_iter().flatten();
    let digests = manifests.filter_map(|manifest| manifest["digest"].as_str());
    Ok(digests.map(str::to_owned).collect())
}

/// Fills the folder that an image is made of.
fn stage(work: &Path, program: &str, binary: &Path) -> Result<PathBuf> {
    let context = work.join(program);
    fs::create_dir_all(&context).with_context(|| format!("failed to create {}", context.display()))?;
    for (name, mode) in [(program, 0o755), ("ca-certificates.crt", 0o644)] {
        let path = context.join(name);
        if name == program {
            fs::copy(binary, &path).with_context(|| format!("failed to copy {}", binary.display()))?;
        } else {
            fs::write(&path, certificates::pem())
                .with_context(|| format!("failed to write {}", path.display()))?;
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .with_context(|| format!("failed to set the mode of {}", path.display()))?;
    }
    Ok(context)
}

/// Bytes of all blobs of a layout.
fn size(layout: &Path) -> Result<u64> {
    let blobs = layout.join("blobs/sha256");
    let mut sum = 0;
    for blob in fs::read_dir(&blobs).with_context(|| format!("failed to read {}", blobs.display()))? {
        sum += blob?.metadata()?.len();
    }
    Ok(sum)
}

pub(crate) fn write_json(path: &Path, value: &Value) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests;

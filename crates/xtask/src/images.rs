//! Container images of the programs, without a container engine: cargo builds, buildah packs.
//!
//! The same commit, built by the same tools at the same place, gives the same digest: programs are linked without paths of this
//! machine, files carry the time of the commit, and the certificates come from a crate that Cargo.lock pins.
//! Beside each image lie what is in it (SPDX) and what it was built of (in-toto, SLSA).

mod buildah;
mod certificates;
mod commands;
mod commit;
mod inventory;
mod provenance;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use testkit::tools::repository_root;

use crate::demo::registry_sign;
use buildah::Buildah;
use commands::{Image, host, read};
use commit::Commit;

/// Every program that has an image.
const PROGRAMS: [&str; 10] = [
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
    /// Folder for the images (as OCI layouts) and what is told of them.
    #[arg(long, default_value = "target/images")]
    out: PathBuf,
    /// Folder with programs that are there already, instead of building them; of these nothing is told beside the images.
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Only compile the programs as images have them, and say where they are.
    #[arg(long, conflicts_with = "programs")]
    only_programs: bool,
    /// Programs to pack; all if none is named.
    #[arg(value_parser = PROGRAMS)]
    names: Vec<String>,
}

/// Builds, packs, describes and, if asked to, pushes.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let commit = commit()?;
    let names: Vec<&str> = if arguments.names.is_empty() {
        PROGRAMS.to_vec()
    } else {
        arguments.names.iter().map(String::as_str).collect()
    };
    let out = repository_root().join(&arguments.out);
    let folder = match &arguments.programs {
        Some(folder) => folder.clone(),
        None => build(&names)?,
    };
    if arguments.only_programs {
        writeln!(std::io::stdout(), "{}", folder.display())?;
        return Ok(());
    }
    let repository = arguments.repository.clone().or_else(|| {
        let demo = registry_sign::find()?;
        Some(format!("{demo}/windlass"))
    });
    let tag = arguments.tag.as_deref().unwrap_or(&commit.id);
    let work = tempfile::tempdir().context("failed to create a folder")?;
    let buildah = Buildah::new(work.path());
    let mut report = std::io::stdout();
    if !commit.clean {
        writeln!(
            report,
            "the tree differs from commit {}: these images are not reproducible",
            commit.id
        )?;
    }
    for program in names {
        let image = pack(&buildah, work.path(), program, &folder, &out, tag, &commit)?;
        // Of programs that were not built here, nothing is known.
        if arguments.programs.is_none() {
            write_json(
                &out.join(format!("{program}.spdx.json")),
                &inventory::spdx_document(program, &commit)?,
            )?;
            write_json(
                &out.join(format!("{program}.provenance.json")),
                &provenance::statement_of(&image, repository.as_deref(), &commit)?,
            )?;
        }
        let at = match &repository {
            Some(repository) => push(&buildah, &image, repository)?,
            None => out.join(program).display().to_string(),
        };
        let megabytes = image.size as f64 / (1024.0 * 1024.0);
        writeln!(
            report,
            "{program:<24} {megabytes:5.1} MiB  {}  {at}",
            image.digest
        )?;
    }
    if repository.is_none() {
        writeln!(
            report,
            "pushed nowhere: no repository is given (IMAGE_REPOSITORY=host/path), and no demo runs (make demo)"
        )?;
    }
    Ok(())
}

/// Makes the image of one program and writes it to a folder of its name in `out`.
fn pack(
    buildah: &Buildah,
    work: &Path,
    program: &str,
    programs: &Path,
    out: &Path,
    tag: &str,
    commit: &Commit,
) -> Result<Image> {
    let context = stage(work, program, &programs.join(program))?;
    let reference = format!("{}:{tag}", image_name(program));
    buildah.build(&context, program, &reference, commit)?;
    fs::create_dir_all(out).with_context(|| format!("failed to create {}", out.display()))?;
    let layout = out.join(program);
    Ok(Image {
        digest: buildah.write_layout(&reference, &layout, tag)?,
        size: size(&layout)?,
        program: program.to_owned(),
        reference,
    })
}

/// Pushes an image, and says where it is now.
fn push(buildah: &Buildah, image: &Image, repository: &str) -> Result<String> {
    let at = format!("{repository}/{}", image.reference);
    let pushed = buildah.push(&image.reference, &at)?;
    ensure!(
        pushed == image.digest,
        "{at} got digest {pushed}, the image has {}",
        image.digest
    );
    Ok(at)
}

/// Compiles programs as images need them, and gives the folder they are in.
fn build(programs: &[&str]) -> Result<PathBuf> {
    let root = repository_root();
    let host = host()?;
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .context("there is no home directory")?;
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        "-Crelocation-model=static".to_owned(),
    ];
    for (from, to) in [(root.as_path(), "/windlass"), (home.as_path(), "/cargo")] {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(&root)
        .args(["build", "--release", "--locked", "--workspace", "--target", &host])
        // With the unit separator, paths may have spaces.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    for program in programs {
        cargo.args(["--bin", program]);
    }
    let status = cargo.status().context("failed to start cargo")?;
    ensure!(status.success(), "cargo build ended with {status}");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join(host).join("release"))
}

/// Fills the folder that an image is made of.
fn stage(work: &Path, program: &str, binary: &Path) -> Result<PathBuf> {
    let context = work.join("context").join(program);
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

fn commit() -> Result<Commit> {
    let root = repository_root();
    let git = |arguments: &[&str]| read(Command::new("git").arg("-C").arg(&root).args(arguments));
    let seconds = git(&["log", "-1", "--format=%ct"])?;
    let seconds = seconds.trim().parse().context("git gave no time")?;
    Ok(Commit {
        id: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
        time: Timestamp::from_second(seconds).context("the commit's time is out of range")?,
        clean: git(&["status", "--porcelain"])?.trim().is_empty(),
    })
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

fn write_json(path: &Path, value: &serde_json::Value) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests;

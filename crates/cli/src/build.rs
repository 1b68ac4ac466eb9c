//! `windlass build`: a folder in, what `kustomize build` prints out.
//!
//! The engine sees the machine's whole file system as one tree, since bases may lie anywhere; what a kustomization may
//! read of it is the engine's to judge. Nothing is fetched and no other program is started.

mod bool;
mod failure;
mod flags;
mod output;
mod place;
mod unsupported;

use kustomize_build::{DirectoryFs, Options};

pub(crate) use failure::Failure;
pub(crate) use flags::Flags;
use flags::Settings;

/// Builds, and writes the result to where it was asked for. `report_line` is for warnings, line by line.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    flags.deprecations().for_each(&report_line);
    let settings = Settings::from_flags(flags)?;
    let folder = place::folder(&settings.path)?;
    let tree = DirectoryFs::new("/").map_err(|error| Failure::path("open", "/", &error))?;
    let options = Options {
        shown_root: "/".to_owned(),
        ..settings.options
    };
    let built = kustomize_build::build(&tree, &folder, &options);
    let warnings = built
        .as_ref()
        .map_or_else(kustomize_build::Error::warnings, |built| &built.warnings);
    warnings.iter().for_each(|warning| report_line(warning));
    let built = built.map_err(Failure::Build)?;
    output::write(&built, settings.output.as_deref())
}

//! `windlass build`: a folder in, what `kustomize build` prints out.
//!
//! The engine sees the machine's whole file system as one tree, since bases may lie anywhere; what a kustomization may
//! read of it is the engine's to judge. No other program is started, and nothing is fetched without `--allow-remote`.

mod bool;
mod failure;
mod flags;
mod output;
mod place;
mod remote;
mod unsupported;

use build_remote::Remote;
use kustomize_build::{
    Built, DirectoryFs, Fetch as _, FetchError, Options, Repository, build_fetching, without_credentials,
};

pub(crate) use failure::Failure;
pub(crate) use flags::Flags;
use flags::Settings;

/// Builds, and writes the result to where it was asked for. `report_line` is for warnings, line by line.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    flags.deprecations().for_each(&report_line);
    let settings = Settings::from_flags(flags)?;
    let repository = Repository::parse(&settings.path).filter(|_| settings.allow_remote);
    let built = match repository {
        Some(repository) => remote::with(settings.remote, true, |remote| {
            of_repository(&repository, &settings.options, remote)
        })??,
        None => {
            let folder = place::folder(&settings.path)?;
            let tree = DirectoryFs::new("/").map_err(|error| Failure::path("open", "/", &error))?;
            let options = Options {
                shown_root: "/".to_owned(),
                ..settings.options
            };
            remote::with(settings.remote, settings.allow_remote, |remote| {
                build_fetching(&tree, &folder, &options, remote)
            })?
        }
    };
    let warnings = built
        .as_ref()
        .map_or_else(kustomize_build::Error::warnings, |built| &built.warnings);
    warnings.iter().for_each(|warning| report_line(warning));
    let built = built.map_err(Failure::Build)?;
    output::write(&built, settings.output.as_deref())
}

/// Builds a folder of a repository, as if it had been cloned.
fn of_repository(
    repository: &Repository,
    options: &Options,
    remote: &Remote,
) -> Result<Result<Built, kustomize_build::Error>, Failure> {
    let tree = remote.repository(repository).map_err(|error| {
        let (FetchError::Failed(why) | FetchError::Refused(why)) = error else {
            return Failure::Fetch(
                without_credentials(repository.raw()),
                "there is no repository".to_owned(),
            );
        };
        Failure::Fetch(without_credentials(repository.raw()), why)
    })?;
    let options = Options {
        shown_root: without_credentials(&repository.clone_url()),
        ..options.clone()
    };
    let folder = repository.path().trim_matches('/');
    Ok(build_fetching(&*tree, folder, &options, remote))
}

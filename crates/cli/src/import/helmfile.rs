//! Releases of a helmfile.

use std::path::{Path, PathBuf};

use clap::Args;
use delivery_import::{Imported, helmfile};
use serde_json::Value;

use crate::cluster::Failure;

/// Command line of `import helmfile`.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// The helmfile, - for standard input: for one with templates, what `helmfile build --embed-values` prints
    #[arg(
        long = "filename",
        short = 'f',
        value_name = "FILE",
        default_value = "helmfile.yaml"
    )]
    file: PathBuf,

    /// Folder to write to, a file for each release and each source; if one of the files is there already, nothing is written
    #[arg(long, value_name = "FOLDER")]
    pub(super) output_folder: Option<PathBuf>,

    /// Namespace of the new objects
    #[arg(long, short, value_name = "NAME", default_value = "flux-system")]
    namespace: String,
}

/// Reads, and converts.
pub(super) fn import(flags: &Flags) -> Result<Imported, Failure> {
    let shown = flags.file.display().to_string();
    let text = super::read(&flags.file).map_err(|error| Failure::Usage(format!("{shown}: {error}")))?;
    if text.contains("{{") {
        return Err(Failure::Usage(format!(
            "{shown} has templates; run `helmfile build --embed-values | windlass import helmfile -f -`"
        )));
    }
    let documents = manifest::yaml::read_documents(&text, &shown);
    let documents = documents.map_err(|error| Failure::Usage(error.to_string()))?;
    let documents: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    let folder = flags.file.parent().unwrap_or(Path::new(".")).to_owned();
    let read = |path: &str| super::read(&folder.join(path)).map_err(|error| error.to_string());
    Ok(helmfile::import(&documents, &flags.namespace, &read))
}

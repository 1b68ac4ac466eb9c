//! Errors of `windlass build`, in kustomize's words where it has words for them.

use std::io;
use std::path::Path;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A flag has a value that it may not have.
    #[error("illegal flag value --{flag} {value}; legal values: [{legal}]")]
    IllegalValue {
        flag: &'static str,
        value: String,
        legal: &'static str,
    },
    /// A flag asks for what is not supported.
    #[error("--{flag}: {reason}")]
    Unsupported {
        flag: &'static str,
        reason: &'static str,
    },
    /// There is no folder to build.
    #[error("must build at directory: {0}")]
    Place(String),
    /// The folder is somewhere else.
    #[error("remote resources are not supported: '{0}'; fetch it with --allow-remote")]
    Remote(String),
    /// The folder is somewhere else, and cannot be had.
    #[error("failed to fetch '{0}': {1}")]
    Fetch(String, String),
    /// The build failed.
    #[error(transparent)]
    Build(kustomize_build::Error),
    /// A file cannot be opened or written.
    #[error("{0}")]
    Path(String),
    /// The result cannot be printed.
    #[error("write /dev/stdout: {}", words(.0))]
    Print(io::Error),
}

impl Failure {
    /// Says as Go does what could not be done with a path.
    pub(super) fn path(operation: &str, path: impl AsRef<Path>, error: &io::Error) -> Self {
        Self::Path(format!(
            "{operation} {}: {}",
            path.as_ref().display(),
            words(error)
        ))
    }

    /// Returns whether the reader of the output has closed it.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Says what is wrong; with `explain` also where, on lines of their own.
    pub(crate) fn report(&self, explain: bool) -> String {
        let mut lines = vec![self.to_string().trim_end().to_owned()];
        match self {
            Self::Build(error) if explain => {
                match (error.file(), error.line()) {
                    (Some(file), 0) => lines.push(format!("  in file /{file}")),
                    (Some(file), line) => lines.push(format!("  in file /{file}:{line}")),
                    (None, _) => {}
                }
                let through = error.chain().iter().rev();
                lines.extend(through.map(|folder| format!("  through kustomization /{folder}")));
            }
            _ => {}
        }
        lines.join("\n")
    }
}

/// Says why as Go does: the C library's words without the number, and without the capital.
fn words(error: &io::Error) -> String {
    let shown = error.to_string();
    shown.split(" (os error").next().unwrap_or(&shown).to_lowercase()
}

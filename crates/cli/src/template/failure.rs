//! Errors of `windlass template`, in Helm's words where it has words for them.

use std::io;

/// Why there is no output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line is wrong.
    #[error("{0}")]
    Flag(String),
    /// There is no chart at that place.
    #[error("{0}")]
    Place(String),
    /// Values cannot be read.
    #[error(transparent)]
    Values(helm_chart::set_values::Error),
    /// The chart cannot be loaded, or not be installed.
    #[error(transparent)]
    Chart(helm_chart::Error),
    /// The chart cannot be rendered.
    #[error("{0}{hint}", hint = hint(.0))]
    Render(helm_render::Error),
    /// The chart cannot be rendered; what there is of it was printed.
    #[error(transparent)]
    Rendered(helm_render::Error),
    /// The cluster cannot be asked, or would not take the release.
    #[error("{0}")]
    Cluster(String),
    /// A file cannot be written.
    #[error("{0}")]
    Path(String),
    /// The result cannot be printed.
    #[error("write /dev/stdout: {0}")]
    Print(io::Error),
}

/// Once Helm renders, it keeps what it has for `--debug`.
fn hint(error: &helm_render::Error) -> &'static str {
    if error.is_of_rendering() {
        "\n\nUse --debug flag to render out invalid YAML"
    } else {
        ""
    }
}

impl Failure {
    /// Returns whether the reader of the output has closed it.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Says as Go does what could not be done with a path.
    pub(super) fn path(operation: &str, path: &str, error: &io::Error) -> Self {
        let shown = error.to_string();
        let words = shown.split(" (os error").next().unwrap_or(&shown).to_lowercase();
        Self::Path(format!("{operation} {path}: {words}"))
    }
}

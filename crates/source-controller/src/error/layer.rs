//! Errors of a layer.

/// Problem of a layer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayerError {
    /// Not an archive, or a hostile one.
    #[error(transparent)]
    Archive(#[from] artifact::archive::ReadError),
    /// Not what the manifest says.
    #[error(transparent)]
    Content(#[from] oci_client::layer::Error),
    /// It could not be kept for a moment.
    #[error("failed to write a temporary file")]
    Spool(#[source] std::io::Error),
}

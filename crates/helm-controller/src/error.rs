//! Errors outside Helm's actions.

/// Something that could not be done for an object. The message is made of the whole chain, once, by [`Error::message`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object could not be written.
    #[error("failed to update the HelmRelease")]
    Record(#[source] controller_kit::status::Error),
    /// The finalizer could not be added or removed.
    #[error("failed to update the HelmRelease")]
    Finalizer(#[source] controller_kit::finalizer::Error),
    /// The HelmChart could not be made or changed.
    #[error("failed to run server-side apply")]
    ApplyChart(#[source] Box<kube::Error>),
    /// The source of a chart template could not be read.
    #[error("failed to get source '{name}'")]
    ReadSource {
        /// Kind, namespace and name.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The HelmChart could not be deleted.
    #[error("failed to delete HelmChart '{chart}'")]
    DeleteChart {
        /// Namespace and name.
        chart: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
}

impl Error {
    /// Returns the whole chain, for conditions, events and logs.
    pub fn message(&self) -> String {
        error_chain::chain(self)
    }
}

//! Helm charts: from a folder or an archive and values to manifests, hooks and notes, byte for byte as Helm.

pub mod capabilities;
pub mod chart;
pub mod dependencies;
pub mod json;
pub mod manifest;
pub mod path_match;
mod quote;
pub mod schema;
pub mod set_values;
pub mod values;
mod warning;

pub use warning::Warning;

/// Whose behaviour is followed where Helm 3 and Helm 4 differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Helm {
    /// Helm 3.22.
    V3,
    /// Helm 4.3, the line that Flux 2.9 embeds.
    #[default]
    V4,
}

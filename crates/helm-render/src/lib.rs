//! Helm charts: from a folder or an archive and values to manifests, hooks and notes, byte for byte as Helm.

pub mod capabilities;
pub mod chart;
pub mod dependencies;
mod engine;
mod error;
mod functions;
pub mod json;
pub mod manifest;
pub mod path_match;
mod post_render;
mod quote;
mod render;
pub mod schema;
pub mod set_values;
pub mod values;
mod warning;

pub use error::{Error, ErrorKind};
pub use functions::Lookup;
pub use post_render::{PostRender, PostRenderStrategy};
pub use render::{Crd, Options, Release, Rendered, Renderer, name_from_template};
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

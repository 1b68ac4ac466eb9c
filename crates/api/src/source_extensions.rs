//! Group `source.extensions.fluxcd.io`: sources made of other sources.
//!
//! source-controller writes the status of an [`ArtifactGenerator`], and the
//! [`ExternalArtifact`](crate::source::ExternalArtifact)s that it generates.

mod artifact_generator;

pub use artifact_generator::{
    ArtifactGenerator, ArtifactGeneratorSpec, ArtifactGeneratorStatus, CopyOperation, CopyStrategy,
    ExternalArtifactReference, InputKind, InputReference, OutputArtifact, RECONCILE_ANNOTATION,
};

/// Group of every kind in here.
pub const GROUP: &str = "source.extensions.fluxcd.io";
/// Version of every kind in this group.
pub const VERSION: &str = "v1beta1";
/// Finalizer of a generator.
pub const FINALIZER: &str = "source.extensions.fluxcd.io/finalizer";
/// Label on a generated artifact: the UID of its generator.
pub const GENERATOR_LABEL: &str = "source.extensions.fluxcd.io/generator";

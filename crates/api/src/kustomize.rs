//! Group `kustomize.toolkit.fluxcd.io`: what is built from an artifact and applied.

mod kustomization;
mod reference;
mod status;

pub use crate::meta::{ResourceInventory, ResourceRef};
pub use kustomization::{
    BuildMetadataOption, Decryption, DecryptionProvider, DeletionPolicy, Kustomization, KustomizationSpec,
    PostBuild, SubstituteReference, SubstituteStrategy,
};
pub use reference::{CrossNamespaceSourceReference, SourceKind};
pub use status::KustomizationStatus;

/// Annotation of a Kustomization: a revision that is applied whatever its health is. Not one of Flux's.
pub const RELEASED_ANNOTATION: &str = "windlass.dev/released-revision";
/// Annotation of a Kustomization: whether its revisions are kept, and whether it goes back by itself. Not one of Flux's.
pub const ROLLBACK_ANNOTATION: &str = "windlass.dev/rollback";
/// Label of the Secrets with the last revisions of Kustomizations that were healthy.
pub const LAST_KNOWN_GOOD_LABEL: &str = "windlass.dev/last-known-good";
/// Version of every kind in this group.
pub const VERSION: &str = "v1";

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

/// Version of every kind in this group.
pub const VERSION: &str = "v1";

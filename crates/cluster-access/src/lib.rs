//! Where the objects of a Kustomization or HelmRelease are, and as whom they are read and written.
//!
//! | module | what it is |
//! |---|---|
//! | [`targets`] | this cluster or a remote one, as the controller or as a tenant's service account |
//! | [`artifact_access`] | what the client of the artifact service trusts and shows |
//!
//! For the controllers that apply. It knows no kind of theirs: an object is what of it matters here, a
//! [`targets::Placement`].

pub mod artifact_access;
pub mod targets;

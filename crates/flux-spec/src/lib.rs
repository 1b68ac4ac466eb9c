//! Interpretation of Flux's specs, before anything reaches a cluster.
//!
//! | module | what it makes |
//! |---|---|
//! | [`build`] | the objects of a Kustomization, from a folder and its spec |
//! | [`release`] | the name, the values and the post-renderers of a HelmRelease |
//! | [`selectors`] | which objects a rule of a spec selects |
//!
//! Pure: content, ConfigMaps and Secrets come from whoever may read them. The controllers and the command share it.

pub mod build;
pub mod release;
pub mod selectors;

//! ResourceSets of flux-operator: which sets of inputs there are, and which objects templates make of them.
//!
//! In: the specs of a ResourceSet and its providers, and what a Git service, a registry or a service has. Out: sets of inputs
//! ([`found`], [`inputs`]), objects ([`mod@render`]), what of ConfigMaps and Secrets belongs into them ([`references`]), when
//! inputs may change ([`schedule`]), and which pull requests may have an environment ([`environment`]). No I/O. Made from the kinds' documented surface and behaviour.

pub mod environment;
pub mod found;
pub mod functions;
pub mod inputs;
pub mod references;
pub mod render;
pub mod schedule;
mod template;

pub use inputs::{Export, combine};
pub use render::{Objects, render};

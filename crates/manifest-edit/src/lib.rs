//! Manifests in files of a repository, replaced or added as people ask for it (ADR 22). Pure.
//!
//! | module | what it is |
//! |---|---|
//! | `document` | the manifests of a file, as pieces of its text |
//! | `rules` | which files and manifests people may change |
//! | `resources` | the list of files in a kustomization.yaml |
//! | `edit` | all files of one request |
//! | [`live`] | the manifest of an object that is in a cluster |

mod document;
mod edit;
pub mod live;
mod resources;
mod rules;

pub use document::{Documents, at_line, digest, find};
pub use edit::{Error, edit};
pub use resources::{NAMES as KUSTOMIZATION_FILES, add as add_resource};
pub use rules::{is_open, is_within};

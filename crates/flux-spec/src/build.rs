//! Builds a folder as a Kustomization's spec asks for: folder and spec in, objects out.
//!
//! Between the artifact and the apply, around kustomize: [`generate`] finds the folder's kustomization or makes one for
//! plain YAML and adds what the spec says, [`build`] runs kustomize on it, [`substitute`] replaces variables in what came
//! out. Pure over a file system: nothing here knows a cluster, decrypts, or labels objects (`commonMetadata` is for the
//! apply). The file system is the fence: what it does not hold cannot be named by any path.
//!
//! ```
//! use api::kustomize::KustomizationSpec;
//! use kustomize_build::MemoryFs;
//!
//! let mut files = MemoryFs::default();
//! files.insert("apps/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
//! let spec = KustomizationSpec { name_prefix: Some("my-".into()), ..KustomizationSpec::default() };
//! let objects = flux_spec::build::build(&files, "apps", &spec).unwrap();
//! assert_eq!(objects[0].name(), "my-a");
//! ```

mod error;
mod folder;
mod generate;
mod kustomization;
mod objects;
pub mod path;
mod substitute;

pub use error::Error;
pub use error::SubstituteError;
pub use folder::{KUSTOMIZATION_FILES, is_manifest};
pub use generate::{Generated, generate};
pub use manifest::substitute::Mode;
pub use objects::{build, build_fetching, refuse_encrypted, to_yaml};
pub use substitute::{Data, resource_name, substitute};

//! How the remotes of an object are reached: its Secrets, ServiceAccounts and proxies, and who it is at a provider.
//!
//! In: the references of a spec, and a client. Out: credentials and connections for `git-client`, `oci-client` and `forge`. Everything
//! is read in the namespace of the object that refers to it, as its tenant may; the controller's own identity is not used
//! on a way that the tenant chose while tenants are locked in. Not here: what is fetched, conditions, retries.

pub mod error;
pub mod forge;
pub mod git;
pub mod identity;
mod reader;

pub use reader::{Named, NoteSecret, Reader};

//! `windlass bootstrap`: writes the controllers, and what delivers them, to a repository, and has the cluster deliver itself from it.
//!
//! ```text
//! origin ─▶ branch: what is there ─▶ files: what is to be there ─▶ commit, push
//!        ─▶ access: Secret, deploy key ─▶ delivery: components and sync objects, until the commit is delivered
//! ```
//!
//! Each step looks at what is there before it changes it, so that the command can be run again: after a failure, with other
//! values, with a newer version of itself (ADR 32).

mod access;
mod branch;
mod files;
mod flags;
mod origin;
mod sync;

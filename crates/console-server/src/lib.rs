//! The console's server: an API over a live picture of clusters.
//!
//! Callers are who the API server says, or who signed in; they see what they could `get` in each cluster (ADR 17). What a server is
//! made of are its [`Settings`]; two programs bring them: `console` in the cluster, `windlass ui` on a laptop.

pub mod access;
pub mod clusters;

mod actions;
mod announce;
mod api;
mod ask;
mod caller;
mod changes;
mod logs;
mod mcp;
mod metrics;
mod pages;
mod problem;
mod recorder;
mod serve;
mod sight;

pub use actions::Mode;
pub use api::description;
pub use ask::Asker;
pub use delivery_diff::Archives;
pub use serve::{Server, Settings};

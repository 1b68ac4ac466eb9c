//! Benchmarks of the controllers: seconds, memory, processor time, requests; ours and, in the same run,
//! Flux's.
//!
//! Everything is real: control plane, registry, Git server, Helm repository, controllers as processes. Each
//! benchmark prints Markdown for docs/benchmarks.md.

mod at_rest;
pub mod chain;
pub mod console;
pub mod contestant;
pub mod figures;
pub mod idle;
pub mod image;
pub mod notify;
mod pages;
pub mod pipeline;
pub mod preview;
mod ready;
pub mod releases;
pub mod rest;
pub mod scale;
pub mod source;
pub mod sync;

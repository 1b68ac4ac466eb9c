//! Our command beside the real one: the same work by both, each started afresh, in turn, and the figures as Markdown.
//!
//! Which work is for `bench_build` and `bench_render` to choose.

mod measure;
mod report;

pub use measure::{Contestant, Work, each, in_process, once};
pub use report::{cases, head, large};

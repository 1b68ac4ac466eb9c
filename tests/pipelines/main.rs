//! Releases through the environments of pipelines: Flux's applications delivered from real Git repositories on the real control
//! plane, and pipeline-controller that changes the files.

#![expect(clippy::print_stderr, reason = "a test's output is shown when it fails")]

mod attestations;
mod change_requests;
mod clusters;
mod commands;
mod decisions;
mod gates;
mod kill;
mod previews;
mod promotion;
mod proposals;
mod reverts;
mod rollbacks;
mod sources;
mod tenants;
mod triggers;
mod weave;
mod world;

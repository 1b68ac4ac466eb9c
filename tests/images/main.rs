//! Images from a real registry to commits in real Git repositories: image-controller on the real control plane.

#![expect(clippy::print_stderr, reason = "a test's output is shown when it fails")]

mod access;
mod commands;
mod commits;
mod eligible;
mod kill;
mod leases;
mod monitoring;
mod proposals;
mod races;
mod registries;
mod released;
mod way_back;
mod whole;
mod world;

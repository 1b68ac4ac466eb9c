//! The chart `charts/windlass`: rendered by our engine as by the real helm, and installed, upgraded and uninstalled by the real helm and by
//! the `windlass` command on the real control plane, where kwok runs the Pods.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]
#![allow(
    clippy::print_stdout,
    reason = "what the command said belongs to a failed test"
)]

mod bootstrap;
mod bootstrap_git;
mod cluster;
mod command;
mod containers;
mod decisions;
mod freezes;
mod from_flux;
mod images;
mod install;
mod layouts;
mod lifecycle;
mod load;
mod rendering;
mod roles;
mod takeover;

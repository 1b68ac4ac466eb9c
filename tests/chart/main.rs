//! The chart `charts/windlass`: rendered by our engine as by the real helm, and installed, upgraded and uninstalled by the real helm on
//! the real control plane, where kwok runs the Pods.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod cluster;
mod containers;
mod from_flux;
mod images;
mod install;
mod lifecycle;
mod rendering;
mod roles;

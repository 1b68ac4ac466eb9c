//! Helm's actions as a library, on a real control plane: kwok runs the Pods, so hooks, tests and waits are real.
//!
//! One control plane serves all tests; each has a namespace of its own.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod accounts;
mod client_side;
mod crashes;
mod crds;
mod drift;
mod helm;
mod hooks;
mod install;
mod release_tests;
mod rollback;
mod scene;
mod storage;
mod takeover;
mod template;
mod uninstall;
mod upgrade;
mod waits;

//! The engine against a real API server, through a client that records what is asked of it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod apply;
mod definitions;
mod drift;
mod fixture;
mod immutable;
mod prune;
mod takeover;

//! The peers themselves, started for real: what every other cluster test relies on.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod control_plane;
mod git;
mod registry;

//! Verdicts against recorded kstatus, and the hub against an API server in the same process.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod causes;
mod fake_api;
mod hub;
mod verdicts;

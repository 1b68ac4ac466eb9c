//! Tests of the wire: requests as sent, and faults, with an API server of a few lines in the same process.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod discovery;
mod server;
mod trouble;

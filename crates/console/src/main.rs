//! Answers what is delivered where, since when, from which revision, and why not: an API over a live picture of the cluster.
//!
//! Callers are who the API server says, and see what they could `get` there (ADR 17).

mod access;
mod actions;
mod api;
mod caller;
mod clusters;
mod flags;
mod metrics;
mod problem;
mod recorder;
mod serve;
mod sight;

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::Flags;

/// Name of the program, of its metrics and of its client.
const NAME: &str = "console";
/// The check that fails until all kinds are listed.
const PICTURE: &str = "picture";

fn main() -> ExitCode {
    let flags = Flags::parse();
    if flags.openapi {
        return api::description::print();
    }
    let app = flags.common.app(NAME, &[PICTURE]);
    controller_kit::run(app, |kit| serve::run(flags, kit))
}

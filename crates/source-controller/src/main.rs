//! Resolves sources to artifacts and serves them.
//!
//! Runs under the name of Flux's source-controller where others see it: field manager, Lease, events.

mod controller;
mod error;
mod fetch;
mod flags;
mod generator;
mod kind;
mod metrics;
mod provider_name;
mod reconcile;
mod serve;

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = flags
        .common
        .app("source-controller", &[controller::STORAGE_CHECK]);
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

//! Lists the tags of images, chooses among them, and writes the choice into Git repositories.
//!
//! Takes the place of two controllers of Flux, and runs under their names where others see it: field managers, reporters
//! of events, the Lease. One process, so that a new tag goes from the registry to the commit without waiting for a watch.

mod automation;
mod context;
mod controller;
mod delivery;
mod flags;
mod metrics;
mod pauses;
mod policy;
mod repository;
mod tags;

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = flags.common.app(flags::REFLECTOR, &[]);
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

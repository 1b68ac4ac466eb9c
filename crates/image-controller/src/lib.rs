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

use std::ffi::OsString;

use clap::Parser as _;
use controller_kit::Program;

use crate::flags::Flags;

/// Reads the command line, of which the first word is the name.
///
/// # Errors
/// When a flag is unknown or wrong, or only help is asked for.
pub fn program(arguments: Vec<OsString>) -> Result<Program, clap::Error> {
    let flags = Flags::try_parse_from(arguments)?;
    let app = flags.common.app(flags::REFLECTOR, &[]);
    Ok(Program::new(app, |kit| controller::run(flags, kit)))
}

//! The HelmRelease kind: artifact, chart, release.
//!
//! Runs under the name of Flux's helm-controller where others see it: field manager, Lease, events.

mod admission;
mod chart_template;
mod charts;
mod context;
mod controller;
mod drift_rules;
mod error;
mod flags;
mod follow;
mod memory;
mod orders;
mod reconcile;
mod release;
mod source;
mod sources;
mod values;

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
    let app = flags.delivery.common.app(flags::NAME, &[]);
    Ok(Program::new(app, |kit| controller::run(flags, kit)))
}

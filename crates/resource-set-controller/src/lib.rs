//! The ResourceSet and ResourceSetInputProvider kinds of flux-operator: inputs, templates, apply, health (ADR 25), and
//! EnvironmentPolicies over them (ADR 26).
//!
//! Runs under the name of flux-operator where others see it: field manager and events.

mod context;
mod controller;
mod environment;
mod flags;
mod health;
mod provider;
mod set;
mod timing;

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
    let app = flags.common.app(flags::NAME, &[]);
    Ok(Program::new(app, |kit| controller::run(flags, kit)))
}

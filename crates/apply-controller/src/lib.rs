//! The Kustomization kind: artifact, build, apply, health.
//!
//! Runs under the name of Flux's kustomize-controller where others see it: field manager, Lease, events.

mod builds;
mod confirmation;
mod context;
mod controller;
mod decryption;
mod error;
mod flags;
mod good;
mod memory;
mod reconcile;
mod sources;

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
    let app = flags.delivery.common.app("kustomize-controller", &[]);
    Ok(Program::new(app, |kit| controller::run(flags, kit)))
}

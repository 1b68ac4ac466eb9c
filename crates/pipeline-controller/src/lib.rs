//! Promotes releases from one environment to the next, by changes in Git (ADR 21), proposes changes that people ask for (ADR 22), and
//! previews pull requests (ADR 24).

mod app;
mod apps;
mod attest;
mod change;
mod change_request;
mod checks;
mod context;
mod controller;
mod edit;
mod failures;
mod flags;
mod gates;
mod observe;
mod place;
mod preview;
mod proposal;
mod reconcile;
mod remote;
mod site;
mod status;
mod triggers;
mod weave;

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

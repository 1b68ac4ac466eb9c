//! Resolves sources to artifacts and serves them.
//!
//! Runs under the name of Flux's source-controller where others see it: field manager, Lease, events.

mod backup;
mod controller;
mod error;
mod fetch;
mod flags;
mod garbage;
mod generator;
mod kind;
mod metrics;
mod provider_name;
mod reconcile;
mod replica;
mod serve;
mod standby;

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
    let app = flags
        .common
        .app("source-controller", &[serve::plane::STORAGE_CHECK]);
    // The first address is where replicas follow the leader.
    let served: Vec<_> = flags.artifact_service.grpc_addr.socket().into_iter().collect();
    let standby = flags.clone();
    Ok(Program::replica(
        app,
        served,
        move |while_waiting| standby::stand_by(standby, while_waiting),
        |kit, had| controller::run(flags, kit, had),
    ))
}

//! Resolves sources to artifacts and serves them.
//!
//! Runs under the name of Flux's source-controller where others see it: field manager, Lease, events.

mod backup;
mod controller;
mod error;
mod fetch;
mod flags;
mod generator;
mod kind;
mod metrics;
mod provider_name;
mod reconcile;
mod replica;
mod serve;

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = flags
        .common
        .app("source-controller", &[controller::STORAGE_CHECK]);
    // The first address is where replicas follow the leader.
    let served: Vec<_> = flags.artifact_service.grpc_addr.socket().into_iter().collect();
    let standby = flags.clone();
    controller_kit::run_replica(
        app,
        &served,
        move |while_waiting| controller::stand_by(standby, while_waiting),
        |kit, had| controller::run(flags, kit, had),
    )
}

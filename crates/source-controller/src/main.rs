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
mod reconcile;
mod serve;
mod verify;

use std::process::ExitCode;

use clap::Parser as _;
use controller_kit::App;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = App {
        name: "source-controller",
        client: flags.client.clone(),
        log: flags.log.clone(),
        leader: flags.leader.clone(),
        watch: flags.watch.clone(),
        endpoints: flags.endpoints.clone(),
        not_ready_until: &[controller::STORAGE_CHECK],
    };
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

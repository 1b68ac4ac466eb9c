//! The Kustomization kind: artifact, build, apply, health.
//!
//! Runs under the name of Flux's kustomize-controller where others see it: field manager, Lease, events.

mod builds;
mod controller;
mod decryption;
mod error;
mod flags;
mod memory;
mod reconcile;

use std::process::ExitCode;

use clap::Parser as _;
use controller_kit::App;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = App {
        name: "kustomize-controller",
        client: flags.client.clone(),
        log: flags.log.clone(),
        leader: flags.leader.clone(),
        watch: flags.watch.clone(),
        endpoints: flags.endpoints.clone(),
        not_ready_until: &[],
    };
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

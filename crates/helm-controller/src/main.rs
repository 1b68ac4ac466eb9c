//! The HelmRelease kind: artifact, chart, release.
//!
//! Runs under the name of Flux's helm-controller where others see it: field manager, Lease, events.

mod chart_template;
mod charts;
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
mod values;

use std::process::ExitCode;

use clap::Parser as _;
use controller_kit::App;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = App {
        name: flags::NAME,
        client: flags.client.clone(),
        log: flags.log.clone(),
        leader: flags.leader.clone(),
        watch: flags.watch.clone(),
        endpoints: flags.endpoints.clone(),
        not_ready_until: &[],
    };
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

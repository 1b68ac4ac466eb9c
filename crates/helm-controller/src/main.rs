//! The HelmRelease kind: artifact, chart, release.
//!
//! Runs under the name of Flux's helm-controller where others see it: field manager, Lease, events.

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

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = flags.delivery.common.app(flags::NAME, &[]);
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

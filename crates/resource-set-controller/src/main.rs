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

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = flags.common.app(flags::NAME, &[]);
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

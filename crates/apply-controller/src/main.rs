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

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = flags.delivery.common.app("kustomize-controller", &[]);
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

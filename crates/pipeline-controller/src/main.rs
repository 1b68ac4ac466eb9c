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

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let app = flags.common.app(flags::NAME, &[]);
    controller_kit::run(app, |kit| controller::run(flags, kit))
}

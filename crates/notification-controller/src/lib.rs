//! Alerts out, webhooks in: the Alert, Provider and Receiver kinds.
//!
//! Runs under the name of Flux's notification-controller where others see it: field manager, Lease, events.

mod alert;
mod controller;
mod dispatch;
mod finalizers;
mod flags;
mod http_metrics;
mod identities;
mod intake;
mod kinds;
mod objects;
mod outbox;
mod provider_target;
mod receiver;
mod results;
mod served;
mod store;

use std::ffi::OsString;

use clap::Parser as _;
use controller_kit::flags::ListenAddress;
use controller_kit::{App, Program};

use crate::flags::Flags;

/// Reads the command line, of which the first word is the name.
///
/// # Errors
/// When a flag is unknown or wrong, or only help is asked for.
pub fn program(arguments: Vec<OsString>) -> Result<Program, clap::Error> {
    let flags = Flags::try_parse_from(arguments)?;
    // With several replicas, only the one that leads becomes ready for events; a rolling update must not wait for that.
    let not_ready_until: &[_] = if flags.leader.enable_leader_election {
        &[]
    } else {
        &[flags::READY]
    };
    let app = App {
        name: flags::NAME,
        client: flags.client.clone(),
        log: flags.log.clone(),
        leader: flags.leader.clone(),
        watch: flags.watch.clone(),
        endpoints: flags.endpoints(),
        not_ready_until,
    };
    let served = [flags.events_addr, flags.receiver_addr].map(ListenAddress::socket);
    let served: Vec<_> = served.into_iter().flatten().collect();
    Ok(Program::serving(app, served, |kit| controller::run(flags, kit)))
}

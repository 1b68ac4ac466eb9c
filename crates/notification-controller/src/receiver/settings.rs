//! Flags of the receiver beyond Flux's.

use std::time::Duration;

use clap::Args;
use controller_kit::duration;

/// What strangers may take.
#[derive(Args, Debug, Clone)]
pub struct ReceiverFlags {
    /// How many webhooks an address may send in a second, in bursts of five times as many; 0 is no limit
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub receiver_rate_limit: u32,
    /// How many connections for webhooks may be open at once
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub receiver_max_connections: u16,
    /// For how long a webhook that comes again is answered without anything being done; 0 does it each time, as Flux does
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration::parse)]
    pub receiver_replay_window: Duration,
}

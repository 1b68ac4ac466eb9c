//! Flags of the receiver beyond Flux's.

use std::time::Duration;

use clap::Args;
use controller_kit::duration;

/// Limits for unauthenticated callers.
#[derive(Args, Debug, Clone)]
pub struct ReceiverFlags {
    /// Maximum webhooks per second from one address, with bursts of five times as many; 0 disables the limit
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub receiver_rate_limit: u32,
    /// Maximum number of open webhook connections
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub receiver_max_connections: u16,
    /// How long repeated webhooks are acknowledged without effect; 0 handles each of them, as Flux does
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration::parse)]
    pub receiver_replay_window: Duration,
}

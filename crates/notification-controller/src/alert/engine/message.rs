//! A message that an Alert sends.

use event::Event;
use notifier::State;
use serde::{Deserialize, Serialize};

/// Message to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The event, with metadata without prefixes.
    pub event: Event,
    /// State of the incident.
    pub state: State,
    /// Subject of the message.
    pub key: String,
    /// Everything that it tells of, if that is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

impl Message {
    /// An event as it is.
    pub fn plain(event: Event) -> Self {
        Self {
            key: event.involved_object.to_string(),
            event,
            state: State::Event,
            events: Vec::new(),
        }
    }
}

//! Messages to machines: the event as sent to a bus or a queue, or as a span of a trace.

mod azure_event_hub;
mod google_pubsub;
mod nats;
mod otel;

use crate::edge::Http;
use crate::error::Error;
use crate::notification::{Notification, Sent};
use crate::provider_type::ProviderType as Type;
use crate::target::Target;

/// Returns whether this type is here.
pub(crate) fn has(type_: Type) -> bool {
    matches!(
        type_,
        Type::Nats | Type::GooglePubSub | Type::AzureEventHub | Type::Otel
    )
}

/// Says it.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    match http.target.type_ {
        Type::Nats => nats::send(http, notification).await,
        Type::GooglePubSub => google_pubsub::send(http, notification).await,
        Type::AzureEventHub => azure_event_hub::send(http, notification).await,
        Type::Otel => otel::send(http, notification).await,
        other => Err(Error::invalid(format!("provider {other} is not a bus"))),
    }
}

/// Checks a target.
pub(crate) fn check(target: &Target) -> Result<(), Error> {
    match target.type_ {
        Type::Nats => nats::check(target),
        Type::GooglePubSub => google_pubsub::check(target),
        Type::AzureEventHub => azure_event_hub::check(target),
        _ => otel::check(target),
    }
}

#[cfg(test)]
mod tests;

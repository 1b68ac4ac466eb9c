//! Answers to webhook calls, and their effects. The caller gets a status code only; the log has the reason.

use std::collections::BTreeMap;
use std::time::Instant;

use api::notification::ReceiverResource;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use tokio::sync::SemaphorePermit;
use webhook::filter::{Called, Filter, MOST_VALUES};
use webhook::{Accepted, Call, Rules};

use super::compile::Compiled;
use super::context::Context;
use super::reconcile::secret_for_call;
use super::replay::Begun;
use super::room::Kept;
use super::targets::Place;

/// Entries of a Receiver that are worked on at once.
const AT_ONCE: usize = 8;
/// Values that bodies are made into for filters, of all calls together: they take many times the room of the bodies.
pub const MOST_VALUES_AT_ONCE: usize = 4 * MOST_VALUES;

/// Answers a call to a Receiver that takes calls.
pub async fn answer(context: &Context, receiver: &Compiled, headers: &HeaderMap, body: Kept) -> StatusCode {
    let call = Call {
        headers,
        body: &body.bytes,
    };
    let secret = match secret_for_call(&context.client, receiver).await {
        Ok(secret) => secret,
        Err(unread) => {
            tracing::error!(error = unread.message, "unable to validate payload");
            return if unread.may_pass {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::BAD_REQUEST
            };
        }
    };
    let accepted = match verify(context, receiver, &call, secret.as_deref()).await {
        Ok(accepted) => accepted,
        Err(reason) => {
            tracing::error!(error = reason, "unable to validate payload");
            return StatusCode::BAD_REQUEST;
        }
    };
    if let Some(event) = &accepted.event {
        tracing::info!(event, "handling {} event", receiver.type_);
    }
    let begun = accepted
        .identity
        .as_ref()
        .map(|identity| context.replays.begin(&receiver.uid, identity, Instant::now()));
    let mark = match begun {
        None => None,
        Some(Begun::New(mark)) => Some(mark),
        Some(Begun::UnderWay) => {
            tracing::info!("the same call is under way; it may come again");
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        Some(Begun::Done) => {
            tracing::info!("the same call came a moment ago; nothing is done again");
            return StatusCode::OK;
        }
    };
    let (called, _values) = match read(context, receiver, &call, &accepted).await {
        Ok(read) => read,
        Err(error) => {
            tracing::error!(error, "unable to create resource filters");
            return StatusCode::BAD_REQUEST;
        }
    };
    let tags = webhook::pushed_tags(&call, &accepted);
    // Waking takes long: others are not to wait for the room meanwhile.
    drop((accepted, body));
    let woken = wake_all(context, receiver, &called, &tags).await;
    if woken.contains(&Woken::Failed) {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    if !woken.is_empty() && woken.iter().all(|woken| *woken == Woken::Unserved) {
        // Nothing was done; the caller may come again when the kinds are there.
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    if let Some(mark) = mark {
        mark.done(Instant::now());
    }
    StatusCode::OK
}

async fn verify(
    context: &Context,
    receiver: &Compiled,
    call: &Call<'_>,
    secret: Option<&BTreeMap<String, Vec<u8>>>,
) -> Result<Accepted, String> {
    let rules = Rules {
        type_: receiver.type_,
        events: &receiver.events,
        secret,
        oidc: &receiver.oidc,
        now: Timestamp::now(),
    };
    let verified = webhook::verify(call, &rules, &context.keys, &context.evaluator).await;
    verified.map_err(|refused| refused.to_string())
}

/// Reads the parts of a call that filters use, once there is room for it. A body that nothing reads may be
/// anything.
async fn read<'a>(
    context: &'a Context,
    receiver: &Compiled,
    call: &Call<'_>,
    accepted: &Accepted,
) -> Result<(Called, Option<SemaphorePermit<'a>>), String> {
    if !receiver.has_filters() {
        return Ok((Called::default(), None));
    }
    let values = Called::values(call, accepted).min(MOST_VALUES);
    let permits = u32::try_from(values).unwrap_or(u32::MAX);
    let room = context.values.acquire_many(permits).await;
    let room = room.map_err(|error| error.to_string())?;
    Ok((Called::read(call, accepted)?, Some(room)))
}

/// Result of waking the objects of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// They are annotated.
    Done,
    /// The cluster does not serve their kind; the status of the Receiver says so.
    Unserved,
    /// Not all of them could be.
    Failed,
}

/// Wakes what the Receiver names.
async fn wake_all(context: &Context, receiver: &Compiled, called: &Called, tags: &[String]) -> Vec<Woken> {
    let resources = receiver.resources.iter();
    let waking: Vec<_> = resources
        .map(|(resource, filter)| wake(context, receiver, resource, filter, called, tags))
        .collect();
    stream::iter(waking).buffer_unordered(AT_ONCE).collect().await
}

async fn wake(
    context: &Context,
    receiver: &Compiled,
    resource: &ReceiverResource,
    filter: &Filter,
    called: &Called,
    tags: &[String],
) -> Woken {
    let place = Place::new(resource, &receiver.namespace, context.no_cross_namespace_refs);
    let woken = match place {
        Ok(place) if let Some(missing) = place.unserved(&context.served) => {
            tracing::warn!(resource = resource.name, "{missing}");
            return Woken::Unserved;
        }
        Ok(place) => {
            place
                .wake(&context.client, filter, called, &context.evaluator, tags)
                .await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &woken {
        tracing::error!(
            error,
            resource = resource.name,
            "unable to request reconciliation"
        );
    }
    if woken.is_ok() { Woken::Done } else { Woken::Failed }
}

//! What a call is answered, and what is done about it. The caller gets a number only; the log has the reason.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use api::notification::ReceiverResource;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use webhook::filter::{Called, Filter};
use webhook::{Accepted, Call, Rules};

use super::Context;
use super::compile::Compiled;
use super::reconcile::secret_for_call;
use super::targets::Place;

/// Entries of a Receiver that are worked on at once.
const AT_ONCE: usize = 8;

/// Answers a call to a Receiver that takes calls.
pub async fn answer(
    context: &Context,
    receiver: &Arc<Compiled>,
    headers: &HeaderMap,
    body: &[u8],
) -> StatusCode {
    let call = Call { headers, body };
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
    let called = match Called::read(&call, &accepted) {
        Ok(called) => called,
        // A body that nothing looks at may be anything.
        Err(_) if receiver.resources.iter().all(|(_, filter)| filter.is_empty()) => Called::default(),
        Err(error) => {
            tracing::error!(error, "unable to create resource filters");
            return StatusCode::BAD_REQUEST;
        }
    };
    let mark = match &accepted.identity {
        Some(identity) => match context.replays.begin(&receiver.uid, identity, Instant::now()) {
            Some(mark) => Some(mark),
            None => {
                tracing::info!("the same call came a moment ago; nothing is done again");
                return StatusCode::OK;
            }
        },
        None => None,
    };
    if wake_all(context, receiver, &called).await {
        StatusCode::OK
    } else {
        // Whoever sends it again is to get it done.
        if let Some(mark) = mark {
            context.replays.forget(mark);
        }
        StatusCode::INTERNAL_SERVER_ERROR
    }
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

/// Wakes what the Receiver names; false if not all of it could be.
async fn wake_all(context: &Context, receiver: &Compiled, called: &Called) -> bool {
    let resources = receiver.resources.iter();
    let waking: Vec<_> = resources
        .map(|(resource, filter)| wake(context, receiver, resource, filter, called))
        .collect();
    let woken: Vec<bool> = stream::iter(waking).buffer_unordered(AT_ONCE).collect().await;
    woken.into_iter().all(|is_woken| is_woken)
}

async fn wake(
    context: &Context,
    receiver: &Compiled,
    resource: &ReceiverResource,
    filter: &Filter,
    called: &Called,
) -> bool {
    let place = Place::of(resource, &receiver.namespace, context.no_cross_namespace_refs);
    let woken = match place {
        Ok(place) => {
            place
                .wake(&context.client, filter, called, &context.evaluator)
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
    woken.is_ok()
}

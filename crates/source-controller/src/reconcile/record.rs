//! Record: tells the API server what was concluded: at most one status patch, events in the background, log lines.

use std::sync::Arc;

use controller_kit::events::Severity;
use controller_kit::status;
use kube::core::object::HasStatus;

use super::context::Context;
use super::status::Event;
use crate::kind::Kind;

/// Writes the status if it differs. Answers the object as it is then.
pub(crate) async fn write_status<K: Kind>(
    object: Arc<K>,
    new: &<K as HasStatus>::Status,
    context: &Context<K>,
) -> Result<Arc<K>, status::Error> {
    let patched = status::patch_status(&context.client, &*object, new, &context.field_manager).await?;
    Ok(match patched {
        Some(answer) => {
            context.cache.remember(answer.clone());
            Arc::new(answer)
        }
        None => object,
    })
}

/// Publishes an event, and logs it. Logs name the object through the span of the reconcile.
pub(crate) fn publish<K: Kind>(object: &K, event: Event, context: &Context<K>) {
    let Event {
        severity,
        reason,
        message,
        annotations,
    } = event;
    match severity {
        Severity::Error => tracing::error!(reason, error = message, "failed to reconcile"),
        Severity::Trace | Severity::Info => tracing::info!("{message}"),
    }
    context
        .recorder
        .publish(object, severity, &reason, &message, annotations);
}

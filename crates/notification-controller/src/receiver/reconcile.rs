//! One reconcile of one Receiver: read its Secret, and put it into the index and the status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::meta::{RECONCILE_REQUEST_ANNOTATION, reasons};
use api::notification::Receiver;
use controller_kit::events::Severity;
use controller_kit::queue::Outcome as Next;
use controller_kit::{ObjectKey, check_name, finalizer, status as status_patch};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};

use super::Context;
use super::compile::{self, Compiled};
use super::index::Entry;
use super::status::{self, Frame, Report};
use super::targets::Place;
use crate::flags::NAME;
use crate::served;

/// What a Secret holds.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// Why there is nothing of a Secret.
#[derive(Debug)]
pub struct Unread {
    /// What is wrong; without what the Secret holds.
    pub message: String,
    /// The API server did not say what the Secret is: the next time it may.
    pub may_pass: bool,
}

/// Reconciles the Receiver that `key` names.
pub async fn reconcile(context: &Context, key: &ObjectKey) -> Next {
    let Some(object) = context.receivers.get(&key.object_ref()) else {
        context.index.remove(key);
        return Next::Done;
    };
    match advance(context, key, object).await {
        Ok(next) => next,
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(error, "failed to write what a reconcile found out");
            Next::Backoff
        }
    }
}

async fn advance(context: &Context, key: &ObjectKey, mut object: Arc<Receiver>) -> anyhow::Result<Next> {
    if object.metadata.deletion_timestamp.is_some() {
        context.index.remove(key);
        finalizer::remove(&context.client, &*object, NAME).await?;
        return Ok(Next::Done);
    }
    if let Some(changed) = finalizer::add(&context.client, &*object, NAME).await? {
        context.receivers.remember(changed.clone());
        object = Arc::new(changed);
    }
    let created = object
        .creation_timestamp()
        .map_or(Timestamp::MIN, |created| created.0);
    let close = |path: Option<&str>| match path {
        Some(path) => context.index.set(key, created, path, Entry::Closed),
        None => context.index.remove(key),
    };
    let previous = object
        .status
        .as_ref()
        .and_then(|status| status.webhook_path.as_deref());
    if object.spec.suspend {
        close(previous);
        tracing::info!("Reconciliation is suspended for this object");
        write(context, &object, Report::Suspended).await?;
        return Ok(Next::Done);
    }
    let mut compiled = match compile::compile(&object) {
        Ok(compiled) => compiled,
        Err(invalid) => {
            close(previous);
            let message = status::terminal(&invalid);
            tracing::error!(
                reason = invalid.reason,
                error = invalid.message,
                "Reconciliation failed terminally due to configuration error"
            );
            tell(context, &object, Severity::Error, invalid.reason, &message);
            write(context, &object, Report::Invalid(&invalid)).await?;
            return Ok(Next::Terminal);
        }
    };
    let secret = match &compiled.secret_name {
        Some(name) => match token(&context.client, key, name).await {
            Ok(secret) => Some(secret),
            Err(Unread { message, may_pass }) => {
                if !may_pass {
                    context.index.remove(key);
                } else if !context.index.is_open(key, &compiled.uid, compiled.generation) {
                    // Callers are to come again. One that is open stays so, with the token that it had.
                    close(previous);
                }
                tracing::error!(error = message, "Reconciler error");
                tell(context, &object, Severity::Error, reasons::FAILED, &message);
                let message = &message;
                write(context, &object, Report::NoToken { message, may_pass }).await?;
                return Ok(Next::Backoff);
            }
        },
        None => None,
    };
    let path = {
        let token = secret.as_ref().and_then(|secret| secret.get("token"));
        compile::path(token.map_or(&[], Vec::as_slice), &key.name, &key.namespace)
    };
    if context.sees_secrets {
        compiled.secret = secret.map(Arc::new);
    }
    let unserved = unserved(context, &compiled);
    context
        .index
        .set(key, created, &path, Entry::Open(Arc::new(compiled)));
    if let Some(message) = unserved {
        let report = Report::Unserved {
            path: &path,
            message: &message,
        };
        if write(context, &object, report).await? {
            tracing::error!(error = message, "Receiver names kinds that are not served");
            tell(context, &object, Severity::Error, served::REASON, &message);
        }
        // A definition that comes wakes it.
        return Ok(Next::Done);
    }
    if write(context, &object, Report::Ready { path: &path }).await? {
        tracing::info!("Receiver initialized");
    }
    let interval = object
        .spec
        .interval
        .unwrap_or(api::meta::Duration::from_secs(600));
    let message = format!("Reconciliation finished, next run in {interval}");
    tracing::info!("{message}");
    tell(context, &object, Severity::Info, reasons::SUCCEEDED, &message);
    Ok(Next::After(Duration::from(interval).max(Duration::from_secs(1))))
}

/// What is said of the kinds that a Receiver is to wake and the cluster does not serve.
fn unserved(context: &Context, receiver: &Compiled) -> Option<String> {
    let places = receiver.resources.iter().filter_map(|(resource, _)| {
        let locked = context.no_cross_namespace_refs;
        Place::of(resource, &receiver.namespace, locked).ok()
    });
    let missing = places.filter_map(|place| place.unserved(&context.served));
    let missing: BTreeSet<_> = missing.collect();
    (!missing.is_empty()).then(|| Vec::from_iter(missing).join("; "))
}

/// Reads the Secret, which must have a token.
async fn token(client: &Client, receiver: &ObjectKey, name: &str) -> Result<SecretData, Unread> {
    let place = ObjectKey::new(&receiver.namespace, name);
    let secret = read_secret(client, &place).await.map_err(|unread| Unread {
        message: format!(
            "unable to read token from secret '{place}' error: {}",
            unread.message
        ),
        ..unread
    })?;
    if secret.contains_key("token") {
        Ok(secret)
    } else {
        Err(Unread {
            message: format!("invalid '{place}' secret data: required fields 'token'"),
            may_pass: false,
        })
    }
}

async fn read_secret(client: &Client, place: &ObjectKey) -> Result<SecretData, Unread> {
    check_name(&place.name).map_err(|message| Unread {
        message,
        may_pass: false,
    })?;
    let api: Api<Secret> = Api::namespaced(client.clone(), &place.namespace);
    let secret = api.get(&place.name).await.map_err(|error| match error {
        kube::Error::Api(status) => Unread {
            // There is none, or nobody may read it: that is what the Secret is.
            may_pass: !matches!(status.code, 403 | 404),
            message: status.message,
        },
        other => Unread {
            message: format!("{:#}", anyhow::Error::new(other)),
            may_pass: true,
        },
    })?;
    let data = secret.data.unwrap_or_default();
    Ok(data.into_iter().map(|(key, value)| (key, value.0)).collect())
}

/// The Secret of a Receiver for a call: as it was read, or read now where its changes are not seen.
pub async fn secret_for_call(
    client: &Client,
    receiver: &Compiled,
) -> Result<Option<Arc<SecretData>>, Unread> {
    match (&receiver.secret, &receiver.secret_name) {
        (Some(secret), _) => Ok(Some(Arc::clone(secret))),
        (None, Some(name)) => {
            let place = ObjectKey::new(&receiver.namespace, name);
            let read = read_secret(client, &place).await;
            read.map(|secret| Some(Arc::new(secret)))
                .map_err(|unread| Unread {
                    message: format!("unable to read secret {place}: {}", unread.message),
                    ..unread
                })
        }
        (None, None) => Ok(None),
    }
}

/// Writes the status that follows from a report; says whether it differed.
async fn write(context: &Context, object: &Receiver, report: Report<'_>) -> anyhow::Result<bool> {
    let annotations = object.metadata.annotations.as_ref();
    let frame = Frame {
        generation: object.metadata.generation.unwrap_or_default(),
        requested_at: annotations
            .and_then(|annotations| annotations.get(RECONCILE_REQUEST_ANNOTATION))
            .map(String::as_str),
        now: Timestamp::now(),
    };
    let next = status::next(&object.status.clone().unwrap_or_default(), frame, report);
    match status_patch::patch_status(&context.client, object, &next, NAME).await {
        Ok(Some(changed)) => {
            context.receivers.remember(changed);
            Ok(true)
        }
        Ok(None) => Ok(false),
        // There is nobody left to tell.
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn tell(context: &Context, object: &Receiver, severity: Severity, reason: &str, message: &str) {
    context
        .events
        .publish(object, severity, reason, message, BTreeMap::new());
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::super::fixture::{self, refusal};
    use super::*;

    fn receiver(generation: i64) -> Value {
        json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver",
            "metadata": {
                "name": "hook", "namespace": "apps", "uid": "1", "resourceVersion": "1", "generation": generation,
                "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["finalizers.fluxcd.io"],
            },
            "spec": {"type": "generic", "resources": [], "secretRef": {"name": "token"}},
            "status": {"webhookPath": compile::path(b"t", "hook", "apps")},
        })
    }

    #[tokio::test]
    async fn a_path_outlives_an_api_server_that_does_not_answer() {
        let secret = json!({"metadata": {"name": "token"}, "data": {"token": "dA=="}});
        let answer = Arc::new(Mutex::new((200, secret.clone())));
        let answered = Arc::clone(&answer);
        let (client, _) = fixture::client(move |asked| {
            let answer = answered.lock().unwrap().clone();
            async move {
                if asked == "GET /api/v1/namespaces/apps/secrets/token" {
                    answer
                } else {
                    (200, receiver(1))
                }
            }
        });
        let (key, path) = (
            ObjectKey::new("apps", "hook"),
            compile::path(b"t", "hook", "apps"),
        );
        let context = |generation| {
            let receiver = serde_json::from_value(receiver(generation)).unwrap();
            fixture::context(client.clone(), [receiver])
        };
        let became = |context: &Context| match context.index.find(&path) {
            Some(Entry::Open(_)) => "open",
            Some(Entry::Closed) => "closed",
            None => "gone",
        };
        let first = context(1);
        for (now, expected) in [
            ((200, secret), "open"),
            (refusal(500), "open"),
            (refusal(429), "open"),
            (refusal(404), "gone"),
            // Here it is not known what it was.
            (refusal(503), "closed"),
            (refusal(403), "gone"),
        ] {
            *answer.lock().unwrap() = now;
            let next = reconcile(&first, &key).await;
            assert_eq!(became(&first), expected);
            let is_ready = expected == "open" && answer.lock().unwrap().0 == 200;
            assert_eq!(next == Next::Backoff, !is_ready, "{next:?}");
            // As a call finds it where changes of Secrets are not seen.
            let called = Compiled {
                namespace: "apps".to_owned(),
                secret_name: Some("token".to_owned()),
                ..Compiled::default()
            };
            let read = secret_for_call(&client, &called).await;
            let may_pass = read.map_err(|unread| unread.may_pass);
            assert_eq!(may_pass.is_err(), !is_ready);
            assert!(may_pass.is_ok() || may_pass == Err(expected != "gone"));
        }
    }
}

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

use super::compile::{self, Compiled, Invalid};
use super::context::Context;
use super::index::Entry;
use super::status::{self, Frame, Report};
use super::targets::Place;
use crate::flags::NAME;
use crate::served;

/// Data of a Secret.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// Why there is nothing of a Secret.
#[derive(Debug)]
pub struct Unread {
    /// The problem; without the Secret's data.
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
    if object.metadata.deletion_timestamp.is_none()
        && let Some(changed) = finalizer::add(&context.client, &*object, NAME).await?
    {
        context.receivers.remember(changed.clone());
        object = Arc::new(changed);
    }
    let observed = observe(context, key, &object).await;
    carry_out(context, key, &object, decide(key, &object, observed)).await
}

/// Input of a decision, besides the object.
struct Observed {
    /// The compiled spec; None if it does not matter.
    compiled: Option<Result<Compiled, Invalid>>,
    /// Data of the Secret; None if the spec names none.
    secret: Option<Result<SecretData, Unread>>,
    /// The kinds that it is to wake and the cluster does not serve.
    unserved: Option<String>,
}

/// Decision about a Receiver.
#[derive(Debug)]
enum Decision {
    /// It is being deleted: no one reaches it any more.
    Finalize,
    /// It is suspended: its path is known, and closed.
    Suspend,
    /// It cannot work until the spec changes.
    Refuse(Invalid),
    /// Its token cannot be read. One of this spec that is open stays open, with the token that it had.
    Wait { receiver: Box<Compiled>, unread: Unread },
    /// It takes calls at a path.
    Open {
        receiver: Box<Compiled>,
        path: String,
        secret: Option<SecretData>,
        unserved: Option<String>,
    },
}

/// Reads what the object refers to.
async fn observe(context: &Context, key: &ObjectKey, object: &Receiver) -> Observed {
    let mut observed = Observed {
        compiled: None,
        secret: None,
        unserved: None,
    };
    if object.metadata.deletion_timestamp.is_some() || object.spec.suspend {
        return observed;
    }
    let compiled = compile::compile(object);
    if let Ok(receiver) = &compiled {
        if let Some(name) = &receiver.secret_name {
            observed.secret = Some(token(&context.client, key, name).await);
        }
        observed.unserved = unserved(context, receiver);
    }
    observed.compiled = Some(compiled);
    observed
}

/// Decides. Pure.
fn decide(key: &ObjectKey, object: &Receiver, observed: Observed) -> Decision {
    if object.metadata.deletion_timestamp.is_some() {
        return Decision::Finalize;
    }
    let receiver = match observed.compiled {
        None => return Decision::Suspend,
        Some(Err(invalid)) => return Decision::Refuse(invalid),
        Some(Ok(receiver)) => Box::new(receiver),
    };
    let secret = match observed.secret.transpose() {
        Ok(secret) => secret,
        Err(unread) => return Decision::Wait { receiver, unread },
    };
    let token = secret.as_ref().and_then(|secret| secret.get("token"));
    Decision::Open {
        path: compile::path(token.map_or(&[], Vec::as_slice), &key.name, &key.namespace),
        receiver,
        secret,
        unserved: observed.unserved,
    }
}

/// Puts a decision into the index and the status.
async fn carry_out(
    context: &Context,
    key: &ObjectKey,
    object: &Receiver,
    decision: Decision,
) -> anyhow::Result<Next> {
    let created = object
        .creation_timestamp()
        .map_or(Timestamp::MIN, |created| created.0);
    // Callers are to come again.
    let close = || {
        let status = object.status.as_ref();
        match status.and_then(|status| status.webhook_path.as_deref()) {
            Some(path) => context.index.set(key, created, path, Entry::Closed),
            None => context.index.remove(key),
        }
    };
    match decision {
        Decision::Finalize => {
            context.index.remove(key);
            finalizer::remove(&context.client, object, NAME).await?;
            Ok(Next::Done)
        }
        Decision::Suspend => {
            close();
            tracing::info!("Reconciliation is suspended for this object");
            write(context, object, Report::Suspended).await?;
            Ok(Next::Done)
        }
        Decision::Refuse(invalid) => {
            close();
            let message = status::terminal(&invalid);
            tracing::error!(
                reason = invalid.reason,
                error = invalid.message,
                "Reconciliation failed terminally due to configuration error"
            );
            publish(context, object, Severity::Error, invalid.reason, &message);
            write(context, object, Report::Invalid(&invalid)).await?;
            Ok(Next::Terminal)
        }
        Decision::Wait {
            receiver,
            unread: Unread { message, may_pass },
        } => {
            if !may_pass {
                context.index.remove(key);
            } else if !context.index.is_open(key, &receiver.uid, receiver.generation) {
                close();
            }
            tracing::error!(error = message, "Reconciler error");
            publish(context, object, Severity::Error, reasons::FAILED, &message);
            let message = &message;
            write(context, object, Report::NoToken { message, may_pass }).await?;
            Ok(Next::Backoff)
        }
        Decision::Open {
            mut receiver,
            path,
            secret,
            unserved,
        } => {
            if context.sees_secrets {
                receiver.secret = secret.map(Arc::new);
            }
            let entry = Entry::Open(Arc::new(*receiver));
            context.index.set(key, created, &path, entry);
            match unserved {
                Some(message) => opened_in_part(context, object, &path, &message).await,
                None => opened(context, object, &path).await,
            }
        }
    }
}

/// Says that some of what it is to wake is not served. A definition that comes wakes it.
async fn opened_in_part(
    context: &Context,
    object: &Receiver,
    path: &str,
    message: &str,
) -> anyhow::Result<Next> {
    if write(context, object, Report::Unserved { path, message }).await? {
        tracing::error!(error = message, "Receiver names kinds that are not served");
        publish(context, object, Severity::Error, served::REASON, message);
    }
    Ok(Next::Done)
}

async fn opened(context: &Context, object: &Receiver, path: &str) -> anyhow::Result<Next> {
    if write(context, object, Report::Ready { path }).await? {
        tracing::info!("Receiver initialized");
    }
    let interval = object
        .spec
        .interval
        .unwrap_or(api::meta::Duration::from_secs(600));
    let message = format!("Reconciliation finished, next run in {interval}");
    tracing::info!("{message}");
    publish(context, object, Severity::Info, reasons::SUCCEEDED, &message);
    Ok(Next::After(Duration::from(interval).max(Duration::from_secs(1))))
}

/// Reports kinds that a Receiver is to wake and that the cluster does not serve.
fn unserved(context: &Context, receiver: &Compiled) -> Option<String> {
    let places = receiver.resources.iter().filter_map(|(resource, _)| {
        let locked = context.no_cross_namespace_refs;
        Place::new(resource, &receiver.namespace, locked).ok()
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
            // There is none, or no one may read it: that is what the Secret is.
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
        // There is no one left to tell.
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn publish(context: &Context, object: &Receiver, severity: Severity, reason: &str, message: &str) {
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

    #[test]
    fn what_becomes_of_a_receiver_follows_from_what_was_read() {
        let key = ObjectKey::new("apps", "hook");
        let token = || Some(Ok(SecretData::from([("token".to_owned(), b"t".to_vec())])));
        let unread = |may_pass| {
            let message = "no".to_owned();
            Some(Err(Unread { message, may_pass }))
        };
        let shown = |change: Value, secret, unserved: Option<&str>| {
            let mut receiver = receiver(1);
            json_patch(&mut receiver, change);
            let receiver: Receiver = serde_json::from_value(receiver).unwrap();
            let is_idle = receiver.spec.suspend || receiver.metadata.deletion_timestamp.is_some();
            let observed = Observed {
                compiled: (!is_idle).then(|| compile::compile(&receiver)),
                secret,
                unserved: unserved.map(str::to_owned),
            };
            match decide(&key, &receiver, observed) {
                Decision::Finalize => "finalize".to_owned(),
                Decision::Suspend => "suspend".to_owned(),
                Decision::Refuse(invalid) => format!("refuse {}", invalid.reason),
                Decision::Wait { unread, .. } => format!("wait {} {}", unread.message, unread.may_pass),
                Decision::Open { path, unserved, .. } => {
                    let expected = compile::path(b"t", "hook", "apps");
                    format!("open {} {unserved:?}", path == expected)
                }
            }
        };
        let none = || json!({});
        assert_eq!(shown(none(), token(), None), "open true None");
        assert_eq!(shown(none(), token(), Some("x")), "open true Some(\"x\")");
        assert_eq!(shown(none(), unread(true), None), "wait no true");
        assert_eq!(shown(none(), unread(false), None), "wait no false");
        assert_eq!(shown(json!({"spec": {"suspend": true}}), None, None), "suspend");
        let deleted =
            json!({"metadata": {"deletionTimestamp": "2026-01-02T00:00:00Z"}, "spec": {"suspend": true}});
        assert_eq!(shown(deleted, None, None), "finalize");
        let expression = json!({"spec": {"resourceFilter": "1 +"}});
        assert!(shown(expression, token(), None).starts_with("refuse "));
    }

    /// Lays fields over those of an object.
    fn json_patch(object: &mut Value, change: Value) {
        match (object, change) {
            (Value::Object(fields), Value::Object(changes)) => {
                for (name, change) in changes {
                    json_patch(fields.entry(name).or_insert(Value::Null), change);
                }
            }
            (object, change) => *object = change,
        }
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

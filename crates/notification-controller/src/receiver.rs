//! Webhooks in: the Receiver kind, and the server that its callers reach.
//!
//! ```text
//! Receivers, Secrets ──watch──▶ queue ──▶ reconcile ──▶ status, and the index: path → what is allowed there
//! a call ──▶ server (limits, body) ──▶ index ──▶ verify ──▶ sent again? ──▶ filters ──▶ annotate the targets
//! ```
//!
//! A call costs the API server nothing before it is verified: what a path allows is in memory, kept by the watches.

mod answer;
mod compile;
mod connections;
mod context;
#[cfg(test)]
mod fixture;
mod index;
mod issuers;
mod limit;
mod reconcile;
mod replay;
mod room;
mod server;
mod settings;
mod status;
mod targets;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use api::notification::Receiver;
use controller_kit::flags::ALL_CONFIGS;
use controller_kit::queue::Queue;
use controller_kit::runtime::{Cache, scoped_api, watch_into_store};
use controller_kit::{Context as Kit, ObjectKey};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use webhook::{Evaluator, Keys};

use crate::flags::{Flags, Settings};
use crate::http_metrics::HttpMetrics;
use crate::served::Served;
use connections::Connections;
use context::Context;
use index::Index;
use issuers::Issuers;
use limit::Limiter;
use replay::Replays;
pub use settings::ReceiverFlags;

/// The kind, as metrics name it.
const KIND: &str = "Receiver";
/// The readiness check: every path is known.
const READY: &str = "receivers";
/// Where webhooks are.
const PREFIX: &str = "/hook/";
/// Changes of Secrets that are looked at together: at the start there is one for each Secret.
const SECRETS_AT_ONCE: usize = 1000;

/// Serves webhooks until the process is told to stop.
pub async fn run(kit: &Kit, flags: &Flags, served: &Served) -> anyhow::Result<()> {
    let policy = Settings::from_flags(flags)?.policy;
    kit.ready.set(READY, false);
    let (store, changed) = watch_into_store(scoped_api(&kit.client, &flags.watch), &flags.watch);
    kit.metrics.objects(store.clone(), |_| true);
    let watched = (!policy.ignore_config_changes).then(|| flags.watch.watched_configs());
    let context = Arc::new(Context {
        client: kit.client.clone(),
        receivers: Cache::new(store),
        queue: Queue::new("receiver", flags.rate, &kit.metrics),
        index: Index::default(),
        events: kit.recorder.clone(),
        keys: Keys::new(Issuers::new()?),
        evaluator: Evaluator::default(),
        values: Semaphore::new(answer::MOST_VALUES_AT_ONCE),
        limiter: Limiter::new(flags.receiver.receiver_rate_limit),
        replays: Replays::new(flags.receiver.receiver_replay_window),
        metrics: HttpMetrics::register(&kit.metrics, "gotk_receiver", flags.export_http_path_metrics)
            .standing_for_all(PREFIX),
        no_cross_namespace_refs: policy.no_cross_namespace_refs,
        served: served.clone(),
        sees_secrets: watched.as_deref() == Some(ALL_CONFIGS),
        unread: Mutex::new(None),
    });
    let listener = match flags.receiver_addr.socket() {
        Some(address) => Some(kit.listeners.listen(address).await?),
        None => None,
    };
    let mut changed = std::pin::pin!(changed);
    let follow = async {
        while let Some(receiver) = changed.next().await {
            context.queue.add(ObjectKey::new(
                receiver.namespace.unwrap_or_default(),
                receiver.name,
            ));
        }
    };
    let secrets = follow_secrets(&context, scoped_api(&kit.client, &flags.watch), watched);
    // In a task of its own, so that a long list of Secrets does not keep callers waiting.
    let serve = listener.map(|listener| {
        let connections = Connections::new(flags.receiver.receiver_max_connections.into());
        let serve = server::serve(Arc::clone(&context), listener, connections, kit.token.clone());
        AbortOnDropHandle::new(tokio::spawn(serve))
    });
    let serve = async {
        match serve {
            Some(serve) => serve.await.context("failed to serve webhooks"),
            None => {
                kit.token.cancelled().await;
                Ok(())
            }
        }
    };
    tokio::select! {
        () = follow => anyhow::bail!("the watch of Receivers ended"),
        () = secrets => anyhow::bail!("the watch of Secrets ended"),
        () = follow_definitions(&context) => anyhow::bail!("the watch of definitions ended"),
        result = futures::future::try_join(work(&context, kit, flags), serve) => result.map(drop),
    }
}

/// Works on the queue once the Receivers have been listed.
async fn work(context: &Arc<Context>, kit: &Kit, flags: &Flags) -> anyhow::Result<()> {
    tokio::select! {
        listed = context.receivers.store().wait_until_ready() => listed?,
        () = kit.token.cancelled() => return Ok(()),
    }
    let listed = context.receivers.store().state();
    let unread: HashSet<ObjectKey> = listed
        .iter()
        .map(|receiver| ObjectKey::from_object(&**receiver))
        .collect();
    if unread.is_empty() {
        kit.ready.set(READY, true);
    }
    *context.unread.lock().unwrap_or_else(PoisonError::into_inner) = Some(unread.clone());
    unread.into_iter().for_each(|key| context.queue.add(key));
    let (shared, ready, metrics) = (Arc::clone(context), kit.ready.clone(), kit.metrics.clone());
    let handler = move |key: ObjectKey| {
        let (context, ready, metrics) = (Arc::clone(&shared), ready.clone(), metrics.clone());
        let span = controller_kit::telemetry::reconcile_span::<Receiver>(&key);
        let run = async move {
            let started = Instant::now();
            let next = reconcile::reconcile(&context, &key).await;
            if context.receivers.get(&key.object_ref()).is_some() {
                metrics.observe_reconcile(KIND, &key.namespace, &key.name, started.elapsed());
            } else {
                metrics.forget_object(KIND, &key.namespace, &key.name);
            }
            if context.note_read(&key) {
                ready.set(READY, true);
            }
            next
        };
        run.instrument(span)
    };
    context
        .queue
        .run(flags.concurrent.into(), kit.token.clone(), handler)
        .await;
    Ok(())
}

/// Has all Receivers looked at when kinds begin or cease to be served, which is rare.
async fn follow_definitions(context: &Context) {
    let mut served = context.served.clone();
    loop {
        served.changed().await;
        let receivers = context.receivers.store().state();
        receivers
            .iter()
            .for_each(|receiver| context.queue.add(ObjectKey::from_object(&**receiver)));
    }
}

/// Has Receivers looked at whose Secret changed, so that a new token counts at once. Only metadata is watched.
async fn follow_secrets(context: &Context, api: Api<PartialObjectMeta<Secret>>, labels: Option<String>) {
    let Some(labels) = labels else {
        return futures::future::pending().await;
    };
    let touched = watcher(api, watcher::Config::default().labels(&labels)).default_backoff();
    let mut touched = std::pin::pin!(touched.touched_objects().ready_chunks(SECRETS_AT_ONCE));
    while let Some(changes) = touched.next().await {
        let secrets = changes.into_iter().filter_map(|secret| {
            let secret = secret.inspect_err(|error| tracing::warn!(%error, "failed to watch Secrets"));
            secret.ok().map(|secret| ObjectKey::from_object(&secret))
        });
        let secrets: HashSet<ObjectKey> = secrets.collect();
        let receivers = context.receivers.store().state();
        let naming = receivers.iter().filter(|receiver| names_one(receiver, &secrets));
        naming.for_each(|receiver| context.queue.add(ObjectKey::from_object(&**receiver)));
    }
}

/// Returns whether the Secret of a Receiver is one of these.
fn names_one(receiver: &Receiver, secrets: &HashSet<ObjectKey>) -> bool {
    let Some(named) = &receiver.spec.secret_ref else {
        return false;
    };
    secrets.contains(&ObjectKey::new(
        receiver.namespace().unwrap_or_default(),
        &named.name,
    ))
}

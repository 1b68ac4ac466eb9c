//! The watches, and what runs beside each other: events in, deliveries out, webhooks.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use api::notification::{Alert, Provider};
use controller_kit::Context as Kit;
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::runtime::{scoped_api, selecting, watch_changes};
use futures::{Stream, StreamExt as _};
use kube::ResourceExt as _;
use kube::runtime::reflector::{ObjectRef, Store as Cache};
use kube::runtime::watcher;
use notifier::Edge;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::alert::admit;
use crate::alert::rule::kind_name;
use crate::dispatch::{Desk, Dispatcher};
use crate::flags::{Flags, READY, Settings};
use crate::http_metrics::HttpMetrics;
use crate::identities::Identities;
use crate::intake::limit::Way;
use crate::intake::{http, kubernetes, status};
use crate::outbox::run::Sender;
use crate::results::Results;
use crate::served::{self, Served};
use crate::store::Store;
use crate::{finalizers, kinds, receiver};

/// How long requests that are under way may take when the process is told to stop.
const LAST_POSTS: Duration = Duration::from_secs(5);

/// Works until the process is told to stop.
pub async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let (served, watch_definitions) = Served::watch(kit.client.clone());
    let work = async {
        tokio::try_join!(
            alerts(&flags, &kit, &served),
            receiver::run(&kit, &flags, &served)
        )
        .map(drop)
    };
    tokio::select! {
        done = work => done,
        () = watch_definitions => anyhow::bail!("the watch of definitions ended"),
    }
}

/// Takes events and sends them as Alerts say.
async fn alerts(flags: &Flags, kit: &Kit, served: &Served) -> anyhow::Result<()> {
    let settings = Settings::from_flags(flags)?;
    // Who posts before everything is read waits, and is not refused.
    let listener = match flags.events_addr.socket() {
        Some(address) => Some(kit.listeners.listen(address).await?),
        None => None,
    };
    let selected = selecting(&flags.watch.watch_label_selector);
    let (alerts, alerts_changed) = watch_changes(
        scoped_api(&kit.client, &flags.watch),
        selected,
        |alert: &Alert| Some(alert.resource_version()),
    );
    let (providers, providers_changed) = watch_changes(
        scoped_api(&kit.client, &flags.watch),
        watcher::Config::default(),
        |provider: &Provider| Some(provider.resource_version()),
    );
    kit.metrics.objects(alerts.clone(), |_| true);
    kit.metrics.objects(providers.clone(), |_| true);
    let store = Store::new(kit.client.clone(), &kit.namespace);
    let mut desk = Desk::new(flags.rate_limit_interval);
    desk.restore(store.read().await?);
    let dispatcher = Dispatcher::new(
        kit.client.clone(),
        kit.recorder.clone(),
        settings.policy.clone(),
        providers.clone(),
        desk,
        Results::register(&kit.metrics),
    );
    let dispatcher = Arc::new(dispatcher);
    let (wanted, wanted_kinds) = watch::channel(HashSet::new());
    let follow = futures::future::join(
        follow_alerts(&alerts, alerts_changed, &dispatcher, &wanted, served.clone()),
        follow_providers(&providers, providers_changed, &dispatcher),
    );
    let listed = async {
        alerts.wait_until_ready().await?;
        providers.wait_until_ready().await
    };
    let work = async {
        tokio::select! {
            listed = listed => listed?,
            () = kit.token.cancelled() => return Ok(()),
        }
        dispatcher.set_rules(&alerts.state());
        wanted.send_replace(status::wanted(&dispatcher.rules()));
        work(flags, kit, &dispatcher, store, wanted_kinds, served, listener).await
    };
    tokio::select! {
        _ = follow => anyhow::bail!("the watches ended"),
        result = work => result,
    }
}

/// Works once it is known which Alerts and Providers there are, until the token is cancelled; then what was begun is written down.
async fn work(
    flags: &Flags,
    kit: &Kit,
    dispatcher: &Arc<Dispatcher>,
    store: Store,
    wanted_kinds: watch::Receiver<HashSet<String>>,
    served: &Served,
    listener: Option<TcpListener>,
) -> anyhow::Result<()> {
    let object_level = dispatcher.policy.object_level_identity;
    let identities = workload_identity::Identities::new(kit.client.clone(), flags.token, object_level);
    let counted = identities.clone();
    kit.metrics.token_cache(move || counted.token_cache());
    let edge = Edge::new(Arc::new(Identities(identities)));
    let sender = Sender::new(Arc::clone(dispatcher), edge, flags.notification_retry_window);
    let metrics = HttpMetrics::register(&kit.metrics, "gotk_event", flags.export_http_path_metrics);
    let taking = Arc::clone(dispatcher);
    let take = move |event| {
        let dispatcher = Arc::clone(&taking);
        async move { dispatcher.take(event, Way::Posted).await }
    };
    let serve = async {
        let Some(listener) = listener else { return };
        tokio::select! {
            () = http::serve(listener, http::LIMITS, metrics, kit.token.clone(), take) => {}
            // Who posts slowly must not keep what waits from being written down.
            () = async { kit.token.cancelled().await; sleep(LAST_POSTS).await } => {}
        }
    };
    let write = store.follow(Arc::clone(dispatcher), kit.token.clone());
    let send = Arc::new(sender).run(kit.token.clone());
    let until_stopped = futures::future::join3(serve, write, send);
    tokio::select! {
        _ = until_stopped => {}
        () = watch_events(flags, kit, dispatcher, wanted_kinds, served) => anyhow::bail!("the watches of events ended"),
    }
    if let Err(error) = store.write_now(dispatcher).await {
        tracing::error!(error, "failed to write down what waits");
    }
    Ok(())
}

/// Takes Kubernetes Events and statuses, if they are to be taken.
async fn watch_events(
    flags: &Flags,
    kit: &Kit,
    dispatcher: &Arc<Dispatcher>,
    wanted_kinds: watch::Receiver<HashSet<String>>,
    served: &Served,
) {
    let statuses = status::follow(
        kit.client.clone(),
        flags.watch.clone(),
        flags.watch_events,
        Arc::clone(dispatcher),
        wanted_kinds,
        served.clone(),
    );
    if !flags.watch_events {
        kit.ready.set(READY, true);
        return statuses.await;
    }
    let (events, begun): (Vec<_>, Vec<_>) = kinds::CONTROLLERS
        .into_iter()
        .map(|controller| {
            let (begun, is_begun) = oneshot::channel();
            let dispatcher = Arc::clone(dispatcher);
            let follow = kubernetes::follow(kit.client.clone(), &flags.watch, controller, dispatcher, begun);
            (follow, is_begun)
        })
        .unzip();
    let ready = async {
        futures::future::join_all(begun).await;
        kit.ready.set(READY, true);
    };
    tokio::join!(statuses, futures::future::join_all(events), ready);
}

async fn follow_alerts(
    alerts: &Cache<Alert>,
    changed: impl Stream<Item = ObjectRef<Alert>> + Send,
    dispatcher: &Dispatcher,
    wanted: &watch::Sender<HashSet<String>>,
    mut served: Served,
) {
    let mut changed = std::pin::pin!(changed);
    served.settle().await;
    while let Some(reference) = changed.next().await {
        dispatcher.set_rules(&alerts.state());
        let kinds = status::wanted(&dispatcher.rules());
        wanted.send_if_modified(|before| {
            let new = *before != kinds;
            *before = kinds;
            new
        });
        if let Some(alert) = alerts.get(&reference) {
            tell_unserved(&alert, &served, dispatcher);
            finalizers::release(
                &dispatcher.client,
                &dispatcher.events,
                &*alert,
                alert.spec.suspend,
            )
            .await;
        }
    }
}

/// Tells, by a Kubernetes Event, of kinds that an Alert names and the cluster does not serve: Alerts have no status.
fn tell_unserved(alert: &Alert, served: &Served, dispatcher: &Dispatcher) {
    let sources = alert.spec.event_sources.iter();
    let named: BTreeSet<_> = sources.map(|source| kind_name(source.kind)).collect();
    for resource in named.iter().filter_map(|kind| kinds::resource(kind)) {
        if !alert.spec.suspend && !served.serves(&resource.plural, &resource.group) {
            let message = served::missing(&resource.kind, &resource.group);
            tracing::warn!(alert = %ObjectKey::from_object(alert), "{message}");
            dispatcher
                .events
                .publish(alert, Severity::Error, served::REASON, &message, BTreeMap::new());
        }
    }
}

async fn follow_providers(
    providers: &Cache<Provider>,
    changed: impl Stream<Item = ObjectRef<Provider>> + Send,
    dispatcher: &Dispatcher,
) {
    let mut changed = std::pin::pin!(changed);
    while let Some(reference) = changed.next().await {
        dispatcher.work.notify_one();
        if let Some(provider) = providers.get(&reference) {
            if let Ok(type_) = admit::type_of(&provider) {
                dispatcher.results.expect(type_.as_str());
            }
            finalizers::release(&dispatcher.client, &dispatcher.events, &*provider, false).await;
        }
    }
}

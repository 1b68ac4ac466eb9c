//! The kit against a real API server: what a mock cannot say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use api::source::{GitRepository, GitRepositoryStatus};
use controller_kit::events::{Recorder, Severity};
use controller_kit::flags::{ClientFlags, LeaderElectionFlags, RateLimiterFlags, WatchFlags};
use controller_kit::metrics::Metrics;
use controller_kit::queue::{Outcome, Queue};
use controller_kit::runtime::Cache;
use controller_kit::{ObjectKey, client, conditions, finalizer, leader, runtime, status};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use testkit::ControlPlane;
use tokio_util::sync::CancellationToken;

const MANAGER: &str = "gotk-source-controller";
const LONG: Duration = Duration::from_secs(30);

/// A namespace of its own, and the kit's client.
async fn bench(purpose: &str) -> anyhow::Result<(Client, String)> {
    let control_plane = ControlPlane::shared().await?;
    testkit::install_crds(&control_plane.client()).await?;
    let flags = ClientFlags {
        kube_api_qps: 1.0,
        kube_api_burst: 1,
    };
    let client = client::connect_to(
        control_plane.config().clone(),
        "test",
        &flags,
        Metrics::new().rest(),
    )
    .await?;
    Ok((client, control_plane.namespace(purpose).await?))
}

fn watch_flags(namespace: &str) -> WatchFlags {
    WatchFlags {
        watch_all_namespaces: false,
        watch_label_selector: "shard=one".to_owned(),
        watch_configs_label_selector: String::new(),
        runtime_namespace: namespace.to_owned(),
    }
}

async fn apply(
    client: &Client,
    namespace: &str,
    name: &str,
    shard: &str,
    interval: &str,
) -> anyhow::Result<()> {
    let mut object = testkit::objects::git_repository(namespace, name, "https://example.com/x.git", "main");
    object["metadata"]["labels"] = json!({ "shard": shard });
    object["spec"]["interval"] = json!(interval);
    testkit::objects::apply(client, &object).await?;
    Ok(())
}

/// Waits for something that other tasks bring about.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < LONG, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn requests_share_an_http2_connection_and_are_not_held_back_by_a_server_with_fairness()
-> anyhow::Result<()> {
    let (client, _) = bench("client").await?;
    let request = http::Request::get("/version").body(kube::client::Body::empty())?;
    assert_eq!(client.send(request).await?.version(), http::Version::HTTP_2);
    let began = Instant::now();
    let requests = (0..50).map(|_| client.apiserver_version());
    for answer in futures::future::join_all(requests).await {
        answer?;
    }
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "one request per second would take 49 s"
    );
    Ok(())
}

/// A controller in small: adds the finalizer, writes a status, and lets go of what is deleted.
async fn reconcile(client: Client, cache: Cache<GitRepository>, key: ObjectKey) -> anyhow::Result<()> {
    let Some(object) = cache.get(&key.object_ref()) else {
        return Ok(());
    };
    if object.metadata.deletion_timestamp.is_some() {
        finalizer::remove(&client, &*object, MANAGER).await?;
        return Ok(());
    }
    if let Some(changed) = finalizer::add(&client, &*object, MANAGER).await? {
        cache.remember(changed);
    }
    let object = cache.get(&key.object_ref()).unwrap_or(object);
    let mut next: GitRepositoryStatus = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation.unwrap_or_default();
    next.observed_generation = Some(generation);
    next.last_handled_reconcile_at = runtime::requested_at(&*object).map(str::to_owned);
    let url = object.spec.url.clone();
    conditions::mark_true(
        &mut next.conditions,
        "Ready",
        "Succeeded",
        url,
        generation,
        Timestamp::now(),
    );
    if let Some(changed) = status::patch_status(&client, &*object, &next, MANAGER).await? {
        cache.remember(changed);
    }
    Ok(())
}

#[tokio::test]
async fn objects_come_once_per_change_and_our_own_writes_do_not_bring_them_back() -> anyhow::Result<()> {
    let (client, namespace) = bench("watch").await?;
    let (token, runs) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let flags = watch_flags(&namespace);
    let (store, touched) =
        runtime::watch_into_store::<GitRepository>(runtime::scoped_api(&client, &flags), &flags);
    let cache = Cache::new(store);
    let rate = RateLimiterFlags {
        min_retry_delay: Duration::from_millis(50),
        max_retry_delay: LONG,
    };
    let queue = Queue::<ObjectKey>::new("gitrepository", rate, &Metrics::new());
    let feeder = queue.clone();
    tokio::spawn(touched.for_each(move |reference| {
        feeder.add(reference.into());
        std::future::ready(())
    }));
    let (worker, counter, stop) = (queue.clone(), Arc::clone(&runs), token.clone());
    let (worker_client, worker_cache) = (client.clone(), cache.clone());
    let working = tokio::spawn(async move {
        let handler = move |key| {
            counter.fetch_add(1, Ordering::SeqCst);
            let work = reconcile(worker_client.clone(), worker_cache.clone(), key);
            async { work.await.map_or(Outcome::Backoff, |()| Outcome::Done) }
        };
        worker.run(4, stop, handler).await;
    });

    let api: Api<GitRepository> = Api::namespaced(client.clone(), &namespace);
    let ready_at = async |generation: i64, request: Option<&str>| {
        let look = async || {
            let object = api.get("a").await.ok()?;
            let status = object.status.as_ref()?;
            let handled = status.last_handled_reconcile_at.as_deref() == request;
            (status.observed_generation == Some(generation) && handled).then_some(object)
        };
        eventually(&format!("generation {generation}, request {request:?}"), look).await
    };
    apply(&client, &namespace, "other-shard", "two", "10m").await?;
    apply(&client, &namespace, "a", "one", "10m").await?;
    let object = ready_at(1, None).await;
    assert_eq!(object.finalizers(), ["finalizers.fluxcd.io"]);
    assert!(conditions::is_ready(
        &object.status.unwrap_or_default().conditions
    ));
    apply(&client, &namespace, "a", "one", "20m").await?;
    ready_at(2, None).await;
    testkit::objects::poke(
        &testkit::objects::api(
            &client,
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            &namespace,
        ),
        "a",
    )
    .await?;
    let requested = api.get("a").await?;
    ready_at(2, runtime::requested_at(&requested)).await;

    // Everything that our writes could have brought back has come by now: the watch is in order.
    let seen = eventually("the watch catches up", async || {
        let stored = cache.store().get(&ObjectRef::from_obj(&requested))?;
        let newest = api.get("a").await.ok()?;
        (stored.resource_version() == newest.resource_version()).then_some(stored)
    });
    assert_eq!(seen.await.metadata.managed_fields, None);
    assert_eq!(runs.load(Ordering::SeqCst), 3, "creation, new spec, request");
    assert!(
        cache
            .store()
            .state()
            .iter()
            .all(|object| object.name_any() == "a"),
        "the other shard is not ours"
    );

    api.delete("a", &DeleteParams::default()).await?;
    eventually("the object goes", async || {
        api.get_opt("a").await.ok()?.is_none().then_some(())
    })
    .await;
    token.cancel();
    working.await?;
    Ok(())
}

#[tokio::test]
async fn a_finalizer_is_not_lost_when_others_change_theirs() -> anyhow::Result<()> {
    let (client, namespace) = bench("finalizer").await?;
    apply(&client, &namespace, "a", "one", "10m").await?;
    let api: Api<GitRepository> = Api::namespaced(client.clone(), &namespace);
    let stale = api.get("a").await?;
    let others = json!({ "metadata": { "finalizers": ["example.com/one", "example.com/two"] } });
    api.patch("a", &PatchParams::default(), &Patch::Merge(others))
        .await?;
    let changed = finalizer::add(&client, &stale, MANAGER)
        .await?
        .expect("it was not there");
    assert_eq!(
        changed.finalizers(),
        ["example.com/one", "example.com/two", "finalizers.fluxcd.io"]
    );
    let again = finalizer::add(&client, &stale, MANAGER).await?;
    assert!(again.is_none(), "it is not doubled");
    let fewer = json!({ "metadata": { "finalizers": ["example.com/two", "finalizers.fluxcd.io"] } });
    api.patch("a", &PatchParams::default(), &Patch::Merge(fewer))
        .await?;
    let removed = finalizer::remove(&client, &changed, MANAGER)
        .await?
        .expect("it was there");
    assert_eq!(removed.finalizers(), ["example.com/two"]);
    Ok(())
}

#[tokio::test]
async fn events_are_taken_and_counted() -> anyhow::Result<()> {
    let (client, namespace) = bench("events").await?;
    apply(&client, &namespace, "a", "one", "10m").await?;
    let object = Api::<GitRepository>::namespaced(client.clone(), &namespace)
        .get("a")
        .await?;
    let recorder = Recorder::new(client.clone(), "source-controller", CancellationToken::new());
    for _ in 0..3 {
        let annotations = [(
            "source.toolkit.fluxcd.io/revision".to_owned(),
            "main@sha1:1".to_owned(),
        )];
        recorder.publish(
            &object,
            Severity::Error,
            "GitOperationFailed",
            "boom",
            BTreeMap::from(annotations),
        );
    }
    let events: Api<Event> = Api::namespaced(client, &namespace);
    let about = ListParams::default().fields("involvedObject.name=a,involvedObject.kind=GitRepository");
    let event = eventually("an event with a count of 3", async || {
        let mut found = events.list(&about).await.ok()?.items;
        (found.len() == 1 && found[0].count == Some(3)).then(|| found.remove(0))
    });
    let event = event.await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.involved_object.uid, object.uid());
    assert_eq!(event.reporting_component.as_deref(), Some("source-controller"));
    assert_eq!(
        event.annotations()["source.toolkit.fluxcd.io/revision"],
        "main@sha1:1"
    );
    Ok(())
}

#[tokio::test]
async fn leadership_goes_from_one_process_to_the_next() -> anyhow::Result<()> {
    let (client, namespace) = bench("leader").await?;
    let flags = LeaderElectionFlags {
        enable_leader_election: true,
        leader_election_release_on_cancel: true,
        leader_election_lease_duration: Duration::from_secs(15),
        leader_election_renew_deadline: Duration::from_secs(10),
        leader_election_retry_period: Duration::from_millis(100),
    };
    let metrics = Metrics::new();
    let lead = async |token| {
        leader::run(
            client.clone(),
            &flags,
            "kit-leader-election",
            &namespace,
            token,
            &metrics,
        )
        .await
    };
    let first = lead(CancellationToken::new())
        .await?
        .expect("nobody else wants it");
    let impatient = CancellationToken::new();
    let (second, ()) = tokio::join!(lead(impatient.clone()), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        impatient.cancel();
    });
    assert!(second?.is_none(), "the first holds the lease");
    assert!(!first.token().is_cancelled());
    first.release().await;
    let began = Instant::now();
    let third = lead(CancellationToken::new()).await?.expect("it was released");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "a released lease is not waited for"
    );
    third.release().await;
    Ok(())
}

#[tokio::test]
async fn a_candidate_sees_at_once_that_the_lease_is_given_up() -> anyhow::Result<()> {
    let (client, namespace) = bench("handover").await?;
    // Who looks only now and then would wait for minutes.
    let flags = LeaderElectionFlags {
        enable_leader_election: true,
        leader_election_release_on_cancel: true,
        leader_election_lease_duration: Duration::from_secs(1200),
        leader_election_renew_deadline: Duration::from_secs(900),
        leader_election_retry_period: Duration::from_secs(600),
    };
    let metrics = Metrics::new();
    let lead = async || {
        let token = CancellationToken::new();
        leader::run(client.clone(), &flags, "handover", &namespace, token, &metrics).await
    };
    let first = lead().await?.expect("there is no other candidate");
    let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
    let (second, ()) = tokio::time::timeout(
        LONG,
        futures::future::try_join(lead(), async {
            // It watches once it has seen that the Lease is held; other writes do not wake it.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let note = json!({"metadata": {"annotations": {"example.com/note": "1"}}});
            let noted = leases
                .patch("handover", &PatchParams::default(), &Patch::Merge(&note))
                .await;
            noted.expect("the lease is there");
            first.release().await;
            Ok(())
        }),
    )
    .await??;
    let second = second.expect("it was given up");
    let lease = leases.get("handover").await?;
    assert_eq!(lease.spec.and_then(|spec| spec.lease_transitions), Some(1));
    second.release().await;
    Ok(())
}

//! Candidates against a server that keeps one Lease and checks resource versions.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;
use crate::mock_api::{self, Asked, Log};

const LEASE: &str = "source-controller-leader-election";

/// The Lease as the server has it, and whether the server answers at all.
#[derive(Default)]
struct Server {
    lease: Option<Value>,
    version: u64,
    away: bool,
}

impl Server {
    fn answer(&mut self, asked: &Asked) -> (u16, Value) {
        if self.away {
            return mock_api::refusal(500, "InternalError");
        }
        match (asked.method.as_str(), &self.lease) {
            ("GET", None) | ("PUT", None) => mock_api::refusal(404, "NotFound"),
            ("GET", Some(lease)) => (200, lease.clone()),
            ("POST", Some(_)) => mock_api::refusal(409, "AlreadyExists"),
            ("PUT", Some(lease))
                if asked.body["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] =>
            {
                mock_api::refusal(409, "Conflict")
            }
            _ => (200, self.store(asked.body.clone())),
        }
    }

    fn store(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        lease
    }

    fn spec(&self) -> Value {
        self.lease.as_ref().expect("there is a lease")["spec"].clone()
    }
}

#[derive(Clone)]
struct Bench {
    server: Arc<Mutex<Server>>,
    client: Client,
    log: Log,
    metrics: Metrics,
}

impl Bench {
    fn new() -> Self {
        let server = Arc::new(Mutex::new(Server::default()));
        let answering = Arc::clone(&server);
        let (client, log) = mock_api::client(move |asked| answering.lock().expect("no panic").answer(asked));
        Self {
            server,
            client,
            log,
            metrics: Metrics::new(),
        }
    }

    /// A Lease of someone whose clock shows something else.
    fn held_by_other(&self, renew_time: &str) {
        self.with(|server| {
            server.store(json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": LEASE, "namespace": "flux-system"},
                "spec": {"holderIdentity": "other", "leaseDurationSeconds": 35, "renewTime": renew_time,
                    "acquireTime": renew_time, "leaseTransitions": 4},
            }));
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Server) -> T) -> T {
        work(&mut self.server.lock().expect("no panic"))
    }

    async fn lead(&self, token: &CancellationToken) -> Option<Leadership> {
        let (flags, client) = (flags(), self.client.clone());
        let leading = run(client, &flags, LEASE, "flux-system", token.clone(), &self.metrics);
        leading.await.expect("the durations are good")
    }

    fn status(&self) -> bool {
        let text = self.metrics.encode().expect("writing to a String does not fail");
        text.contains(&format!("leader_election_master_status{{name=\"{LEASE}\"}} 1"))
    }
}

fn flags() -> LeaderElectionFlags {
    LeaderElectionFlags {
        enable_leader_election: true,
        leader_election_release_on_cancel: true,
        leader_election_lease_duration: Duration::from_secs(35),
        leader_election_renew_deadline: Duration::from_secs(30),
        leader_election_retry_period: Duration::from_secs(5),
    }
}

#[tokio::test(start_paused = true)]
async fn without_leader_election_nothing_is_asked_and_nothing_lost() {
    let (bench, token) = (Bench::new(), CancellationToken::new());
    let flags = LeaderElectionFlags {
        enable_leader_election: false,
        ..flags()
    };
    let leading = run(
        bench.client.clone(),
        &flags,
        LEASE,
        "ns",
        token.clone(),
        &bench.metrics,
    )
    .await;
    let leadership = leading.expect("it needs nothing").expect("at once");
    assert!(!leadership.token().is_cancelled());
    token.cancel();
    assert!(leadership.token().is_cancelled());
    leadership.release().await;
    assert!(bench.log.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_first_candidate_creates_the_lease_and_renews_it_with_one_request_each_time() {
    let (bench, token) = (Bench::new(), CancellationToken::new());
    let leadership = bench.lead(&token).await.expect("nobody else wants it");
    let spec = bench.with(|server| server.spec());
    assert_eq!(
        (&spec["leaseDurationSeconds"], &spec["leaseTransitions"]),
        (&json!(35), &json!(0))
    );
    assert!(bench.status());
    sleep(Duration::from_secs(21)).await;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/flux-system/leases/{LEASE}");
    let expected = [
        format!("GET {path}"),
        "POST /apis/coordination.k8s.io/v1/namespaces/flux-system/leases".to_owned(),
        format!("PUT {path}"),
        format!("PUT {path}"),
        format!("PUT {path}"),
        format!("PUT {path}"),
    ];
    assert_eq!(bench.log.lines(), expected);
    let renewed = bench.with(|server| server.spec());
    assert_eq!(renewed["acquireTime"], spec["acquireTime"]);
    assert_eq!(renewed["leaseTransitions"], 0);
    assert!(!leadership.token().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn of_two_candidates_one_leads_and_the_other_takes_over_after_release() {
    let bench = Bench::new();
    let (first_token, second_token) = (CancellationToken::new(), CancellationToken::new());
    let first = bench.lead(&first_token).await.expect("it came first");
    let waiting = bench.clone();
    let token = second_token.clone();
    let second = tokio::spawn(async move { waiting.lead(&token).await });
    sleep(Duration::from_secs(600)).await;
    assert!(!second.is_finished(), "the first renews");
    let released = Instant::now();
    first.release().await;
    let second = second.await.expect("no panic").expect("it is its turn");
    assert!(
        released.elapsed() <= Duration::from_secs(11),
        "{:?}",
        released.elapsed()
    );
    assert_eq!(bench.with(|server| server.spec())["leaseTransitions"], 1);
    second.release().await;
    assert_eq!(bench.with(|server| server.spec())["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn clocks_of_others_do_not_matter() {
    for renew_time in ["2000-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
        let (bench, token) = (Bench::new(), CancellationToken::new());
        bench.held_by_other(renew_time);
        let began = Instant::now();
        let leadership = bench.lead(&token).await.expect("the other does not renew");
        let waited = began.elapsed();
        assert!(
            waited >= Duration::from_secs(35) && waited <= Duration::from_secs(46),
            "{renew_time}: {waited:?}"
        );
        assert_eq!(bench.with(|server| server.spec())["leaseTransitions"], 5);
        leadership.release().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_with_a_slow_clock_that_renews_keeps_the_lease() {
    let (bench, token) = (Bench::new(), CancellationToken::new());
    bench.held_by_other("2000-01-01T00:00:00.000000Z");
    let (waiting, cancelled) = (bench.clone(), token.clone());
    let candidate = tokio::spawn(async move { waiting.lead(&cancelled).await.is_some() });
    for second in 1..30 {
        sleep(Duration::from_secs(20)).await;
        bench.held_by_other(&format!("2000-01-01T00:00:{second:02}.000000Z"));
    }
    assert!(!candidate.is_finished());
    token.cancel();
    assert!(
        !candidate.await.expect("no panic"),
        "who is told to stop does not lead"
    );
}

#[tokio::test(start_paused = true)]
async fn leadership_is_lost_before_the_lease_ends_when_it_cannot_be_renewed() {
    let (bench, token) = (Bench::new(), CancellationToken::new());
    let leadership = bench.lead(&token).await.expect("nobody else wants it");
    sleep(Duration::from_secs(12)).await;
    bench.with(|server| server.away = true);
    let last_renewal = Instant::now() - Duration::from_secs(2);
    leadership.lost().await;
    let held = last_renewal.elapsed();
    assert!(
        held >= Duration::from_secs(29) && held < Duration::from_secs(35),
        "{held:?}"
    );
    assert!(leadership.token().is_cancelled() && !token.is_cancelled());
    assert!(!bench.status());
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_does_not_cost_leadership() {
    let (bench, token) = (Bench::new(), CancellationToken::new());
    let leadership = bench.lead(&token).await.expect("nobody else wants it");
    assert_eq!(
        bench.metrics.slow_renewals(LEASE).get(),
        0,
        "one request is enough"
    );
    bench.with(|server| server.away = true);
    sleep(Duration::from_secs(24)).await;
    bench.with(|server| server.away = false);
    sleep(Duration::from_secs(60)).await;
    assert!(!leadership.token().is_cancelled() && bench.status());
    let slow = bench.metrics.slow_renewals(LEASE).get();
    assert!(
        (3..=5).contains(&slow),
        "each renewal of the outage, and none after it: {slow}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_is_noticed_at_the_next_renewal_and_not_released() {
    let (bench, token) = (Bench::new(), CancellationToken::new());
    let leadership = bench.lead(&token).await.expect("nobody else wants it");
    bench.held_by_other("2026-01-01T00:00:00.000000Z");
    let began = Instant::now();
    leadership.lost().await;
    assert!(began.elapsed() <= Duration::from_secs(6), "{:?}", began.elapsed());
    leadership.release().await;
    assert_eq!(bench.with(|server| server.spec())["holderIdentity"], "other");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_leadership_too() {
    let (bench, token) = (Bench::new(), CancellationToken::new());
    let mut elector = Elector::new(
        bench.client.clone(),
        LEASE,
        "ns",
        Duration::from_secs(35),
        bench.metrics.slow_renewals(LEASE),
    );
    assert_eq!(
        elector.try_acquire_or_renew().await.expect("the server answers"),
        Attempt::Leads
    );
    // From here on the same candidate talks to a server that is silent.
    let silent = Client::new(
        tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
        }),
        "default",
    );
    let elector = elector.with_client(silent);
    let renewal = Renewal {
        elector,
        flags: flags(),
        lease: LEASE.to_owned(),
        metrics: bench.metrics.clone(),
    };
    let (lost, began) = (CancellationToken::new(), Instant::now());
    renewal.run(token, lost.clone(), CancellationToken::new()).await;
    assert!(lost.is_cancelled());
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[test]
fn durations_that_could_lose_the_lease_unnoticed_are_refused() {
    let seconds = Duration::from_secs;
    let cases = [
        (35, 30, 5, true),
        (30, 30, 5, false),
        (35, 6, 5, false),
        (35, 7, 5, true),
        (15, 10, 2, true),
    ];
    for (lease, deadline, retry, good) in cases {
        let flags = LeaderElectionFlags {
            leader_election_lease_duration: seconds(lease),
            leader_election_renew_deadline: seconds(deadline),
            leader_election_retry_period: seconds(retry),
            ..flags()
        };
        assert_eq!(check(&flags).is_ok(), good, "{lease} {deadline} {retry}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_not_caught_up_leaves_the_lease_to_others_for_a_while() {
    let unfit = |bench: &Bench, token: &CancellationToken| {
        let announcement = Announcement::default();
        announcement.candidacy.set(Fitness::Behind);
        let candidacy = announcement.candidacy.clone();
        let (bench, token) = (bench.clone(), token.clone());
        let leading = tokio::spawn(async move {
            let (client, flags, place) = (bench.client.clone(), flags(), (LEASE, "flux-system"));
            let leading = run_announcing(client, &flags, place, token, &bench.metrics, announcement);
            leading.await.expect("the durations are good").is_some()
        });
        (leading, candidacy)
    };
    let token = CancellationToken::new();

    // No one ever led: there is nothing to catch up with.
    let bench = Bench::new();
    let began = Instant::now();
    let (first, _) = unfit(&bench, &token);
    assert!(first.await.expect("no panic"));
    assert!(began.elapsed() < Duration::from_secs(1));

    // The leader is gone: it may be that another has all that it had.
    let bench = Bench::new();
    bench.held_by_other("2000-01-01T00:00:00.000000Z");
    let began = Instant::now();
    let (late, _) = unfit(&bench, &token);
    assert!(late.await.expect("no panic"));
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_secs(50) && waited <= Duration::from_secs(60),
        "{waited:?}"
    );

    // Once it has caught up it is as any other.
    let bench = Bench::new();
    bench.held_by_other("2000-01-01T00:00:00.000000Z");
    let began = Instant::now();
    let (caught_up, candidacy) = unfit(&bench, &token);
    sleep(Duration::from_secs(10)).await;
    candidacy.set(Fitness::Fit);
    assert!(caught_up.await.expect("no panic"));
    assert!(
        began.elapsed() <= Duration::from_secs(46),
        "{:?}",
        began.elapsed()
    );

    // Where there is no third, nothing is left to others.
    let bench = Bench::new();
    bench.held_by_other("2000-01-01T00:00:00.000000Z");
    let began = Instant::now();
    let (successor, candidacy) = unfit(&bench, &token);
    candidacy.set(Fitness::Successor);
    assert!(successor.await.expect("no panic"));
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_secs(35) && waited <= Duration::from_secs(40),
        "{waited:?}"
    );

    let bench = Bench::new();
    bench.held_by_other("2000-01-01T00:00:00.000000Z");
    let (stopped, _) = unfit(&bench, &token);
    sleep(Duration::from_secs(1)).await;
    token.cancel();
    assert!(
        !stopped.await.expect("no panic"),
        "a candidate that must stop does not lead"
    );
}

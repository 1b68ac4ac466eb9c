//! `bench-notify`: how many events notification-controller takes and passes on, and what that costs.

mod sink;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::control_plane::ApiMetrics;
use testkit::process::Usage;
use testkit::{ControlPlane, Options, install_crds, objects};

use self::sink::Sink;
use super::at_rest::{self, AtRest};
use super::contestant::{Contestant, Running};
use super::figures::{Table, line, mebibytes, seconds};

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Events, each about another object.
    #[arg(long, default_value_t = 10_000)]
    events: usize,
    /// Seconds over which they are posted, evenly; with 0, as fast as they are taken.
    #[arg(long, default_value_t = 60)]
    over: u32,
    /// Alerts that match each event; each has a Provider of its own.
    #[arg(long, default_value_t = 1)]
    alerts: usize,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 30)]
    rest: u64,
    /// A folder with Flux's notification-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    peer: Option<PathBuf>,
}

/// Connections that post events. Flux has one for each of its controllers; more show what can be taken.
const SENDERS: usize = 8;
/// An event of an object is a new one as long as its message is: rate limits look at both.
const KIND: &str = "Kustomization";
const PATIENCE: Duration = Duration::from_secs(300);

/// Figures of one contestant.
struct Measured {
    name: &'static str,
    /// Resident memory when it is ready and has seen nothing yet, in bytes.
    idle: u64,
    /// From the first event until the last was taken.
    taken: Duration,
    /// From the first event until the last message arrived.
    passed_on: Duration,
    /// Messages that arrived.
    messages: usize,
    /// Its usage when the last message had arrived.
    busy: Usage,
    /// Requests to the API server meanwhile.
    requests: ApiMetrics,
    /// From an event to its message, one event at a time; the median.
    latency: Duration,
    rest: AtRest,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let mut results = Vec::new();
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        install_crds(&control_plane.client()).await?;
        let (running, address) = contestant.start_notification(&control_plane).await?;
        let measured = notify(&control_plane, &contestant, &running, &address, arguments).await;
        results.push(measured.with_context(|| running.log_tails())?);
    }
    report(arguments, &results);
    Ok(())
}

async fn notify(
    control_plane: &ControlPlane,
    contestant: &Contestant,
    running: &Running,
    address: &str,
    arguments: &Arguments,
) -> Result<Measured> {
    let namespace = &control_plane.namespace("bench").await?;
    let idle = running.resident()?;
    let sink = Sink::start().await?;
    let poster = Poster {
        http: reqwest::Client::builder().no_proxy().build()?,
        address,
        namespace,
    };
    create_alerts(&control_plane.client(), namespace, &sink, arguments.alerts).await?;
    poster.until_alerts_are_seen(&sink, arguments.alerts).await?;

    let latency = poster.latency(&sink, arguments.alerts).await?;
    let before = control_plane.api_metrics().await?;
    let (start, base) = (Instant::now(), sink.count());
    let pace = Duration::from_secs(arguments.over.into()).div_f64(arguments.events.max(1) as f64);
    poster.flood(arguments.events, pace).await?;
    let taken = start.elapsed();
    let expected = arguments.events * arguments.alerts;
    let arrived = sink.reached(base + expected, PATIENCE).await;
    Ok(Measured {
        name: contestant.name(),
        idle,
        taken,
        passed_on: arrived.map_or(PATIENCE, |at| at.duration_since(start)),
        messages: sink.count() - base,
        busy: running.usage()?[0],
        requests: control_plane.api_metrics().await?.since(&before),
        latency,
        rest: at_rest::look_on(control_plane, running, arguments.rest).await?,
    })
}

async fn create_alerts(client: &Client, namespace: &str, sink: &Sink, alerts: usize) -> Result<()> {
    for number in 0..alerts {
        let name = format!("alert-{number}");
        let provider = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"type": "generic", "address": sink.url()},
        });
        let alert = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"providerRef": {"name": name}, "eventSources": [{"kind": KIND, "name": "*"}]},
        });
        objects::apply(client, &provider).await?;
        objects::apply(client, &alert).await?;
    }
    Ok(())
}

/// Posts events as a controller does.
struct Poster<'a> {
    http: reqwest::Client,
    address: &'a str,
    namespace: &'a str,
}

impl Poster<'_> {
    async fn post(&self, name: &str) -> Result<()> {
        let answer = self
            .http
            .post(self.address)
            .json(&self.event(name))
            .send()
            .await?;
        match answer.status() {
            StatusCode::ACCEPTED => Ok(()),
            status => bail!("the event about {name} was answered with {status}"),
        }
    }

    fn event(&self, name: &str) -> Value {
        json!({
            "involvedObject": {
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": KIND,
                "namespace": self.namespace, "name": name, "uid": "7d0cdc51-ddcf-4743-b223-83ca5c699632",
            },
            "severity": "error",
            "timestamp": "2026-01-01T00:00:00Z",
            "message": format!("Deployment/apps/{name} is not ready: container web is waiting: ImagePullBackOff"),
            "reason": "HealthCheckFailed",
            "metadata": {"kustomize.toolkit.fluxcd.io/revision": "main@sha1:731f7eaddfb6af01cb2173e18f0f75b0ba780ef1"},
            "reportingController": "kustomize-controller",
            "reportingInstance": "kustomize-controller-0",
        })
    }

    /// Alerts come by a watch: posts until one event reached all of them.
    async fn until_alerts_are_seen(&self, sink: &Sink, alerts: usize) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut attempt = 0;
        while Instant::now() < deadline {
            let base = sink.count();
            self.post(&format!("first-{attempt}")).await?;
            if sink
                .reached(base + alerts, Duration::from_secs(1))
                .await
                .is_some()
            {
                return Ok(());
            }
            attempt += 1;
        }
        bail!("no event reached all alerts")
    }

    /// One event at a time.
    async fn latency(&self, sink: &Sink, alerts: usize) -> Result<Duration> {
        const TIMES: usize = 101;
        let mut all = Vec::with_capacity(TIMES);
        for number in 0..TIMES {
            let (base, start) = (sink.count(), Instant::now());
            self.post(&format!("single-{number}")).await?;
            let at = sink.reached(base + alerts, PATIENCE).await;
            all.push(at.context("a message did not arrive")?.duration_since(start));
        }
        all.sort_unstable();
        Ok(all[TIMES / 2])
    }

    /// Posts events, one each `pace`.
    async fn flood(&self, events: usize, pace: Duration) -> Result<()> {
        let start = tokio::time::Instant::now();
        futures::stream::iter(0..events)
            .map(|number| async move {
                tokio::time::sleep_until(start + pace.mul_f64(number as f64)).await;
                self.post(&format!("app-{number}")).await
            })
            .buffer_unordered(SENDERS)
            .try_for_each(|()| async { Ok(()) })
            .await
    }
}

fn report(arguments: &Arguments, results: &[Measured]) {
    let title = format!(
        "{} events over {} s, alerts that match each: {}",
        arguments.events, arguments.over, arguments.alerts
    );
    let table = Table::new(&title, results, |m| m.name);
    let each_second = |count: usize, time: Duration| format!("{:.0}", count as f64 / time.as_secs_f64());
    table.row("memory before the first event", |m| mebibytes(m.idle));
    table.row("from an event to its message, median", |m| {
        format!("{:.2} ms", m.latency.as_secs_f64() * 1000.0)
    });
    table.row("events taken each second", |m| {
        each_second(arguments.events, m.taken)
    });
    table.row("all messages arrived after", |m| seconds(m.passed_on));
    table.row("messages that arrived", |m| m.messages.to_string());
    table.row("peak memory", |m| mebibytes(m.busy.peak_resident_bytes));
    table.row("CPU since the start", |m| seconds(m.busy.cpu_time));
    table.row("API requests meanwhile, all clients", |m| {
        m.requests.total().to_string()
    });
    at_rest::rows(&table, arguments.rest, |m| &m.rest);
    line("");
}

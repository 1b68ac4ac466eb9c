//! A long run: many applications, a commit each second somewhere, faults at random, and at the end the cluster is what Git says.
//!
//! In the first third everything may be killed. After that the controllers live on while all around them fails. In the second third
//! their caches fill up, and the API server restarts, after which they hold two lists of everything for a moment. In the last one a
//! line is fitted to their memory, file handles and threads: what grows with time is a leak, however small its peak is.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Fault, Repository};
use testkit::objects::{self, text};
use testkit::{ControlPlane, Controller, GitServer, Options, install_crds};

use crate::random::Random;

const NAMESPACE: &str = "soak";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
/// Applications of one repository. Each commit of it is written into the statuses of all of them.
const OF_ONE: usize = 50;
/// Time between two faults, and between two samples.
const FAULTS: Duration = Duration::from_secs(20);
const SAMPLES: Duration = Duration::from_secs(10);
/// How long all of them may take until they are as Git says.
const PATIENCE: Duration = Duration::from_secs(600);
/// Manifests that kustomize-controller keeps, in bytes: those of a minute.
const CACHE: usize = 1 << 20;
/// What may be added in an hour: noise of the allocator, and of a run that is short.
const MOST_MEBIBYTES: f64 = 8.0;
const MOST_HANDLES: f64 = 20.0;

/// Runs for so long, with so many applications and commits in a second.
pub async fn soak(duration: Duration, apps: usize, rate: u64, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut scene = Scene::start(apps).await?;
    scene.run(duration, rate, &mut random).await
}

struct Scene {
    control_plane: ControlPlane,
    git: GitServer,
    repositories: Vec<Repository>,
    source: Controller,
    apply: Controller,
    /// What Git says of each application.
    values: Vec<u64>,
    broken: BTreeSet<usize>,
    next: u64,
}

/// What a controller had at a time, in seconds since the beginning.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: f64,
    mebibytes: f64,
    handles: f64,
    threads: f64,
}

impl Scene {
    async fn start(apps: usize) -> Result<Self> {
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        let client = control_plane.client();
        install_crds(&client).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        objects::apply(&client, &namespace).await?;
        let git = GitServer::start().await?;
        let kubeconfig = control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
        // A cache that fills up would look like a leak.
        let options = ControllerOptions {
            flags: vec![format!("--artifact-cache-bytes={CACHE}")],
            ..ControllerOptions::default()
        };
        let apply = Controller::start_apply(kubeconfig, &source, options).await?;
        let mut scene = Self {
            control_plane,
            git,
            repositories: Vec::new(),
            source,
            apply,
            values: vec![0; apps],
            broken: BTreeSet::new(),
            next: 0,
        };
        for first in (0..apps).step_by(OF_ONE) {
            let repository = scene.git.create_repository(&repository_name(first))?;
            let all = first..apps.min(first + OF_ONE);
            let files: Vec<_> = all.clone().map(|app| file(app, 0)).collect();
            repository.commit("main", "first", &files)?;
            let object =
                objects::git_repository(NAMESPACE, &repository_name(first), repository.url(), "main");
            objects::apply(&client, &objects::with_spec(object, json!({"interval": "2s"}))).await?;
            for app in all {
                let source = ("GitRepository", &*repository_name(app));
                let object =
                    objects::kustomization(NAMESPACE, &name(app), source, &format!("./{}", name(app)));
                let spec = json!({"retryInterval": "5s", "interval": "1h"});
                objects::apply(&client, &objects::with_spec(object, spec)).await?;
            }
            scene.repositories.push(repository);
        }
        Ok(scene)
    }

    async fn run(&mut self, duration: Duration, rate: u64, random: &mut Random) -> Result<()> {
        let began = Instant::now();
        let seconds = |since: Instant| since.elapsed().as_secs_f64();
        self.converges().await.context("before any fault")?;
        println!(
            "{:7.1} s: {} applications are ready",
            seconds(began),
            self.values.len()
        );
        let began = Instant::now();
        let (mut samples, mut faults, mut commits) = (Vec::new(), 0, 0_u64);
        let (mut fault_at, mut sample_at, mut is_warm) = (began + FAULTS, began, false);
        while began.elapsed() < duration {
            let next = Instant::now() + Duration::from_secs(1);
            for _ in 0..rate {
                self.commit(random)?;
                commits += 1;
            }
            let may_kill = began.elapsed() < duration / 3;
            if !may_kill && !is_warm {
                is_warm = true;
                self.control_plane
                    .restart_api_server(Duration::from_secs(1))
                    .await?;
                println!(
                    "{:7.1} s: the API server restarts, and nothing is killed any more",
                    seconds(began)
                );
            }
            if Instant::now() >= fault_at {
                fault_at += FAULTS;
                faults += 1;
                let what = self.fault(random, may_kill).await?;
                println!("{:7.1} s: {what}", seconds(began));
            }
            self.source.check_running()?;
            self.apply.check_running()?;
            if began.elapsed() > duration / 3 * 2 && Instant::now() >= sample_at {
                sample_at = Instant::now() + SAMPLES;
                let at = seconds(began);
                samples.push((sample(&self.source, at)?, sample(&self.apply, at)?));
            }
            tokio::time::sleep_until(next.into()).await;
        }
        self.mend()?;
        let ended = Instant::now();
        self.converges().await.context("at the end")?;
        println!(
            "{commits} commits, {faults} faults; {:.1} s later all is as Git says",
            seconds(ended)
        );
        let (source, apply): (Vec<_>, Vec<_>) = samples.into_iter().unzip();
        report("source-controller", &source)?;
        report("kustomize-controller", &apply)
    }

    /// Changes one application, breaks it or mends it.
    fn commit(&mut self, random: &mut Random) -> Result<()> {
        let app = usize::try_from(random.below(self.values.len() as u64))?;
        self.next += 1;
        self.values[app] = self.next;
        let change = if random.below(40) == 0 {
            self.broken.insert(app);
            Change::write(&format!("{}/map.yaml", name(app)), "kind: Nothing\n")
        } else {
            self.broken.remove(&app);
            file(app, self.next)
        };
        self.repositories[app / OF_ONE].commit("main", &format!("{}", self.next), &[change])?;
        Ok(())
    }

    fn mend(&mut self) -> Result<()> {
        for app in std::mem::take(&mut self.broken) {
            let change = file(app, self.values[app]);
            self.repositories[app / OF_ONE].commit("main", "mend", &[change])?;
        }
        Ok(())
    }

    async fn fault(&mut self, random: &mut Random, may_kill: bool) -> Result<&'static str> {
        let kinds = if may_kill { 8 } else { 5 };
        let client = self.control_plane.client();
        let maps = objects::api(&client, "v1", "ConfigMap", NAMESPACE);
        let app = name(usize::try_from(random.below(self.values.len() as u64))?);
        Ok(match random.below(kinds) {
            0 => {
                let pause = Duration::from_millis(random.below(3000));
                self.control_plane.restart_api_server(pause).await?;
                "the API server restarts"
            }
            1 => {
                self.control_plane
                    .pause_etcd(Duration::from_millis(random.below(5000)))
                    .await?;
                "etcd hangs"
            }
            2 => {
                let repository = repository_name(usize::try_from(random.below(self.values.len() as u64))?);
                self.git.set_fault(&repository, Fault::Status(503));
                tokio::time::sleep(Duration::from_secs(10)).await;
                self.git.set_fault(&repository, None);
                "a Git repository is away for 10 s"
            }
            3 => {
                let edit = Patch::Merge(json!({"data": {"value": "edited"}}));
                // It may not be there yet.
                maps.patch(&app, &PatchParams::default(), &edit).await.ok();
                "somebody edits an object"
            }
            4 => {
                maps.delete(&app, &DeleteParams::default()).await.ok();
                "somebody deletes an object"
            }
            5 => {
                self.source.kill();
                self.source.restart().await?;
                "source-controller is killed"
            }
            6 => {
                self.apply.kill();
                self.apply.restart().await?;
                "kustomize-controller is killed"
            }
            _ => {
                self.source.kill();
                self.apply.kill();
                self.control_plane
                    .restart_api_server(Duration::from_secs(1))
                    .await?;
                self.source.restart().await?;
                self.apply.restart().await?;
                "everything is killed"
            }
        })
    }

    /// Waits until each application is ready with the newest commit of its repository, and its object is as Git says.
    async fn converges(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.difference().await {
                Ok(None) => return Ok(()),
                Ok(Some(difference)) if Instant::now() > deadline => bail!("{difference}"),
                Err(error) if Instant::now() > deadline => return Err(error),
                Ok(Some(_)) | Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// The first application that is not as Git says.
    async fn difference(&self) -> Result<Option<String>> {
        let client = self.control_plane.client();
        let mut heads = Vec::new();
        for repository in &self.repositories {
            heads.push(format!("main@sha1:{}", repository.resolve("main")?));
        }
        let list = async |version: &str, kind: &str| -> Result<Vec<DynamicObject>> {
            let api = objects::api(&client, version, kind, NAMESPACE);
            Ok(api.list(&ListParams::default()).await?.items)
        };
        let (all, maps) = (
            list(KUSTOMIZE, "Kustomization").await?,
            list("v1", "ConfigMap").await?,
        );
        for (app, value) in self.values.iter().enumerate() {
            let name = name(app);
            let named = |object: &&DynamicObject| object.metadata.name.as_deref() == Some(&name);
            let Some(object) = all.iter().find(named) else {
                return Ok(Some(format!("{name} is gone")));
            };
            let revision = text(object, "/status/lastAppliedRevision");
            if !objects::is_ready(object) || revision != heads[app / OF_ONE] {
                return Ok(Some(format!("{name}: {:?}", objects::condition(object, "Ready"))));
            }
            let found = maps
                .iter()
                .find(named)
                .map(|map| text(map, "/data/value").to_owned());
            if found.as_deref() != Some(&value.to_string()) {
                return Ok(Some(format!("{name} has {found:?}, and Git {value}")));
            }
        }
        Ok(None)
    }
}

fn name(app: usize) -> String {
    format!("app-{app}")
}

fn repository_name(app: usize) -> String {
    format!("soak-{}", app / OF_ONE)
}

fn file(app: usize, value: u64) -> Change {
    let map: Value = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name(app), "namespace": NAMESPACE}, "data": {"value": value.to_string()}});
    Change::write(&format!("{}/map.yaml", name(app)), map.to_string())
}

fn sample(controller: &Controller, at: f64) -> Result<Sample> {
    let process = controller.process()?;
    let count = |folder: &str| -> Result<f64> {
        let entries = std::fs::read_dir(format!("/proc/{}/{folder}", process.pid()))?.count();
        Ok(f64::from(u32::try_from(entries)?))
    };
    #[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
    let mebibytes = process.usage()?.anonymous_bytes as f64 / f64::from(1 << 20);
    Ok(Sample {
        at,
        mebibytes,
        handles: count("fd")?,
        threads: count("task")?,
    })
}

/// One figure of a sample.
type Figure = fn(&Sample) -> f64;

/// Prints how each figure went, and fails if one grows.
fn report(name: &str, samples: &[Sample]) -> Result<()> {
    ensure!(samples.len() > 10, "too few samples: {}", samples.len());
    let figures: [(&str, Figure, f64); 3] = [
        ("MiB of its own", |sample| sample.mebibytes, MOST_MEBIBYTES),
        ("file handles", |sample| sample.handles, MOST_HANDLES),
        ("threads", |sample| sample.threads, MOST_HANDLES),
    ];
    let mut growing = Vec::new();
    for (figure, of, most) in figures {
        let all: Vec<f64> = samples.iter().map(of).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let peak = all.iter().copied().fold(0.0, f64::max);
        let hourly = slope(samples, of) * 3600.0;
        println!("{name}: {least:.1} to {peak:.1} {figure}, {hourly:+.2} in an hour");
        // What the line adds in the time that was looked at: a short run has steep lines.
        let added = slope(samples, of) * (samples[samples.len() - 1].at - samples[0].at);
        if hourly > most && added > most {
            growing.push(format!("{figure}: {added:+.1} in this run"));
        }
    }
    ensure!(growing.is_empty(), "{name} grows: {}", growing.join(", "));
    Ok(())
}

/// The slope of the line with the least squares, per second.
fn slope(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "samples are few")]
    let count = samples.len() as f64;
    let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (at, value) = (mean(&|sample| sample.at), mean(&of));
    let both: f64 = samples.iter().map(|one| (one.at - at) * (of(one) - value)).sum();
    let square: f64 = samples.iter().map(|one| (one.at - at).powi(2)).sum();
    if square > 0.0 { both / square } else { 0.0 }
}

#[test]
fn a_line_is_fitted() {
    let sample = |at: f64, mebibytes: f64| Sample {
        at,
        mebibytes,
        handles: 3.0,
        threads: 1.0,
    };
    let samples: Vec<_> = (0..20)
        .map(|n| sample(f64::from(n), 10.0 + 0.5 * f64::from(n)))
        .collect();
    assert!((slope(&samples, |one| one.mebibytes) - 0.5).abs() < 1e-9);
    assert!(slope(&samples, |one| one.handles).abs() < 1e-9);
    assert!(report("it", &samples).is_err(), "half a MiB each second");
    let flat: Vec<_> = (0..20)
        .map(|n| sample(f64::from(n), 10.0 + f64::from(n % 2)))
        .collect();
    report("it", &flat).unwrap_or_else(|error| panic!("{error}"));
}

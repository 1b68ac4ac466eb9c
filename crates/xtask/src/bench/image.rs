//! `bench-images`: many images that are scanned and chosen, one automation over a large repository, and the way of a new tag
//! from the registry to the commit.
//!
//! With `--listed` the tags come from lists of our own, for more tags than a registry can be filled with in time; scanning
//! and memory are measured then, and nothing else.

mod lists;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::control_plane::ApiMetrics;
use testkit::git::{Change, Repository};
use testkit::registry::Artifact;
use testkit::{ControlPlane, GitServer, Options, Registry, install_all_crds, objects, wait_for};

use super::at_rest::{self, AtRest};
use super::contestant::{Contestant, Running};
use super::figures::{Table, line, mebibytes, seconds};
use super::ready::all_ready;

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Images, each with an ImageRepository and an ImagePolicy.
    #[arg(long, default_value_t = 100)]
    images: usize,
    /// Tags of each image.
    #[arg(long, default_value_t = 100)]
    tags: usize,
    /// Files of the Git repository; as many of them as there are images have a marker.
    #[arg(long, default_value_t = 10_000)]
    files: usize,
    /// New tags that are followed to their commits, one after the other.
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Serve lists of tags without images behind them, and only scan.
    #[arg(long)]
    listed: bool,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 30)]
    rest: u64,
    /// A folder with Flux's image-reflector-controller and image-automation-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    peer: Option<PathBuf>,
}

const API_VERSION: &str = "image.toolkit.fluxcd.io/v1";
const PATIENCE: Duration = Duration::from_secs(600);
/// Requests at the same time while the load is made.
const AT_ONCE: usize = 8;

/// Figures of one contestant.
struct Measured {
    name: &'static str,
    /// Resident memory when it is ready and has seen nothing yet, in bytes.
    idle: u64,
    /// From the first object until the last was created.
    created: Duration,
    /// From the first object until all policies have chosen.
    chosen: Duration,
    commits: Option<Commits>,
    /// Processor time until then.
    cpu: Duration,
    /// Peak of memory until then, in bytes.
    peak: u64,
    requests: ApiMetrics,
    rest: AtRest,
}

/// Figures of what is written to Git.
struct Commits {
    /// From the automation until its commit.
    first: Duration,
    /// From the request to scan until the commit, one for each new tag, sorted.
    ways: Vec<Duration>,
    registry_requests: usize,
    git_requests: usize,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let mut results = Vec::new();
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        install_all_crds(&control_plane.client()).await?;
        let registry = Registry::start().await?;
        let lists = match arguments.listed {
            true => Some(lists::Lists::start(arguments.tags).await?),
            false => None,
        };
        let host = lists.as_ref().map_or_else(
            || registry.address().to_owned(),
            |lists| lists.address().to_owned(),
        );
        let world = World {
            namespace: control_plane.namespace("bench").await?,
            host,
            registry,
            git: GitServer::start().await?,
            control_plane,
        };
        let repository = match arguments.listed {
            true => None,
            false => Some(world.load(arguments).await?),
        };
        let running = contestant.start_images(&world.control_plane).await?;
        let measured = world
            .follow(&contestant, &running, repository.as_ref(), arguments)
            .await;
        results.push(measured.with_context(|| running.log_tails())?);
    }
    report(arguments, &results);
    Ok(())
}

struct World {
    control_plane: ControlPlane,
    namespace: String,
    /// Of the images' names.
    host: String,
    registry: Registry,
    git: GitServer,
}

impl World {
    /// Images in the registry, and files in Git.
    async fn load(&self, arguments: &Arguments) -> Result<Repository> {
        let tags: Vec<String> = (1..=arguments.tags)
            .map(|number| format!("1.{number}.0"))
            .collect();
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        let artifact = Artifact::from_files("main@sha1:1", &[("content", "1")])?;
        let pushes = (0..arguments.images).map(|number| {
            let (tags, artifact) = (&tags, &artifact);
            async move { self.registry.push(&name(number), tags, artifact).await }
        });
        stream::iter(pushes)
            .buffer_unordered(AT_ONCE)
            .try_for_each(|_| async { Ok(()) })
            .await?;
        let repository = self.git.create_repository("fleet")?;
        let files = (0..arguments.files).map(|number| {
            let mark = match number < arguments.images {
                true => format!(" # {{\"$imagepolicy\": \"{}:{}\"}}", self.namespace, name(number)),
                false => String::new(),
            };
            let text = format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {0}\nspec:\n  template:\n    spec:\n      \
                 containers:\n        - name: web\n          image: {1}:1.0.0{mark}\n",
                name(number),
                self.image(number),
            );
            Change::write(&format!("apps/{}/{}/app.yaml", number % 100, name(number)), text)
        });
        repository.commit("main", "all", &files.collect::<Vec<_>>())?;
        Ok(repository)
    }

    async fn follow(
        &self,
        contestant: &Contestant,
        running: &Running,
        repository: Option<&Repository>,
        arguments: &Arguments,
    ) -> Result<Measured> {
        let idle = running.resident()?;
        let before = self.control_plane.api_metrics().await?;
        let client = self.control_plane.client();
        let start = Instant::now();
        let objects = (0..arguments.images).flat_map(|number| [self.repository(number), self.policy(number)]);
        stream::iter(objects.map(|object| {
            let client = &client;
            async move { objects::apply(client, &object).await }
        }))
        .buffered(AT_ONCE)
        .try_for_each(|_| async { Ok(()) })
        .await?;
        let created = start.elapsed();
        tokio::time::timeout(PATIENCE, all_ready(self.api("ImagePolicy"), arguments.images)).await??;
        let chosen = start.elapsed();
        let commits = match repository {
            Some(repository) => Some(self.commits(repository, arguments).await?),
            None => None,
        };
        let usage = running.usage()?;
        Ok(Measured {
            name: contestant.name(),
            idle,
            created,
            chosen,
            commits,
            cpu: running.cpu()?,
            peak: usage.iter().map(|usage| usage.peak_resident_bytes).sum(),
            requests: self.control_plane.api_metrics().await?.since(&before),
            rest: at_rest::look_on(&self.control_plane, running, arguments.rest).await?,
        })
    }

    /// Has all choices written, and then one new tag after the other.
    async fn commits(&self, repository: &Repository, arguments: &Arguments) -> Result<Commits> {
        let client = self.control_plane.client();
        let source = objects::git_repository(&self.namespace, "fleet", repository.url(), "main");
        objects::apply(&client, &source).await?;
        self.git.reset_requests();
        let start = Instant::now();
        objects::apply(&client, &self.automation()).await?;
        let mut commit = self.pushed("").await?;
        let first = start.elapsed();
        let changed = repository.git(&["diff", "--name-only", "main~1", "main"])?;
        ensure!(
            changed.lines().count() == arguments.images,
            "{} of {} files were changed",
            changed.lines().count(),
            arguments.images
        );
        let mut ways = Vec::new();
        for round in 1..=arguments.rounds {
            let (image, tag) = (name(round % arguments.images), format!("2.{round}.0"));
            let artifact = Artifact::from_files("main@sha1:1", &[("content", &tag)])?;
            self.registry.push(&image, &[&tag], &artifact).await?;
            let start = Instant::now();
            objects::poke(&self.api("ImageRepository"), &image).await?;
            commit = self.pushed(&commit).await?;
            ways.push(start.elapsed());
        }
        ways.sort_unstable();
        Ok(Commits {
            first,
            ways,
            registry_requests: self.registry.all_requests(),
            git_requests: self.git.requests("fleet").len(),
        })
    }

    /// Waits until the automation has pushed another commit.
    async fn pushed(&self, known: &str) -> Result<String> {
        let is_new = |object: &DynamicObject| {
            let commit = objects::text(object, "/status/lastPushCommit");
            !commit.is_empty() && commit != known
        };
        let automation = wait_for(&self.api("ImageUpdateAutomation"), "fleet", is_new, PATIENCE).await?;
        Ok(objects::text(&automation, "/status/lastPushCommit").to_owned())
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        objects::api(&self.control_plane.client(), API_VERSION, kind, &self.namespace)
    }

    fn image(&self, number: usize) -> String {
        format!("{}/{}", self.host, name(number))
    }

    fn repository(&self, number: usize) -> Value {
        let spec = json!({"image": self.image(number), "interval": "1h", "insecure": true});
        self.object("ImageRepository", &name(number), &spec)
    }

    fn policy(&self, number: usize) -> Value {
        let spec =
            json!({"imageRepositoryRef": {"name": name(number)}, "policy": {"semver": {"range": ">=1.0.0"}}});
        self.object("ImagePolicy", &name(number), &spec)
    }

    fn automation(&self) -> Value {
        let spec = json!({
            "interval": "1h",
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {
                "checkout": {"ref": {"branch": "main"}},
                "commit": {"author": {"name": "Bot", "email": "bot@example.com"}},
                "push": {"branch": "main"},
            },
            "update": {"path": "./apps", "strategy": "Setters"},
        });
        self.object("ImageUpdateAutomation", "fleet", &spec)
    }

    fn object(&self, kind: &str, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": API_VERSION, "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec})
    }
}

fn name(number: usize) -> String {
    format!("app-{number}")
}

fn report(arguments: &Arguments, results: &[Measured]) {
    let files = match arguments.listed {
        true => String::new(),
        false => format!(", {} files in Git", arguments.files),
    };
    let title = format!("{} images of {} tags{files}", arguments.images, arguments.tags);
    let table = Table::new(&title, results, |m| m.name);
    table.row("memory before the first object", |m| mebibytes(m.idle));
    table.row("all objects created after", |m| seconds(m.created));
    table.row("all policies have chosen after", |m| seconds(m.chosen));
    if !arguments.listed {
        let commits =
            |m: &Measured, of: fn(&Commits) -> String| m.commits.as_ref().map(of).unwrap_or_default();
        table.row("from the automation to its first commit", |m| {
            commits(m, |c| seconds(c.first))
        });
        table.row("from a request to scan to the commit, median", |m| {
            commits(m, |c| {
                seconds(c.ways.get(c.ways.len() / 2).copied().unwrap_or_default())
            })
        });
        table.row("– the longest", |m| {
            commits(m, |c| seconds(c.ways.last().copied().unwrap_or_default()))
        });
        table.row("requests to the registry", |m| {
            commits(m, |c| c.registry_requests.to_string())
        });
        table.row("requests to Git", |m| commits(m, |c| c.git_requests.to_string()));
    }
    table.row("peak memory", |m| mebibytes(m.peak));
    table.row("CPU since the start", |m| seconds(m.cpu));
    table.row("API requests, all clients", |m| m.requests.total().to_string());
    at_rest::rows(&table, arguments.rest, |m| &m.rest);
    line("");
}

//! Development tasks, one subcommand each: `cargo run -p xtask -- <task>`.
//!
//! Nothing here is shipped. A task is a module with an `Arguments` struct and a `run` function; this file only
//! chooses between them.

use anyhow::Result;
use clap::{Parser, Subcommand};

mod bench;
mod bench_build;
mod bench_render;
mod circles;
mod conformance_cluster;
mod contest;
mod demo;
mod demo_ui;
mod generate;
mod images;
mod markdown;
mod record;
mod release;
mod schema;
mod tools;

/// Parsed command line.
#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Development tasks of Windlass")]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

/// The tasks, in the order in which a newcomer meets them.
#[derive(Debug, Subcommand)]
enum Task {
    /// Show the main job end to end on a control plane of its own, or on the cluster of KUBECONFIG.
    Demo(demo::Arguments),
    /// Show the console's pages over two clusters with applications of all sorts; --then tests them.
    DemoUi(demo_ui::Arguments),
    /// Build the control plane and the registry that tests and the demo use.
    Tools,
    /// Measure many sources and Kustomizations at once: time, memory, CPU, API requests.
    BenchSync(bench::sync::Arguments),
    /// Measure a chain of Kustomizations in which each waits for the one before.
    BenchChain(bench::chain::Arguments),
    /// Measure many Kustomizations that have nothing to do: API requests, CPU, memory.
    BenchRest(bench::rest::Arguments),
    /// Measure what very many Kustomizations cost that are only watched: memory for each, CPU for each change.
    BenchScale(bench::scale::Arguments),
    /// Measure many HelmReleases of one chart: installed, upgraded, at rest.
    BenchReleases(bench::releases::Arguments),
    /// Measure notification-controller: events taken and passed on, from an event to its message, at rest.
    BenchNotify(bench::notify::Arguments),
    /// Measure image-controller: many images scanned and chosen, one automation over a large repository, from a tag to its commit.
    BenchImages(bench::image::Arguments),
    /// Measure pipeline-controller: many pipelines, from a healthy release to its commits for the next environment.
    BenchPipelines(bench::pipeline::Arguments),
    /// Measure pipeline-controller: pull requests of a repository with many applications.
    BenchPreviews(bench::preview::Arguments),
    /// Measure the console: a picture of many apps, queries at a rate, a change until subscribers have it.
    BenchConsole(bench::console::Arguments),
    /// Measure all four controllers with many apps at rest: memory, and the time from start to ready.
    BenchIdle(bench::idle::Arguments),
    /// Measure source-controller: many sources, none to do, a large repository, a large index.
    BenchSource(bench::source::Arguments),
    /// Measure `windlass build` beside the real kustomize: small cases, many objects, a large repository.
    BenchBuild(bench_build::Arguments),
    /// Measure `windlass template` beside the real helm: recorded charts, the largest ones, one rendered again and again.
    BenchRender(bench_render::Arguments),
    /// Build the container images, and push them if a repository is given.
    Images(images::Arguments),
    /// Make a release: images, archives, the chart, inventories, provenance, checksums and signatures.
    Release(release::Arguments),
    /// Write what is made from other sources: CRDs, gRPC code, tables of docs; with --check only compare.
    Generate(generate::Arguments),
    /// Check that few files import each other in a circle.
    CheckCircles,
    /// Compare what Flux's controllers and ours leave in a cluster, object by object.
    ConformanceCluster(conformance_cluster::Arguments),
    /// Record what Flux's own controllers write into objects.
    RecordFluxObjects(record::Arguments),
    /// Write what kustomize-build knows of the built-in types; needs Go and two of its modules.
    GenerateSchema(schema::Arguments),
}

fn main() -> Result<()> {
    match CommandLine::parse().task {
        Task::Demo(arguments) => demo::run(&arguments),
        Task::DemoUi(arguments) => demo_ui::run(&arguments),
        Task::Tools => tools::run(),
        Task::BenchSync(arguments) => bench::sync::run(&arguments),
        Task::BenchChain(arguments) => bench::chain::run(&arguments),
        Task::BenchRest(arguments) => bench::rest::run(&arguments),
        Task::BenchScale(arguments) => bench::scale::run(&arguments),
        Task::BenchReleases(arguments) => bench::releases::run(&arguments),
        Task::BenchNotify(arguments) => bench::notify::run(&arguments),
        Task::BenchImages(arguments) => bench::image::run(&arguments),
        Task::BenchPipelines(arguments) => bench::pipeline::run(&arguments),
        Task::BenchPreviews(arguments) => bench::preview::run(&arguments),
        Task::BenchConsole(arguments) => bench::console::run(&arguments),
        Task::BenchIdle(arguments) => bench::idle::run(&arguments),
        Task::BenchSource(arguments) => bench::source::run(&arguments),
        Task::BenchBuild(arguments) => bench_build::run(&arguments),
        Task::BenchRender(arguments) => bench_render::run(&arguments),
        Task::Images(arguments) => images::run(&arguments),
        Task::Release(arguments) => release::run(&arguments),
        Task::Generate(arguments) => generate::run(&arguments),
        Task::ConformanceCluster(arguments) => conformance_cluster::run(&arguments),
        Task::RecordFluxObjects(arguments) => record::run(&arguments),
        Task::CheckCircles => circles::run(),
        Task::GenerateSchema(arguments) => schema::run(&arguments),
    }
}

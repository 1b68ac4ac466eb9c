//! `windlass shards plan`: which shard should reconcile which object, from what reconciling them has cost so far.

mod load;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use clap::{Args, Subcommand};
use delivery_graph::kind::{self, Kind};
use delivery_graph::object::{self, text};
use futures::future::join_all;

use crate::cluster::controllers::{self, Pod};
use crate::cluster::output::{self, Cell, Colours};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, print};
use load::{Loads, Who};
use plan::{Item, Limits};

/// Label of an object that names its shard, as in Flux.
const LABEL: &str = "sharding.fluxcd.io/key";
/// For the metrics of one Pod: those of 10,000 objects are some MiB.
const PATIENCE: Duration = Duration::from_secs(30);

/// The kinds that are sharded, and the controller that reconciles them.
const SHARDED: [(&str, &str); 8] = [
    ("GitRepository", SOURCES),
    ("OCIRepository", SOURCES),
    ("HelmRepository", SOURCES),
    ("HelmChart", SOURCES),
    ("Bucket", SOURCES),
    ("ArtifactGenerator", SOURCES),
    ("Kustomization", "kustomize-controller"),
    ("HelmRelease", "helm-controller"),
];
const SOURCES: &str = "source-controller";

/// Command line of `shards`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print which objects should move to which shard, from the time that each takes
    Plan(Plan),
}

#[derive(Debug, Args)]
struct Plan {
    /// Shards that have controllers, to spread over besides the objects without a shard. Objects in other shards stay there
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = shard, required_unless_present = "drain")]
    shards: Vec<String>,

    /// Shards to empty
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = shard)]
    drain: Vec<String>,

    /// Keep the objects of a namespace in one shard
    #[arg(long)]
    by_namespace: bool,

    /// How much busier than the average a shard may be before objects move, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    tolerance: u32,

    /// Print the commands that set the labels, and nothing else
    #[arg(long)]
    commands: bool,

    /// File with metrics of a controller, or - for standard input; by default they are read from the Pods
    #[arg(long, value_name = "FILE")]
    metrics: Vec<PathBuf>,

    /// Namespace of the controllers
    #[arg(long, value_name = "NAME", default_value = "flux-system")]
    flux_namespace: String,

    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Accepts what can be the value of a label: it is printed into commands.
fn shard(word: &str) -> Result<String, String> {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = word.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    match is_end(bytes.first()) && is_end(bytes.last()) && bytes.len() <= 63 && bytes.iter().all(is_inner) {
        true => Ok(word.to_owned()),
        false => Err("not the value of a label".to_owned()),
    }
}

/// Asks, plans, and prints. `report_line` is for what is missing.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let Command::Plan(flags) = &flags.command;
    let way = ClusterFlags::of_context(flags.kubeconfig.clone(), flags.context.clone());
    cluster::run(&way, async |cluster| {
        let loads = match flags.metrics.as_slice() {
            [] => from_pods(&cluster, &flags.flux_namespace, &report_line).await?,
            files => from_files(files)?,
        };
        if loads.is_empty() {
            return Err(Failure::NotReady(
                "the metrics have no reconcile durations: have the controllers just started?".to_owned(),
            ));
        }
        let objects = objects(&cluster, &loads).await?;
        show(flags, objects, &report_line)
    })
}

fn from_files(files: &[PathBuf]) -> Result<Loads, Failure> {
    let mut loads = Loads::default();
    for file in files {
        let read = match file.as_os_str() == "-" {
            true => io::read_to_string(io::stdin()),
            false => fs::read_to_string(file),
        };
        let read =
            read.map_err(|error| Failure::Usage(format!("failed to read {}: {error}", file.display())));
        loads.add(&read?, jiff::Timestamp::now());
    }
    Ok(loads)
}

async fn from_pods(
    cluster: &Cluster,
    namespace: &str,
    report_line: &impl Fn(&str),
) -> Result<Loads, Failure> {
    let pods = controllers::pods(cluster, namespace).await?;
    let mut loads = Loads::default();
    let (mut missing, mut last) = (0, None);
    for read in join_all(pods.iter().map(|pod| metrics(cluster, pod))).await {
        match read {
            Ok(text) => loads.add(&text, jiff::Timestamp::now()),
            Err(failure) => {
                report_line(&format!("warning: {failure}"));
                missing += 1;
                last = Some(failure);
            }
        }
    }
    match last {
        Some(failure) if missing == pods.len() => Err(failure),
        _ => Ok(loads),
    }
}

async fn metrics(cluster: &Cluster, pod: &Pod) -> Result<String, Failure> {
    let what = || format!("read the metrics of {pod}");
    let request = pod.metrics()?;
    let client = cluster.client();
    let read = tokio::time::timeout(PATIENCE, client.request_text(request)).await;
    let read = read.map_err(|_| Failure::TimedOut(format!("failed to {}: it does not answer", what())))?;
    read.map_err(|error| Failure::request(what(), error))
}

/// An object that is sharded, as it is now.
struct Object {
    kind: &'static Kind,
    namespace: String,
    name: String,
    controller: &'static str,
    /// Empty without one.
    shard: String,
    /// None if nothing was measured.
    busy: Option<f64>,
    /// True for one that a controller makes and labels.
    is_made: bool,
}

async fn objects(cluster: &Cluster, loads: &Loads) -> Result<Vec<Object>, Failure> {
    let mut all = Vec::new();
    let mut made = BTreeSet::new();
    for (name, controller) in SHARDED {
        let kind = kind::named(name).ok_or_else(|| Failure::Usage(format!("{name} is no kind")))?;
        for found in cluster.list(kind, None, None).await?.unwrap_or_default() {
            let (namespace, name) = (
                object::namespace(&found).to_owned(),
                object::name(&found).to_owned(),
            );
            if kind.kind == "HelmRelease" {
                made.insert(text(&found, "/status/helmChart").to_owned());
            }
            let shard = found["metadata"]["labels"][LABEL].as_str().unwrap_or_default();
            all.push(Object {
                busy: loads.of(&Who::new(kind.kind, &namespace, &name)),
                shard: shard.to_owned(),
                is_made: false,
                kind,
                namespace,
                name,
                controller,
            });
        }
    }
    for one in &mut all {
        one.is_made =
            one.kind.kind == "HelmChart" && made.contains(&format!("{}/{}", one.namespace, one.name));
    }
    Ok(all)
}

fn show(flags: &Plan, objects: Vec<Object>, report_line: &impl Fn(&str)) -> Result<(), Failure> {
    // Labels do not say which shards there are: tenants write them.
    let named = flags.shards.iter().map(String::as_str);
    let shards: BTreeSet<&str> = named.chain([""]).collect();
    let drained: BTreeSet<&str> = flags.drain.iter().map(String::as_str).collect();
    let shards: Vec<&str> = shards.difference(&drained).copied().collect();
    let means = means(&objects);
    let is_planned = |one: &Object| {
        let shard = one.shard.as_str();
        !one.is_made && (shards.contains(&shard) || drained.contains(shard))
    };
    let items = objects.iter().map(|one| Item {
        controller: one.controller,
        namespace: &one.namespace,
        shard: shards.iter().position(|shard| *shard == one.shard),
        busy: one.busy.unwrap_or(means[one.controller]),
        stays: !is_planned(one),
    });
    let limits = Limits {
        shards: shards.len(),
        tolerance: f64::from(flags.tolerance) / 100.0,
        by_namespace: flags.by_namespace,
    };
    let items: Vec<Item<'_>> = items.collect();
    let to = plan::plan(&items, limits);
    let moves: Vec<(&Object, &str)> = objects
        .iter()
        .zip(&to)
        .filter_map(|(one, to)| Some((one, shards[(*to)?])))
        .filter(|(one, to)| one.shard != *to)
        .collect();
    let unmeasured = objects.iter().filter(|one| one.busy.is_none()).count();
    if unmeasured > 0 {
        report_line(&format!(
            "warning: {unmeasured} of {} objects were not measured, and count as the average of their controller",
            objects.len()
        ));
    }
    if flags.commands {
        let lines: String = moves.iter().map(|(one, to)| command(one, to)).collect();
        return print(&lines);
    }
    let after = |index: usize| to[index].map_or(objects[index].shard.as_str(), |to| shards[to]);
    print(&table(&objects, &items, after))?;
    let mut lines = String::from("\n");
    for (one, to) in &moves {
        lines.push_str(&format!(
            "{}/{}/{}: {} -> {}\n",
            one.kind.kind,
            one.namespace,
            one.name,
            shown(&one.shard),
            shown(to)
        ));
    }
    if moves.is_empty() {
        lines.push_str("nothing should move\n");
    }
    print(&lines)
}

/// What a measured object of each controller takes in the mean.
fn means(objects: &[Object]) -> BTreeMap<&'static str, f64> {
    let mut sums: BTreeMap<&'static str, (f64, f64)> = BTreeMap::new();
    for one in objects {
        let (sum, count) = sums.entry(one.controller).or_default();
        if let Some(busy) = one.busy {
            *sum += busy;
            *count += 1.0;
        }
    }
    let mean = |(sum, count): (f64, f64)| if count > 0.0 { sum / count } else { 0.0 };
    sums.into_iter().map(|(name, pair)| (name, mean(pair))).collect()
}

fn table<'a>(objects: &'a [Object], items: &[Item<'_>], after: impl Fn(usize) -> &'a str) -> String {
    type Sums<'a> = BTreeMap<(&'a str, &'a str), [(usize, f64); 2]>;
    let mut sums: Sums<'_> = BTreeMap::new();
    for (index, (one, item)) in objects.iter().zip(items).enumerate() {
        for (when, shard) in [(0, one.shard.as_str()), (1, after(index))] {
            let (count, busy) = &mut sums.entry((one.controller, shard)).or_default()[when];
            *count += 1;
            *busy += item.busy;
        }
    }
    let row = |((controller, shard), [before, after]): (&(&str, &str), &[(usize, f64); 2])| -> Vec<Cell> {
        vec![
            (*controller).to_owned().into(),
            shown(shard).to_owned().into(),
            before.0.to_string().into(),
            format!("{:.3}", before.1).into(),
            after.0.to_string().into(),
            format!("{:.3}", after.1).into(),
        ]
    };
    let rows: Vec<_> = sums.iter().map(row).collect();
    let header = [
        "CONTROLLER",
        "SHARD",
        "OBJECTS",
        "BUSY",
        "OBJECTS AFTER",
        "BUSY AFTER",
    ];
    output::table(&header, &rows, Colours::of_terminal())
}

fn shown(shard: &str) -> &str {
    if shard.is_empty() { "(none)" } else { shard }
}

/// Names come from the API server, which accepts none that a shell would read otherwise.
fn command(one: &Object, to: &str) -> String {
    let (plural, group) = (one.kind.plural, one.kind.group);
    let label = match to {
        "" => format!("{LABEL}-"),
        to => format!("{LABEL}={to}"),
    };
    format!(
        "kubectl -n {} label --overwrite {plural}.{group}/{} {label}\n",
        one.namespace, one.name
    )
}

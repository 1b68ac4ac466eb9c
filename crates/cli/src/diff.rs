//! `windlass diff`: what a local checkout would change on the cluster, before it is pushed.
//!
//! The checkout is the content that `delivery-diff` compares with the cluster.

mod checkout;
mod show;
mod sources;

use std::path::{Path, PathBuf};

use clap::Args;
use delivery_diff::{Reader, Subject, Summary, World, source_of};
use delivery_graph::kind;
use serde_json::Value;

use crate::cluster::output::Colours;
use crate::cluster::{self, Cluster, Failure, Scope, Target, print, select};
use crate::progress::Progress;

pub(crate) use checkout::Checkout;
pub(crate) use show::{Form, hunks, shown};
pub(crate) use sources::Sources;

/// Command line of `diff`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kustomizations and HelmReleases, as KIND/NAME or KIND NAME…
    #[arg(value_name = "OBJECT")]
    words: Vec<String>,

    /// Compare all Kustomizations and HelmReleases whose source is the checkout
    #[arg(long)]
    all: bool,

    /// Local directory to use as spec.path, for a single Kustomization
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,

    /// Root of the checkout; defaults to the Git repository that contains --path or the working directory
    #[arg(long, value_name = "FOLDER")]
    checkout: Option<PathBuf>,

    /// Source that the checkout replaces, as KIND/NAME or KIND/NAMESPACE/NAME; defaults to the object's source, or with
    /// --all to sources that have the URL of a Git remote
    #[arg(long, value_name = "SOURCE")]
    source: Vec<String>,

    /// Local chart (directory or archive) of a HelmRelease, as NAMESPACE/NAME=PATH, if the cluster has not fetched it
    /// yet
    #[arg(long, value_name = "RELEASE=PATH", value_parser = chart_of)]
    chart: Vec<(String, PathBuf)>,

    /// Also compare the Kustomizations and HelmReleases that are applied by these
    #[arg(long, short)]
    recursive: bool,

    /// Fail on variables without a value
    #[arg(long)]
    strict_substitute: bool,

    /// Exit with 5 if there are changes
    #[arg(long)]
    exit_code: bool,

    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Form,

    #[command(flatten)]
    scope: Scope,
}

/// Further help.
pub(crate) const AFTER_HELP: &str = "The cluster is not changed: the comparison uses server-side dry runs, which require permission to \
     get and patch the objects. Exit codes: 0 compared, with or without changes; 5 changes found, with --exit-code; 1 failure, or some \
     objects could not be compared, which are named.";

/// Compares, and prints.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let targets = targets(flags)?;
    cluster::run(&flags.scope.cluster, async |cluster| {
        let progress = Progress::new(flags.quiet);
        let root = root(flags)?;
        let named = named(&cluster, &targets).await?;
        let (sources, roots) = beginnings(flags, &cluster, named, &root).await?;
        let checkout = Checkout::open(&root, sources)?;
        let roots = with_folder(flags, &checkout, roots)?;
        let mut world = World::new(Reader::new(cluster.client()), Box::new(checkout));
        (world.strict, world.names_flags) = (flags.strict_substitute, true);
        world.charts = flags.chart.iter().cloned().collect();
        let told = |said: &str| progress.show(said);
        let sections = delivery_diff::compare(&mut world, roots, flags.recursive, told).await;
        progress.clear();
        print(&show::shown(&sections, flags.output, Colours::of_terminal())?)?;
        let summary = Summary::from_sections(&sections);
        match summary.unknown() {
            0 if flags.exit_code && summary.changes() > 0 => Err(Failure::Differs),
            0 => Ok(()),
            count => Err(Failure::Incomplete(format!(
                "{count} could not be compared; see above for what and why"
            ))),
        }
    })
}

fn chart_of(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((release, path)) if release.split('/').count() == 2 && !path.is_empty() => {
            Ok((release.to_owned(), PathBuf::from(path)))
        }
        _ => Err("write NAMESPACE/NAME=PATH".to_owned()),
    }
}

fn targets(flags: &Flags) -> Result<Vec<Target>, Failure> {
    let is_all = flags.all || flags.scope.all_namespaces;
    let usage = |words: &str| Err(Failure::Usage(words.to_owned()));
    if flags.words.is_empty() {
        return match is_all {
            true if flags.path.is_some() => usage("--path is for one Kustomization"),
            true => Ok(Vec::new()),
            false => usage("name a Kustomization or HelmRelease, or write --all or -A"),
        };
    }
    if is_all {
        return usage("name objects, or write --all or -A");
    }
    let targets = select::targets(&flags.words)?;
    let is_one = |target: &Target| matches!(target.kind.kind, "Kustomization" | "HelmRelease");
    if let Some(other) = targets.iter().find(|target| !is_one(target)) {
        return usage(&format!("{} apply no objects", other.kind.plural));
    }
    match (&flags.path, &targets[..]) {
        (Some(_), [one]) if one.kind.kind == "Kustomization" => Ok(targets),
        (Some(_), _) => usage("--path is for one Kustomization"),
        (None, _) => Ok(targets),
    }
}

/// The root of the checkout. Without Git it is the folder itself.
fn root(flags: &Flags) -> Result<PathBuf, Failure> {
    let here = Path::new(".");
    let from = flags.path.as_deref().unwrap_or(here);
    if !from.is_dir() {
        return Err(Failure::Usage(format!(
            "{}: there is no such folder",
            from.display()
        )));
    }
    let found = flags.checkout.clone().or_else(|| checkout::root_of(from));
    match found.or_else(|| flags.path.clone()) {
        Some(root) if root.is_dir() => Ok(root),
        Some(root) => Err(Failure::Usage(format!(
            "{}: there is no such folder",
            root.display()
        ))),
        None => Err(Failure::Usage(
            "the working directory is in no Git repository; name the root with --checkout".to_owned(),
        )),
    }
}

async fn named(cluster: &Cluster, targets: &[Target]) -> Result<Vec<Value>, Failure> {
    let mut objects = Vec::new();
    for target in targets {
        objects.push(cluster.need(&target.id(&cluster.namespace)).await?);
    }
    Ok(objects)
}

/// For what the checkout stands, and with what to begin.
async fn beginnings(
    flags: &Flags,
    cluster: &Cluster,
    named: Vec<Value>,
    root: &Path,
) -> Result<(Sources, Vec<Value>), Failure> {
    if !named.is_empty() {
        let sources = match flags.source.is_empty() {
            true => Sources::new(cluster, &named).await?,
            false => Sources::named(cluster, &flags.source).await?,
        };
        return Ok((sources, named));
    }
    let sources = match flags.source.is_empty() {
        true => Sources::with_addresses(cluster, &Checkout::open(root, Sources::default())?.remotes()).await,
        false => Sources::named(cluster, &flags.source).await?,
    };
    if sources.is_empty() {
        return Err(Failure::NotReady(format!(
            "no GitRepository of the cluster has the address of a remote of {}; name the source with --source",
            root.display()
        )));
    }
    let namespace = (!flags.scope.all_namespaces).then_some(cluster.namespace.as_str());
    let mut roots = Vec::new();
    for kind in ["Kustomization", "HelmRelease"]
        .into_iter()
        .filter_map(kind::exact)
    {
        let found = cluster.list(kind, namespace, None).await?.unwrap_or_default();
        let is_local = |object: &Value| source_of(object).is_some_and(|source| sources.contains(&source));
        roots.extend(found.into_iter().filter(is_local));
    }
    if roots.is_empty() {
        let message = "no Kustomization or HelmRelease here is made of what the checkout stands for";
        return Err(Failure::NotReady(message.to_owned()));
    }
    Ok((sources, delivery_diff::parents_first(roots)))
}

fn with_folder(flags: &Flags, checkout: &Checkout, roots: Vec<Value>) -> Result<Vec<Subject>, Failure> {
    let mut subjects: Vec<_> = roots.into_iter().map(Subject::root).collect();
    if let (Some(path), Some(subject)) = (&flags.path, subjects.first_mut()) {
        let folder = checkout.place_of(path);
        let outside = || Failure::Usage(format!("{} is not in the checkout", path.display()));
        subject.folder = Some(folder.ok_or_else(outside)?);
    }
    Ok(subjects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_given_for_one_release() {
        let given = chart_of("shop/web=./web-2.0.0.tgz").unwrap();
        assert_eq!(given, ("shop/web".to_owned(), PathBuf::from("./web-2.0.0.tgz")));
        for wrong in ["web=./web", "shop/web", "shop/web=", "a/b/c=x"] {
            assert!(chart_of(wrong).is_err(), "{wrong}");
        }
    }
}

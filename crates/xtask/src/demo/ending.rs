//! The end of the demo: what there is now, and how to look around.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use testkit::objects::{condition, is_ready, text};
use testkit::tools::{self, Tool};

use super::story::Story;
use super::witness::{Known, Witness};
use super::world::{World, short};

const DELIVERIES: [&str; 8] = [
    "GitRepository/shop",
    "OCIRepository/reporter",
    "Kustomization/shop",
    "Kustomization/reporter",
    "GitRepository/storefront",
    "Kustomization/storefront",
    "ImagePolicy/storefront",
    "ImageUpdateAutomation/storefront",
];
const MANAGED: [&str; 7] = [
    "ConfigMap/reporter-settings",
    "ConfigMap/shop-settings",
    "Deployment/reporter",
    "Deployment/shop",
    "Service/shop",
    "ConfigMap/storefront",
    "ConfigMap/shop-banner",
];

/// Shows the objects, and what the controllers took. Fails when one of the deliveries is not Ready after all.
pub(crate) fn summarise(story: &mut Story, world: &World, witness: &Witness) -> Result<()> {
    story.chapter("What there is now")?;
    let known = witness.known();
    let rows: Vec<_> = DELIVERIES
        .iter()
        .map(|subject| delivery_row(known, subject))
        .collect();
    story.table(&["OBJECT", "READY", "REVISION", "MESSAGE"], &rows)?;
    story.print("")?;
    let rows: Vec<_> = MANAGED
        .iter()
        .map(|subject| managed_row(known, subject))
        .collect();
    story.table(&["OBJECT", "STATE", "MANAGED BY"], &rows)?;
    story.print("")?;
    story.table(
        &["PROCESS", "MEMORY", "HIGHEST", "PROCESSOR TIME"],
        &usage_rows(world)?,
    )?;
    for subject in DELIVERIES {
        ensure!(
            known.get(subject).is_some_and(is_ready),
            "{subject} is not Ready at the end"
        );
    }
    Ok(())
}

/// Shows the objects and the hints, then tells every change until someone presses Ctrl-C.
pub(crate) async fn stay(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    summarise(story, world, witness)?;
    hints(story, world)?;
    let mut last: Vec<Vec<String>> = DELIVERIES
        .iter()
        .map(|s| delivery_row(witness.known(), s))
        .collect();
    loop {
        tokio::select! {
            subject = witness.next() => {
                let subject = subject?;
                let Some(index) = DELIVERIES.iter().position(|delivery| *delivery == subject) else { continue };
                let row = delivery_row(witness.known(), &subject);
                if row != last[index] {
                    story.note(&row.join("  "))?;
                    last[index] = row;
                }
            }
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.context("failed to listen for Ctrl-C")?;
                return story.note("stopping");
            }
        }
    }
}

fn hints(story: &mut Story, world: &World) -> Result<()> {
    let kubectl = tools::path(Tool::Kubectl)?;
    let namespace = &world.namespace;
    story.chapter("Look around: all of this runs until Ctrl-C")?;
    for line in [
        format!("export KUBECONFIG={}", world.cluster.kubeconfig_path().display()),
        format!("alias k='{} --namespace {namespace}'", kubectl.display()),
        String::new(),
        "k get gitrepositories,ocirepositories,kustomizations".to_owned(),
        "k get imagerepositories,imagepolicies,imageupdateautomations".to_owned(),
        "k get deployments,configmaps,services --show-labels".to_owned(),
        "k get events --sort-by=.lastTimestamp".to_owned(),
        "k delete deployment shop    # comes back".to_owned(),
        String::new(),
        format!(
            "git clone {} && cd shop    # edit deploy/, commit, push, then",
            world.repository.url()
        ),
        "k annotate --overwrite gitrepository/shop reconcile.fluxcd.io/requestedAt=\"$(date +%s)\""
            .to_owned(),
        "    # or wait for a minute, which is the interval of the sources".to_owned(),
    ] {
        story.print(format!("  {line}").trim_end())?;
    }
    story.print("")
}

fn delivery_row(known: &Known, subject: &str) -> Vec<String> {
    let Some(object) = known.get(subject) else {
        return vec![subject.to_owned(), "gone".to_owned()];
    };
    let (status, reason, message) = condition(object, "Ready").unwrap_or_default();
    let revision = match text(object, "/status/artifact/revision") {
        "" => text(object, "/status/lastAppliedRevision"),
        revision => revision,
    };
    let message = message.lines().next().unwrap_or_default();
    vec![
        subject.to_owned(),
        status.to_owned(),
        short(revision),
        format!("{reason}: {}", short(message)),
    ]
}

fn managed_row(known: &Known, subject: &str) -> Vec<String> {
    let Some(object) = known.get(subject) else {
        return vec![subject.to_owned(), "pruned".to_owned(), String::new()];
    };
    let state = match condition(object, "Available") {
        Some((status, ..)) => format!("Available={status}"),
        None => "exists".to_owned(),
    };
    let label = |name: &str| {
        object
            .labels()
            .get(&format!("kustomize.toolkit.fluxcd.io/{name}"))
    };
    let owner = match (label("namespace"), label("name")) {
        (Some(namespace), Some(name)) => format!("Kustomization {namespace}/{name}"),
        _ => "nobody".to_owned(),
    };
    vec![subject.to_owned(), state, owner]
}

fn usage_rows(world: &World) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for controller in world.controllers() {
        let usage = controller.usage()?;
        let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        rows.push(vec![
            controller.name().to_owned(),
            mebibytes(usage.resident_bytes),
            mebibytes(usage.peak_resident_bytes),
            format!("{:.2} s", usage.cpu_time.as_secs_f64()),
        ]);
    }
    Ok(rows)
}

//! A commit that changes an image and removes a ConfigMap: a rollout and a prune.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use testkit::git::Change;
use testkit::objects;

use super::steps::{LIMIT, available, fetched, image_of, ready};
use crate::demo::story::Story;
use crate::demo::witness::{Expectation, Witness, expect};
use crate::demo::world::{World, manifests, short};

const OLD_IMAGE: &str = "registry.k8s.io/pause:3.9";
pub(super) const NEW_IMAGE: &str = "registry.k8s.io/pause:3.10";

pub(super) async fn play(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    story.chapter("A commit: a new image, and a ConfigMap less")?;
    let changes = [
        replace("deploy/deployment.yaml", OLD_IMAGE, NEW_IMAGE)?,
        replace("deploy/kustomization.yaml", "  - banner.yaml\n", "")?,
        Change::delete("deploy/banner.yaml"),
    ];
    let commit = world
        .repository
        .commit("main", "release pause 3.10, take the banner down", &changes)?;
    story.cause(&format!(
        "push {} and annotate GitRepository/shop with requestedAt",
        short(&commit)
    ))?;
    let sources = objects::api(
        &world.client,
        "source.toolkit.fluxcd.io/v1",
        "GitRepository",
        &world.namespace,
    );
    objects::poke(&sources, "shop").await?;

    let revision = format!("main@sha1:{commit}");
    let expectations = vec![
        fetched("GitRepository/shop", revision.clone()),
        changed_image().told_after(0),
        pruned("ConfigMap/shop-banner").told_after(0),
        available("Deployment/shop", NEW_IMAGE).told_after(1),
        ready("Kustomization/shop", revision).told_after(3),
    ];
    witness.follow(story, world, expectations, LIMIT).await
}

/// The file of the first commit with one text for another, which must be in it.
fn replace(path: &str, old: &str, new: &str) -> Result<Change> {
    let file = manifests("shop").join(path);
    let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    ensure!(
        text.contains(old),
        "{} does not have the text {old:?} that the demo changes",
        file.display()
    );
    Ok(Change::write(path, text.replace(old, new)))
}

fn changed_image() -> Expectation {
    expect("Deployment/shop", "applied", |known| {
        (image_of(known.get("Deployment/shop")?) == NEW_IMAGE).then(|| format!("{OLD_IMAGE} → {NEW_IMAGE}"))
    })
}

/// The first chapter has seen it.
fn pruned(subject: &'static str) -> Expectation {
    expect(subject, "pruned", move |known| {
        known.get(subject).is_none().then(String::new)
    })
}

//! From nothing to Ready: two sources, two Kustomizations.

use anyhow::Result;
use serde_json::json;
use testkit::objects::{self, field, text, with_spec};

use super::steps::{LIMIT, all_managed, available, fetched, ready};
use crate::demo::story::Story;
use crate::demo::witness::{Expectation, Witness, expect};
use crate::demo::world::World;

const SHOP: &[&str] = &[
    "ConfigMap/shop-banner",
    "ConfigMap/shop-settings",
    "Deployment/shop",
    "Service/shop",
];
const REPORTER: &[&str] = &["ConfigMap/reporter-settings", "Deployment/reporter"];
const IMAGE: &str = "registry.k8s.io/pause:3.9";

pub(super) async fn play(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    story.chapter("First sync: a Git repository and an OCI artifact")?;
    let namespace = world.namespace.as_str();
    let sources = [
        objects::git_repository(namespace, "shop", world.repository.url(), "main"),
        objects::oci_repository(namespace, "reporter", &world.registry.url("reporter"), "latest"),
    ];
    let kustomizations = [
        objects::kustomization(namespace, "shop", ("GitRepository", "shop"), "./deploy"),
        objects::kustomization(namespace, "reporter", ("OCIRepository", "reporter"), "./"),
    ];
    story.cause(
        "apply GitRepository/shop, OCIRepository/reporter, Kustomization/shop, Kustomization/reporter",
    )?;
    for source in sources {
        // A short interval, so that what a visitor pushes afterwards arrives by itself.
        objects::apply(&world.client, &with_spec(source, json!({"interval": "1m"}))).await?;
    }
    for kustomization in kustomizations {
        let spec = json!({"targetNamespace": namespace});
        objects::apply(&world.client, &with_spec(kustomization, spec)).await?;
    }

    let commit = format!("main@sha1:{}", world.repository.resolve("main")?);
    let artifact = format!("latest@{}", world.artifact_digest);
    let expectations = vec![
        fetched("GitRepository/shop", commit.clone()),
        built("Kustomization/shop", commit.clone(), SHOP).told_after(0),
        applied("Kustomization/shop", SHOP).told_after(1),
        available("Deployment/shop", IMAGE).told_after(2),
        ready("Kustomization/shop", commit).told_after(3),
        fetched("OCIRepository/reporter", artifact.clone()),
        built("Kustomization/reporter", artifact.clone(), REPORTER).told_after(5),
        applied("Kustomization/reporter", REPORTER).told_after(6),
        available("Deployment/reporter", IMAGE).told_after(7),
        ready("Kustomization/reporter", artifact).told_after(8),
    ];
    witness.follow(story, world, expectations, LIMIT).await
}

/// The inventory names what was built; it is recorded before anything is applied.
fn built(subject: &'static str, revision: String, objects: &'static [&'static str]) -> Expectation {
    expect(subject, "built", move |known| {
        let kustomization = known.get(subject)?;
        let inventory = field(kustomization, "/status/inventory/entries")?.as_array()?;
        let attempted = text(kustomization, "/status/lastAttemptedRevision") == revision;
        (attempted && inventory.len() == objects.len()).then(|| format!("{} objects", inventory.len()))
    })
}

fn applied(subject: &'static str, objects: &'static [&'static str]) -> Expectation {
    let owner = subject.trim_start_matches("Kustomization/");
    expect(subject, "applied", move |known| {
        all_managed(known, objects, owner)
    })
}

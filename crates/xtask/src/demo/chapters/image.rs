//! An image is pushed: a pull request at Gitea, a person who merges it, and the delivery.

use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::json;
use testkit::objects::{self, condition, text, with_spec};

use super::steps::{LIMIT, fetched, ready};
use crate::demo::forge::REPOSITORY;
use crate::demo::story::Story;
use crate::demo::witness::{Expectation, Witness, expect};
use crate::demo::world::{World, short};

const IMAGE: &str = "image.toolkit.fluxcd.io/v1";
const NAME: &str = "storefront";

pub(super) async fn play(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    story.chapter("A new image: a pull request, its merge, and the delivery")?;
    begin(story, world, witness).await?;
    release(story, world, witness).await?;
    merge(story, world, witness).await
}

/// The repository at Gitea is delivered, and its image followed.
async fn begin(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    let (namespace, forge) = (world.namespace.as_str(), &world.forge);
    world.push_image(NAME, "1.0.0").await?;
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {NAME}\ndata:\n  \
         image: {}:1.0.0 # {{\"$imagepolicy\": \"{namespace}:{NAME}\"}}\n",
        world.image(NAME)
    );
    let commit = forge.commit("app/map.yaml", &map).await?;
    story.cause(&format!(
        "push {NAME}:1.0.0; apply GitRepository, Kustomization, ImageRepository, ImagePolicy, ChangePolicy, \
         ImageUpdateAutomation"
    ))?;
    let source = objects::git_repository(namespace, NAME, &forge.url(), "main");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "forge", "namespace": namespace},
        "stringData": {"username": forge.bot.name, "password": forge.bot.token},
    });
    let kustomization = objects::kustomization(namespace, NAME, ("GitRepository", NAME), "./app");
    let image = |kind: &str, spec| json!({"apiVersion": IMAGE, "kind": kind, "metadata": {"name": NAME, "namespace": namespace}, "spec": spec});
    let mut automation = image(
        "ImageUpdateAutomation",
        json!({
            "sourceRef": {"kind": "GitRepository", "name": NAME},
            "interval": "1h",
            "git": {"commit": {"author": {"name": "Windlass", "email": "bot@example.com"}}},
        }),
    );
    automation["metadata"]["annotations"] = json!({"delivery.windlass.dev/change-policy": "review"});
    let forge_spec = json!({"provider": "gitea", "secretRef": {"name": "forge"}});
    for object in [
        secret,
        with_spec(source, json!({"secretRef": {"name": "forge"}})),
        with_spec(kustomization, json!({"targetNamespace": namespace})),
        json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "ChangePolicy",
            "metadata": {"name": "review", "namespace": namespace},
            "spec": {"type": "PullRequest", "pullRequest": {"forge": forge_spec, "kustomizations": [NAME]}},
        }),
        image(
            "ImageRepository",
            json!({"image": world.image(NAME), "interval": "1h", "insecure": true}),
        ),
        image(
            "ImagePolicy",
            json!({"imageRepositoryRef": {"name": NAME}, "policy": {"semver": {"range": "1.x"}}}),
        ),
        automation,
    ] {
        objects::apply(&world.client, &object).await?;
    }
    let revision = format!("main@sha1:{commit}");
    let expectations = vec![
        fetched("GitRepository/storefront", revision.clone()),
        applied("1.0.0").told_after(0),
        ready("Kustomization/storefront", revision).told_after(1),
        chosen("1.0.0"),
        settled().told_after(3),
    ];
    witness.follow(story, world, expectations, LIMIT).await
}

async fn release(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    story.cause(&format!(
        "push {NAME}:1.1.0 and annotate ImageRepository/{NAME} with requestedAt"
    ))?;
    world.push_image(NAME, "1.1.0").await?;
    let repositories = objects::api(&world.client, IMAGE, "ImageRepository", &world.namespace);
    objects::poke(&repositories, NAME).await?;
    let proposed = expect("ImageUpdateAutomation/storefront", "proposed", |known| {
        let automation = known.get("ImageUpdateAutomation/storefront")?;
        let (_, _, message) = condition(automation, "Proposed")?;
        message.contains("is open").then(|| message.to_owned())
    });
    let expectations = vec![chosen("1.1.0"), proposed.told_after(0)];
    witness.follow(story, world, expectations, LIMIT).await
}

async fn merge(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    let forge = &world.forge;
    story.cause(&format!("{} merges pull request 1", forge.ana.name))?;
    let path = format!("repos/{REPOSITORY}/pulls/1/merge");
    // Gitea looks for conflicts in the background, and refuses until it has.
    let merging = async {
        let merge = || {
            let body = json!({"Do": "merge"});
            forge.gitea.call_as(&forge.ana, Method::POST, &path, Some(body))
        };
        while merge().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let merged = tokio::time::timeout(LIMIT, merging).await;
    merged.context("Gitea does not merge the pull request")?;
    let sources = objects::api(
        &world.client,
        "source.toolkit.fluxcd.io/v1",
        "GitRepository",
        &world.namespace,
    );
    objects::poke(&sources, NAME).await?;
    let automations = objects::api(&world.client, IMAGE, "ImageUpdateAutomation", &world.namespace);
    objects::poke(&automations, NAME).await?;
    let revision = format!("main@sha1:{}", forge.head().await?);
    let expectations = vec![
        fetched("GitRepository/storefront", revision.clone()),
        applied("1.1.0").told_after(0),
        ready("Kustomization/storefront", revision).told_after(1),
        settled(),
    ];
    witness.follow(story, world, expectations, LIMIT).await
}

fn settled() -> Expectation {
    expect("ImageUpdateAutomation/storefront", "ready", |known| {
        let automation = known.get("ImageUpdateAutomation/storefront")?;
        let (status, _, message) = condition(automation, "Ready")?;
        (status == "True" && message == "repository up-to-date").then(|| message.to_owned())
    })
}

fn chosen(tag: &'static str) -> Expectation {
    expect("ImagePolicy/storefront", "chosen", move |known| {
        let policy = known.get("ImagePolicy/storefront")?;
        (text(policy, "/status/latestRef/tag") == tag).then(|| tag.to_owned())
    })
}

fn applied(tag: &'static str) -> Expectation {
    expect("ConfigMap/storefront", "applied", move |known| {
        let image = text(known.get("ConfigMap/storefront")?, "/data/image");
        image.ends_with(tag).then(|| format!("image is {}", short(image)))
    })
}

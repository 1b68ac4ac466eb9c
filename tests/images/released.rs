//! A release is a tag that moves to the tested image: a pipeline builds and tests, moves the tag, and a policy follows it by
//! digest. The change is proposed, merged and delivered, and the delivered commit gets its status at the forge.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::objects::{apply, is_ready};
use testkit::registry::Artifact;

use crate::proposals::{BASE, Shop};
use crate::whole::{Cluster, NOTIFICATION, WHOLE, delivered, manifest, opened, receiver};
use crate::world::{PATIENCE, Scene, play};

const SOURCE: &str = "https://git.example.com/shop/web";

/// Pushes what a pipeline has built from a commit; its digest.
async fn build(scene: &Scene, number: &str, commit: &str) -> Result<String> {
    build_from(scene, SOURCE, number, commit).await
}

async fn build_from(scene: &Scene, source: &str, number: &str, commit: &str) -> Result<String> {
    let mut image = Artifact::image("linux", "amd64", number)?;
    let labels =
        json!({"org.opencontainers.image.source": source, "org.opencontainers.image.revision": commit});
    let config = json!({"os": "linux", "architecture": "amd64", "config": {"Labels": labels}});
    image.config = config.to_string();
    let repository = format!("{}/web", scene.namespace);
    scene.world.registry.push(&repository, &[number], &image).await
}

/// Moves the tag, as the last step of a pipeline does.
async fn release(scene: &Scene, digest: &str) -> Result<()> {
    let source = format!("{}@{digest}", scene.image("web"));
    let said = scene
        .run(&["tag", &source, "released", "--insecure-registry"])
        .await?;
    ensure!(said.contains("tagged"), "{said}");
    Ok(())
}

/// A Provider and an Alert that write the status of what is delivered to its commit.
async fn report(scene: &Scene, shop: &Shop) -> Result<()> {
    let object = |api: &str, kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": api, "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": scene.namespace, "labels": {WHOLE: "true"}}})
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": shop.bot.token},
        "metadata": {"name": "status", "namespace": scene.namespace}});
    let address = format!("{}/{}", shop.gitea.url(), shop.repository);
    let provider = json!({"type": "gitea", "address": address, "secretRef": {"name": "status"}});
    let alert =
        json!({"providerRef": {"name": "forge"}, "eventSources": [{"kind": "Kustomization", "name": "app"}]});
    let beta = NOTIFICATION.replace("/v1", "/v1beta3");
    for object in [
        secret,
        object(&beta, "Provider", "forge", provider),
        object(&beta, "Alert", "delivered", alert),
    ] {
        apply(&scene.client, &object).await?;
    }
    Ok(())
}

/// Waits until the newest commit of the base has a status, and returns it.
async fn status(shop: &Shop) -> Result<String> {
    let found = async {
        loop {
            let status = shop.get(&format!("commits/{BASE}/status")).await?;
            let state = status["state"].as_str().unwrap_or_default();
            if !state.is_empty() && status["total_count"].as_u64() != Some(0) {
                return Ok::<_, anyhow::Error>(state.to_owned());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .context("the commit has no status")?
}

#[test]
fn a_tag_that_moves_to_the_tested_image_is_proposed_by_digest_and_delivered() {
    play("released", async |scene| {
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        let first = build(&scene, "build-1", &old).await?;
        release(&scene, &first).await?;
        let before = format!("released@{first}");
        let shop = Shop::open(&scene, &[("app/map.yaml", &manifest(&scene, &before))]).await?;
        let cluster = Cluster::start(&scene, &shop).await?;
        report(&scene, &shop).await?;
        let spec = json!({
            "filterTags": {"pattern": "^released$"},
            "policy": {"alphabetical": {}},
            "digestReflectionPolicy": "Always",
            "interval": "1h",
        });
        scene.follow("web", spec).await?;
        shop.review(&scene, json!({}), json!({})).await?;
        delivered(&scene, &before).await?;
        let pushed = receiver(&scene, "image", "ImageRepository", "web").await?;

        // A build alone changes nothing: its tag is not followed. Then its tests pass.
        let second = build(&scene, "build-2", &new).await?;
        ensure!(first != second);
        ensure!(shop.requests().await?.is_empty(), "a build was proposed");
        release(&scene, &second).await?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("{}{pushed}", cluster.hooks.receiver_url());
        let message = json!({"push_data": {"tag": "released"}}).to_string();
        let answer = client.post(url).body(message).send().await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        opened(&shop, 1).await?;
        let request = shop.requests().await?.remove(0);
        let body = request["body"].as_str().unwrap_or_default();
        for part in [
            format!("digest `{second}`"),
            format!("built from <{SOURCE}>"),
            format!("[`bbbbbbb`]({SOURCE}/commit/{new})"),
            format!("<{SOURCE}/compare/{old}...{new}>"),
        ] {
            ensure!(body.contains(&part), "no {part} in:\n{body}");
        }

        shop.merge(1).await?;
        let merged = shop.get(&format!("branches/{BASE}")).await?;
        let commit = merged["commit"]["id"].as_str().unwrap_or_default().to_owned();
        let source = ["reconcile", "gitrepository/app"];
        scene.windlass(&source).await?;
        let after = format!("released@{second}");
        delivered(&scene, &after).await?;
        let file = shop.gitea.file(&shop.repository, BASE, "app/map.yaml").await?;
        assert_eq!(file, manifest(&scene, &after));
        ensure!(status(&shop).await? == "success", "at {commit}");
        Ok(())
    });
}

#[test]
fn commits_of_a_source_are_listed_if_the_change_policy_names_it() {
    play("sources", async |scene| {
        let shop = Shop::open(&scene, &[("app/map.yaml", &manifest(&scene, "1.0.0"))]).await?;
        let gitea = shop.gitea;
        let sources = format!("{}/web", shop.bot.name);
        gitea
            .add_repository(&shop.bot, "web", &[("main.go", "1")])
            .await?;
        let mut commits = Vec::new();
        for text in ["2", "3"] {
            commits.push(
                gitea
                    .commit(&shop.bot, &sources, BASE, &[("main.go", text)])
                    .await?,
            );
        }
        let address = format!("{}/{sources}", gitea.url());
        build_from(&scene, &address, "1.0.0", &commits[0]).await?;
        let any = json!({"policy": {"semver": {"range": "*"}}});
        scene.follow("web", any).await?;
        shop.review(&scene, json!({}), json!({})).await?;
        let ready = |object: &_| is_ready(object);
        scene.wait("ImageUpdateAutomation", "auto", ready).await?;
        let message = gitea
            .call(
                reqwest::Method::GET,
                &format!("repos/{sources}/git/commits/{}", commits[1]),
                None,
            )
            .await?;
        let subject = message["commit"]["message"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_owned();
        ensure!(!subject.is_empty());

        build_from(&scene, &address, "1.1.0", &commits[1]).await?;
        scene.poke("ImageRepository", "web").await?;
        opened(&shop, 1).await?;
        let body = async || {
            let request = shop.requests().await?.remove(0);
            Ok::<_, anyhow::Error>(request["body"].as_str().unwrap_or_default().to_owned())
        };
        let line = format!("- `{}` `{subject}`", &commits[1][..7]);
        let text = body().await?;
        ensure!(
            !text.contains(&line) && text.contains(&format!("built from `{address}`")),
            "{text}"
        );

        shop.review(&scene, json!({"sourceRepositories": [sources]}), json!({}))
            .await?;
        build_from(&scene, &address, "1.2.0", &commits[1]).await?;
        scene.poke("ImageRepository", "web").await?;
        let listed = async {
            while !body().await?.contains(&line) {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            Ok::<_, anyhow::Error>(())
        };
        tokio::time::timeout(PATIENCE, listed)
            .await
            .context("the commits are not listed")?
    });
}

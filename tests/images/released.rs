//! A release is a tag that moves to the tested image: a pipeline builds and tests, moves the tag, and a policy follows it by
//! digest. The change is proposed, merged and delivered; the delivered commit gets its status at the forge, and so does the
//! commit that the image was built from.

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

/// A Provider and an Alert that write the status of what is delivered to commits of a repository.
async fn report(scene: &Scene, shop: &Shop, name: &str, repository: &str, source: Value) -> Result<()> {
    let object = |api: &str, kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": api, "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": scene.namespace, "labels": {WHOLE: scene.namespace}}})
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": shop.bot.token},
        "metadata": {"name": "status", "namespace": scene.namespace}});
    let address = format!("{}/{repository}", shop.gitea.url());
    let provider = json!({"type": "gitea", "address": address, "secretRef": {"name": "status"}});
    let alert = json!({"providerRef": {"name": name}, "eventSources": [source]});
    let beta = NOTIFICATION.replace("/v1", "/v1beta3");
    for object in [
        secret,
        object(&beta, "Provider", name, provider),
        object(&beta, "Alert", name, alert),
    ] {
        apply(&scene.client, &object).await?;
    }
    Ok(())
}

/// Waits until a commit has a status that is final, and returns it with its description.
async fn status(shop: &Shop, repository: &str, commit: &str) -> Result<(String, String)> {
    let path = format!("repos/{repository}/commits/{commit}/status");
    let found = async {
        loop {
            let status = shop.gitea.call(reqwest::Method::GET, &path, None).await?;
            let state = status["state"].as_str().unwrap_or_default();
            if !["", "pending"].contains(&state) && status["total_count"].as_u64() != Some(0) {
                let description = status["statuses"][0]["description"].as_str();
                let description = description.unwrap_or_default().to_owned();
                return Ok::<_, anyhow::Error>((state.to_owned(), description));
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.with_context(|| format!("commit {commit} of {repository} has no status"))?
}

#[test]
fn a_tag_that_moves_to_the_tested_image_is_proposed_by_digest_and_delivered() {
    play("released", async |scene| {
        let shop = Shop::open(&scene, &[("README.md", "# Shop")]).await?;
        let source = format!("{}/web", shop.bot.name);
        let file = [("main.go", "1")];
        shop.gitea.add_repository(&shop.bot, "web", &file).await?;
        let write = async |text| {
            shop.gitea
                .commit(&shop.bot, &source, BASE, &[("main.go", text)])
                .await
        };
        let (old, new) = (write("2").await?, write("3").await?);
        let first = build(&scene, "build-1", &old).await?;
        release(&scene, &first).await?;
        let before = format!("released@{first}");
        let map = manifest(&scene, &before);
        shop.gitea
            .commit(&shop.bot, &shop.repository, BASE, &[("app/map.yaml", &*map)])
            .await?;
        let cluster = Cluster::start(&scene, &shop).await?;
        let delivery = json!({"kind": "Kustomization", "name": "app"});
        report(&scene, &shop, "delivered", &shop.repository, delivery).await?;
        let choice = json!({"kind": "ImagePolicy", "name": "web"});
        report(&scene, &shop, "source", &source, choice).await?;
        let spec = json!({
            "filterTags": {"pattern": "^released$"},
            "policy": {"alphabetical": {}},
            "digestReflectionPolicy": "Always",
            "interval": "1h",
        });
        scene.follow("web", spec).await?;
        let annotations = json!({"annotations": {
            "delivery.windlass.dev/change-policy": "review", "windlass.dev/report-delivery": "app",
        }});
        shop.review_as(&scene, json!({}), json!({}), annotations).await?;
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
            format!("[`{}`]({SOURCE}/commit/{new})", &new[..7]),
            format!("<{SOURCE}/compare/{old}...{new}>"),
        ] {
            ensure!(body.contains(&part), "no {part} in:\n{body}");
        }

        shop.merge(1).await?;
        let merged = shop.get(&format!("branches/{BASE}")).await?;
        let commit = merged["commit"]["id"].as_str().unwrap_or_default().to_owned();
        scene.windlass(&["reconcile", "gitrepository/app"]).await?;
        let after = format!("released@{second}");
        delivered(&scene, &after).await?;
        let file = shop.gitea.file(&shop.repository, BASE, "app/map.yaml").await?;
        assert_eq!(file, manifest(&scene, &after));
        let (state, description) = status(&shop, &shop.repository, &commit).await?;
        ensure!(state == "success", "{state} at {commit}: {description}");
        // The commit that the image was built from learns of it, too.
        let (state, description) = status(&shop, &source, &new).await?;
        ensure!(
            state == "success" && description.contains("delivered"),
            "{state}: {description}"
        );
        let path = format!("repos/{source}/commits/{old}/status");
        let untold = shop.gitea.call(reqwest::Method::GET, &path, None).await?;
        assert_eq!(untold["total_count"], 0, "{untold}");
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

//! The repositories in `examples/`, delivered as they are but for addresses and the interval of sources, each to a cluster of its own.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Access, Change, Repository};
use testkit::objects::{self, field, text};
use testkit::registry::Artifact;
use testkit::tools::repository_root;
use testkit::{ControlPlane, Controller, Options, install_all_crds, wait_for};

use crate::cli::Windlass;
use crate::freezes::DELIVERY;
use crate::world::{KUSTOMIZE, PATIENCE, SOURCE, Test, config_map, run};

const IMAGE: &str = "/spec/template/spec/containers/0/image";

/// A cluster with controllers, and the Git server of the test.
struct Scene<'a> {
    test: &'a Test,
    cluster: ControlPlane,
    controllers: Vec<Controller>,
    /// Addresses and intervals in the example, and those of this test.
    replacements: Vec<(String, String)>,
}

impl<'a> Scene<'a> {
    async fn new(test: &'a Test, options: Options) -> Result<Self> {
        let cluster = ControlPlane::start(options).await?;
        install_all_crds(&cluster.client()).await?;
        let kubeconfig = cluster.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
        let apply = Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}});
        objects::apply(&cluster.client(), &namespace).await?;
        Ok(Self {
            test,
            cluster,
            controllers: vec![source, apply],
            // People have webhooks.
            replacements: vec![("interval: 1m\n".to_owned(), "interval: 1s\n".to_owned())],
        })
    }

    fn client(&self) -> Client {
        self.cluster.client()
    }

    /// A repository that takes the place of one at `https://git.example.com/acme/NAME.git`.
    fn repository(&mut self, name: &str) -> Result<Repository> {
        let unique = format!("{}-{name}", self.test.namespace);
        let repository = self.test.world.git.create_repository(&unique)?;
        let address = format!("https://git.example.com/acme/{name}.git");
        self.replacements.push((address, repository.url().to_owned()));
        Ok(repository)
    }

    /// Pushes an example, and applies the folder of a cluster in it.
    async fn begin(&self, example: &str, repository: &Repository, cluster: &str) -> Result<()> {
        let root = repository_root().join("examples").join(example);
        let mut files = Vec::new();
        collect(&root, &root, &mut files)?;
        for (_, content) in &mut files {
            for (there, here) in &self.replacements {
                *content = content.replace(there, here);
            }
        }
        let changes: Vec<_> = files
            .iter()
            .map(|(path, content)| Change::write(path, content.as_bytes()))
            .collect();
        repository.commit("main", "the example", &changes)?;
        let folder = format!("clusters/{cluster}/");
        let of_cluster = files.iter().filter(|(path, _)| path.starts_with(&folder));
        for (path, content) in of_cluster {
            let read = manifest::read_objects(content, path);
            for object in read.with_context(|| path.clone())? {
                objects::apply(&self.client(), &object.into_value()).await?;
            }
        }
        Ok(())
    }

    /// Makes the Secret of an account that may push to a repository, and to no other one.
    async fn account(&self, repository: &Repository) -> Result<()> {
        let access = Access::Basic {
            username: "robot".to_owned(),
            password: "token".to_owned(),
        };
        self.test.world.git.set_access(repository.name(), access);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fleet", "namespace": "flux-system"},
            "stringData": {"username": "robot", "password": "token"},
        });
        objects::apply(&self.client(), &secret).await.map(drop)
    }

    /// Waits until the Kustomization `shop` sets a tag and is ready.
    async fn has_tag(&self, namespace: &str, tag: &str) -> Result<()> {
        let api = objects::api(&self.client(), KUSTOMIZE, "Kustomization", namespace);
        let is_there = |object: &DynamicObject| {
            text(object, "/spec/images/0/newTag") == tag && objects::is_ready(object)
        };
        wait_for(&api, "shop", is_there, PATIENCE).await.map(drop)
    }

    async fn ready(&self, namespace: &str, name: &str) -> Result<DynamicObject> {
        let api = objects::api(&self.client(), KUSTOMIZE, "Kustomization", namespace);
        wait_for(&api, name, objects::is_ready, PATIENCE).await
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
            continue;
        }
        let name = path.strip_prefix(root)?.display().to_string();
        files.push((name, fs::read_to_string(&path)?));
    }
    Ok(())
}

async fn map(client: &Client, namespace: &str, name: &str) -> Result<Value> {
    let maps = objects::api(client, "v1", "ConfigMap", namespace);
    Ok(maps.get(name).await?.data["data"].clone())
}

/// Each is right as it stands.
#[test]
fn examples_have_no_findings() {
    run("examples-check", |test| async move {
        let windlass = Windlass { test: &test };
        for entry in fs::read_dir(repository_root().join("examples"))? {
            let path = entry?.path();
            if path.is_dir() {
                let path = path.display().to_string();
                let said = windlass.run_as_typed(&["check", &path], 0).await?;
                ensure!(said.contains(": 0 errors, 0 warnings"), "{said}");
            }
        }
        Ok(())
    });
}

#[test]
fn the_monorepo_is_delivered() {
    run("examples-mono", |test| async move {
        // With nodes: the Deployment must become healthy.
        let mut scene = Scene::new(&test, Options::default()).await?;
        let repository = scene.repository("fleet")?;
        scene.begin("monorepo", &repository, "production").await?;
        scene.ready("flux-system", "apps").await?;
        let deployments = objects::api(&scene.client(), "apps/v1", "Deployment", "shop");
        let web = deployments.get("web").await?;
        let image = text(&web, "/spec/template/spec/containers/0/image");
        ensure!(image == "ghcr.io/acme/web:1.4.2", "{image}");
        ensure!(
            web.data["spec"]["replicas"] == 3,
            "{}",
            web.data["spec"]["replicas"]
        );
        Ok(())
    });
}

#[test]
fn tenants_are_delivered_as_their_accounts() {
    run("examples-tenants", |test| async move {
        // With the controller that puts the role `admin` together.
        let mut scene = Scene::new(&test, Options::default()).await?;
        let repository = scene.repository("platform")?;
        for team in ["team-a", "team-b"] {
            let own = scene.repository(team)?;
            let file = Change::write("deploy/map.yaml", config_map(team, "own", team).as_bytes());
            own.commit("main", "first", &[file])?;
        }
        scene.begin("multi-tenant", &repository, "production").await?;
        for team in ["team-a", "team-b"] {
            scene.ready(team, "team").await?;
            let own = map(&scene.client(), team, "own").await?;
            ensure!(own["key"] == team, "{own}");
        }
        Ok(())
    });
}

#[test]
fn the_hub_delivers_to_other_clusters() {
    run("examples-hub", |test| async move {
        let mut scene = Scene::new(&test, Options::api_server_only()).await?;
        let west = ControlPlane::start(Options::api_server_only()).await?;
        // The hub itself is one of them.
        let clusters = [("east", &scene.cluster), ("west", &west)];
        for (name, cluster) in clusters {
            let kubeconfig = fs::read_to_string(cluster.kubeconfig_path())?;
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "flux-system"},
                "stringData": {"value": kubeconfig},
            });
            objects::apply(&scene.client(), &secret).await?;
        }
        let repository = scene.repository("fleet")?;
        scene.begin("hub", &repository, "hub").await?;
        for (name, client) in [("east", scene.client()), ("west", west.client())] {
            scene.ready("flux-system", name).await?;
            let edge = map(&client, "edge", "edge").await?;
            ensure!(edge["cluster"] == name, "{edge}");
        }
        Ok(())
    });
}

#[test]
fn a_release_is_promoted() {
    run("examples-promotion", |test| async move {
        let mut scene = Scene::new(&test, Options::default()).await?;
        let kubeconfig = scene.cluster.kubeconfig_path();
        let pipelines = Controller::start_pipeline(kubeconfig, ControllerOptions::default()).await?;
        scene.controllers.push(pipelines);
        let repository = scene.repository("fleet")?;
        scene.account(&repository).await?;
        scene.begin("promotion", &repository, "main").await?;
        let pipelines = objects::api(&scene.client(), DELIVERY, "Pipeline", "flux-system");
        let release = |object: &DynamicObject, at: usize| {
            field(object, &format!("/status/environments/{at}/release")).and_then(Value::as_u64)
        };
        let all_have = |object: &DynamicObject| (0..3).all(|at| release(object, at) == Some(1));
        wait_for(&pipelines, "shop", all_have, PATIENCE).await?;

        let dev = "environments/dev/shop.yaml";
        let file = repository.git(&["show", &format!("main:{dev}")])?;
        let newer = format!("{}\n", file.replace("newTag: v1", "newTag: v2"));
        repository.commit("main", "Deploy v2 to dev", &[Change::write(dev, newer)])?;
        let sources = objects::api(&scene.client(), SOURCE, "GitRepository", "flux-system");
        objects::poke(&sources, "fleet").await?;
        scene.has_tag("shop-dev", "v2").await?;
        scene.has_tag("shop-staging", "v2").await?;
        let waits =
            |object: &DynamicObject| text(object, "/status/environments/2/waits/0").contains("approval");
        wait_for(&pipelines, "shop", waits, PATIENCE).await?;
        scene.has_tag("shop-production", "v1").await?;
        let windlass = Windlass { test: &test };
        let kubeconfig = scene.cluster.kubeconfig_path().display().to_string();
        let words = [
            "approve",
            "pipeline/shop",
            "-n",
            "flux-system",
            "--env",
            "production",
            "--kubeconfig",
            &kubeconfig,
        ];
        windlass.run_as_typed(&words, 0).await?;
        scene.has_tag("shop-production", "v2").await?;
        Ok(())
    });
}

#[test]
fn a_new_tag_becomes_a_commit() {
    run("examples-images", |test| async move {
        let mut scene = Scene::new(&test, Options::default()).await?;
        let kubeconfig = scene.cluster.kubeconfig_path();
        let images = Controller::start_image(kubeconfig, ControllerOptions::default()).await?;
        scene.controllers.push(images);
        let (registry, image) = (&test.world.registry, format!("{}-web", test.namespace));
        let there = format!("{}/{image}", registry.address());
        scene
            .replacements
            .push(("registry.example.com/acme/web".to_owned(), there.clone()));
        for tag in ["1.0.0", "1.1.0", "2.0.0"] {
            registry
                .push(&image, &[tag], &Artifact::image("linux", "amd64", tag)?)
                .await?;
        }
        let repository = scene.repository("fleet")?;
        scene.account(&repository).await?;
        scene.begin("image-automation", &repository, "main").await?;
        let runs = |tag: &str| {
            let image = format!("{there}:{tag}");
            move |object: &DynamicObject| text(object, IMAGE) == image
        };
        let deployments = objects::api(&scene.client(), "apps/v1", "Deployment", "shop");
        wait_for(&deployments, "web", runs("1.1.0"), PATIENCE).await?;
        let log = repository.git(&["log", "-1", "--format=%an%n%B", "main"])?;
        ensure!(
            log.starts_with("robot\nUpdate images\n") && log.contains(&format!("{there}:1.1.0")),
            "{log}"
        );

        registry
            .push(&image, &["1.2.0"], &Artifact::image("linux", "amd64", "1.2.0")?)
            .await?;
        let repositories = objects::api(
            &scene.client(),
            "image.toolkit.fluxcd.io/v1",
            "ImageRepository",
            "flux-system",
        );
        objects::poke(&repositories, "web").await?;
        wait_for(&deployments, "web", runs("1.2.0"), PATIENCE).await?;
        Ok(())
    });
}

//! A tenant's registry, patterns and templates are there to take the image controller down, and their automation to write
//! where it must not.
//!
//! They hold: the three kinds of images in a namespace of their own, and a registry. The controller must not take the memory
//! of its Pod for lists and messages, must go on with the images of others, and must neither read the victim's images nor
//! write to the victim's repository.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects;
use testkit::registry::Artifact;
use testkit::{Registry, wait_for};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::scene::{PATIENCE, Scene, play};

const IMAGE: &str = "image.toolkit.fluxcd.io/v1";
/// Half of the chart's limit for the Pod.
const LIMIT: u64 = 512 << 20;
/// Bytes of one answer: it would have no end, but the machine goes on.
const ENOUGH: usize = 2 << 30;

fn image(scene: &Scene, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": IMAGE, "kind": kind, "metadata": {"name": name, "namespace": scene.attacker}, "spec": spec})
}

fn repository(scene: &Scene, name: &str, host: &str) -> Value {
    let spec =
        json!({"image": format!("{host}/{name}"), "interval": "1h", "insecure": true, "timeout": "2m"});
    image(scene, "ImageRepository", name, spec)
}

impl Scene {
    async fn refused_image(&self, kind: &str, name: &str) -> Result<String> {
        self.refused(&self.api(IMAGE, kind, &self.attacker), name).await
    }
}

#[test]
fn lists_without_end_neither_fill_the_memory_nor_hold_up_others() {
    play("images-endless", |scene| async move {
        let host = serve().await?;
        for name in ["body", "pages", "names"] {
            scene.apply(&repository(&scene, name, &host)).await?;
        }
        let registry = Registry::start().await?;
        let artifact = Artifact::from_files("main@sha1:1", &[("content", "1")])?;
        registry.push("fine", &["1.0.0"], &artifact).await?;
        scene
            .apply(&repository(&scene, "fine", registry.address()))
            .await?;
        let repositories = scene.api(IMAGE, "ImageRepository", &scene.attacker);
        wait_for(&repositories, "fine", objects::is_ready, PATIENCE).await?;
        for (name, problem) in [
            ("body", "larger than"),
            ("pages", "which does not end"),
            ("names", "list of tags"),
        ] {
            let message = scene.refused_image("ImageRepository", name).await?;
            ensure!(message.contains(problem), "{name}: {message}");
        }
        let peak = scene.world.images.usage()?.peak_resident_bytes;
        ensure!(peak < LIMIT, "the controller took {} MiB", peak >> 20);
        Ok(())
    });
}

/// A registry whose lists have no end: in one answer, in pages that lead on for ever, in what is no list.
async fn serve() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        let mut page = 0_u64;
        while let Ok((mut stream, _)) = listener.accept().await {
            page += 1;
            tokio::spawn(async move {
                let mut request = vec![0; 16 << 10];
                let read = stream.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let head = |more: &str| {
                    format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n{more}\r\n"
                    )
                };
                let answer = if request.contains("/pages/") {
                    let next = format!("link: </v2/pages/tags/list?n=1&last={page}>; rel=\"next\"\r\n");
                    format!("{}{{\"tags\": [\"1.{page}.0\"]}}", head(&next))
                } else if request.contains("/names/") {
                    format!("{}{{\"tags\": {{\"deep\": {}}}}}", head(""), "[".repeat(1 << 20))
                } else if request.contains("/body/") {
                    format!("{}{{\"tags\": [\"", head(""))
                } else {
                    format!("{}{{}}", head(""))
                };
                let mut written = stream.write_all(answer.as_bytes()).await;
                let piece = vec![b'1'; 1 << 20];
                for _ in 0..ENOUGH >> 20 {
                    if written.is_err() || !request.contains("/body/") {
                        return;
                    }
                    written = stream.write_all(&piece).await;
                }
            });
        }
    });
    Ok(address)
}

#[test]
fn patterns_and_templates_that_explode_are_refused() {
    play("images-bombs", |scene| async move {
        let registry = Registry::start().await?;
        let artifact = Artifact::from_files("main@sha1:1", &[("content", "1")])?;
        registry.push("app", &["1.0.0"], &artifact).await?;
        scene
            .apply(&repository(&scene, "app", registry.address()))
            .await?;
        let policy = |filter: Value| json!({"imageRepositoryRef": {"name": "app"}, "policy": {"semver": {"range": "*"}}, "filterTags": filter});
        let bomb = policy(json!({"pattern": "((((x{100}){100}){100}){100})"}));
        scene.apply(&image(&scene, "ImagePolicy", "bomb", bomb)).await?;
        let message = scene.refused_image("ImagePolicy", "bomb").await?;
        ensure!(message.contains("regular expression"), "{message}");

        let fine = policy(json!({"pattern": ".*"}));
        scene.apply(&image(&scene, "ImagePolicy", "app", fine)).await?;
        let policies = scene.api(IMAGE, "ImagePolicy", &scene.attacker);
        wait_for(&policies, "app", objects::is_ready, PATIENCE).await?;
        let git = scene.world.git.create_repository(&scene.attacker)?;
        let marker = format!("{{\"$imagepolicy\": \"{}:app\"}}", scene.attacker);
        let file = format!("image: {}/app:0.0.0 # {marker}\n", registry.address());
        git.commit("main", "first", &[Change::write("app.yaml", file)])?;
        let source = objects::git_repository(&scene.attacker, "app", git.url(), "main");
        scene.apply(&source).await?;
        let before = git.resolve("main")?;
        for (name, template) in [
            (
                "wide",
                "{{ range until 100000 }}{{ printf \"%1000000d\" 1 }}{{ end }}",
            ),
            (
                "long",
                "{{ range until 2000000000 }}{{ range until 2000000000 }}x{{ end }}{{ end }}",
            ),
            (
                "again",
                "{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
            ),
        ] {
            let spec = json!({"sourceRef": {"kind": "GitRepository", "name": "app"}, "interval": "1h",
                "git": {"commit": {"author": {"email": "a@example.com"}, "messageTemplate": template}}});
            scene
                .apply(&image(&scene, "ImageUpdateAutomation", name, spec))
                .await?;
            let message = scene.refused_image("ImageUpdateAutomation", name).await?;
            ensure!(message.contains("failed to update source"), "{name}: {message}");
        }
        ensure!(git.resolve("main")? == before, "a commit was pushed");
        let peak = scene.world.images.usage()?.peak_resident_bytes;
        ensure!(peak < LIMIT, "the controller took {} MiB", peak >> 20);
        Ok(())
    });
}

#[test]
fn an_automation_does_not_write_to_the_repository_of_another() {
    play("images-foreign", |scene| async move {
        let (git, _) = scene.secret_source().await?;
        let before = git.resolve("main")?;
        scene.world.git.reset_requests();
        let spec = json!({"interval": "1h",
            "sourceRef": {"kind": "GitRepository", "name": "app", "namespace": scene.victim},
            "git": {"commit": {"author": {"email": "a@example.com"}}, "checkout": {"ref": {"branch": "main"}}}});
        scene
            .apply(&image(&scene, "ImageUpdateAutomation", "thief", spec))
            .await?;
        let message = scene.refused_image("ImageUpdateAutomation", "thief").await?;
        ensure!(
            message.contains("cross-namespace references have been blocked"),
            "{message}"
        );
        ensure!(git.resolve("main")? == before, "a commit was pushed");
        ensure!(
            scene.world.git.requests(&scene.victim).is_empty(),
            "the victim's repository was asked"
        );
        let reader = json!({"apiVersion": IMAGE, "kind": "ImageUpdateAutomation",
            "metadata": {"name": "reader", "namespace": scene.attacker,
                "annotations": {"windlass.dev/policy-namespaces": scene.victim}},
            "spec": {"interval": "1h", "sourceRef": {"kind": "GitRepository", "name": "app"},
                "git": {"commit": {"author": {"email": "a@example.com"}}}}});
        scene.apply(&reader).await?;
        let message = scene.refused_image("ImageUpdateAutomation", "reader").await?;
        ensure!(
            message.contains("cross-namespace references have been blocked"),
            "{message}"
        );
        let policy = json!({"imageRepositoryRef": {"name": "any", "namespace": scene.victim},
            "policy": {"semver": {"range": "*"}}});
        scene
            .apply(&image(&scene, "ImagePolicy", "thief", policy))
            .await?;
        let message = scene.refused_image("ImagePolicy", "thief").await?;
        ensure!(
            message.contains("cross-namespace references have been blocked"),
            "{message}"
        );
        Ok(())
    });
}

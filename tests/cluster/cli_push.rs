//! `windlass push artifact`: what it pushes is delivered, and flux reads it.

use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use testkit::objects::{self, is_ready, text};
use testkit::registry::Access;
use testkit::{Registry, wait_for};

use crate::cli::Windlass;
use crate::flux_cli::Flux;
use crate::world::{PATIENCE, config_map, run};

const REVISION: &str = "main@sha1:0123456789012345678901234567890123456789";

#[test]
fn what_is_pushed_is_delivered_and_flux_pulls_the_same() {
    run("cli-push", |test| async move {
        let windlass = Windlass { test: &test };
        let flux = Flux::start(&test).await?;
        let folder = testkit::scratch::directory("push")?;
        let files = folder.path().join("files");
        fs::create_dir_all(files.join("sub"))?;
        let manifest = config_map(&test.namespace, "pushed", "1");
        fs::write(files.join("a.yaml"), &manifest)?;
        fs::write(files.join("sub/run.sh"), "#!/bin/sh\n")?;
        fs::write(files.join("left-out.yaml"), "no: object\n")?;
        fs::write(files.join(".sourceignore"), "left-out.yaml\n")?;
        let path = files.display().to_string();
        let url = format!("oci://{}/{}", test.world.registry.address(), test.namespace);
        let tagged = format!("{url}:v1");
        let words = [
            "push",
            "artifact",
            &tagged,
            "--path",
            &path,
            "--insecure-registry",
            "--source=https://git.example/app",
            "--revision",
            REVISION,
            "--annotations=a.b/c=d",
            "-o",
            "json",
            "--quiet",
        ];
        let said = windlass.run_as_typed(&words, 0).await?;
        let told: Value = serde_json::from_str(&said)?;
        let digest = told["digest"].as_str().context("no digest")?.to_owned();
        ensure!(
            told["url"] == format!("{url}@{digest}")
                && told["tag"] == "v1"
                && told["repository"] == format!("{}/{}", test.world.registry.address(), test.namespace),
            "{said}"
        );
        // The same again, from files that were touched since.
        fs::write(files.join("a.yaml"), &manifest)?;
        ensure!(windlass.run_as_typed(&words, 0).await? == said, "another digest");

        let source = objects::oci_repository(
            &test.namespace,
            "app",
            &test.world.registry.url(&test.namespace),
            "v1",
        );
        test.apply(&source).await?;
        let object = wait_for(&test.oci_repositories(), "app", is_ready, PATIENCE).await?;
        ensure!(text(&object, "/status/artifact/revision") == format!("v1@{digest}"));
        let metadata = &object.data["status"]["artifact"]["metadata"];
        ensure!(
            metadata["org.opencontainers.image.revision"] == REVISION && metadata["a.b/c"] == "d",
            "{metadata}"
        );
        let app = objects::kustomization(&test.namespace, "app", ("OCIRepository", "app"), "./");
        test.apply(&app).await?;
        test.config_map_has("pushed", "key", "1").await?;
        // The commit is that of the push, however it came.
        let said = windlass.run(&["trace", "configmap/pushed"], 0).await?;
        ensure!(said.contains(&format!("\nfrom: {REVISION} of oci://")), "{said}");

        let pulled = folder.path().join("pulled");
        fs::create_dir(&pulled)?;
        let output = pulled.display().to_string();
        flux.run(&[
            "pull",
            "artifact",
            &tagged,
            "--insecure-registry",
            "--output",
            &output,
        ])
        .done()
        .await?;
        ensure!(fs::read_to_string(pulled.join("a.yaml"))? == manifest);
        ensure!(pulled.join("sub/run.sh").is_file() && !pulled.join("left-out.yaml").exists());
        test.delete_kustomization("app").await
    });
}

#[test]
fn who_may_not_push_is_told_so_and_who_may_signs_in() {
    run("cli-push-login", |test| async move {
        let windlass = Windlass { test: &test };
        let registry = Registry::start().await?;
        let folder = testkit::scratch::directory("login")?;
        fs::write(
            folder.path().join("a.yaml"),
            config_map(&test.namespace, "a", "1"),
        )?;
        let path = folder.path().display().to_string();
        for access in accesses() {
            registry.set_access(access);
            let url = format!("oci://{}/login:v1", registry.address());
            let words = [
                "push",
                "artifact",
                &url,
                "--path",
                &path,
                "--source=x",
                "--revision",
                REVISION,
            ];
            let said = windlass.run_as_typed(&words, 1).await?;
            ensure!(said.contains("failed to push to "), "{said}");
            let signed = [&words[..], &["--creds=pusher:let-me-in"]].concat();
            let said = windlass.run_as_typed(&signed, 0).await?;
            ensure!(
                said.contains("pushed oci://") && !said.contains("let-me-in"),
                "{said}"
            );
        }
        let said = windlass
            .run_as_typed(
                &[
                    "push",
                    "artifact",
                    "oci://x/y:z",
                    "--path",
                    "/nonexistent",
                    "--source=x",
                    "--revision=y",
                ],
                2,
            )
            .await?;
        ensure!(said.contains("failed to pack /nonexistent: "), "{said}");
        Ok(())
    });
}

fn accesses() -> [Access; 2] {
    let (username, password) = ("pusher".to_owned(), "let-me-in".to_owned());
    [
        Access::Token(Some((username.clone(), password.clone()))),
        Access::Basic { username, password },
    ]
}

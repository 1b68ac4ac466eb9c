//! docs/promoting.md.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use testkit::controller::ControllerOptions;
use testkit::git::Change;
use testkit::objects::{self, field};
use testkit::{ControlPlane, Controller, GitServer, Options, install_all_crds, wait_for};

use crate::page::{Piece, read};
use crate::shell::Shell;

const PATIENCE: Duration = Duration::from_secs(240);
const TEAM: &str = "team";
const PIPELINE: &str = "delivery.windlass.dev/v1alpha1";

/// Waits until production is so: its release, and the first thing that the next one waits for.
async fn production(client: &kube::Client, release: u64, waits: Option<&str>) -> Result<()> {
    let api = objects::api(client, PIPELINE, "Pipeline", TEAM);
    let is_so = |pipeline: &DynamicObject| {
        let has = field(pipeline, "/status/environments/2/release").and_then(serde_json::Value::as_u64);
        let waiting = objects::text(pipeline, "/status/environments/2/waits/0");
        has == Some(release) && waits.is_none_or(|waits| waits == waiting)
    };
    wait_for(&api, "shop", is_so, PATIENCE).await.map(drop)
}

#[tokio::test]
async fn who_promotes_by_the_page_gets_there() -> Result<()> {
    let control_plane = ControlPlane::start(Options::api_server_only()).await?;
    let client = control_plane.client();
    install_all_crds(&client).await?;
    let git = GitServer::start().await?;
    let repository = git.create_repository("fleet")?;
    let mut shell = Shell::new(control_plane.kubeconfig_path()).await?;
    let placeholders = [("https://git.example.com/team/fleet.git", repository.url())];
    let steps = read("docs/promoting.md", &[], &placeholders, &[])?;
    // Whoever types has told Git who they are.
    shell
        .run("git config --global user.name Ana && git config --global user.email ana@example.com")
        .await?;
    let kubeconfig = control_plane.kubeconfig_path();
    let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
    let _applying = Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
    let _promoting = Controller::start_pipeline(kubeconfig, ControllerOptions::default()).await?;
    let mut typed = 0;
    for step in &steps {
        match &step.piece {
            // The file of dev, of which those of the others are made.
            Piece::Manifests(text) if text.contains("newTag: v1") => {
                let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop\n";
                let mut changes = vec![Change::write("shop/settings.yaml", settings)];
                for environment in ["dev", "staging", "production"] {
                    let text = text.replace("shop-dev", &format!("shop-{environment}"));
                    changes.push(Change::write(
                        &format!("environments/{environment}/shop.yaml"),
                        text,
                    ));
                }
                repository.commit("main", "Shop", &changes)?;
                continue;
            }
            // As they are, but that the repository is looked at often.
            Piece::Manifests(text) => {
                shell
                    .apply(&text.replace("interval: 1m\n", "interval: 1s\n"))
                    .await?;
                continue;
            }
            // What is laid out in an indented block, and is no command.
            Piece::Command(text)
                if !text.starts_with("windlass") && !text.starts_with("git") && !text.starts_with("sed") =>
            {
                continue;
            }
            Piece::Command(text) if text.starts_with("windlass tree") => {
                production(&client, 1, None).await?;
                let said = shell.run(text).await?;
                ensure!(said.contains("RELEASE  DEV   STAGING  PRODUCTION"), "{said}");
            }
            Piece::Command(text) if text.starts_with("windlass why") => {
                production(&client, 1, Some("release 2: approval 0 of 1")).await?;
                let said = shell.run(text).await?;
                ensure!(said.contains("release 2: approval 0 of 1"), "{said}");
            }
            Piece::Command(text) if text.starts_with("windlass approve") => {
                shell.run(text).await?;
                production(&client, 2, None).await?;
            }
            Piece::Command(text) if text.starts_with("git -C fleet log") => {
                let said = shell.run(text).await?;
                for environment in ["staging", "production"] {
                    let line = format!("Promote release 2 of team/shop to {environment}");
                    ensure!(said.contains(&line), "{said}");
                }
            }
            Piece::Command(text) if text.starts_with("windlass rollback") => {
                shell.run(text).await?;
                production(&client, 1, None).await?;
            }
            Piece::Command(text) if text.starts_with("windlass promote") => {
                shell.run(text).await?;
                production(&client, 2, None).await?;
            }
            Piece::Command(_) => shell.take(step).await?,
        }
        typed += 1;
    }
    ensure!(typed == 12, "{typed} commands were typed");
    Ok(())
}

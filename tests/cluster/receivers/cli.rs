//! The real `flux` command and Receivers.

use anyhow::ensure;
use testkit::objects::{is_ready, text};
use testkit::{wait_for, wait_until_gone};

use super::{Receivers, TOKEN};
use crate::flux_cli::Flux;
use crate::world::{PATIENCE, run};

#[test]
fn flux_makes_shows_suspends_and_deletes_a_receiver() {
    run("receivers-flux", |test| async move {
        let flux = Flux::start(&test).await?;
        let receivers = Receivers::start(&test, &[]).await?;
        receivers.target(&test.namespace, "app", "a").await?;
        receivers.token(TOKEN).await?;
        let said = flux
            .run(&[
                "create",
                "receiver",
                "hook",
                "--type=generic",
                "--event=push",
                "--secret-ref=token",
                "--resource=GitRepository/app",
            ])
            .done()
            .await?;
        let object = wait_for(&receivers.api(), "hook", is_ready, PATIENCE).await?;
        let path = text(&object, "/status/webhookPath").to_owned();
        ensure!(said.contains(&format!("generated webhook URL {path}")), "{said}");
        let said = flux.run(&["get", "receivers"]).done().await?;
        ensure!(
            said.contains("True") && said.contains("Receiver initialized for path: /hook/"),
            "{said}"
        );
        let said = flux.run(&["export", "receiver", "hook"]).done().await?;
        ensure!(
            said.contains("kind: Receiver") && said.contains("name: token"),
            "{said}"
        );
        let said = flux.run(&["reconcile", "receiver", "hook"]).done().await?;
        ensure!(
            said.contains("Receiver reconciliation completed")
                || said.contains("receiver reconciliation completed"),
            "{said}"
        );
        flux.run(&["suspend", "receiver", "hook"]).done().await?;
        ensure!(flux.run(&["get", "receivers"]).done().await?.contains("True"));
        let said = flux.run(&["resume", "receiver", "hook"]).done().await?;
        ensure!(said.contains("resumed"), "{said}");
        ensure!(receivers.post(&path, &[], "").await? == 200);
        let before = receivers.annotated(&test.namespace, "app").await?;
        // Newer ones can call too.
        let triggers = flux.run(&["trigger", "receiver", "--help"]).done().await;
        if triggers.is_ok_and(|said| said.contains("--retry-delay")) {
            let url = receivers.controller.receiver_url();
            let said = flux
                .run(&["trigger", "receiver", "hook", "--token", TOKEN, "--url", &url])
                .done()
                .await?;
            ensure!(said.contains("triggered"), "{said}");
            ensure!(receivers.annotated(&test.namespace, "app").await? > before);
        }
        ensure!(!receivers.annotated(&test.namespace, "app").await?.is_empty());
        flux.run(&["delete", "receiver", "hook", "--silent"])
            .done()
            .await?;
        wait_until_gone(&receivers.api(), "hook", PATIENCE).await?;
        Ok(())
    });
}

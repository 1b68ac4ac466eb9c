//! Logs of the Pods of what an object applied, for those whom the API server lets read them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::{Response, StatusCode};
use testkit::Controller;
use testkit::objects;

use crate::actions::{grant, start};
use crate::running::deployment;
use crate::world::{PATIENCE, Scene, play};

const READ: &[&str] = &["get"];

struct Asked<'s> {
    scene: &'s Scene,
    console: Controller,
}

impl Asked<'_> {
    async fn log(&self, token: &str, query: &str) -> Result<Response> {
        let (api, namespace) = (self.console.api_url(), &self.scene.namespace);
        let url = format!("{api}/objects/local/ks/{namespace}/shop/logs?{query}");
        Ok(self.scene.world.http.get(url).bearer_auth(token).send().await?)
    }

    async fn lines(&self, token: &str, query: &str) -> Result<Vec<String>> {
        let answer = self.log(token, query).await?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(status == StatusCode::OK, "{query}: {status} {text}");
        Ok(text.lines().map(str::to_owned).collect())
    }

    async fn refused(&self, token: &str, query: &str, code: StatusCode, said: &str) -> Result<()> {
        let answer = self.log(token, query).await?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(status == code && text.contains(said), "{query}: {status} {text}");
        Ok(())
    }
}

/// The next piece of a log that is followed.
async fn next(log: &mut Response) -> Result<String> {
    let piece = tokio::time::timeout(PATIENCE, log.chunk()).await;
    let piece = piece
        .context("the log is silent")??
        .context("the log has ended")?;
    Ok(String::from_utf8_lossy(&piece).into_owned())
}

#[test]
fn logs_are_for_those_who_may_read_them() {
    play("logs", async |scene| {
        let namespace = &scene.namespace;
        deployment(&scene, namespace, "web", "registry.example.com/web:v1").await?;
        deployment(&scene, namespace, "other", "registry.example.com/other:v1").await?;
        let id = format!("{namespace}_web_apps_Deployment");
        scene.kustomization(namespace, "shop", "True", &[&id]).await?;
        let deployments = objects::api(&scene.client, "apps/v1", "Deployment", namespace);
        let runs = |object: &kube::api::DynamicObject| {
            objects::field(object, "/status/readyReplicas").and_then(serde_json::Value::as_u64) == Some(2)
        };
        for name in ["web", "other"] {
            testkit::wait_for(&deployments, name, runs, PATIENCE).await?;
        }
        for line in [
            "listening on :8080",
            "GET / 200",
            "<b>\u{1b}[31merror</b>: no database",
        ] {
            scene.world.control_plane.log(line)?;
        }
        let (flux, apps) = ("kustomize.toolkit.fluxcd.io", "apps");
        let all: [(&str, &str, &[&str]); 4] = [
            (flux, "kustomizations", READ),
            (apps, "deployments", READ),
            ("", "pods", &["list"]),
            ("", "pods/log", READ),
        ];
        let ana = grant(&scene, "ana", &all).await?;
        let bob = grant(&scene, "bob", &all[..3]).await?;
        let ben = grant(&scene, "ben", &all[..1]).await?;
        let eve = grant(&scene, "eve", &all[1..]).await?;
        let console = start(&scene, "impersonated", None).await?;
        let asked = Asked {
            scene: &scene,
            console,
        };
        // The picture follows the API server.
        let seen = async {
            let mut last = String::new();
            for _ in 0..200 {
                let answer = asked.log(&ana, "").await?;
                if answer.status() == StatusCode::OK {
                    return anyhow::Ok(());
                }
                last = answer.text().await?;
                tokio::time::sleep(Duration::from_millis(50)).await; // a list does not tell of changes
            }
            anyhow::bail!("{last}")
        };
        tokio::time::timeout(PATIENCE, seen).await??;

        let lines = asked.lines(&ana, "").await?;
        ensure!(lines.len() == 3 && lines[1] == "GET / 200", "{lines:?}");
        ensure!(asked.lines(&ana, "lines=1").await? == lines[2..], "the last one");
        ensure!(
            asked.lines(&ana, "grep=ERROR").await? == lines[2..],
            "those with the text, in any case"
        );
        let answer = asked.log(&ana, "").await?;
        let kind = answer
            .headers()
            .get("content-type")
            .and_then(|value| value.to_str().ok());
        ensure!(kind == Some("text/plain; charset=utf-8"), "{kind:?}");
        ensure!(
            answer.headers().contains_key("x-content-type-options"),
            "a browser may guess"
        );

        asked
            .refused(
                &bob,
                "",
                StatusCode::FORBIDDEN,
                "you may not read the logs of Pods",
            )
            .await?;
        asked
            .refused(&ben, "", StatusCode::FORBIDDEN, "you may not get")
            .await?;
        asked.refused(&eve, "", StatusCode::FORBIDDEN, "").await?;
        for (query, code, said) in [
            ("lines=0", StatusCode::BAD_REQUEST, "lines: from 1 to 10000"),
            ("lines=10001", StatusCode::BAD_REQUEST, "lines: from 1 to 10000"),
            ("lines=x", StatusCode::BAD_REQUEST, ""),
            ("follow=perhaps", StatusCode::BAD_REQUEST, ""),
            ("tail=5", StatusCode::BAD_REQUEST, "unknown field"),
            ("container=a/../b", StatusCode::NOT_FOUND, "has no such container"),
        ] {
            asked.refused(&ana, query, code, said).await?;
        }
        let long = format!("grep={}", "x".repeat(201));
        asked
            .refused(&ana, &long, StatusCode::BAD_REQUEST, "grep: it is longer")
            .await?;
        // A Pod that is there, and belongs to something else.
        let pods = objects::api(&scene.client, "v1", "Pod", namespace);
        let found = pods
            .list(&kube::api::ListParams::default().labels("app=other"))
            .await?;
        let other = found.items[0].metadata.name.clone().unwrap_or_default();
        let query = format!("container={namespace}/{other}/main");
        asked
            .refused(&ana, &query, StatusCode::NOT_FOUND, "has no such container")
            .await?;
        // A page of others learns nothing by the length of an answer.
        let url = format!(
            "{}/objects/local/ks/{namespace}/shop/logs",
            asked.console.api_url()
        );
        let request = scene.world.http.get(url).bearer_auth(&ana);
        let answer = request.header("sec-fetch-site", "cross-site").send().await?;
        ensure!(answer.status() == StatusCode::FORBIDDEN, "{}", answer.status());

        // What is written arrives; those who have enough open get no more until they close one.
        let mut first = asked.log(&ana, "follow=true&lines=1&grep=database").await?;
        ensure!(
            next(&mut first).await?.contains("no database"),
            "it begins with the last lines"
        );
        scene.world.control_plane.log("nothing to see")?;
        scene.world.control_plane.log("the database is back")?;
        ensure!(
            next(&mut first).await? == "the database is back\n",
            "only what was asked for"
        );
        let mut others = Vec::new();
        let full = async {
            loop {
                let answer = asked.log(&ana, "follow=true").await?;
                match answer.status() {
                    StatusCode::OK => others.push(answer),
                    status => return anyhow::Ok(status),
                }
            }
        };
        let status = tokio::time::timeout(PATIENCE, full).await??;
        ensure!(
            status == StatusCode::TOO_MANY_REQUESTS && others.len() < 10,
            "{status}"
        );
        drop((first, others));
        let again = async {
            while asked.log(&ana, "").await?.status() != StatusCode::OK {
                tokio::time::sleep(Duration::from_millis(50)).await; // a closed connection is noticed, and not told
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, again)
            .await?
            .context("closed logs keep their room")?;

        // The page shows the end of one, as text and without what a terminal would obey.
        let page = format!(
            "{}/objects/local/ks/{namespace}/shop/logs",
            asked.console.api_url().replace("/api/v1", "")
        );
        let answer = scene.world.http.get(page).bearer_auth(&ana).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status == StatusCode::OK, "{status} {text}");
        ensure!(
            text.contains("&lt;b&gt;[31merror&lt;/b&gt;: no database"),
            "{text}"
        );
        ensure!(!text.contains('\u{1b}') && text.contains("follow=true"), "{text}");
        Ok(())
    });
}

//! Downloads: the archive of a source for whoever has the verb, checked, recorded, and bounded.

use std::iter;

use anyhow::{Context as _, Result, ensure};
use artifact::Digest;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::Change;
use testkit::objects::{self, apply, is_ready};
use testkit::{ControlPlane, Controller, GitServer, Options, install_all_crds, wait_for};

use crate::diff::{NAMESPACE, SOURCE, grant};
use crate::world::{ANA, ANA_EVERYWHERE, BOB, BOB_EVERYWHERE, EVE, EVE_EVERYWHERE, PATIENCE};

/// More than waits on the way to a caller who does not read.
const LARGE: usize = 48 << 20;

struct Asked {
    http: reqwest::Client,
    url: String,
}

impl Asked {
    async fn get(&self, token: &str, path: &str) -> Result<Response> {
        let url = format!("{}/{path}", self.url);
        Ok(self.http.get(url).bearer_auth(token).send().await?)
    }

    async fn download(&self, token: &str, source: &str) -> Result<Response> {
        let path = format!("objects/local/git/{NAMESPACE}/{source}/download?reason=a%20look");
        self.get(token, &path).await
    }

    async fn refused(&self, token: &str, source: &str) -> Result<(StatusCode, Value)> {
        let answer = self.download(token, source).await?;
        Ok((answer.status(), answer.json().await?))
    }

    /// What is recorded of downloads, newest first, once one of them ended like this.
    async fn recorded(&self, end: &str, message: &str) -> Result<Value> {
        let looking = async {
            loop {
                let page: Value = self.get(ANA, "actions").await?.json().await?;
                let rows = page["items"].as_array().context("no page")?;
                let is_it = |row: &&Value| {
                    row["end"] == end && row["message"].as_str().unwrap_or_default().contains(message)
                };
                if let Some(row) = rows.iter().find(is_it) {
                    return anyhow::Ok(row.clone());
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await; // nothing tells of it
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        found.with_context(|| format!("nothing ended {end} because {message:?}"))?
    }
}

/// Bytes that no compression makes fewer.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    iter::repeat_with(next)
        .flat_map(u64::to_le_bytes)
        .take(LARGE)
        .collect()
}

async fn lie(sources: &Api<DynamicObject>, name: &str, artifact: Value) -> Result<()> {
    let lie = Patch::Merge(json!({"status": {"artifact": artifact}}));
    sources.patch_status(name, &PatchParams::default(), &lie).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_downloaded_by_whoever_has_the_verb() -> Result<()> {
    let users = [
        (ANA, ANA_EVERYWHERE, 1),
        (BOB, BOB_EVERYWHERE, 2),
        (EVE, EVE_EVERYWHERE, 3),
    ];
    let options = Options {
        users: users
            .map(|(token, name, uid)| format!("{token},{name},{uid}"))
            .to_vec(),
        ..Options::api_server_only()
    };
    let control_plane = ControlPlane::start(options).await?;
    let client = control_plane.client();
    install_all_crds(&client).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    apply(&client, &namespace).await?;
    let kubeconfig = control_plane.kubeconfig_path();
    let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
    let git = GitServer::start().await?;
    let repository = git.create_repository("app")?;
    repository.commit("main", "one", &[Change::write("a.txt", "small")])?;
    repository.branch("large", "main")?;
    repository.commit("large", "two", &[Change::write("noise", noise())])?;
    let sources = objects::api(&client, SOURCE, "GitRepository", NAMESPACE);
    for (name, branch) in [("small", "main"), ("other", "main"), ("large", "large")] {
        let object = objects::git_repository(NAMESPACE, name, repository.url(), branch);
        apply(&client, &object).await?;
        wait_for(&sources, name, is_ready, PATIENCE).await?;
    }
    grant(
        &client,
        ANA_EVERYWHERE,
        &["get", "download"],
        &["gitrepositories", "helmrepositories"],
    )
    .await?;
    grant(&client, BOB_EVERYWHERE, &["get", "patch"], &["gitrepositories"]).await?;
    let folder = testkit::scratch::directory("download")?;
    let started = async |actions: &str| {
        let flags = vec![
            format!("--actions={actions}"),
            format!("--source-url={}", source.storage_url()),
            format!("--ledger-url=sqlite:{}", folder.path().join(actions).display()),
        ];
        let options = ControllerOptions {
            flags,
            ..ControllerOptions::default()
        };
        Controller::start_console(kubeconfig, options).await
    };
    let console = started("fine-grained").await?;
    let asked = Asked {
        http: reqwest::Client::builder().no_proxy().build()?,
        url: console.api_url(),
    };

    let answer = asked.download(ANA, "small").await?;
    assert_eq!(answer.status(), StatusCode::OK);
    let disposition = answer.headers()["content-disposition"].to_str()?.to_owned();
    ensure!(
        disposition.starts_with("attachment; filename=\"shop-small-") && disposition.ends_with(".tar.gz\""),
        "{disposition}"
    );
    let tag = answer.headers()["etag"].to_str()?.to_owned();
    let data = answer.bytes().await?;
    let artifact = sources.get("small").await?.data["status"]["artifact"].clone();
    assert_eq!(Digest::from_content(&data).to_string(), artifact["digest"]);
    assert_eq!(tag, artifact["digest"].to_string());
    let row = asked.recorded("Done", "").await?;
    assert_eq!(
        (&row["verb"], &row["username"], &row["reason"], &row["name"]),
        (
            &json!("download"),
            &json!(ANA_EVERYWHERE),
            &json!("a look"),
            &json!("small")
        )
    );
    let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    let fields = ListParams::default().fields("involvedObject.name=small,reason=WebAction");
    let event = wait_until(async || Ok(events.list(&fields).await?.items.pop())).await?;
    let message = event.message.unwrap_or_default();
    ensure!(
        message.ends_with("a look") && message.starts_with("download by "),
        "{message}"
    );
    let data = asked.download(ANA, "large").await?.bytes().await?;
    ensure!(data.len() > LARGE, "{}", data.len());

    refusals(&asked).await?;
    hostile(&asked, &sources).await?;

    // As someone: the verb is enough, since nothing is written. Without actions: nothing.
    let own = started("impersonated").await?;
    let asked = Asked {
        url: own.api_url(),
        ..asked
    };
    let answer = asked.download(ANA, "large").await?;
    assert_eq!(answer.status(), StatusCode::OK);
    let verbs = asked
        .get(ANA, &format!("objects/local/git/{NAMESPACE}/large/verbs"))
        .await?;
    assert_eq!(verbs.json::<Value>().await?, json!({"verbs": ["download"]}));
    let none = started("none").await?;
    let asked = Asked {
        url: none.api_url(),
        ..asked
    };
    assert_eq!(
        asked.refused(ANA, "large").await?.0,
        StatusCode::METHOD_NOT_ALLOWED
    );
    Ok(())
}

async fn wait_until<T>(mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let looking = async {
        loop {
            if let Some(found) = look().await? {
                return anyhow::Ok(found);
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await; // a list does not tell of changes
        }
    };
    tokio::time::timeout(PATIENCE, looking).await?
}

/// Who may not learns nothing, and what cannot be downloaded is refused.
async fn refusals(asked: &Asked) -> Result<()> {
    // What a link on another site has a browser send.
    for site in ["cross-site", "same-site"] {
        let path = format!("objects/local/git/{NAMESPACE}/small/download");
        let url = format!("{}/{path}", asked.url);
        let request = asked
            .http
            .get(url)
            .bearer_auth(ANA)
            .header("sec-fetch-site", site);
        assert_eq!(request.send().await?.status(), StatusCode::FORBIDDEN, "{site}");
    }
    let mut told = Vec::new();
    for (token, name) in [(BOB, "small"), (BOB, "none"), (EVE, "small"), (EVE, "none")] {
        let (status, answer) = asked.refused(token, name).await?;
        assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
        told.push(answer["message"].to_string());
    }
    ensure!(told[0] == told[1] && told[2] == told[3], "{told:?}");
    assert_eq!(asked.refused(ANA, "none").await?.0, StatusCode::NOT_FOUND);
    for (path, status) in [
        (
            format!("objects/local/ks/{NAMESPACE}/small/download"),
            StatusCode::BAD_REQUEST,
        ),
        (
            format!("objects/local/git/{NAMESPACE}/..%2Fsmall/download"),
            StatusCode::BAD_REQUEST,
        ),
        (
            format!("objects/elsewhere/git/{NAMESPACE}/small/download"),
            StatusCode::FORBIDDEN,
        ),
        (
            format!(
                "objects/local/git/{NAMESPACE}/small/download?reason={}",
                "a".repeat(1001)
            ),
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let answer = asked.get(ANA, &path).await?;
        assert_eq!(answer.status(), status, "{path}: {}", answer.text().await?);
    }
    let object = json!({"cluster": "local", "kind": "git", "namespace": NAMESPACE, "name": "small"});
    let wanted = json!({"verb": "download", "objects": [object]}).to_string();
    let request = asked.http.post(format!("{}/actions", asked.url)).bearer_auth(ANA);
    let answer = request
        .header("content-type", "application/json")
        .body(wanted)
        .send()
        .await?;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    Ok(())
}

/// Callers who do not read, and statuses that lie.
async fn hostile(asked: &Asked, sources: &Api<DynamicObject>) -> Result<()> {
    let slow = [
        asked.download(ANA, "large").await?,
        asked.download(ANA, "large").await?,
    ];
    assert_eq!(
        asked.refused(ANA, "small").await?.0,
        StatusCode::TOO_MANY_REQUESTS
    );
    drop(slow);
    asked.recorded("Failed", "the caller left").await?;
    wait_until(async || {
        let answer = asked.download(ANA, "small").await?;
        Ok((answer.status() == StatusCode::OK).then_some(()))
    })
    .await?;

    let artifact = sources.get("other").await?.data["status"]["artifact"].clone();
    lie(sources, "small", artifact).await?;
    let (status, answer) = wait_until(async || {
        let answer = asked.refused(ANA, "small").await;
        Ok(answer.ok().filter(|(status, _)| *status != StatusCode::OK))
    })
    .await?;
    assert_eq!(status, StatusCode::BAD_GATEWAY, "{answer}");
    ensure!(
        answer.to_string().contains("not in the place that is its own"),
        "{answer}"
    );
    asked.recorded("Failed", "not in the place").await?;

    // Another digest than that of the content: what arrives is not whole, and says so.
    let digest = Digest::from_content(b"another").to_string();
    lie(sources, "large", json!({"digest": digest})).await?;
    let failed = wait_until(async || {
        let answer = asked.download(ANA, "large").await?;
        Ok(answer.bytes().await.err())
    })
    .await?;
    ensure!(failed.is_body() || failed.is_decode(), "{failed:?}");
    asked.recorded("Failed", "has the digest").await?;
    Ok(())
}

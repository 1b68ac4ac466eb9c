//! The console's pages, as a part of `bench-console`: how long and large each is, and how long after the API server's answer open
//! tabs have a change.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use kube::Client;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING};
use serde_json::{Value, json};
use testkit::Controller;
use tokio::sync::mpsc;

use super::console::{KUSTOMIZE, patch_status, ready};
use super::figures::{line, percentile};

/// Each page is asked for so often.
const ASKED: usize = 30;
const CHANGES: usize = 20;
/// What the tabs show; all callers may see it.
const NAMESPACE: &str = "team-1";
const APP: &str = "app-1";

fn base(console: &Controller) -> String {
    console.api_url().replace("/api/v1", "")
}

/// Asks for each page, one after the other.
pub(super) async fn pages(console: &Controller, http: &reqwest::Client, token: &str) -> Result<()> {
    let commit = format!("{:040x}", 4);
    let paths = [
        ("home", "/".to_owned()),
        ("applications", "/apps".to_owned()),
        ("applications, one filter", "/apps?q=status:failed".to_owned()),
        ("applications, text", "/apps?q=app-77".to_owned()),
        ("sources", "/sources".to_owned()),
        (
            "one application",
            format!("/objects/local/Kustomization/{NAMESPACE}/{APP}"),
        ),
        ("a change", format!("/change?q={commit}")),
        ("fleet", "/fleet".to_owned()),
        ("history", "/history".to_owned()),
    ];
    line("\n| page | on the server: median, 95 of 100 | compressed |\n|---|---|---|");
    for (name, path) in paths {
        let mut took = Vec::new();
        let mut bytes = 0;
        for _ in 0..ASKED {
            let began = Instant::now();
            let request = http.get(format!("{}{path}", base(console))).bearer_auth(token);
            let answer = request
                .header(ACCEPT, "text/html")
                .header(ACCEPT_ENCODING, "gzip")
                .send()
                .await?;
            ensure!(answer.status().is_success(), "{path}: {}", answer.status());
            bytes = answer.bytes().await?.len();
            took.push(began.elapsed());
        }
        took.sort();
        let (median, most) = (percentile(&took, 50), percentile(&took, 95));
        line(&format!(
            "| {name} | {median}, {most} | {:.1} kB |",
            kilobytes(bytes)
        ));
    }
    Ok(())
}

fn kilobytes(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1000.0
}

/// Opens tabs, changes an object that all of them show, and measures until each has it.
pub(super) async fn tabs(
    client: &Client,
    console: &Controller,
    http: &reqwest::Client,
    tokens: &[String],
    count: usize,
) -> Result<()> {
    let url = format!("{}/objects?limit=1", console.api_url());
    let page: Value = http.get(url).bearer_auth(&tokens[0]).send().await?.json().await?;
    let since = page["change"].as_u64().context("a page without a change")?;
    let (told, mut seen) = mpsc::unbounded_channel();
    let mut readers = tokio::task::JoinSet::new();
    for number in 0..count {
        let url = format!(
            "{}/live?at=%2Fapps%3Fq%3Dns%3A{NAMESPACE}&since={since}",
            base(console)
        );
        let answer = http
            .get(url)
            .bearer_auth(&tokens[number % tokens.len()])
            .send()
            .await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        let told = told.clone();
        readers.spawn(async move {
            let mut bytes = answer.bytes_stream();
            let mut text = String::new();
            while let Some(Ok(part)) = bytes.next().await {
                text.push_str(&String::from_utf8_lossy(&part));
                while let Some((event, rest)) = text.split_once("\n\n") {
                    if let Some(at) = event.find("change-") {
                        let digits = event[at + 7..].chars().take_while(char::is_ascii_digit);
                        let change: usize = digits.collect::<String>().parse().unwrap_or_default();
                        _ = told.send((change, Instant::now()));
                    }
                    text = rest.to_owned();
                }
            }
        });
    }
    let mut took = Vec::new();
    for change in 0..CHANGES {
        let mut condition = ready();
        condition["status"] = json!("False");
        condition["message"] = json!(format!("change-{change}"));
        let status = json!({"conditions": [condition]});
        patch_status(client, (KUSTOMIZE, "Kustomization"), (NAMESPACE, APP), status).await?;
        let answered = Instant::now();
        let mut missing = count;
        while missing > 0 {
            let next = tokio::time::timeout(Duration::from_secs(20), seen.recv()).await;
            let (which, at) = next
                .context("a change is not seen")?
                .context("the streams ended")?;
            if which == change {
                took.push(at.saturating_duration_since(answered));
                missing -= 1;
            }
        }
    }
    took.sort();
    line(&format!(
        "\n{count} tabs have a change, from the API server's answer: median {}, 99 of 100 {}, longest {}",
        percentile(&took, 50),
        percentile(&took, 99),
        percentile(&took, 100)
    ));
    Ok(())
}

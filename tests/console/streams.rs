//! Streams: what changes, in order, cut to the caller's rights, and resumed.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::time::timeout;

use crate::world::{PATIENCE, Scene, play};

const KUSTOMIZATIONS: &[&str] = &["kustomize.toolkit.fluxcd.io/kustomizations"];

struct Stream {
    bytes: futures::stream::BoxStream<'static, reqwest::Result<Vec<u8>>>,
    text: String,
}

#[derive(Debug)]
struct Event {
    id: String,
    name: String,
    data: Value,
}

impl Scene {
    async fn open(&self, token: &str, query: &str, last: Option<&str>) -> Result<Stream> {
        let url = format!("{}/watch?{query}", self.world.console.api_url());
        let mut request = self.world.http.get(&url).bearer_auth(token);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let answer = request.send().await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        ensure!(answer.headers()["content-type"] == "text/event-stream");
        let bytes = answer
            .bytes_stream()
            .map(|bytes| bytes.map(|bytes| bytes.to_vec()));
        Ok(Stream {
            bytes: bytes.boxed(),
            text: String::new(),
        })
    }
}

impl Stream {
    async fn next(&mut self) -> Result<Event> {
        let next = async {
            loop {
                if let Some((event, rest)) = self.text.split_once("\n\n") {
                    let (event, rest) = (event.to_owned(), rest.to_owned());
                    self.text = rest;
                    let field = |name: &str| {
                        let found = event
                            .lines()
                            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                        found.unwrap_or_default().to_owned()
                    };
                    if field("event").is_empty() {
                        continue; // a heartbeat
                    }
                    return Ok(Event {
                        id: field("id"),
                        name: field("event"),
                        data: serde_json::from_str(&field("data"))?,
                    });
                }
                let bytes = self.bytes.next().await.context("the stream ended")??;
                self.text.push_str(&String::from_utf8(bytes)?);
            }
        };
        timeout(PATIENCE, next).await.context("no event comes")?
    }
}

fn names(event: &Event) -> Vec<&str> {
    let rows = event.data["changed"].as_array().into_iter().flatten();
    rows.filter_map(|row| row["name"].as_str()).collect()
}

#[test]
fn a_stream_tells_of_changes_and_goes_on_where_it_was() {
    play("stream", async |scene| {
        let namespace = &scene.namespace;
        let other = scene.namespace("stream-other").await?;
        let user = scene.user("ana", &[(namespace, KUSTOMIZATIONS)]).await?;
        let everyone = scene.user("root", &[("*", KUSTOMIZATIONS)]).await?;
        scene.kustomization(namespace, "first", "True", &[]).await?;
        let all = format!("objects?namespace={namespace},{other}");
        let ready = format!("{all}&status=Ready");
        let page = scene.until(&user, &ready, |page| page["total"] == 1).await?;

        let since = page["change"].as_u64().unwrap_or_default();
        let mut stream = scene.open(&user, &format!("since={since}"), None).await?;
        let mut failing = scene.open(&user, "status=Failed", None).await?;
        scene.kustomization(&other, "hidden", "True", &[]).await?;
        scene.until(&everyone, &all, |page| page["total"] == 2).await?;
        scene.kustomization(namespace, "second", "False", &[]).await?;
        let mut event = stream.next().await?;
        while event.data["changed"][0]["status"] != "Failed" {
            assert_eq!(event.name, "rows");
            assert_eq!(names(&event), ["second"], "what may not be seen is not told");
            event = stream.next().await?;
        }
        let seen = failing.next().await?;
        assert_eq!((names(&seen).len() <= 1, seen.name.as_str()), (true, "rows"));

        // It goes on after the event that was seen last; what changed in between comes once.
        let last = event.id.clone();
        drop(stream);
        scene.kustomization(namespace, "third", "True", &[]).await?;
        let third = objects(&scene);
        third.delete("first", &Default::default()).await?;
        scene
            .until(&user, &ready, |page| {
                page["items"][0]["name"] == "third" && page["total"] == 1
            })
            .await?;
        let mut stream = scene.open(&user, "", Some(&last)).await?;
        let event = stream.next().await?;
        assert_eq!(names(&event), ["third"]);
        let gone = format!("Kustomization/{namespace}/first/local");
        assert_eq!(event.data["gone"], serde_json::json!([gone]));
        // A number of another process is no number here.
        let mut stream = scene.open(&user, "", Some("7")).await?;
        assert_eq!(stream.next().await?.name, "reset");
        Ok(())
    });
}

fn objects(scene: &Scene) -> kube::Api<kube::api::DynamicObject> {
    let version = "kustomize.toolkit.fluxcd.io/v1";
    testkit::objects::api(&scene.client, version, "Kustomization", &scene.namespace)
}

#[test]
fn one_caller_does_not_take_the_room_of_others() {
    play("rooms", async |scene| {
        let namespace = &scene.namespace;
        let eve = scene.user("eve", &[(namespace, KUSTOMIZATIONS)]).await?;
        let ana = scene.user("ana", &[(namespace, KUSTOMIZATIONS)]).await?;
        let mut open = Vec::new();
        for _ in 0..50 {
            open.push(scene.open(&eve, "", None).await?);
        }
        let refused = scene.open(&eve, "", None).await.err();
        ensure!(refused.is_some_and(|error| error.to_string().contains("429")));
        scene.open(&ana, "", None).await?;
        // Room is given back when a reader goes.
        open.clear();
        let again = async {
            while scene.open(&eve, "", None).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await; // nothing tells that a connection was closed
            }
        };
        timeout(PATIENCE, again)
            .await
            .context("the room is not given back")
    });
}

#[test]
fn a_stream_says_why_it_ends() {
    play("ended", async |scene| {
        let namespace = &scene.namespace;
        let user = scene.user("ana", &[(namespace, KUSTOMIZATIONS)]).await?;
        let filter = "filter=row.labels%5B%27team%27%5D%20%3D%3D%20%27web%27";
        let mut stream = scene.open(&user, filter, None).await?;
        scene.kustomization(namespace, "unlabelled", "True", &[]).await?;
        let event = stream.next().await?;
        assert_eq!(event.name, "problem");
        let told = event.data["message"].as_str().unwrap_or_default();
        ensure!(
            told.starts_with("filter: Kustomization/") && told.contains("unlabelled"),
            "{told}"
        );
        let ended = stream.next().await.err();
        ensure!(ended.is_some_and(|error| error.to_string().contains("the stream ended")));
        Ok(())
    });
}

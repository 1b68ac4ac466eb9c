//! Tests of webhook calls: their effects, and the refusals.

use std::time::Instant;

use anyhow::ensure;
use serde_json::json;
use testkit::git::Change;
use testkit::objects::{self, text};
use testkit::wait_for;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Receivers, TOKEN, push_of, signature};
use crate::world::{PATIENCE, SOURCE, run};

#[test]
fn a_push_to_github_is_fetched_at_once() {
    run("receivers-push", |test| async move {
        let receivers = Receivers::start(&test, &[]).await?;
        let repository = test.repository(&[("deploy/a.yaml", String::new())])?;
        let mut source = objects::git_repository(&test.namespace, "app", repository.url(), "main");
        source["spec"]["interval"] = json!("24h");
        test.apply(&source).await?;
        let spec = json!({
            "type": "github", "events": ["ping", "push"],
            "resources": [{"kind": "GitRepository", "name": "app"}],
        });
        let path = receivers.ready("github", spec).await?;
        ensure!(path.len() == "/hook/".len() + 64, "{path}");
        let api = test.git_repositories();
        wait_for(&api, "app", objects::is_ready, PATIENCE).await?;
        for number in 0..3 {
            let commit = repository.commit(
                "main",
                "change",
                &[Change::write("deploy/a.yaml", format!("# {number}"))],
            )?;
            let started = Instant::now();
            ensure!(receivers.push(&path, &push_of(&commit)).await? == 200);
            let answered = started.elapsed();
            let revision = format!("main@sha1:{commit}");
            let fetched = |object: &_| text(object, "/status/artifact/revision") == revision;
            wait_for(&api, "app", fetched, PATIENCE).await?;
            println!(
                "answered after {answered:?}, fetched after {:?}",
                started.elapsed()
            );
        }
        // Signed by someone else, and an event that no one asked for.
        let before = receivers.annotated(&test.namespace, "app").await?;
        let body = push_of("0");
        let wrong = signature("another-token", &body);
        let right = signature(TOKEN, &body);
        let json = ("Content-Type", "application/json");
        for headers in [
            vec![
                json,
                ("X-GitHub-Event", "push"),
                ("X-Hub-Signature-256", wrong.as_str()),
            ],
            vec![json, ("X-GitHub-Event", "push")],
            vec![
                json,
                ("X-GitHub-Event", "issues"),
                ("X-Hub-Signature-256", right.as_str()),
            ],
            vec![
                ("X-GitHub-Event", "push"),
                ("X-Hub-Signature-256", right.as_str()),
            ],
        ] {
            ensure!(receivers.post(&path, &headers, &body).await? == 400);
        }
        ensure!(receivers.annotated(&test.namespace, "app").await? == before);
        Ok(())
    });
}

#[test]
fn a_call_that_comes_again_is_answered_and_not_done_again() {
    run("receivers-replay", |test| async move {
        let receivers = Receivers::start(&test, &["--receiver-replay-window=10m"]).await?;
        receivers.target(&test.namespace, "app", "a").await?;
        let resources = json!([{"kind": "GitRepository", "name": "app"}]);
        let path = receivers
            .ready("github", json!({"type": "github", "resources": resources}))
            .await?;
        ensure!(receivers.push(&path, &push_of("1")).await? == 200);
        let first = receivers.annotated(&test.namespace, "app").await?;
        ensure!(!first.is_empty());
        for _ in 0..5 {
            ensure!(receivers.push(&path, &push_of("1")).await? == 200);
        }
        ensure!(receivers.annotated(&test.namespace, "app").await? == first);
        ensure!(receivers.push(&path, &push_of("2")).await? == 200);
        let second = receivers.annotated(&test.namespace, "app").await?;
        ensure!(second > first, "{second} after {first}");

        // Those whose calls are all alike mean each of them.
        let generic = receivers
            .ready("generic", json!({"type": "generic", "resources": resources}))
            .await?;
        ensure!(receivers.post(&generic, &[], "").await? == 200);
        let third = receivers.annotated(&test.namespace, "app").await?;
        ensure!(receivers.post(&generic, &[], "").await? == 200);
        ensure!(third > second && receivers.annotated(&test.namespace, "app").await? > third);

        // What failed may be sent again.
        let missing = json!([{"kind": "GitRepository", "name": "later"}]);
        let path = receivers
            .ready("later", json!({"type": "github", "resources": missing}))
            .await?;
        ensure!(receivers.push(&path, &push_of("3")).await? == 500);
        receivers.target(&test.namespace, "later", "a").await?;
        ensure!(receivers.push(&path, &push_of("3")).await? == 200);
        ensure!(!receivers.annotated(&test.namespace, "later").await?.is_empty());
        Ok(())
    });
}

#[test]
fn what_strangers_send_is_refused_in_a_number() {
    run("receivers-strangers", |test| async move {
        let receivers = Receivers::start(&test, &[]).await?;
        receivers.target(&test.namespace, "app", "a").await?;
        let resources = json!([{"kind": "GitRepository", "name": "app"}]);
        let path = receivers
            .ready("quay", json!({"type": "quay", "resources": resources}))
            .await?;
        let large = "x".repeat((3 << 20) + 1);
        ensure!(receivers.post(&path, &[], "{").await? == 400);
        ensure!(receivers.post(&path, &[], &large).await? == 413);
        for stranger in [
            "/hook/",
            "/hook/0000",
            "/",
            &format!("{path}0"),
            &format!("{path}?a=b"),
        ] {
            ensure!(receivers.post(stranger, &[], "{}").await? == 404, "{stranger}");
        }
        ensure!(receivers.post("/hook/0000", &[], &large).await? == 413);
        ensure!(receivers.annotated(&test.namespace, "app").await?.is_empty());

        let address = receivers.controller.receiver_url().replace("http://", "");
        let mut stream = tokio::net::TcpStream::connect(&address).await?;
        let header = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "y".repeat(300 << 10)
        );
        drop(stream.write_all(header.as_bytes()).await);
        let mut answer = vec![0; 64];
        let read = stream.read(&mut answer).await.unwrap_or_default();
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        let is_refused = ["HTTP/1.1 431", "HTTP/1.1 400"]
            .iter()
            .any(|line| answer.starts_with(line));
        ensure!(answer.is_empty() || is_refused, "{answer}");

        ensure!(receivers.post(&path, &[], "{}").await? == 200);
        ensure!(!receivers.annotated(&test.namespace, "app").await?.is_empty());
        let metrics = receivers.controller.metrics().await?;
        let counted = "gotk_receiver_http_request_duration_seconds_count{code=\"404\",handler=\"/hook/\",method=\"POST\",service=\"\"} 5";
        ensure!(metrics.contains(counted), "{metrics}");
        Ok(())
    });
}

#[test]
fn an_address_may_only_call_so_often() {
    run("receivers-limit", |test| async move {
        let receivers = Receivers::start(&test, &["--receiver-rate-limit=1"]).await?;
        let mut statuses = Vec::new();
        for _ in 0..10 {
            statuses.push(receivers.post("/hook/0000", &[], "").await?.as_u16());
        }
        ensure!(statuses[..5] == [404; 5], "{statuses:?}");
        ensure!(statuses.contains(&429), "{statuses:?}");
        Ok(())
    });
}

#[test]
fn labels_and_expressions_choose_what_is_woken() {
    run("receivers-filters", |test| async move {
        let receivers = Receivers::start(&test, &[]).await?;
        for (name, team) in [("hello-world", "a"), ("hello-moon", "a"), ("other-world", "b")] {
            receivers.target(&test.namespace, name, team).await?;
        }
        let spec = json!({
            "type": "generic-hmac",
            "resourceFilter": "req.tag.contains(res.metadata.name)",
            "resources": [
                {"kind": "GitRepository", "name": "*", "matchLabels": {"team": "a"}},
                {"kind": "GitRepository", "name": "other-world", "filter": "res.metadata.labels['team'] == 'a'"},
            ],
        });
        let path = receivers.ready("filtered", spec).await?;
        let body = r#"{"tag": "registry/hello-world/other-world:1"}"#;
        let sign = |body| signature(TOKEN, body);
        let json = ("Content-Type", "application/json; charset=utf-8");
        let signed = sign(body);
        ensure!(
            receivers
                .post(&path, &[json, ("X-Signature", &signed)], body)
                .await?
                == 200
        );
        ensure!(
            !receivers
                .annotated(&test.namespace, "hello-world")
                .await?
                .is_empty()
        );
        ensure!(
            receivers
                .annotated(&test.namespace, "hello-moon")
                .await?
                .is_empty()
        );
        ensure!(
            receivers
                .annotated(&test.namespace, "other-world")
                .await?
                .is_empty()
        );
        // A body without the field, and one that is no JSON.
        ensure!(
            receivers
                .post(&path, &[json, ("X-Signature", &sign("{}"))], "{}")
                .await?
                == 500
        );
        ensure!(
            receivers
                .post(&path, &[json, ("X-Signature", &sign("{"))], "{")
                .await?
                == 400
        );
        Ok(())
    });
}

#[test]
fn other_namespaces_are_woken_only_where_that_is_allowed() {
    run("receivers-namespaces", |test| async move {
        let other = test.world.control_plane.namespace("receivers-other").await?;
        let resources = json!([{"kind": "GitRepository", "name": "app", "namespace": other}]);
        for (flag, status) in [
            ("--no-cross-namespace-refs=true", 500),
            ("--no-cross-namespace-refs=false", 200),
        ] {
            let receivers = Receivers::start(&test, &[flag]).await?;
            receivers.target(&other, "app", "a").await?;
            let path = receivers
                .ready("generic", json!({"type": "generic", "resources": resources}))
                .await?;
            ensure!(receivers.post(&path, &[], "").await?.as_u16() == status);
            ensure!(receivers.annotated(&other, "app").await?.is_empty() == (status == 500));
        }
        let api = objects::api(&test.client, SOURCE, "GitRepository", &other);
        api.delete("app", &Default::default()).await?;
        Ok(())
    });
}

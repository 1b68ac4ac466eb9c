//! Language models ask by the Model Context Protocol, with someone's token.

use anyhow::{Result, ensure};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::Controller;
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply};

use crate::world::{ANA, Scene, play};

/// A console that models may ask, and one that they may not.
async fn consoles(scene: &Scene) -> Result<(Controller, String)> {
    let options = ControllerOptions {
        flags: vec!["--mcp".to_owned()],
        ..ControllerOptions::default()
    };
    let console = Controller::start_console(scene.world.control_plane.kubeconfig_path(), options).await?;
    let url = console.api_url().replace("/api/v1", "/mcp");
    Ok((console, url))
}

async fn send(scene: &Scene, url: &str, token: Option<&str>, message: &Value) -> Result<(StatusCode, Value)> {
    let request = scene.world.http.post(url);
    let request = request.header("accept", "application/json, text/event-stream");
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let answer = request.json(message).send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}

/// What a tool answers: the text, and whether it is an error.
async fn call(scene: &Scene, url: &str, token: &str, tool: &str, arguments: Value) -> Result<(String, bool)> {
    let params = json!({"name": tool, "arguments": arguments});
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let (status, answer) = send(scene, url, Some(token), &message).await?;
    let result = &answer["result"];
    ensure!(
        status == StatusCode::OK && result.is_object(),
        "{status} {answer}"
    );
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    Ok((text.to_owned(), result["isError"] == true))
}

#[test]
fn a_model_learns_what_its_token_may_get_and_changes_nothing() {
    play("mcp", async |scene| {
        let namespace = &scene.namespace;
        let source = objects::git_repository(namespace, "repo", "https://git.example.com/team/app", "main");
        apply(&scene.client, &source).await?;
        let web = format!("{namespace}_web_apps_Deployment");
        scene.kustomization(namespace, "app", "False", &[&web]).await?;
        let may: &[&str] = &["kustomize.toolkit.fluxcd.io/*", "source.toolkit.fluxcd.io/*"];
        let user = scene.user("model", &[(namespace, may)]).await?;
        let other = scene.user("other", &[]).await?;
        let (_console, url) = consoles(&scene).await?;

        let hello = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
        });
        let (status, answer) = send(&scene, &url, Some(&user), &hello).await?;
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "windlass-console");
        let told = answer["result"]["instructions"].as_str().unwrap_or_default();
        ensure!(told.contains("never as instructions"), "{answer}");
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        let (_, answer) = send(&scene, &url, Some(&user), &list).await?;
        let tools = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
        ensure!(tools.len() == 10, "{answer}");
        for tool in &tools {
            assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        }

        let of = |name: &str| json!({"cluster": "local", "kind": "ks", "namespace": namespace, "name": name});
        let (text, is_error) = call(
            &scene,
            &url,
            &user,
            "list_objects",
            json!({"namespace": namespace, "fields": "name"}),
        )
        .await?;
        ensure!(!is_error, "{text}");
        let page: Value = serde_json::from_str(&text)?;
        assert_eq!(page["items"], json!([{"name": "repo"}, {"name": "app"}]));
        let (text, is_error) = call(&scene, &url, &user, "explain_object", of("app")).await?;
        ensure!(!is_error && text.contains("it is False"), "{text}");
        let web = json!({"cluster": "local", "kind": "Deployment", "namespace": namespace, "name": "web"});
        let (text, is_error) = call(&scene, &url, &user, "trace_object", web.clone()).await?;
        ensure!(
            !is_error && text.contains("https://git.example.com/team/app"),
            "{text}"
        );
        let found: Value = serde_json::from_str(&text)?;
        assert_eq!(
            found["because"][0]["object"],
            format!("Kustomization/{namespace}/app")
        );
        assert_eq!(found["from"]["revision"], "main@sha1:abc");

        // Someone else's token, and none; and what is wrong is told to the model.
        let (text, is_error) = call(&scene, &url, &other, "explain_object", of("app")).await?;
        ensure!(
            is_error && text.contains("may not get") && !text.contains("False"),
            "{text}"
        );
        let (text, is_error) = call(&scene, &url, &other, "trace_object", web).await?;
        ensure!(
            is_error && text.contains("no inventory that you may get"),
            "{text}"
        );
        let (text, is_error) = call(&scene, &url, &user, "list_objects", json!({"filter": "1"})).await?;
        ensure!(is_error && text.starts_with("filter: "), "{text}");
        for token in [None, Some("nobody's")] {
            let (status, answer) = send(&scene, &url, token, &list).await?;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer}");
        }
        let large = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "x".repeat(100_000)}});
        let (status, _) = send(&scene, &url, Some(&user), &large).await?;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);

        // Off unless it is switched on.
        let off = scene.world.console.api_url().replace("/api/v1", "/mcp");
        assert_eq!(
            send(&scene, &off, Some(ANA), &list).await?.0,
            StatusCode::NOT_FOUND
        );
        Ok(())
    });
}

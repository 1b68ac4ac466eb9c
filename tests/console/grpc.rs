//! gRPC: a program follows what changes, and reads deliveries, with someone's token.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use console_proto::v1::console_service_client::ConsoleServiceClient;
use console_proto::v1::watch_response::Event;
use console_proto::v1::{Filter, ListDeliveriesRequest, WatchRequest, WatchResponse};
use serde_json::json;
use testkit::Controller;
use testkit::controller::ControllerOptions;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

use crate::world::{KEEP, PATIENCE, Scene, play};

const KUSTOMIZATIONS: &[&str] = &["kustomize.toolkit.fluxcd.io/kustomizations"];

async fn start(scene: &Scene) -> Result<(Controller, ConsoleServiceClient<Channel>)> {
    let folder = testkit::scratch::directory("grpc")?.keep();
    let ledger = folder.join("ledger.db").display().to_string();
    let options = ControllerOptions {
        flags: vec![format!("--ledger-url=sqlite:{ledger}"), KEEP.to_owned()],
        ..ControllerOptions::default()
    };
    let console = Controller::start_console(scene.world.control_plane.kubeconfig_path(), options).await?;
    // Behind TLS of a proxy in a cluster: here in plain text.
    let address = console.grpc_url().replace("https://", "http://");
    let channel = Endpoint::from_shared(address)?.connect().await?;
    Ok((console, ConsoleServiceClient::new(channel)))
}

fn with_token<T>(token: &str, message: T) -> Result<Request<T>> {
    let mut request = Request::new(message);
    let bearer = format!("Bearer {token}").parse()?;
    request.metadata_mut().insert("authorization", bearer);
    Ok(request)
}

fn of(namespaces: &[&str]) -> WatchRequest {
    WatchRequest {
        filter: Some(Filter {
            kinds: vec!["ks".to_owned()],
            namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
            ..Filter::default()
        }),
        since: None,
    }
}

async fn next(stream: &mut Streaming<WatchResponse>) -> Result<WatchResponse> {
    let message = timeout(PATIENCE, stream.message())
        .await
        .context("nothing comes")?;
    message?.context("the stream ended")
}

/// Reads what is there; where to resume.
async fn synced(stream: &mut Streaming<WatchResponse>) -> Result<(Vec<String>, u64)> {
    let mut names = Vec::new();
    loop {
        let message = next(stream).await?;
        match message.event() {
            Event::Changed => names.push(message.row.context("no row")?.name),
            Event::Synced => return Ok((names, message.change)),
            event => anyhow::bail!("{event:?}"),
        }
    }
}

async fn refused(
    client: &mut ConsoleServiceClient<Channel>,
    request: Request<WatchRequest>,
) -> Result<Status> {
    client.watch(request).await.err().context("it is not refused")
}

#[test]
fn a_program_follows_what_its_token_may_get() {
    play("grpc", async |scene| {
        let (shop, bank) = (
            scene.namespace("grpc-shop").await?,
            scene.namespace("grpc-bank").await?,
        );
        for name in ["a", "b"] {
            scene.kustomization(&shop, name, "True", &[]).await?;
        }
        scene.kustomization(&bank, "secret", "True", &[]).await?;
        let history = json!({"history": [{
            "digest": "sha256:1", "firstReconciled": "2026-11-20T00:00:00Z", "lastReconciled": "2026-11-20T00:01:00Z",
            "lastReconciledDuration": "30s", "lastReconciledStatus": "ReconciliationSucceeded",
            "totalReconciliations": 3, "metadata": {"revision": "main@sha1:abc"}}]});
        for (namespace, name) in [(&shop, "a"), (&bank, "secret")] {
            let version = "kustomize.toolkit.fluxcd.io/v1";
            scene
                .status(version, "Kustomization", namespace, name, history.clone())
                .await?;
        }
        let token = scene.user("program", &[(&shop, KUSTOMIZATIONS)]).await?;
        let (_console, mut client) = start(&scene).await?;

        // What is there, then each change.
        let asked = with_token(&token, of(&[&shop, &bank]))?;
        let mut stream = client.watch(asked).await?.into_inner();
        let (names, change) = synced(&mut stream).await?;
        assert_eq!(names, ["a", "b"]);
        scene.kustomization(&bank, "secret", "False", &[]).await?;
        scene.kustomization(&shop, "a", "False", &[]).await?;
        let message = next(&mut stream).await?;
        let row = message.row.clone().context("no row")?;
        assert_eq!(
            (
                message.event(),
                row.name.as_str(),
                row.namespace.as_str(),
                row.status.as_str()
            ),
            (Event::Changed, "a", shop.as_str(), "Failed")
        );
        assert_eq!(message.key, format!("Kustomization/{shop}/a/local"));
        ensure!(message.change > change, "{message:?}");
        drop(stream);

        // Resumed: what changed meanwhile, and what is gone.
        let gone = testkit::objects::api(
            &scene.client,
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            &shop,
        );
        gone.delete("b", &kube::api::DeleteParams::default()).await?;
        let resumed = WatchRequest {
            since: Some(message.change),
            ..of(&[&shop])
        };
        let mut stream = client.watch(with_token(&token, resumed)?).await?.into_inner();
        loop {
            let message = next(&mut stream).await?;
            if message.event() == Event::Gone {
                assert_eq!(message.key, format!("Kustomization/{shop}/b/local"));
                break;
            }
        }
        // A number that was never given: all must be read again.
        let odd = WatchRequest {
            since: Some(u64::MAX),
            ..of(&[&shop])
        };
        let mut stream = client.watch(with_token(&token, odd)?).await?.into_inner();
        assert_eq!(next(&mut stream).await?.event(), Event::Reset);
        ensure!(stream.message().await?.is_none());

        // Deliveries, as far as they may be seen.
        let rows = async {
            loop {
                let asked = with_token(&token, ListDeliveriesRequest::default())?;
                let mut stream = client.clone().list_deliveries(asked).await?.into_inner();
                let mut rows = Vec::new();
                while let Some(row) = stream.message().await? {
                    rows.push(row);
                }
                if !rows.is_empty() {
                    return anyhow::Ok(rows);
                }
                tokio::time::sleep(Duration::from_millis(50)).await; // nothing tells of the ledger
            }
        };
        let rows = timeout(PATIENCE, rows).await??;
        // The other one was there for a moment: it may have a row, too.
        ensure!(rows.iter().all(|row| row.namespace == shop), "{rows:?}");
        let rows: Vec<_> = rows.into_iter().filter(|row| row.name == "a").collect();
        let short: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.outcome.as_str(), row.attempts))
            .collect();
        assert_eq!(short, [("a", "Succeeded", 3)]);
        assert_eq!(rows[0].revision, "main@sha1:abc");

        refusals(&mut client, &token, message.change).await
    });
}

/// What cannot be asked is the answer to the call.
async fn refusals(client: &mut ConsoleServiceClient<Channel>, token: &str, change: u64) -> Result<()> {
    let expression = |text: &str| WatchRequest {
        filter: Some(Filter {
            expression: text.to_owned(),
            ..Filter::default()
        }),
        since: None,
    };
    for (token, message, code) in [
        (None, of(&[]), Code::Unauthenticated),
        (Some("nobody's"), of(&[]), Code::Unauthenticated),
        (Some(token), expression("1 +"), Code::InvalidArgument),
        (
            Some(token),
            expression(&"a".repeat(60_000)),
            Code::InvalidArgument,
        ),
        (Some(token), expression(&"a".repeat(1 << 20)), Code::OutOfRange),
    ] {
        let asked = match token {
            Some(token) => with_token(token, message)?,
            None => Request::new(message),
        };
        let status = refused(client, asked).await?;
        assert_eq!(status.code(), code, "{status:?}");
    }
    // As many streams of one caller as over HTTP.
    let mut open = Vec::new();
    let full = loop {
        let since = WatchRequest {
            since: Some(change),
            ..of(&[])
        };
        match client.watch(with_token(token, since)?).await {
            Ok(stream) => open.push(stream),
            Err(status) => break status,
        }
        ensure!(open.len() <= 50, "there is no end");
    };
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    Ok(())
}

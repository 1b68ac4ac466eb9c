//! The endpoints, asked over a socket.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

/// Asks in the plainest way; gives the whole answer.
async fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it is served");
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it is text");
    answer
}

fn part(metrics: Metrics, ready: Ready) -> Parts {
    let parts = Parts::default();
    parts.add(metrics, ready);
    parts
}

async fn served(routes: Router) -> (SocketAddr, CancellationToken) {
    let listener = bind("127.0.0.1:0".parse().expect("an address"))
        .await
        .expect("a port is free");
    let (address, token) = (
        listener.local_addr().expect("it is bound"),
        CancellationToken::new(),
    );
    serve_in_background(listener, routes, &token);
    (address, token)
}

#[tokio::test]
async fn metrics_have_the_content_type_of_openmetrics() {
    let (address, _token) = served(metrics_routes(part(Metrics::new(), Ready::default()))).await;
    let answer = ask(address, "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{answer}"
    );
    assert!(
        answer.contains("process_resident_memory_bytes") && answer.ends_with("# EOF\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn readiness_follows_the_checks_and_health_does_not() {
    let ready = Ready::default();
    let (address, _token) = served(health_routes(part(Metrics::new(), ready.clone()))).await;
    assert!(ask(address, "/readyz").await.starts_with("HTTP/1.1 200"));
    ready.set("store", false);
    ready.set("cache", true);
    let answer = ask(address, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(
        answer.ends_with("[+]cache ok\n[-]store failed: not ready yet\n"),
        "{answer}"
    );
    assert!(ask(address, "/healthz").await.ends_with("ok"));
    ready.set("store", true);
    assert!(ask(address, "/readyz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error_with_its_name() {
    let taken = bind("127.0.0.1:0".parse().expect("an address"))
        .await
        .expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    let error = bind(address).await.expect_err("it is taken");
    assert_eq!(error.to_string(), format!("failed to listen on {address}"));
}

#[tokio::test]
async fn all_interfaces_include_those_of_ipv4() {
    let listener = bind("[::]:0".parse().expect("an address"))
        .await
        .expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let (connected, accepted) = tokio::join!(TcpStream::connect(("127.0.0.1", port)), listener.accept());
    assert!(connected.is_ok() && accepted.is_ok());
}

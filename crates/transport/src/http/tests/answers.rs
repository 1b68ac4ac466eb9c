//! Tests of the answers of real servers, and of their effects.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Redirect};
use futures::StreamExt as _;
use testkit::tls_front::{Flaw, TlsFront};
use tokio::net::TcpListener;

use super::*;
use error_chain::chain;

/// A server that answers everything in the same way.
async fn server<R: axum::response::IntoResponse + Clone + Send + Sync + 'static>(answer: R) -> SocketAddr {
    let router = Router::new().fallback(move || async move { answer.clone() });
    listen(router).await
}

async fn listen(router: Router) -> SocketAddr {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// The chain of the error of a GET; the body when there is none.
async fn get(url: &str, settings: Settings, seconds: f32) -> Result<String, String> {
    let url = Url::parse(url).unwrap();
    let client = Clients::default()
        .get(&settings.towards(url.host_str().unwrap()))
        .map_err(|error| chain(&error))?;
    let deadline = Instant::now() + Duration::from_secs_f32(seconds);
    let authorization = HeaderValue::from_static("Bearer hunter2");
    let asked = async {
        let request = Request {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            authorization: Some(&authorization),
        };
        let response = checked(send(&client, request, deadline).await?, deadline).await?;
        refuse_page(&response, "a list")?;
        read(response, 1000, deadline).await
    };
    let body = asked.await.map_err(|error| chain(&error))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

async fn refusal(url: &str) -> String {
    let error = get(url, Settings::default(), 20.0).await.unwrap_err();
    assert!(
        !error.contains("hunter2") && !error.contains("letmein"),
        "{error}"
    );
    error
}

#[tokio::test]
async fn each_status_says_what_to_do() {
    let cases = [
        (401, "401 Unauthorized; the credentials are missing or wrong"),
        (403, "403 Forbidden; the credentials do not allow it"),
        (404, "404 Not Found; check the address"),
        (429, "429 Too Many Requests; it had too many requests"),
        (500, "500 Internal Server Error; the server is in trouble"),
        (503, "503 Service Unavailable; the server is in trouble"),
        (418, "418 I'm a teapot"),
    ];
    for (status, words) in cases {
        let address = server(StatusCode::from_u16(status).unwrap()).await;
        let error = refusal(&format!("http://user:letmein@{address}/a?token=letmein#letmein")).await;
        assert!(
            error.starts_with(&format!("'http://{address}/a' answered ")),
            "{error}"
        );
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_pause_that_is_asked_for_is_told() {
    for (value, words) in [
        ("120", "120 s"),
        ("999999", "3600 s"),
        ("Wed, 21 Oct 2015 07:28:00 GMT", "1 s"),
    ] {
        let answer = (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, value)]);
        let error = refusal(&format!("http://{}/", server(answer).await)).await;
        assert!(
            error.ends_with(&format!(": it asks for a pause of {words}")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_web_page_is_known_as_one() {
    let page = (
        [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
        "<!DOCTYPE html><p>Sign in",
    );
    let error = refusal(&format!("http://{}/", server(page.clone()).await)).await;
    assert!(
        error.contains("answered with a web page instead of a list; is the URL"),
        "{error}"
    );
    let error = refusal(&format!(
        "http://{}/",
        server((StatusCode::NOT_FOUND, page)).await
    ))
    .await;
    assert!(
        error.contains("answered 404 Not Found with a web page: is the URL"),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_end_and_do_not_take_credentials_along() {
    let round =
        Router::new().fallback(|uri: Uri| async move { Redirect::temporary(&format!("{}x", uri.path())) });
    let error = refusal(&format!("http://{}/?token=letmein", listen(round).await)).await;
    assert!(
        error.ends_with("it does not end; stopped after 10 redirects"),
        "{error}"
    );

    let seen = Router::new().fallback(|headers: axum::http::HeaderMap| async move {
        format!("{:?}", headers.get(header::AUTHORIZATION).is_some())
    });
    let other = listen(seen.clone()).await;
    let leading = Router::new().route(
        "/away",
        axum::routing::get(move || async move {
            Redirect::temporary(&format!("http://{other}/")).into_response()
        }),
    );
    let here = listen(
        leading
            .merge(Router::new().route("/here", axum::routing::get(|| async { Redirect::temporary("/") })))
            .merge(seen),
    )
    .await;
    let body = |url: String| async move { get(&url, Settings::default(), 20.0).await.unwrap() };
    assert_eq!(body(format!("http://{here}/here")).await, "true");
    assert_eq!(body(format!("http://{here}/away")).await, "false");
    for (location, words) in [
        ("file:///etc/passwd", "it leads to neither http nor https"),
        ("http://[", "it leads to no URL"),
    ] {
        let answer = (StatusCode::FOUND, [(header::LOCATION, location)]);
        let error = refusal(&format!("http://{}/", server(answer).await)).await;
        assert!(error.ends_with(words), "{error}");
    }
}

#[tokio::test]
async fn redirects_lead_to_no_server_but_those_of_the_list() {
    let other = server("hidden").await;
    let answer = (
        StatusCode::FOUND,
        [(header::LOCATION, format!("http://{other}/secret?token=letmein"))],
    );
    let here = server(answer).await;
    let settings = |list: &[SocketAddr]| Settings {
        only: Some(
            list.iter()
                .map(|address| format!("http://{address}").parse::<Host>().unwrap())
                .collect(),
        ),
        ..Settings::default()
    };
    let url = format!("http://{here}/");
    assert_eq!(
        get(&url, settings(&[here, other]), 20.0).await.as_deref(),
        Ok("hidden")
    );
    for (list, refused) in [
        (vec![here], format!("http://{other}/secret")),
        (vec![other], url.clone()),
    ] {
        let error = get(&url, settings(&list), 20.0).await.unwrap_err();
        let words = format!("'{refused}' is not asked: its server is not in the list of those that may be");
        assert_eq!(error, words);
    }
}

#[tokio::test]
async fn a_connection_that_is_not_made_says_why() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let port = testkit::ports::free_port().unwrap();
    let error = refusal(&format!("http://127.0.0.1:{port}/")).await;
    assert!(
        error.contains(": connection refused: nothing listens there"),
        "{error}"
    );
    // Whether the name servers answer at all depends on where the test runs.
    let error = refusal("http://windlass-test.invalid/").await;
    assert!(
        error.contains(": no such host: ") || error.contains(": temporary failure in name resolution: "),
        "{error}"
    );
}

#[tokio::test]
async fn silence_is_told_by_what_was_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let error = get(&url, Settings::default(), 0.3).await.unwrap_err();
    assert_eq!(
        error,
        format!("failed to get an answer from '{url}' in time: context deadline exceeded")
    );

    let slow = Router::new().fallback(|| async {
        let chunks = futures::stream::iter([Ok::<_, std::io::Error>("a")]);
        axum::body::Body::from_stream(chunks.chain(futures::stream::pending()))
    });
    let url = format!("http://{}/", listen(slow).await);
    let error = get(&url, Settings::default(), 0.5).await.unwrap_err();
    assert_eq!(
        error,
        format!("failed to read the whole answer of '{url}' in time: context deadline exceeded")
    );
    let long = server("x".repeat(1001)).await;
    let error = refusal(&format!("http://{long}/")).await;
    assert!(error.ends_with(": larger than 1000 bytes"), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_not_answered_is_no_slow_server() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // Two connections fill the queue of one; the system answers no third.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(
        Duration::from_millis(300),
        tokio::net::TcpStream::connect(address),
    )
    .await
    {
        waiting.push(stream);
    }
    let client = reqwest::Client::builder()
        .no_proxy()
        .connect_timeout(Duration::from_millis(300));
    let url = Url::parse(&format!("http://{address}/")).unwrap();
    let request = Request {
        method: Method::GET,
        url: url.clone(),
        headers: HeaderMap::new(),
        authorization: None,
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    let error = send(&client.build().unwrap().into(), request, deadline)
        .await
        .unwrap_err();
    assert_eq!(
        chain(&error),
        format!("failed to connect to '{url}' in time: context deadline exceeded")
    );
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_says_what_is_wrong_with_it() {
    let behind = server("hello").await;
    let asked = |front: &TlsFront, settings: Settings| {
        let url = format!("https://127.0.0.1:{}/", front.address().port());
        async move { get(&url, settings, 20.0).await }
    };
    let trusting = |front: &TlsFront| Settings {
        ca: Some(front.authority().as_bytes().to_vec()),
        ..Settings::default()
    };
    let front = TlsFront::start(behind, false).await.unwrap();
    let error = asked(&front, Settings::default()).await.unwrap_err();
    assert!(
        error.contains("x509: certificate signed by unknown authority; put"),
        "{error}"
    );
    assert!(
        error.contains("'ca.crt'") && error.contains("spec.certSecretRef"),
        "{error}"
    );
    assert_eq!(asked(&front, trusting(&front)).await.unwrap(), "hello");

    for (flaw, words) in [
        (Flaw::Expired, "x509: certificate has expired (2"),
        (Flaw::NotYetValid, "x509: certificate is not yet valid (2"),
        (
            Flaw::OtherName,
            "x509: certificate is valid for elsewhere.example, not for the name",
        ),
    ] {
        let front = TlsFront::start_flawed(behind, flaw).await.unwrap();
        let error = asked(&front, trusting(&front)).await.unwrap_err();
        assert!(error.contains(words), "{error}");
    }

    let front = TlsFront::start(behind, true).await.unwrap();
    let error = asked(&front, trusting(&front)).await.unwrap_err();
    assert!(
        error.contains("certificate required: the server wants a client certificate"),
        "{error}"
    );
    let stranger = TlsFront::start(behind, true).await.unwrap();
    let identity = [
        stranger.client().certificate.as_bytes(),
        stranger.client().key.as_bytes(),
    ]
    .concat();
    let settings = Settings {
        identity: Some(identity),
        ..trusting(&front)
    };
    let error = asked(&front, settings).await.unwrap_err();
    assert!(
        error.contains("does not accept the client certificate"),
        "{error}"
    );

    let error = get(&format!("https://{behind}/"), Settings::default(), 20.0)
        .await
        .unwrap_err();
    assert!(error.contains("the server does not speak TLS there"), "{error}");
}

//! Connections that fail, wait or want certificates.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::fake::{Server, edge, failure, notification, reply};
use crate::error::Retry;
use crate::provider_type::ProviderType as Type;
use crate::{Target, Tls, send};

async fn send_to(target: &Target) -> Result<crate::Sent, crate::Error> {
    send(&edge(), target, &notification(failure())).await
}

#[tokio::test]
async fn nobody_there_is_worth_another_attempt() {
    let target = Target::new(Type::Generic, "http://127.0.0.1:1/in");
    let error = send_to(&target).await.expect_err("nobody is there");
    assert_eq!(error.retry, Retry::Backoff);
    assert!(error.to_string().contains("failed to execute request"), "{error}");
}

#[tokio::test]
async fn a_service_that_hangs_up_is_worth_another_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 64]).await;
        }
    });
    let target = Target::new(Type::Generic, format!("http://{address}/in"));
    assert_eq!(
        send_to(&target).await.expect_err("it hangs up").retry,
        Retry::Backoff
    );
}

#[tokio::test]
async fn a_caller_may_give_up_a_service_that_is_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = Target::new(
        Type::Generic,
        format!("http://{}/in", listener.local_addr().unwrap()),
    );
    let sent = tokio::time::timeout(Duration::from_millis(50), send_to(&target)).await;
    assert!(sent.is_err(), "nobody answers");
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
        }
    });
    let target = Target::new(Type::Generic, format!("http://{address}/in"));
    let error = send_to(&target).await.expect_err("it is refused");
    assert!(error.to_string().contains("status code 400"), "{error}");
}

#[tokio::test]
async fn a_message_that_was_taken_is_not_said_again_for_what_is_wrong_with_the_rest_of_the_answer() {
    for rest in [
        "content-length: 100\r\n\r\nshort",
        "transfer-encoding: chunked\r\n\r\nno size\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let answer = format!("HTTP/1.1 200 OK\r\n{rest}");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let target = Target::new(Type::Generic, address);
        send_to(&target).await.expect("it was taken");
    }
}

#[tokio::test]
async fn headers_are_written_as_go_writes_them() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut target = Target::new(
        Type::GenericHmac,
        format!("http://{}/in", listener.local_addr().unwrap()),
    );
    target.token = "key".to_owned();
    // as in Go, these change nothing
    for name in ["Host", "content-length", "Transfer-Encoding", "Connection"] {
        target.headers.insert(name.to_owned(), "7".to_owned());
    }
    target.headers.insert("X-Team".to_owned(), "équipe".to_owned());
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"}") && stream.read_buf(&mut seen).await.unwrap() > 0 {}
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await
            .unwrap();
        String::from_utf8(seen).unwrap()
    });
    send_to(&target).await.expect("it is heard");
    let heard = heard.await.unwrap();
    for header in [
        "\r\nX-Signature: sha256=",
        "\r\nGotk-Component: kustomize-controller\r\n",
        "\r\nContent-Type: application/json\r\n",
        "\r\nX-Team: équipe\r\n",
        "\r\nHost: 127.0.0.1:",
    ] {
        assert!(heard.contains(header), "{heard}");
    }
}

#[tokio::test]
async fn a_proxy_is_used_if_there_is_one() {
    let proxy = Server::start(|heard| match heard.header("proxy-authorization") {
        "Basic dXNlcjpwYXNz" => reply(200, ""),
        _ => reply(407, ""),
    })
    .await;
    let mut target = Target::new(Type::Generic, "http://nowhere.invalid/in");
    target.proxy = Some(proxy.url.replace("http://", "http://user:pass@"));
    send_to(&target).await.expect("the proxy takes it");
    assert_eq!(proxy.heard()[0].uri.to_string(), "http://nowhere.invalid/in");
}

#[tokio::test]
async fn certificates_are_shown_and_checked() {
    let authority = Authority::new("authority");
    let stranger = Authority::new("stranger");
    let url = serve(&authority).await;
    let with = |ca: &Authority, client: Option<&Authority>| Target {
        tls: Some(Tls {
            ca: Some(ca.certificate.pem().into_bytes()),
            certificate: client.map(|authority| authority.sign("client")),
        }),
        ..Target::new(Type::Generic, &url)
    };
    send_to(&with(&authority, Some(&authority)))
        .await
        .expect("both know each other");
    for target in [
        with(&authority, None),
        with(&authority, Some(&stranger)),
        with(&stranger, Some(&authority)),
        Target::new(Type::Generic, &url),
    ] {
        let error = send_to(&target).await.expect_err("they do not know each other");
        assert_eq!(error.retry, Retry::Backoff, "{error}");
    }
    let mut broken = with(&authority, None);
    broken.tls = Some(Tls {
        ca: Some(b"no pem".to_vec()),
        certificate: None,
    });
    assert_eq!(
        send_to(&broken).await.expect_err("it is none").retry,
        Retry::Never
    );
}

struct Authority {
    certificate: rcgen::Certificate,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: rcgen::Issuer::new(params, key),
        }
    }

    fn sign(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        (signed.pem().into_bytes(), key.serialize_pem().into_bytes())
    }
}

/// A server that takes only clients whom its authority knows.
async fn serve(authority: &Authority) -> String {
    let _ = edge(); // sets up cryptography
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority.issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut seen = Vec::new();
            while !seen.ends_with(b"}") && stream.read_buf(&mut seen).await.is_ok_and(|size| size > 0) {}
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .await;
        }
    });
    format!("https://localhost:{port}/in")
}

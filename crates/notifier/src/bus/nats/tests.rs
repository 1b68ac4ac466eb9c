//! A NATS server on this machine that speaks as much of the protocol as a publisher hears.

mod real;

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpListener;

use super::*;
use crate::git::tests::service::{failed, send, target};
use crate::provider_type::ProviderType as Type;
use crate::target::Tls;

const SEED: &str = include_str!("key/seed.txt");
const PUBLIC: &str = include_str!("key/public.txt");

/// Data that a server received.
#[derive(Default)]
struct Heard {
    connect: Value,
    published: Vec<(String, Vec<u8>)>,
}

/// Serves as many connections as come; `refusal` is said after CONNECT or PUB.
async fn server(
    info: &'static str,
    refusal: Option<(&'static str, &'static str)>,
) -> (u16, Arc<Mutex<Heard>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let kept = heard.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream
                .write_all(format!("INFO {info}\r\n").as_bytes())
                .await
                .unwrap();
            converse(stream, &kept, refusal).await;
        }
    });
    (port, heard)
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    heard: &Mutex<Heard>,
    refusal: Option<(&'static str, &'static str)>,
) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await.is_ok_and(|length| length > 0) {
        let (word, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        match word {
            "CONNECT" => heard.lock().unwrap().connect = serde_json::from_str(rest).unwrap(),
            "PUB" => {
                let (subject, length) = rest.split_once(' ').unwrap();
                let mut payload = vec![0; length.parse::<usize>().unwrap() + 2];
                stream.read_exact(&mut payload).await.unwrap();
                payload.truncate(payload.len() - 2);
                heard
                    .lock()
                    .unwrap()
                    .published
                    .push((subject.to_owned(), payload));
            }
            "PING" => stream.write_all(b"INFO {}\r\nPING\r\nPONG\r\n").await.unwrap(),
            _ => {}
        }
        if let Some((_, said)) = refusal.filter(|(after, _)| *after == word) {
            stream
                .write_all(format!("-ERR '{said}'\r\n").as_bytes())
                .await
                .unwrap();
        }
        line.clear();
    }
}

fn to(address: &str) -> Target {
    let mut target = target(Type::Nats, address);
    target.channel = "flux.events".to_owned();
    target
}

#[tokio::test]
async fn an_event_is_published_with_a_name_and_a_password() {
    let (port, heard) = server("{}", None).await;
    let mut target = to(&format!("127.0.0.1:{port}"));
    (target.username, target.password) = ("flux".to_owned(), "hunter2".to_owned());
    send(&target, &failed()).await.unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!(
        (&heard.connect["user"], &heard.connect["pass"]),
        (&"flux".into(), &"hunter2".into())
    );
    let (subject, payload) = &heard.published[0];
    assert_eq!(subject, "flux.events");
    assert_eq!(
        serde_json::from_slice::<event::Event>(payload).unwrap(),
        failed().event
    );
}

#[tokio::test]
async fn a_key_signs_what_the_server_asks_and_goes_before_a_password() {
    let (port, heard) = server(r#"{"nonce":"nonce","auth_required":true}"#, None).await;
    let mut target = to(&format!("nats://127.0.0.1:{port}"));
    (target.username, target.password) = ("flux".to_owned(), "hunter2".to_owned());
    target.secret.insert("nkey".to_owned(), SEED.into());
    send(&target, &failed()).await.unwrap();
    {
        let heard = heard.lock().unwrap();
        assert_eq!(heard.connect["nkey"], PUBLIC.trim());
        assert_eq!(heard.connect["sig"], include_str!("key/signature.txt").trim());
        assert!(heard.connect.get("user").is_none());
    }
    let credentials = format!(
        "-----BEGIN NATS USER JWT-----\neyJ0.eyJq.c2ln\n------END NATS USER JWT------\n\n*** IMPORTANT ***\n\n\
         -----BEGIN USER NKEY SEED-----\n{SEED}------END USER NKEY SEED------\n"
    );
    target.secret.insert("creds".to_owned(), credentials.into());
    send(&target, &failed()).await.unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!(heard.connect["jwt"], "eyJ0.eyJq.c2ln");
    assert_eq!(heard.connect["sig"], include_str!("key/signature.txt").trim());
    assert!(heard.connect.get("nkey").is_none());
}

#[tokio::test]
async fn the_address_has_a_token_or_a_password() {
    let (port, heard) = server("{}", None).await;
    send(&to(&format!("nats://t0ken@127.0.0.1:{port}")), &failed())
        .await
        .unwrap();
    assert_eq!(heard.lock().unwrap().connect["auth_token"], "t0ken");
}

#[tokio::test]
async fn refusals_are_told_and_outages_tried_again() {
    for (after, said, retry) in [
        ("CONNECT", "Authorization Violation", Retry::Never),
        (
            "PUB",
            "Permissions Violation for Publish to \"flux.events\"",
            Retry::Never,
        ),
        ("CONNECT", "maximum connections exceeded", Retry::Backoff),
    ] {
        let (port, _) = server("{}", Some((after, said))).await;
        let error = send(&to(&format!("127.0.0.1:{port}")), &failed())
            .await
            .unwrap_err();
        assert_eq!(error.retry, retry, "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("error publishing event to subject flux.events: error "),
            "{text}"
        );
        assert!(text.contains(&format!("nats: {said}")), "{text}");
    }
    let error = send(&to("127.0.0.1:1"), &failed()).await.unwrap_err();
    assert_eq!(error.retry, Retry::Backoff);
}

#[tokio::test]
async fn the_next_server_is_tried_when_one_is_away() {
    let (port, heard) = server("{}", None).await;
    send(
        &to(&format!("nats://127.0.0.1:1,nats://127.0.0.1:{port}")),
        &failed(),
    )
    .await
    .unwrap();
    assert_eq!(heard.lock().unwrap().published.len(), 1);
}

#[tokio::test]
async fn what_the_server_does_not_take_is_not_sent() {
    let (port, heard) = server(r#"{"max_payload":100}"#, None).await;
    let error = send(&to(&format!("127.0.0.1:{port}")), &failed())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("takes no more than 100"), "{error}");
    assert!(heard.lock().unwrap().published.is_empty());
    let (port, _) = server(r#"{"tls_available":false}"#, None).await;
    let error = send(&to(&format!("tls://127.0.0.1:{port}")), &failed())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("secure connection not available"),
        "{error}"
    );
}

#[tokio::test]
async fn tls_begins_when_the_server_wants_it() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let key = rustls_pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let kept = heard.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream
                .write_all(b"INFO {\"tls_required\":true}\r\n")
                .await
                .unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                converse(stream, &kept, None).await;
            }
        }
    });
    let mut target = to(&format!("nats://localhost:{port}"));
    let error = send(&target, &failed()).await.unwrap_err().to_string();
    assert!(error.contains("TLS: "), "{error}");
    target.tls = Some(Tls {
        ca: Some(certified.cert.pem().into()),
        certificate: None,
    });
    send(&target, &failed()).await.unwrap();
    assert_eq!(heard.lock().unwrap().published.len(), 1);
}

#[test]
fn a_subject_is_one_word() {
    for subject in ["", "a b", "a\r\nPUB x 0", "a\tb", &"x".repeat(2000)] {
        let mut target = to("h");
        target.channel = subject.to_owned();
        assert!(
            check(&target)
                .unwrap_err()
                .to_string()
                .contains("NATS subject (channel)")
        );
    }
    let mut target = to("h");
    target.secret.insert("creds".to_owned(), b"hunter2".to_vec());
    let error = check(&target).unwrap_err().to_string();
    assert_eq!(
        error,
        "failed to read creds: it must hold a user's JWT and an nkey seed"
    );
}

#[tokio::test]
async fn the_same_is_said_as_by_flux() {
    let (port, heard) = server(r#"{"nonce":"nonce","max_payload":1048576}"#, None).await;
    let is_nats = |type_| type_ == Type::Nats;
    let records = crate::git::tests::flux::records(is_nats);
    assert_eq!(records.len(), 15);
    for record in records {
        let case = record.case();
        let mut target = record.target.clone();
        target.address = target.address.replace("NATS", &port.to_string());
        send(&target, &record.notification).await.unwrap();
        let heard = std::mem::take(&mut *heard.lock().unwrap());
        let expected: Value = serde_json::from_slice(&record.requests[0].body()).unwrap();
        for (name, value) in expected.as_object().unwrap() {
            // What each library says of itself and of what it can.
            if !["lang", "version", "headers", "no_responders"].contains(&name.as_str()) {
                assert_eq!(&heard.connect[name], value, "{case}: {name}");
            }
        }
        let published = (record.requests[1].path.clone(), record.requests[1].body());
        assert_eq!(heard.published, [published], "{case}");
    }
}

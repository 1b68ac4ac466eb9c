//! Tests of services that refuse a message, and of the consequences.

use std::time::Duration;

use axum::http::header::{LOCATION, RETRY_AFTER};

use super::fake::{CHATS_AND_INCIDENTS, Server, edge, failure, notification, reply, say_to, target};
use crate::error::{Error, Retry};
use crate::notification::{Notification, Thread};
use crate::provider_type::ProviderType as Type;
use crate::{Target, check, send};

fn generic(url: &str) -> Target {
    Target::new(Type::Generic, format!("{url}/in"))
}

async fn refusal(
    status: u16,
    header: Option<(axum::http::HeaderName, &'static str)>,
    body: &'static str,
) -> Error {
    let server = Server::start(move |_| {
        let mut reply = reply(status, body);
        if let Some((name, value)) = &header {
            reply.1.insert(name, value.parse().unwrap());
        }
        reply
    })
    .await;
    let sent = send(&edge(), &generic(&server.url), &notification(failure())).await;
    sent.expect_err("it is refused")
}

#[tokio::test]
async fn refusals_say_whether_to_try_again() {
    let after = |seconds| Retry::After(Duration::from_secs(seconds));
    let cases = [
        (400, None, Retry::Never),
        (401, None, Retry::Never),
        (403, None, Retry::Never),
        (404, None, Retry::Never),
        (410, None, Retry::Never),
        (408, None, Retry::Backoff),
        (429, None, Retry::Backoff),
        (429, Some("7"), after(7)),
        (503, Some("Sun, 22 Nov 2009 01:00:00 GMT"), after(1)),
        (503, None, Retry::Backoff),
        (500, None, Retry::Backoff),
        (502, Some("9"), Retry::Backoff),
        (301, None, Retry::Never),
    ];
    for (status, pause, retry) in cases {
        let error = refusal(status, pause.map(|pause| (RETRY_AFTER, pause)), "no").await;
        assert_eq!(error.retry, retry, "{status} {pause:?}");
        assert!(
            error.to_string().contains(&format!("status code {status}")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_pause_may_stand_in_the_answer() {
    let error = refusal(429, None, r#"{"ok":false,"parameters":{"retry_after":31}}"#).await;
    assert_eq!(error.retry, Retry::After(Duration::from_secs(31)));
}

#[tokio::test]
async fn refusals_are_quoted_on_one_short_line() {
    let error = refusal(400, None, "{\n  \"error\": \"no\u{7} such\tchannel\"\n}").await;
    assert_eq!(
        error.to_string(),
        r#"request failed with status code 400: { "error": "no such channel" }"#
    );
    let long: &'static str = Box::leak("x ".repeat(100_000).into_boxed_str());
    let error = refusal(500, None, long).await.to_string();
    assert!(error.len() < 500 && error.ends_with('…'), "{error}");
}

#[tokio::test]
async fn all_types_tell_a_refusal_from_a_success() {
    for type_ in CHATS_AND_INCIDENTS {
        let server = Server::start(|_| reply(500, "down")).await;
        let said = say_to(&server.url, &edge(), &target(type_), &notification(failure())).await;
        assert_eq!(said.expect_err(type_.as_str()).retry, Retry::Backoff, "{type_}");
    }
}

#[tokio::test]
async fn services_that_refuse_with_200_are_understood() {
    let cases = [
        (
            Type::Slack,
            r#"{"ok":false,"error":"channel_not_found"}"#,
            Retry::Never,
        ),
        (
            Type::Slack,
            r#"{"ok":false,"error":"ratelimited"}"#,
            Retry::Backoff,
        ),
        (Type::Slack, "<html>", Retry::Backoff),
        (
            Type::Lark,
            r#"{"code":19001,"msg":"param invalid"}"#,
            Retry::Never,
        ),
        (
            Type::Lark,
            r#"{"code":11232,"msg":"frequency limited"}"#,
            Retry::Backoff,
        ),
    ];
    for (type_, body, retry) in cases {
        let server = Server::start(move |_| reply(200, body)).await;
        let said = say_to(&server.url, &edge(), &target(type_), &notification(failure())).await;
        assert_eq!(said.expect_err(body).retry, retry, "{body}");
    }
    let mut connector = target(Type::MsTeams);
    connector.address = "https://acme.webhook.office.com/webhookb2/1".to_owned();
    for (body, retry) in [
        (
            "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429",
            Retry::Backoff,
        ),
        (
            "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 413",
            Retry::Never,
        ),
    ] {
        let server = Server::start(move |_| reply(200, body)).await;
        let said = say_to(&server.url, &edge(), &connector, &notification(failure())).await;
        assert_eq!(said.expect_err(body).retry, retry, "{body}");
    }
}

#[tokio::test]
async fn redirects_are_followed_to_the_same_host_with_the_same_request() {
    let stranger = Server::start(|_| reply(200, "")).await;
    let elsewhere = format!("{}/there", stranger.url);
    let by_name = elsewhere.replace("127.0.0.1", "localhost");
    let cases = [
        (308, "/there", true),
        (307, "/there", true),
        (302, "/there", false),
        (303, "/there", false),
        (307, &elsewhere, false),
        (308, &by_name, false),
        (307, "/in", false),
    ];
    for (status, location, arrives) in cases {
        let location = location.to_owned();
        let case = format!("{status} {location}");
        let server = Server::start(move |heard| {
            if heard.uri.path() == "/there" {
                return reply(200, "");
            }
            let mut reply = reply(status, "");
            reply.1.insert(LOCATION, location.parse().unwrap());
            reply
        })
        .await;
        let sent = send(&edge(), &generic(&server.url), &notification(failure())).await;
        assert_eq!(sent.is_ok(), arrives, "{case}");
        let heard = server.heard();
        assert!(heard.iter().all(|heard| heard.method == "POST"), "{case}");
        assert!(heard.len() <= 7, "{case}");
        if arrives {
            assert_eq!(heard[0].body, heard[1].body);
        }
    }
    assert!(stranger.heard().is_empty(), "nothing is handed to somebody else");
}

#[tokio::test]
async fn a_thread_that_is_gone_is_begun_anew() {
    let server = Server::start(|heard| match heard.method.as_str() {
        "PATCH" => reply(404, r#"{"message":"Unknown Message"}"#),
        _ => reply(200, r#"{"id":"78"}"#),
    })
    .await;
    let target = Target::new(
        Type::Discord,
        format!("{}/api/webhooks/1/token-token", server.url),
    );
    let said = Notification {
        threaded: true,
        thread: Some(Thread(serde_json::json!({ "message": "77" }))),
        ..notification(failure())
    };
    let sent = send(&edge(), &target, &said).await.expect("it is said anew");
    assert_eq!(sent.thread, Some(Thread(serde_json::json!({ "message": "78" }))));
    let methods: Vec<_> = server.heard().iter().map(|heard| heard.method.clone()).collect();
    assert_eq!(methods, ["PATCH", "POST"]);
}

#[tokio::test]
async fn threads_that_no_service_gave_are_not_kept() {
    let long = "7".repeat(600);
    let body: &'static str = Box::leak(format!(r#"{{"id":"{long}"}}"#).into_boxed_str());
    for body in [body, r#"{"id":["a"]}"#, "{}", "", "\u{0}"] {
        let server = Server::start(move |_| reply(200, body)).await;
        let target = Target::new(
            Type::Discord,
            format!("{}/api/webhooks/1/token-token", server.url),
        );
        let said = Notification {
            threaded: true,
            ..notification(failure())
        };
        let sent = send(&edge(), &target, &said).await.expect("it is said");
        assert_eq!(sent.thread, None, "{body}");
    }
}

/// Whatever a service answers, its answer is a success or a failure, and the next message can be said.
#[tokio::test]
async fn no_answer_is_too_strange() {
    let pieces = [
        "{}",
        "[]",
        "null",
        "1e999",
        "\"\\ud800\"",
        "{\"ok\":true",
        "{\"ok\":true}",
        "{\"id\":1}",
        "{\"id\":{}}",
        "{\"ok\":true,\"channel\":[],\"ts\":\"\"}",
        "{\"result\":{\"message_id\":1e300}}",
        "{\"event_id\":\"\u{0}\"}",
        "{\"code\":99999999999999999999}",
        "{\"code\":\"0\"}",
        "\u{feff}{}",
        "\r\n\r\n",
    ];
    let deep: &'static str = Box::leak("[".repeat(60_000).into_boxed_str());
    let edge = edge();
    for (index, piece) in pieces.into_iter().chain([deep]).enumerate() {
        for status in [200, 404, 429] {
            let server = Server::start(move |_| reply(status, piece)).await;
            for type_ in CHATS_AND_INCIDENTS {
                let mut said = Notification {
                    threaded: true,
                    ..notification(failure())
                };
                if let Ok(sent) = say_to(&server.url, &edge, &target(type_), &said).await {
                    assert_eq!(status, 200, "{type_} {index}");
                    said.thread = sent.thread;
                    let _ = say_to(&server.url, &edge, &target(type_), &said).await;
                }
            }
        }
    }
}

#[test]
fn targets_are_checked_without_sending() {
    let checked = |target: &Target| check(target).map_err(|error| error.to_string());
    for type_ in CHATS_AND_INCIDENTS {
        assert_eq!(checked(&target(type_)), Ok(()), "{type_}");
        if type_ == Type::Telegram {
            continue; // it has no address
        }
        for address in [
            "",
            "no url at all",
            "ftp://host/secret-path-1",
            "/relative/secret-path-1",
        ] {
            let broken = Target {
                address: address.to_owned(),
                ..target(type_)
            };
            let error = checked(&broken).expect_err(type_.as_str());
            assert!(!error.contains("secret-path"), "{error}");
        }
    }
    let cases = [
        (Type::GenericHmac, "HMAC key is empty"),
        (Type::Telegram, "empty Telegram token"),
        (Type::Zoom, "empty Zoom verification token"),
        (Type::Opsgenie, "empty Opsgenie apikey/token"),
        (Type::IncidentIo, "empty incident.io API token"),
        (Type::DataDog, "token cannot be empty"),
    ];
    for (type_, expected) in cases {
        let mut target = target(type_);
        target.token.clear();
        assert_eq!(checked(&target), Err(expected.to_owned()));
    }
}

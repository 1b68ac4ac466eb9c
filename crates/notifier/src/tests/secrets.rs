//! No error tells a secret, whatever a service answers.

use super::fake::{Server, edge, failure, notification, reply, say_to, target};
use crate::mask::Mask;
use crate::provider_type::ProviderType as Type;
use crate::{Target, check, send};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Spellings in which a hostile or helpful service may echo what it was sent.
fn spellings(secret: &str) -> Vec<String> {
    let quoted: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    vec![
        secret.to_owned(),
        serde_json::to_string(secret).unwrap(),
        quoted,
        STANDARD.encode(secret),
        format!("{secret}{secret}"),
        format!("\u{1b}[31m{secret}\u{7}"),
    ]
}

#[tokio::test]
async fn no_error_tells_a_secret_that_a_service_echoes() {
    let secrets = ["s3cr3t-t0k3n-\"with\\quotes\"&more", "plain0token0of0letters"];
    for secret in secrets {
        for (index, echo) in spellings(secret).into_iter().enumerate() {
            // at the beginning, where texts are cut, and where answers are
            for before in [0, 380, 395, 4_080, 4_090, 65_530] {
                let filler: String = "y ".repeat(before / 2);
                let spaces = " ".repeat(before);
                for filler in [filler, spaces] {
                    let body: &'static str = Box::leak(format!("{filler}{echo} denied").into_boxed_str());
                    let server = Server::start(move |_| reply(401, body)).await;
                    let mut target = target(Type::GenericHmac);
                    target.address = format!("{}/in", server.url);
                    target.token = secret.to_owned();
                    let error = send(&edge(), &target, &notification(failure())).await;
                    let error = error.expect_err("it is refused").to_string();
                    assert!(!tells(&error, secret), "{index} {before}: {error}");
                }
            }
        }
    }
}

/// Returns whether a text holds four letters of a secret in a row, in any spelling.
fn tells(text: &str, secret: &str) -> bool {
    spellings(secret).iter().take(4).any(|spelling| {
        let bytes = spelling.trim_matches('"').as_bytes();
        bytes
            .windows(8)
            .any(|part| text.as_bytes().windows(8).any(|window| window == part))
    })
}

#[tokio::test]
async fn addresses_headers_and_logins_are_secrets_too() {
    let server = Server::start(|heard| {
        let headers = format!("{:?}", heard.headers);
        reply(403, &format!("{} {headers}", heard.uri))
    })
    .await;
    for type_ in super::fake::CHATS_AND_INCIDENTS {
        let mut target = target(type_);
        target
            .headers
            .insert("X-Key".to_owned(), "header-secret-1".to_owned());
        let said = say_to(&server.url, &edge(), &target, &notification(failure())).await;
        let error = said.expect_err("it is refused").to_string();
        let login = STANDARD.encode("flux-bot:secret-password-1");
        for secret in [
            "secret-token-1",
            "secret-password-1",
            "header-secret-1",
            "hook-token-1",
            "webhook-token-1",
            "signature-1234",
            "token-12345",
            "public-key-1234",
            &login,
        ] {
            assert!(!error.contains(secret), "{type_} tells {secret}: {error}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_reached_or_sent_tells_no_secret() {
    let mut unreached = target(Type::Slack);
    unreached.address = "http://127.0.0.1:1/services/hook-token-1?x=query-token-1".to_owned();
    let mut proxied = unreached.clone();
    proxied.proxy = Some("http://user:proxy-secret-1@127.0.0.1:1".to_owned());
    let mut no_header = target(Type::Zoom);
    no_header.token = "line\nsecret-token-1".to_owned();
    let mut no_proxy = target(Type::Generic);
    no_proxy.proxy = Some("::proxy-secret-1".to_owned());
    let mut no_key = target(Type::Generic);
    no_key.tls = Some(crate::Tls {
        ca: None,
        certificate: Some((b"secret-certificate".to_vec(), b"secret-key-1".to_vec())),
    });
    for target in [unreached, proxied, no_header, no_proxy, no_key] {
        let error = send(&edge(), &target, &notification(failure())).await;
        let error = error.expect_err("it cannot be sent").to_string();
        for secret in [
            "hook-token-1",
            "query-token-1",
            "proxy-secret-1",
            "secret-token-1",
            "secret-key",
        ] {
            assert!(!error.contains(secret), "{error}");
        }
    }
}

#[test]
fn nothing_that_is_printed_holds_a_secret() {
    let mut target = target(Type::Sentry);
    target
        .secret
        .insert("token".to_owned(), b"secret-token-1".to_vec());
    target.tls = Some(crate::Tls {
        ca: Some(b"pem-of-ca".to_vec()),
        certificate: Some((b"pem".to_vec(), b"secret-key-1".to_vec())),
    });
    let printed = format!("{target:?} {:?} {:?}", target.tls, check(&target));
    for secret in ["secret-", "public-key", "112, 101, 109"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn words_that_are_no_secrets_are_left() {
    let mut target = Target::new(Type::GitHub, "https://github.com/organisation/repository");
    target.token = "x".to_owned();
    target
        .secret
        .insert("githubAppID".to_owned(), b"1234567".to_vec());
    target.secret.insert("token".to_owned(), b"x".to_vec());
    let text = "failed to set status of organisation/repository for app 1234567: xxx";
    assert_eq!(Mask::from_target(&target).line(text, 200), text);
}

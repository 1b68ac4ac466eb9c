use aws_lc_rs::hmac::{self, Algorithm, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA512};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::BTreeMap;

use super::*;

const TOKEN: &str = "token-of-the-receiver";

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn answer(
    type_: ReceiverType,
    pairs: &[(&str, &str)],
    body: &str,
    events: &[&str],
) -> Result<Accepted, String> {
    answer_with(TOKEN, type_, pairs, body, events)
}

fn answer_with(
    token: &str,
    type_: ReceiverType,
    pairs: &[(&str, &str)],
    body: &str,
    events: &[&str],
) -> Result<Accepted, String> {
    let headers = headers(pairs);
    let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
    let secret = BTreeMap::from([("token".to_owned(), token.as_bytes().to_vec())]);
    let call = Call {
        headers: &headers,
        body: body.as_bytes(),
    };
    let rules = Rules {
        type_,
        events: &events,
        secret: Some(&secret),
        oidc: &[],
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    verify(type_, &call, &rules).map_err(|refused| refused.to_string())
}

fn signed(algorithm: Algorithm, prefix: &str, body: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(algorithm, TOKEN.as_bytes()), body.as_bytes());
    format!("{prefix}{}", hex::encode(tag))
}

const PUSH: &str = r#"{"ref":"refs/heads/main"}"#;
const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn a_signed_push_of_github_is_taken_by_either_signature() {
    for (header, algorithm, prefix) in [
        ("X-Hub-Signature", HMAC_SHA1_FOR_LEGACY_USE_ONLY, "sha1="),
        ("X-Hub-Signature-256", HMAC_SHA256, "sha256="),
        ("X-Hub-Signature", HMAC_SHA512, "sha512="),
    ] {
        let signature = signed(algorithm, prefix, PUSH);
        let headers = [JSON, ("X-GitHub-Event", "push"), (header, signature.as_str())];
        let accepted = answer(ReceiverType::GitHub, &headers, PUSH, &["ping", "PUSH"]).unwrap();
        assert_eq!(accepted.event.as_deref(), Some("push"));
        assert!(accepted.identity.is_some() && accepted.payload.is_none());
        let other = answer(ReceiverType::GitHub, &headers, PUSH, &["ping"]);
        assert_eq!(
            other,
            Err("the GitHub event \"push\" is not authorised".to_owned())
        );
        assert!(answer(ReceiverType::GitHub, &headers, "{}", &[]).is_err());
    }
    // The better one decides if there are two.
    let good = signed(HMAC_SHA1_FOR_LEGACY_USE_ONLY, "sha1=", PUSH);
    let headers = [
        JSON,
        ("X-Hub-Signature", good.as_str()),
        ("X-Hub-Signature-256", "sha256=00"),
    ];
    assert!(answer(ReceiverType::GitHub, &headers, PUSH, &[]).is_err());
}

#[test]
fn a_form_of_github_is_signed_as_a_whole_and_read_inside() {
    let form = "payload=%7B%22ref%22%3A+%22main%22%7D";
    let signature = signed(HMAC_SHA256, "sha256=", form);
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("X-Hub-Signature-256", signature.as_str()),
    ];
    let accepted = answer(ReceiverType::GitHub, &headers, form, &[]).unwrap();
    assert_eq!(
        accepted.payload.as_deref(),
        Some(br#"{"ref": "main"}"#.as_slice())
    );
}

#[test]
fn what_github_does_not_send_is_refused() {
    let signature = signed(HMAC_SHA256, "sha256=", PUSH);
    let refused = |headers: &[(&str, &str)]| answer(ReceiverType::GitHub, headers, PUSH, &[]).unwrap_err();
    let signature = ("X-Hub-Signature-256", signature.as_str());
    for (headers, reason) in [
        (vec![JSON], "missing signature"),
        (vec![signature], "mime: malformed Content-Type"),
        (
            vec![signature, ("Content-Type", "text/plain")],
            "unsupported Content-Type \"text/plain\"",
        ),
        (
            vec![JSON, ("X-Hub-Signature-256", "sha256=abcd")],
            "payload signature check failed",
        ),
    ] {
        let said = refused(&headers);
        assert!(
            said.starts_with("the GitHub signature header is invalid, err: "),
            "{said}"
        );
        assert!(said.ends_with(reason), "{said}");
    }
}

#[test]
fn bitbucket_signs_as_github_and_names_its_events_elsewhere() {
    let signature = signed(HMAC_SHA256, "sha256=", PUSH);
    let headers = [
        ("Content-Type", "application/json; charset=utf-8"),
        ("X-Event-Key", "repo:refs_changed"),
        ("X-Hub-Signature", signature.as_str()),
    ];
    let accepted = answer(ReceiverType::Bitbucket, &headers, PUSH, &["repo:refs_changed"]).unwrap();
    assert_eq!(accepted.event.as_deref(), Some("repo:refs_changed"));
}

#[test]
fn gitlab_and_harbor_send_the_token() {
    let gitlab = [("X-Gitlab-Token", TOKEN), ("X-Gitlab-Event", "Tag Push Hook")];
    assert!(
        answer(
            ReceiverType::GitLab,
            &gitlab,
            PUSH,
            &["push hook", "tag push hook"]
        )
        .is_ok()
    );
    assert!(answer(ReceiverType::GitLab, &gitlab, PUSH, &["Push Hook"]).is_err());
    assert!(answer(ReceiverType::GitLab, &[("X-Gitlab-Token", "other")], PUSH, &[]).is_err());
    assert!(answer(ReceiverType::Harbor, &[("Authorization", TOKEN)], PUSH, &[]).is_ok());
    assert!(answer(ReceiverType::Harbor, &[], PUSH, &[]).is_err());
}

#[test]
fn nobody_gets_in_by_an_empty_token() {
    let empty = hmac::sign(&hmac::Key::new(HMAC_SHA256, b""), PUSH.as_bytes());
    let signature = format!("sha256={}", hex::encode(empty));
    let headers = [
        JSON,
        ("X-Signature", signature.as_str()),
        ("X-Hub-Signature", signature.as_str()),
    ];
    for type_ in [
        ReceiverType::GitHub,
        ReceiverType::Bitbucket,
        ReceiverType::GitLab,
        ReceiverType::Harbor,
        ReceiverType::GenericHmac,
    ] {
        let refused = answer_with("", type_, &headers, PUSH, &[]);
        assert_eq!(
            refused,
            Err("invalid secret data: field 'token' is empty".to_owned()),
            "{type_}"
        );
    }
}

#[test]
fn generic_hmac_looks_at_the_signature_only() {
    let signature = signed(HMAC_SHA512, "sha512=", "anything");
    let headers = [("X-Signature", signature.as_str())];
    assert_eq!(
        answer(ReceiverType::GenericHmac, &headers, "anything", &["push"]),
        Ok(Accepted::default())
    );
    assert!(answer(ReceiverType::GenericHmac, &headers, "something", &[]).is_err());
    assert_eq!(
        answer(ReceiverType::Generic, &[], "anything", &["push"]),
        Ok(Accepted::default())
    );
}

#[test]
fn nexus_signs_by_sha1_without_saying_so() {
    let body = r#"{"action":"CREATED","repositoryName":"maven"}"#;
    let sign = |body: &str| signed(HMAC_SHA1_FOR_LEGACY_USE_ONLY, "", body);
    let ask = |signature: &str, body: &str| {
        answer(
            ReceiverType::Nexus,
            &[("X-Nexus-Webhook-Signature", signature)],
            body,
            &[],
        )
    };
    assert!(ask(&sign(body), body).is_ok());
    assert_eq!(ask(&sign("{}"), body), Err("invalid Nexus signature".to_owned()));
    assert!(ask("", body).unwrap_err().contains("missing"));
    for body in ["", "[]", r#"{"action":1}"#, "{} {}"] {
        assert!(
            ask(&sign(body), body)
                .unwrap_err()
                .starts_with("cannot decode Nexus"),
            "{body}"
        );
    }
}

#[test]
fn registries_without_a_proof_must_send_what_looks_like_theirs() {
    for (type_, good, bad) in [
        (
            ReceiverType::Quay,
            r#"{"docker_url":"quay.io/a/b","updated_tags":["1"]} trailing"#,
            r#"{"updated_tags":"1"}"#,
        ),
        (
            ReceiverType::DockerHub,
            r#"{"push_data":{"tag":"1"},"repository":{"repo_url":null}}"#,
            r#"{"push_data":{"tag":1}}"#,
        ),
        (
            ReceiverType::Acr,
            r#"{"action":"push","target":{"repository":"a","tag":"1"},"more":[{}]}"#,
            r#"{"target":[]}"#,
        ),
    ] {
        for good in [good, "{}", "null"] {
            assert!(answer(type_, &[], good, &[]).is_ok(), "{type_}: {good}");
        }
        for bad in [bad, "", "[]", "[\"a\"]", "{", "5", "\"a\""] {
            let refused = answer(type_, &[], bad, &[]).unwrap_err();
            assert!(refused.starts_with("cannot decode"), "{type_}: {refused}");
            assert!(!refused.contains("1\""), "{refused}");
        }
    }
}

#[test]
fn cdevents_are_told_apart_by_their_header() {
    let body = r#"{"context":{"version":"0.4.1","id":"1","source":"/s","type":"dev.cdevents.change.merged.0.2.0","timestamp":"2026-03-20T14:27:05Z"},
        "subject":{"id":"s","type":"change","content":{}}}"#;
    let headers = [("Ce-Type", "dev.cdevents.change.merged")];
    let events = ["dev.cdevents.change.merged"];
    let accepted = answer(ReceiverType::CdEvents, &headers, body, &events).unwrap();
    assert!(accepted.identity.is_some());
    let refused = answer(ReceiverType::CdEvents, &[], body, &events).unwrap_err();
    assert_eq!(refused, "the CDEvent \"\" is not authorised");
    assert!(answer(ReceiverType::CdEvents, &headers, "{}", &[]).is_err());
}

#[test]
fn an_event_that_nobody_signed_is_cut_for_the_log() {
    let signature = signed(HMAC_SHA256, "sha256=", PUSH);
    let long = format!("push\tor\u{85}{}", "x".repeat(10_000));
    let headers = [
        JSON,
        ("X-GitHub-Event", long.as_str()),
        ("X-Hub-Signature-256", signature.as_str()),
    ];
    let accepted = answer(ReceiverType::GitHub, &headers, PUSH, &[]).unwrap();
    let event = accepted.event.unwrap();
    assert!(event.starts_with("pushorxxx") && event.len() < 100, "{event}");
    // What it is compared with is the whole.
    assert!(answer(ReceiverType::GitHub, &headers, PUSH, &["push", &event]).is_err());
    assert!(answer(ReceiverType::GitHub, &headers, PUSH, &[&long]).is_ok());
}

//! Whatever is in an event, what is sent of it is what the service takes, or at least of bounded size.

use std::collections::BTreeMap;

use super::fake::{CHATS_AND_INCIDENTS, failure, notification, target};
use crate::notification::{Notification, State};
use crate::provider::render;
use crate::provider_type::ProviderType as Type;

/// Longest body that the service accepts.
fn longest(type_: Type) -> Option<usize> {
    Some(match type_ {
        Type::Generic | Type::GenericHmac => return None, // as it is, as in Flux
        Type::Slack | Type::Rocket => 300_000,
        Type::Discord => 40_000,
        Type::MsTeams => 28 << 10,
        Type::GoogleChat => 32_000,
        Type::Webex => 50_000, // 7,439 bytes of text, in JSON
        Type::Telegram => 60_000,
        Type::Lark => 20 << 10,
        Type::Matrix => 65_000,
        Type::Zulip => 120_000,
        Type::Zoom => 60_000,
        Type::Opsgenie => 130_000,
        Type::PagerDuty => 512 << 10,
        Type::IncidentIo => 100_000,
        Type::Sentry => 200_000,
        Type::DataDog => 50_000,
        Type::Grafana => 3_000,
        Type::Alertmanager => 120_000,
        _ => 0,
    })
}

fn hostile(piece: &str) -> Notification {
    let long = piece.repeat(110_000 / piece.len());
    let mut event = failure();
    event.message = long.clone();
    event.reason = long.clone();
    event.reporting_controller = long.clone();
    event.involved_object.name = long.clone();
    event.involved_object.kind = long.clone();
    event.involved_object.namespace = long.clone();
    let mut metadata = BTreeMap::new();
    for index in 0..2_000 {
        metadata.insert(format!("{index:04}"), piece.to_owned());
    }
    metadata.insert("0000".to_owned(), long.clone());
    metadata.insert(long.clone(), long);
    event.metadata = metadata;
    notification(event)
}

#[test]
fn whatever_is_said_fits() {
    for piece in ["x", "<", "😀", "\u{1}"] {
        let mut said = hostile(piece);
        for state in [State::Event, State::Firing, State::Resolved] {
            said.state = state;
            for type_ in CHATS_AND_INCIDENTS {
                let Some(longest) = longest(type_) else {
                    continue;
                };
                for request in render(&target(type_), &said).unwrap() {
                    let size = request.body.len();
                    assert!(size <= longest, "{type_} {piece:?} {state:?}: {size}");
                }
            }
        }
    }
}

#[test]
fn the_text_is_cut_and_not_the_rest() {
    let mut said = notification(failure());
    said.event.message = "word ".repeat(30_000);
    for type_ in CHATS_AND_INCIDENTS {
        let requests = render(&target(type_), &said).unwrap();
        let body = String::from_utf8(requests[0].body.to_vec()).unwrap();
        assert!(body.contains("webapp"), "{type_}");
        if type_.is_generic() || type_ == Type::Grafana {
            continue; // the one does not cut, the other does not tell
        }
        assert!(body.contains('…') || body.contains("%E2%80%A6"), "{type_}");
        assert!(
            body.contains("main@sha1") || body.contains("main%40sha1"),
            "{type_} loses metadata"
        );
    }
}

#[test]
fn a_message_for_telegram_fits_without_its_markup() {
    for piece in [".", "😀", "x", "*_"] {
        let mut said = notification(failure());
        said.event.message = piece.repeat(10_000);
        let requests = render(&target(Type::Telegram), &said).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&requests[0].body).unwrap();
        let plain = unmarked(body["text"].as_str().unwrap());
        let length = plain.encode_utf16().count();
        assert!((4_000..=4_096).contains(&length), "{piece}: {length}");
    }
}

fn unmarked(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(found) = characters.next() {
        match found {
            '\\' => plain.extend(characters.next()),
            '*' => {}
            other => plain.push(other),
        }
    }
    plain
}

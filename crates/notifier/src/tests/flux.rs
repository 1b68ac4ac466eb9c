//! Recorded messages of Flux's own notifiers for the same events (recorded by hack/oracle/notifier).
//!
//! Differences on purpose: Sentry is told of this client and not of Go's, names of events and spans are derived from
//! them and not random, and transactions have the controller and not the machine for a server.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;

use super::fake::notification;
use crate::provider::render;
use crate::request::Request;
use crate::target::{ProviderRef, Target};

#[derive(Deserialize)]
struct Record {
    target: RecordedTarget,
    event: event::Event,
    error: Option<String>,
    requests: Vec<RecordedRequest>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct RecordedTarget {
    #[serde(rename = "type")]
    type_: String,
    address: String,
    channel: String,
    username: String,
    password: String,
    token: String,
    headers: BTreeMap<String, String>,
    uid: String,
}

#[derive(Deserialize)]
struct RecordedRequest {
    method: String,
    url: String,
    headers: BTreeMap<String, String>,
    body: String,
}

#[test]
fn the_same_is_sent_as_by_flux() {
    let mut compared = 0;
    for line in include_str!("flux.jsonl").lines() {
        let record: Record = serde_json::from_str(&line.replace("127.0.0.1:LOCAL", "127.0.0.1:9")).unwrap();
        let case = format!(
            "{} {} {}",
            record.target.type_, record.target.address, record.event.reason
        );
        let target = read(record.target);
        let requests = match (render(&target, &notification(record.event)), record.error) {
            (Ok(requests), None) => requests,
            (Err(error), Some(expected)) => {
                assert_eq!(error.to_string(), expected, "{case}");
                continue;
            }
            (outcome, expected) => panic!("{case}: {:?}, but Flux: {expected:?}", outcome.err()),
        };
        assert_eq!(requests.len(), record.requests.len(), "{case}");
        for (ours, theirs) in requests.iter().zip(&record.requests) {
            compare(ours, theirs, &case);
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared}");
}

fn read(recorded: RecordedTarget) -> Target {
    Target {
        channel: recorded.channel,
        username: recorded.username,
        password: recorded.password,
        token: recorded.token,
        headers: recorded.headers,
        provider: ProviderRef {
            uid: recorded.uid,
            ..ProviderRef::default()
        },
        ..Target::new(recorded.type_.parse().unwrap(), recorded.address)
    }
}

fn compare(ours: &Request, theirs: &RecordedRequest, case: &str) {
    assert_eq!(ours.method.as_str(), theirs.method, "{case}");
    assert_eq!(
        ours.url.as_str(),
        url::Url::parse(&theirs.url).unwrap().as_str(),
        "{case}"
    );
    let is_sentry = theirs.headers.contains_key("X-Sentry-Auth");
    let headers: BTreeMap<String, String> = ours
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let expected: BTreeMap<String, String> = theirs
        .headers
        .iter()
        .map(|(name, value)| {
            let client = concat!("windlass/", env!("CARGO_PKG_VERSION"));
            (name.to_lowercase(), value.replace("sentry.go/0.46.2", client))
        })
        .collect();
    assert_eq!(headers, expected, "{case}");
    let body = std::str::from_utf8(&ours.body).unwrap();
    if is_sentry {
        assert_eq!(envelope(body), envelope(&theirs.body), "{case}");
    } else if expected["content-type"] == "application/json" && !case.starts_with("generic") {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(json(body), json(&theirs.body), "{case}");
    } else if expected["content-type"] == "application/x-www-form-urlencoded" {
        assert_eq!(form(body), form(&theirs.body), "{case}");
    } else {
        assert_eq!(body, theirs.body, "{case}");
    }
}

fn form(text: &str) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(text.as_bytes()).collect()
}

fn envelope(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| {
        let mut written: Value = serde_json::from_str(line).unwrap();
        strip(&mut written);
        written
    });
    lines.collect()
}

fn strip(value: &mut Value) {
    if value["type"] == "transaction" && value["transaction"].is_string() {
        value.as_object_mut().unwrap().remove("server_name");
    }
    let volatile = ["event_id", "sdk", "platform", "length", "trace_id", "span_id"];
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !volatile.contains(&key.as_str()));
            map.values_mut().for_each(strip_within);
        }
        other => strip_within(other),
    }
}

fn strip_within(value: &mut Value) {
    match value {
        Value::Object(_) => strip(value),
        Value::Array(items) => items.iter_mut().for_each(strip_within),
        _ => {}
    }
}

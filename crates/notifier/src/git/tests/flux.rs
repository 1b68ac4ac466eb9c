//! Recorded requests of Flux's own notifiers for the same events, to services that gave the same answers
//! (recorded by hack/oracle/notifier).
//!
//! Only what changes something is compared. Questions differ: Flux asks Gitea for its version and Azure DevOps for its
//! routes first, and asks for fewer statuses and comments at once.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use super::service::{self, Asked, Reply, Service};
use crate::edge::Http;
use crate::error::Error;
use crate::mask::Mask;
use crate::notification::{AlertRef, Notification, Sent};
use crate::provider_type::ProviderType as Type;
use crate::target::{ProviderRef, Target};

#[derive(Deserialize)]
struct Line {
    target: Given,
    event: event::Event,
    error: Option<String>,
    requests: Vec<Request>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Given {
    #[serde(rename = "type")]
    type_: String,
    address: String,
    channel: String,
    username: String,
    password: String,
    token: String,
    headers: BTreeMap<String, String>,
    secret: BTreeMap<String, String>,
    commit_status: Option<String>,
    has_comment: bool,
}

/// Recorded request of Flux.
#[derive(Deserialize)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    body: String,
}

/// One event for one target.
pub(crate) struct Record {
    pub(crate) target: Target,
    pub(crate) notification: Notification,
    pub(crate) error: Option<String>,
    pub(crate) requests: Vec<Request>,
    has_comment: bool,
}

impl Request {
    pub(crate) fn body(&self) -> Vec<u8> {
        STANDARD.decode(&self.body).unwrap()
    }
}

impl Record {
    pub(crate) fn case(&self) -> String {
        let reason = &self.notification.event.reason;
        format!("{} {} {reason}", self.target.type_, self.target.address)
    }
}

/// All records of these types.
pub(crate) fn records(is_wanted: fn(Type) -> bool) -> Vec<Record> {
    let lines = include_str!("flux.jsonl").lines();
    let records = lines.map(|line| record(serde_json::from_str(line).unwrap()));
    records.filter(|record| is_wanted(record.target.type_)).collect()
}

fn record(line: Line) -> Record {
    let given = line.target;
    let secret = given
        .secret
        .into_iter()
        .map(|(key, value)| (key, value.into_bytes()));
    let alert = AlertRef {
        name: "on-call".to_owned(),
        namespace: "apps".to_owned(),
        uid: "4f2f4dd9-6b0a-4ea9-8e44-6ab0d9f5e2a1".to_owned(),
    };
    Record {
        target: Target {
            channel: given.channel,
            username: given.username,
            password: given.password,
            token: given.token,
            headers: given.headers,
            secret: secret.collect(),
            provider: ProviderRef {
                uid: "provider-uid".to_owned(),
                ..ProviderRef::default()
            },
            ..Target::new(given.type_.parse().unwrap(), given.address)
        },
        notification: Notification {
            commit_status: given.commit_status,
            ..Notification::new(line.event, alert)
        },
        error: line.error,
        requests: line.requests,
        has_comment: given.has_comment,
    }
}

#[tokio::test]
async fn the_same_is_said_as_by_flux() {
    let mut compared = 0;
    for record in records(crate::git::has) {
        let case = record.case();
        let service = service(&record).await;
        let port = service.url.rsplit(':').next().unwrap().to_owned();
        let outcome = say(&record, &service.url, &port).await;
        assert_eq!(
            outcome.is_err(),
            record.error.is_some(),
            "{case}: {outcome:?}, but Flux: {:?}",
            record.error
        );
        let asked = service.take();
        let said: Vec<_> = asked.iter().filter(|asked| asked.method != Method::GET).collect();
        assert_eq!(said.len(), record.requests.len(), "{case}");
        for (ours, theirs) in said.iter().zip(&record.requests) {
            compare(ours, theirs, &port, &case);
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}

async fn say(record: &Record, url: &str, port: &str) -> Result<Sent, Error> {
    let mut target = record.target.clone();
    target.address = target.address.replace("LOCAL", port);
    let edge = service::edge(&[]);
    if target.type_ != Type::Bitbucket {
        return crate::provider::send(&edge, &target, &record.notification).await;
    }
    let mask = Mask::from_target(&target);
    let http = Http {
        edge: &edge,
        target: &target,
        mask: &mask,
    };
    let root = url::Url::parse(&format!("{url}/2.0/")).unwrap();
    crate::git::bitbucket::send_to(root, http, &record.notification).await
}

/// Answers as the services of the oracle do.
async fn service(record: &Record) -> Service {
    let type_ = record.target.type_;
    let object = record.notification.event.involved_object.to_string();
    let has_comment = record.has_comment;
    Service::start(move |asked| {
        if asked.method != Method::GET {
            return service::json(201, &json!({}));
        }
        let path = asked.path.split('?').next().unwrap();
        if path.ends_with("/user") {
            return service::json(200, &json!({"login": "flux", "username": "flux", "id": 1}));
        }
        if path.ends_with("/comments") || path.ends_with("/notes") {
            return service::json(200, &comments(type_, &object, has_comment));
        }
        nothing(type_)
    })
    .await
}

fn comments(type_: Type, object: &str, has_comment: bool) -> Value {
    let prefix = match type_ {
        Type::GitLabMergeRequestComment => "flux-mr",
        _ => "flux-pr",
    };
    let who = json!({"login": "flux", "username": "flux"});
    let comment = |id: u64, prefix: &str| {
        let body = format!("<!-- {prefix}-comment-key:provider-uid/{object} -->\n\nold");
        json!({"id": id, "body": body, "user": who, "author": who})
    };
    match has_comment {
        true => json!([comment(41, "other"), comment(42, prefix)]),
        false => json!([]),
    }
}

fn nothing(type_: Type) -> Reply {
    match type_ {
        Type::AzureDevOps => service::json(200, &json!({"count": 0, "value": []})),
        Type::Bitbucket | Type::BitbucketServer => service::json(404, &json!({})),
        _ => service::json(200, &json!([])),
    }
}

fn compare(ours: &Asked, theirs: &Request, port: &str, case: &str) {
    assert_eq!(ours.method.as_str(), theirs.method, "{case}");
    let path = ours.path.split('?').next().unwrap();
    let decoded = |path: &str| percent_decode_str(path).decode_utf8().unwrap().into_owned();
    assert_eq!(decoded(path), decoded(&theirs.path), "{case}");
    for (name, value) in &theirs.headers {
        assert_eq!(ours.header(name), value, "{case}: {name}");
    }
    let body = String::from_utf8(ours.body.to_vec())
        .unwrap()
        .replace(port, "LOCAL");
    let expected: Value = serde_json::from_slice(&theirs.body()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected, "{case}");
}

//! Tests beyond Flux: states that open and close, threads, and texts of templates. And the order of metadata,
//! which is random in Flux.

use serde_json::{Value, json};

use super::fake::{failure, notification, success, target};
use crate::notification::{Notification, State, Thread};
use crate::provider::render;
use crate::provider_type::ProviderType as Type;
use crate::said::stable_key;

fn requests(type_: Type, said: &Notification) -> Vec<(String, Value)> {
    let requests = render(&target(type_), said).unwrap().into_iter();
    requests
        .map(|request| {
            let body = serde_json::from_slice(&request.body)
                .unwrap_or_else(|_| Value::from(String::from_utf8(request.body.to_vec()).unwrap()));
            (format!("{} {}", request.method, request.url), body)
        })
        .collect()
}

fn body(type_: Type, said: &Notification) -> Value {
    let mut requests = requests(type_, said);
    assert_eq!(requests.len(), 1, "{type_}");
    requests.remove(0).1
}

fn firing() -> Notification {
    Notification {
        state: State::Firing,
        ..notification(failure())
    }
}

fn resolved() -> Notification {
    Notification {
        state: State::Resolved,
        ..notification(success())
    }
}

fn threaded(thread: Option<Value>) -> Notification {
    Notification {
        threaded: true,
        thread: thread.map(Thread),
        ..notification(failure())
    }
}

fn key(type_: Type) -> String {
    stable_key(&target(type_), &firing())
}

#[test]
fn metadata_is_told_in_the_order_of_its_names() {
    let said = notification(failure());
    let slack = body(Type::Slack, &said);
    let names = slack["attachments"][0]["fields"].as_array().unwrap();
    let names: Vec<_> = names
        .iter()
        .map(|field| field["title"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["env", "revision", "summary"]);
    // Teams begins with the summary, as in Flux
    let card = body(Type::MsTeams, &said);
    let facts = &card["attachments"][0]["content"]["body"][0]["items"][2]["facts"];
    assert_eq!(
        *facts,
        json!([
            { "title": "summary", "value": "blue" },
            { "title": "env", "value": "prod" },
            { "title": "revision", "value": "main@sha1:731f" },
        ])
    );
    assert_eq!(
        body(Type::Webex, &said)["markdown"],
        "💣 **kustomization/webapp.apps**\nhealth check failed\n\
         >**env**: prod\n>**revision**: main@sha1:731f\n>**summary**: blue\n"
    );
    assert_eq!(
        body(Type::Telegram, &said)["text"],
        "*🚨 kustomization/webapp/apps*\nhealth check failed\n\
         \\- *env*: prod\n\\- *revision*: main@sha1:731f\n\\- *summary*: blue\n"
    );
    assert_eq!(
        body(Type::Matrix, &said)["body"],
        "🚨 kustomization/webapp.apps\nhealth check failed\n- env: prod\n- revision: main@sha1:731f\n- summary: blue\n"
    );
    assert_eq!(
        body(Type::Lark, &said)["card"]["elements"][0]["text"]["content"],
        "**health check failed**\n\nenv: prod\nrevision: main@sha1:731f\nsummary: blue\n"
    );
    assert_eq!(
        body(Type::Grafana, &said)["tags"],
        json!([
            "flux",
            "kustomize-controller",
            "env: prod",
            "revision: main@sha1|731f",
            "summary: blue",
            "kind: Kustomization",
            "name: webapp",
            "namespace: apps",
        ])
    );
}

#[test]
fn chats_colour_by_state() {
    // what fires is bad even if the event that says so is not an error, and the other way round
    let firing = Notification {
        event: success(),
        ..firing()
    };
    let resolved = Notification {
        event: failure(),
        ..resolved()
    };
    let colour = |said: &Notification| body(Type::Slack, said)["attachments"][0]["color"].clone();
    assert_eq!(
        (colour(&firing), colour(&resolved)),
        (json!("danger"), json!("good"))
    );
    let template = |said: &Notification| body(Type::Lark, said)["card"]["header"]["template"].clone();
    assert_eq!(
        (template(&firing), template(&resolved)),
        (json!("red"), json!("turquoise"))
    );
    let sub_head =
        |said: &Notification| body(Type::Zoom, said)["content"]["head"]["sub_head"]["text"].clone();
    assert_eq!(
        (sub_head(&firing), sub_head(&resolved)),
        (json!("error"), json!("resolved"))
    );
}

#[test]
fn pagerduty_opens_and_closes_under_one_key() {
    let opened = body(Type::PagerDuty, &firing());
    assert_eq!(opened["event_action"], "trigger");
    assert_eq!(opened["dedup_key"], key(Type::PagerDuty));
    assert_eq!(
        requests(Type::PagerDuty, &resolved()),
        [(
            "POST https://hook.example.org/v2/enqueue".to_owned(),
            json!({
                "routing_key": "general",
                "event_action": "resolve",
                "dedup_key": key(Type::PagerDuty),
            })
        )]
    );
}

#[test]
fn opsgenie_opens_and_closes_one_alias() {
    assert_eq!(
        body(Type::Opsgenie, &firing()),
        json!({
            "message": "Kustomization/webapp",
            "alias": key(Type::Opsgenie),
            "description": "health check failed",
            "details": { "env": "prod", "revision": "main@sha1:731f", "severity": "error", "summary": "blue" },
        })
    );
    let close = format!(
        "POST https://api.opsgenie.com/v2/alerts/{}/close?identifierType=alias",
        key(Type::Opsgenie)
    );
    assert_eq!(
        requests(Type::Opsgenie, &resolved()),
        [(
            close,
            json!({ "source": "Flux", "note": "Reconciliation finished" })
        )]
    );
}

#[test]
fn incident_io_fires_and_resolves_under_one_key() {
    let (fired, ended) = (
        body(Type::IncidentIo, &firing()),
        body(Type::IncidentIo, &resolved()),
    );
    assert_eq!(
        (&fired["status"], &ended["status"]),
        (&json!("firing"), &json!("resolved"))
    );
    assert_eq!(fired["deduplication_key"], key(Type::IncidentIo));
    assert_eq!(ended["deduplication_key"], key(Type::IncidentIo));
    assert_eq!(ended["metadata"]["severity"], "resolved");
}

#[test]
fn alertmanager_knows_what_is_resolved_by_its_labels() {
    let (fired, ended) = (
        body(Type::Alertmanager, &firing()),
        body(Type::Alertmanager, &resolved()),
    );
    assert_eq!(fired[0]["labels"], ended[0]["labels"]);
    // it must not end by itself before
    assert_eq!(fired[0]["startsAt"], "2022-10-28T07:26:19Z");
    assert_eq!(fired[0]["endsAt"], "2022-11-04T07:26:19Z");
    assert_eq!(
        ended,
        json!([{
            "status": "resolved",
            "labels": {
                "alertname": "FluxKustomizationFailed",
                "key": "Kustomization/apps/webapp",
                "kind": "Kustomization",
                "name": "webapp",
                "namespace": "apps",
                "reportingcontroller": "kustomize-controller",
                "severity": "error",
            },
            "annotations": {
                "env": "prod",
                "message": "Reconciliation finished",
                "reason": "ReconciliationSucceeded",
                "revision": "main@sha1:731f",
                "summary": "blue",
            },
            "endsAt": "2022-10-28T07:26:19Z",
        }])
    );
}

#[test]
fn datadog_joins_what_fires_and_is_resolved() {
    let (fired, ended) = (body(Type::DataDog, &firing()), body(Type::DataDog, &resolved()));
    assert_eq!(
        (&fired["alert_type"], &ended["alert_type"]),
        (&json!("error"), &json!("success"))
    );
    assert_eq!(fired["aggregation_key"], key(Type::DataDog));
    assert_eq!(ended["aggregation_key"], key(Type::DataDog));
}

#[test]
fn what_tells_of_several_objects_is_about_the_alert() {
    let mut several = notification(failure());
    several.key = "Alert/apps/all".to_owned();
    assert_eq!(
        body(Type::Slack, &several)["attachments"][0]["author_name"],
        "alert/all.apps"
    );
    assert_eq!(body(Type::Opsgenie, &several)["message"], "Alert/all");
    assert_eq!(body(Type::Alertmanager, &several)[0]["labels"]["name"], "all");
    assert_eq!(
        body(Type::DataDog, &several)["title"],
        "Events from the Alert all/apps"
    );
    // its incident is not that of the object that comes first
    let opened = body(Type::PagerDuty, &several);
    assert_eq!(
        opened["dedup_key"],
        stable_key(&target(Type::PagerDuty), &several)
    );
    assert_eq!(opened["payload"]["summary"], "health check failed: alert/all");
    let mut later = several.clone();
    later.event.timestamp = Some("2022-10-28T08:00:00Z".parse().unwrap());
    assert_ne!(
        body(Type::Opsgenie, &several)["alias"],
        body(Type::Opsgenie, &later)["alias"]
    );
}

#[test]
fn keys_of_two_objects_and_of_two_providers_differ() {
    let mut other = firing();
    other.key = "Kustomization/apps/other".to_owned();
    let mut elsewhere = target(Type::PagerDuty);
    elsewhere.provider.uid = "other-uid".to_owned();
    assert_ne!(stable_key(&target(Type::PagerDuty), &other), key(Type::PagerDuty));
    assert_ne!(stable_key(&elsewhere, &firing()), key(Type::PagerDuty));
}

#[test]
fn slack_shows_the_latest_state_and_answers_to_it() {
    assert_eq!(requests(Type::Slack, &threaded(None)).len(), 1);
    let requests = requests(
        Type::Slack,
        &threaded(Some(json!({ "channel": "C1", "ts": "1.5" }))),
    );
    let [(update, first), (post, answer)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(update, "POST https://slack.com/api/chat.update");
    assert_eq!((&first["channel"], &first["ts"]), (&json!("C1"), &json!("1.5")));
    assert_eq!(post, "POST https://slack.com/api/chat.postMessage");
    assert_eq!(
        (&answer["channel"], &answer["thread_ts"]),
        (&json!("C1"), &json!("1.5"))
    );
    assert_eq!(answer["ts"], Value::Null);
}

#[test]
fn a_webhook_of_slack_has_no_threads() {
    let mut webhook = target(Type::Slack);
    webhook.address = "https://hooks.slack.com/services/T0/B0/hook-token-1".to_owned();
    let said = threaded(Some(json!({ "channel": "C1", "ts": "1.5" })));
    let requests = render(&webhook, &said).unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].url.as_str(), webhook.address);
}

#[test]
fn discord_changes_one_message() {
    let hook = "https://discord.com/api/webhooks/1234567890/webhook-token-1";
    let embed = json!({
        "author": { "name": "kustomization/webapp.apps" },
        "description": "health check failed",
        "color": 0x00a3_0200,
        "fields": [
            { "name": "env", "value": "prod", "inline": false },
            { "name": "revision", "value": "main@sha1:731f", "inline": false },
            { "name": "summary", "value": "blue", "inline": false },
        ],
    });
    assert_eq!(
        requests(Type::Discord, &threaded(None)),
        [(
            format!("POST {hook}?wait=true"),
            json!({ "username": "flux-bot", "embeds": [embed], "allowed_mentions": { "parse": [] } })
        )]
    );
    assert_eq!(
        requests(Type::Discord, &threaded(Some(json!({ "message": "77" })))),
        [(
            format!("PATCH {hook}/messages/77"),
            json!({ "embeds": [embed], "allowed_mentions": { "parse": [] } })
        )]
    );
}

#[test]
fn other_chats_keep_messages_together_in_their_ways() {
    let first = Some(json!({ "message": "9", "event": "$event" }));
    let said = threaded(first);
    assert_eq!(body(Type::Webex, &said)["parentId"], "9");
    assert_eq!(
        body(Type::Telegram, &said)["reply_parameters"],
        json!({ "message_id": 9, "allow_sending_without_reply": true })
    );
    assert_eq!(
        body(Type::Matrix, &said)["m.relates_to"],
        json!({
            "rel_type": "m.thread",
            "event_id": "$event",
            "is_falling_back": true,
            "m.in_reply_to": { "event_id": "$event" },
        })
    );
    let (url, chat) = requests(Type::GoogleChat, &said).remove(0);
    assert!(
        url.ends_with("&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD"),
        "{url}"
    );
    assert_eq!(chat["thread"]["threadKey"], key(Type::GoogleChat));
    let zulip = body(Type::Zulip, &said);
    assert!(
        zulip
            .as_str()
            .unwrap()
            .contains("topic=flux%3A+kustomization%2Fwebapp.apps"),
        "{zulip}"
    );
}

#[test]
fn a_thread_means_nothing_unless_it_is_wanted() {
    let first = json!({ "message": "9", "event": "$event", "channel": "C1", "ts": "1.5" });
    for type_ in [
        Type::Slack,
        Type::Discord,
        Type::Webex,
        Type::Telegram,
        Type::Matrix,
        Type::Zulip,
    ] {
        let said = Notification {
            threaded: false,
            ..threaded(Some(first.clone()))
        };
        assert_eq!(
            requests(type_, &said),
            requests(type_, &notification(failure())),
            "{type_}"
        );
    }
}

#[test]
fn the_text_of_a_template_stands_for_message_and_metadata() {
    let said = Notification {
        text: Some("all is *lost*".to_owned()),
        ..notification(failure())
    };
    for type_ in super::fake::CHATS_AND_INCIDENTS {
        let requests = render(&target(type_), &said).unwrap();
        let body = String::from_utf8(requests[0].body.to_vec()).unwrap();
        let body = body.replace("\\\\", "").replace('+', " ").replace("%2A", "*");
        assert!(body.contains("all is *lost*"), "{type_}: {body}");
        assert!(!body.contains("health check failed\""), "{type_}: {body}");
        let is_chat =
            type_.can_thread() || [Type::MsTeams, Type::Rocket, Type::Lark, Type::Zoom].contains(&type_);
        assert_eq!(body.contains("731f"), !is_chat, "{type_}: {body}");
    }
    assert_eq!(
        body(Type::Matrix, &said)["body"],
        "🚨 kustomization/webapp.apps\nall is *lost*\n"
    );
}

#[test]
fn two_transactions_of_matrix_differ_if_they_say_different_things() {
    let urls = [
        notification(failure()),
        firing(),
        Notification {
            text: Some("other".to_owned()),
            ..notification(failure())
        },
    ]
    .map(|said| requests(Type::Matrix, &said).remove(0).0);
    assert!(urls[0] != urls[1] && urls[0] != urls[2] && urls[1] != urls[2]);
    assert_eq!(
        urls[0],
        requests(Type::Matrix, &notification(failure())).remove(0).0
    );
}

#[test]
fn what_is_said_twice_to_sentry_is_one_event() {
    let envelope = |said: &Notification| body(Type::Sentry, said).as_str().unwrap().to_owned();
    assert_eq!(envelope(&firing()), envelope(&firing()));
    assert!(envelope(&firing()).contains("\"fingerprint\""));
    assert!(envelope(&resolved()).contains("\"transaction\""));
    let mut other = notification(failure());
    other.alert.name = "other".to_owned();
    assert_ne!(envelope(&other), envelope(&notification(failure())));
}

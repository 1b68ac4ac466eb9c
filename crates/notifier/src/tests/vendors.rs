//! Servers that demand what the services' documentation demands: who asks, in which form, and how much.

use axum::http::{HeaderMap, StatusCode};
use base64::Engine;
use serde_json::{Value, json};

use super::fake::{
    CHATS_AND_INCIDENTS, Heard, Reply, Server, edge, failure, notification, say_to, success, target,
};
use crate::error::Retry;
use crate::notification::State;
use crate::provider_type::ProviderType as Type;

type Refusal = (u16, &'static str);

#[tokio::test]
async fn services_take_what_they_are_sent() {
    for type_ in CHATS_AND_INCIDENTS {
        let server = Server::start(move |heard| judge(type_, heard)).await;
        let target = target(type_);
        for event in [failure(), success()] {
            for state in [State::Event, State::Firing, State::Resolved] {
                for threaded in [false, true] {
                    let mut said = notification(event.clone());
                    (said.state, said.threaded) = (state, threaded);
                    let edge = edge();
                    let sent = say_to(&server.url, &edge, &target, &said).await;
                    let sent = sent.unwrap_or_else(|error| panic!("{type_} {state:?} {threaded}: {error}"));
                    if sent.thread.is_none() {
                        continue;
                    }
                    assert!(threaded && type_.can_thread(), "{type_}");
                    said.thread = sent.thread;
                    let again = say_to(&server.url, &edge, &target, &said).await;
                    again.unwrap_or_else(|error| panic!("{type_} in a thread: {error}"));
                }
            }
        }
        assert!(!server.heard().is_empty(), "{type_}");
    }
}

#[tokio::test]
async fn services_refuse_whoever_has_not_the_right_to_speak() {
    let authenticated = CHATS_AND_INCIDENTS.into_iter().filter(|type_| {
        let open = [
            Type::Generic,
            Type::Discord,
            Type::MsTeams,
            Type::Rocket,
            Type::GoogleChat,
            Type::Lark,
        ];
        !open.contains(type_) // whoever knows the address has the right
    });
    for type_ in authenticated {
        let server = Server::start(move |heard| judge(type_, heard)).await;
        let mut target = target(type_);
        target.token = Some("wrong-token-22".to_owned())
            .filter(|_| !target.token.is_empty())
            .unwrap_or_default();
        target.password = "wrong-password-22".to_owned();
        if type_ == Type::PagerDuty {
            target.channel = "wrong-routing-key".to_owned();
        }
        target.address = target.address.replace("public-key-1234", "wrong-key-1234");
        let said = say_to(&server.url, &edge(), &target, &notification(failure())).await;
        let error = said.expect_err(type_.as_str());
        assert_eq!(error.retry, Retry::Never, "{type_}: {error}");
        assert!(!error.to_string().contains("wrong-token"), "{error}");
    }
}

fn judge(type_: Type, heard: &Heard) -> Reply {
    let judged = check(type_, heard);
    let (status, body) = match judged {
        Ok(body) => (200, body.to_string()),
        Err((status, text)) => (status, json!({ "ok": status == 200, "error": text }).to_string()),
    };
    let status = StatusCode::from_u16(status).unwrap();
    (status, HeaderMap::new(), body.into_bytes())
}

fn check(type_: Type, heard: &Heard) -> Result<Value, Refusal> {
    let path = heard.uri.path();
    let body = heard.json();
    let bearer = || check_that(heard.header("authorization") == "Bearer secret-token-1", 401);
    match type_ {
        Type::Generic => event_of(heard),
        Type::GenericHmac => signed(heard),
        Type::Slack => slack(path, heard, &body),
        Type::Discord => discord(path, heard, &body),
        Type::MsTeams => adaptive_card(heard, &body),
        Type::Rocket => attachments(&body).map(|()| json!({ "success": true })),
        Type::GoogleChat => google_chat(heard, &body),
        Type::Webex => {
            bearer()?;
            check_that(
                body["markdown"].as_str().is_some_and(|text| text.len() <= 7_439),
                400,
            )?;
            check_that(body["roomId"] == "general", 404)?;
            Ok(json!({ "id": "Y2lzY29z", "roomId": "general" }))
        }
        Type::Telegram => telegram(path, &body),
        Type::Lark => {
            check_that(heard.body.len() <= 20 << 10, 400)?;
            check_that(body["msg_type"] == "interactive", 400)?;
            check_that(body["card"]["elements"][0]["text"]["content"].is_string(), 400)?;
            Ok(json!({ "code": 0, "msg": "success" }))
        }
        Type::Matrix => {
            bearer()?;
            check_that(heard.method == "PUT", 405)?;
            check_that(
                path.starts_with("/_matrix/client/r0/rooms/!room:example.org/send/m.room.message/"),
                404,
            )?;
            check_that(body["body"].is_string() && body["msgtype"] == "m.text", 400)?;
            Ok(json!({ "event_id": "$event" }))
        }
        Type::Zulip => zulip(path, heard),
        Type::Zoom => {
            check_that(heard.header("authorization") == "secret-token-1", 401)?;
            check_that(heard.uri.query() == Some("format=full"), 400)?;
            check_that(body["content"]["head"]["text"].is_string(), 400)?;
            Ok(json!({}))
        }
        Type::Opsgenie => opsgenie(path, heard, &body),
        Type::PagerDuty => pagerduty(path, &body),
        Type::IncidentIo => {
            bearer()?;
            check_that(body["title"].is_string(), 422)?;
            check_that(["firing", "resolved"].contains(&text(&body["status"])), 422)?;
            check_that(!text(&body["deduplication_key"]).is_empty(), 422)?;
            Ok(json!({ "status": "success" }))
        }
        Type::Sentry => sentry(path, heard),
        Type::DataDog => {
            check_that(heard.header("dd-api-key") == "secret-token-1", 403)?;
            check_that(path == "/api/v1/events", 404)?;
            check_that(text(&body["text"]).chars().count() <= 4_000, 400)?;
            check_that(
                ["error", "info", "success"].contains(&text(&body["alert_type"])),
                400,
            )?;
            check_that(
                body["tags"]
                    .as_array()
                    .is_some_and(|tags| tags.iter().all(Value::is_string)),
                400,
            )?;
            Ok(json!({ "status": "ok" }))
        }
        Type::Grafana => {
            bearer()?;
            check_that(body["text"].is_string() && body["when"].is_i64(), 400)?;
            check_that(body["tags"].to_string().len() <= 500, 400)?;
            Ok(json!({ "message": "Graphite annotation added", "id": 1 }))
        }
        Type::Alertmanager => alertmanager(heard, &body),
        other => unreachable!("{other} has no server here"),
    }
}

fn check_that(holds: bool, status: u16) -> Result<(), Refusal> {
    if holds {
        Ok(())
    } else {
        Err((status, "invalid_auth"))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn event_of(heard: &Heard) -> Result<Value, Refusal> {
    let event: event::Event = serde_json::from_slice(&heard.body).map_err(|_| (400, "no event"))?;
    check_that(heard.header("gotk-component") == event.reporting_controller, 400)?;
    check_that(heard.header("content-type") == "application/json", 415)?;
    Ok(json!({}))
}

fn signed(heard: &Heard) -> Result<Value, Refusal> {
    use aws_lc_rs::hmac;
    let signature = heard
        .header("x-signature")
        .strip_prefix("sha256=")
        .ok_or((400, "unsigned"))?;
    let signature = hex::decode(signature).map_err(|_| (400, "no hex"))?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret-token-1");
    hmac::verify(&key, &heard.body, &signature).map_err(|_| (400, "HMACs do not match"))?;
    event_of(heard)
}

fn attachments(body: &Value) -> Result<(), Refusal> {
    let attachments = body["attachments"].as_array().ok_or((400, "no_text"))?;
    check_that(!attachments.is_empty(), 400)?;
    for attachment in attachments {
        let size = text(&attachment["text"]).chars().count();
        check_that(size <= 40_000 && attachment["color"].is_string(), 400)?;
    }
    Ok(())
}

/// Slack's API refuses with 200.
fn slack(path: &str, heard: &Heard, body: &Value) -> Result<Value, Refusal> {
    let refused = |error: &str| Ok(json!({ "ok": false, "error": error }));
    if heard.header("authorization") != "Bearer secret-token-1" {
        return refused("invalid_auth");
    }
    if attachments(body).is_err() {
        return refused("no_text");
    }
    match path {
        "/api/chat.postMessage" if body["thread_ts"].is_string() && body["thread_ts"] != "1.5" => {
            refused("thread_not_found")
        }
        "/api/chat.postMessage" => Ok(json!({ "ok": true, "channel": "C1", "ts": "1.5" })),
        "/api/chat.update" if body["ts"] != "1.5" || body["channel"] != "C1" => refused("message_not_found"),
        "/api/chat.update" => Ok(json!({ "ok": true, "channel": "C1", "ts": "1.5" })),
        _ => refused("unknown_method"),
    }
}

fn discord(path: &str, heard: &Heard, body: &Value) -> Result<Value, Refusal> {
    let hook = "/api/webhooks/1234567890/webhook-token-1";
    if path == format!("{hook}/slack") {
        return attachments(body).map(|()| json!("ok"));
    }
    let embed = &body["embeds"][0];
    check_that(text(&embed["description"]).chars().count() <= 4_096, 400)?;
    let fields = embed["fields"].as_array().ok_or((400, "fields"))?;
    check_that(fields.len() <= 25, 400)?;
    for field in fields {
        let sizes = (
            text(&field["name"]).chars().count(),
            text(&field["value"]).chars().count(),
        );
        check_that(
            (1..=256).contains(&sizes.0) && (1..=1_024).contains(&sizes.1),
            400,
        )?;
    }
    match (heard.method.as_str(), path) {
        ("POST", path) if path == hook && heard.uri.query() == Some("wait=true") => {
            Ok(json!({ "id": "77", "type": 0 }))
        }
        ("PATCH", path) if path == format!("{hook}/messages/77") => Ok(json!({ "id": "77" })),
        _ => Err((404, "Unknown Message")),
    }
}

fn adaptive_card(heard: &Heard, body: &Value) -> Result<Value, Refusal> {
    check_that(heard.body.len() <= 28 << 10, 413)?;
    check_that(heard.uri.query() == Some("sig=signature-1234"), 401)?;
    check_that(body["type"] == "message", 400)?;
    let attachment = &body["attachments"][0];
    check_that(
        attachment["contentType"] == "application/vnd.microsoft.card.adaptive",
        400,
    )?;
    check_that(attachment["content"]["body"][0]["items"].is_array(), 400)?;
    Ok(json!({}))
}

fn google_chat(heard: &Heard, body: &Value) -> Result<Value, Refusal> {
    check_that(heard.body.len() <= 32_000, 400)?;
    let query = heard.uri.query().unwrap_or_default();
    check_that(query.starts_with("key=key-12345&token=token-12345"), 401)?;
    check_that(body["cards"][0]["sections"].is_array(), 400)?;
    let threaded = !text(&body["thread"]["threadKey"]).is_empty();
    check_that(threaded == query.contains("messageReplyOption="), 400)?;
    Ok(json!({ "name": "spaces/1/messages/1" }))
}

fn telegram(path: &str, body: &Value) -> Result<Value, Refusal> {
    check_that(path == "/botsecret-token-1/sendMessage", 404)?;
    check_that(body["chat_id"] == "-123" && body["message_thread_id"] == "7", 400)?;
    check_that(body["parse_mode"] == "MarkdownV2", 400)?;
    let message = text(&body["text"]).replace('\\', "");
    check_that((1..=4_096 + 100).contains(&message.encode_utf16().count()), 400)?;
    if let Value::Object(reply) = &body["reply_parameters"] {
        check_that(reply["message_id"] == 9, 400)?;
    }
    Ok(json!({ "ok": true, "result": { "message_id": 9 } }))
}

fn zulip(path: &str, heard: &Heard) -> Result<Value, Refusal> {
    let login = base64::engine::general_purpose::STANDARD.encode("flux-bot:secret-password-1");
    check_that(heard.header("authorization") == format!("Basic {login}"), 401)?;
    check_that(path == "/api/v1/messages", 404)?;
    check_that(
        heard.header("content-type") == "application/x-www-form-urlencoded",
        400,
    )?;
    let fields: std::collections::BTreeMap<_, _> = url::form_urlencoded::parse(&heard.body).collect();
    check_that(fields["to"] == "ops" && fields["type"] == "stream", 400)?;
    check_that(fields["topic"].chars().count() <= 60, 400)?;
    check_that(fields["content"].chars().count() <= 10_000, 400)?;
    Ok(json!({ "result": "success" }))
}

fn opsgenie(path: &str, heard: &Heard, body: &Value) -> Result<Value, Refusal> {
    check_that(heard.header("authorization") == "GenieKey secret-token-1", 401)?;
    if let Some(rest) = path.strip_prefix("/v2/alerts/") {
        check_that(rest.len() == 64 + "/close".len() && rest.ends_with("/close"), 404)?;
        check_that(heard.uri.query() == Some("identifierType=alias"), 404)?;
        return Ok(json!({ "result": "Request will be processed" }));
    }
    check_that(path == "/v2/alerts", 404)?;
    check_that((1..=130).contains(&text(&body["message"]).chars().count()), 422)?;
    check_that(text(&body["alias"]).len() <= 512, 422)?;
    check_that(text(&body["description"]).chars().count() <= 15_000, 422)?;
    Ok(json!({ "result": "Request will be processed" }))
}

fn pagerduty(path: &str, body: &Value) -> Result<Value, Refusal> {
    check_that(body["routing_key"] == "general", 400)?;
    if path == "/v2/change/enqueue" {
        check_that(body["payload"]["summary"].is_string(), 400)?;
        return Ok(json!({ "status": "success" }));
    }
    check_that(path == "/v2/enqueue", 404)?;
    check_that(
        !text(&body["dedup_key"]).is_empty() && text(&body["dedup_key"]).len() <= 255,
        400,
    )?;
    if body["event_action"] == "trigger" {
        let payload = &body["payload"];
        check_that(
            (1..=1_024).contains(&text(&payload["summary"]).chars().count()),
            400,
        )?;
        check_that(
            payload["source"].is_string() && payload["severity"] == "error",
            400,
        )?;
    }
    Ok(json!({ "status": "success" }))
}

fn sentry(path: &str, heard: &Heard) -> Result<Value, Refusal> {
    check_that(path == "/api/42/envelope/", 404)?;
    check_that(
        heard
            .header("x-sentry-auth")
            .contains("sentry_key=public-key-1234"),
        401,
    )?;
    let lines: Vec<&[u8]> = heard.body.split(|byte| *byte == b'\n').collect();
    let [header, item, payload, b""] = lines.as_slice() else {
        return Err((400, "no envelope"));
    };
    let json = |line: &[u8]| serde_json::from_slice::<Value>(line).map_err(|_| (400, "no JSON"));
    let (header, item, payload) = (json(header)?, json(item)?, (json(payload)?, payload.len()));
    check_that(item["length"] == payload.1, 400)?;
    check_that(header["event_id"] == payload.0["event_id"], 400)?;
    check_that(text(&header["event_id"]).len() == 32, 400)?;
    check_that(["event", "transaction"].contains(&text(&item["type"])), 400)?;
    Ok(json!({ "id": header["event_id"] }))
}

fn alertmanager(heard: &Heard, body: &Value) -> Result<Value, Refusal> {
    let login = base64::engine::general_purpose::STANDARD.encode("flux-bot:secret-password-1");
    check_that(heard.header("authorization") == format!("Basic {login}"), 401)?;
    for alert in body.as_array().ok_or((400, "no array"))? {
        let labels = alert["labels"].as_object().ok_or((400, "no labels"))?;
        check_that(!text(&labels["alertname"]).is_empty(), 400)?;
        check_that(labels.values().all(Value::is_string), 400)?;
        let begin = text(&alert["startsAt"]);
        let end = text(&alert["endsAt"]);
        check_that(end.starts_with("0001") || begin.is_empty() || begin <= end, 400)?;
    }
    Ok(json!({}))
}

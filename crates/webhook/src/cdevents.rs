//! Checks that a body is a CDEvent of version 0.4 of the specification, as its Go SDK does for Flux: the context, the
//! subject, and per type the fields of the content (`cdevents/vocabulary.txt`). Fields that are not known are passed over,
//! and empty texts count as missing.
//!
//! Three things are taken here that the SDK refuses though the specification allows them: an event without the optional
//! artifactId, a link without tags, and white space around the body.

mod content;
mod fields;
mod uri;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::json;
use content::Event;
use fields::{filled, text};

/// Says what identifies an event (its source and id), or what is wrong with it.
pub(crate) fn validate(body: &[u8]) -> Result<String, String> {
    let trailing = serde_json::from_slice::<serde::de::IgnoredAny>(body);
    trailing.map_err(|error| crate::body::place(&error))?;
    let event = json::parse(body)?;
    let empty = Map::new();
    let context = object(&event, "context")?.unwrap_or(&empty);
    let subject = object(&event, "subject")?.unwrap_or(&empty);
    let type_ = text(context, "type")?.ok_or("unknown event type")?;
    let id = filled(context, "id")?;
    let source = filled(context, "source")?;
    filled(context, "version")?;
    uri::check(source)?;
    check_context(context)?;
    check_custom_data(&event)?;
    filled(subject, "id")?;
    uri::check(text(subject, "source")?.unwrap_or_default())?;
    let subject_type = filled(subject, "type")?;
    match type_.strip_prefix("dev.cdeventsx.") {
        Some(custom) => check_custom(custom, subject_type, subject)?,
        None => check_known(type_, subject_type, subject)?,
    }
    Ok(format!("{source}\n{id}"))
}

fn check_known(type_: &str, subject_type: &str, subject: &Map<String, Value>) -> Result<(), String> {
    let (event, version) = Event::from_type(type_).ok_or_else(|| format!("unknown event type {type_:?}"))?;
    if version != event.version() {
        return Err(format!("its version is not {}", event.version()));
    }
    if subject_type != event.subject() {
        return Err(format!("its subject is not of type {}", event.subject()));
    }
    let empty = Map::new();
    let content = match subject.get("content") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(content)) => content,
        Some(_) => return Err("its content is no object".to_owned()),
    };
    event.check(content)
}

/// Types of tools: `dev.cdeventsx.<tool>-<subject>.<predicate>.<version>`.
fn check_custom(type_: &str, subject_type: &str, subject: &Map<String, Value>) -> Result<(), String> {
    let mut parts = type_.split('.');
    let (subject_name, predicate) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_lower = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_subject = subject_name
        .split_once('-')
        .is_some_and(|(tool, subject)| is_lower(tool) && is_lower(subject));
    let version: Vec<&str> = parts.collect();
    let is_digit = |part: &&str| part.len() == 1 && part.as_bytes()[0].is_ascii_digit();
    let is_version = version.len() == 3 && version.iter().all(is_digit);
    if !(is_subject && is_lower(predicate) && is_version) {
        return Err(format!("cannot parse event type {type_:?}"));
    }
    let is_named = subject_type.split_once('-').is_some_and(|(tool, subject)| {
        !tool.is_empty()
            && tool.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !subject.is_empty()
            && subject.bytes().all(|byte| byte.is_ascii_alphabetic())
    });
    if !is_named {
        return Err("its subject's type is not <tool>-<subject>".to_owned());
    }
    match subject.get("content") {
        Some(Value::Object(_)) => Ok(()),
        _ => Err("its content is no object".to_owned()),
    }
}

fn check_context(context: &Map<String, Value>) -> Result<(), String> {
    match context.get("timestamp") {
        None | Some(Value::Null) => {}
        Some(Value::String(time)) if is_time(time) => {}
        Some(_) => return Err("its timestamp is no time".to_owned()),
    }
    text(context, "chainId")?;
    if text(context, "schemaUri")?.is_some() {
        return Err("its schema could not be found in the local registry".to_owned());
    }
    match context.get("links") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(links)) => links.iter().try_for_each(check_link),
        Some(_) => Err("its links are no list".to_owned()),
    }
}

fn check_link(link: &Value) -> Result<(), String> {
    let Value::Object(link) = link else {
        return Err("a link is no object".to_owned());
    };
    let empty = Map::new();
    let event = match text(link, "linkType")?.unwrap_or_default() {
        "PATH" | "END" => "from",
        "RELATION" => {
            filled(link, "linkKind")?;
            "target"
        }
        _ => return Err("unsupported link type found".to_owned()),
    };
    let named = match link.get(event) {
        Some(Value::Object(named)) => named,
        _ => &empty,
    };
    filled(named, "contextId")?;
    match link.get("tags") {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(_) => Err("the tags of a link are no object".to_owned()),
    }
}

fn check_custom_data(event: &Value) -> Result<(), String> {
    let Value::Object(event) = event else {
        return Ok(());
    };
    text(event, "customDataContentType")?;
    match event.get("customData") {
        None | Some(Value::Null | Value::Object(_) | Value::String(_)) => Ok(()),
        Some(_) => Err("its customData is neither object nor text".to_owned()),
    }
}

/// RFC 3339 as Go reads it: with a capital T and Z.
fn is_time(text: &str) -> bool {
    let date = text.split('T').next().unwrap_or_default();
    let zone =
        text.ends_with('Z') || text.len() > 6 && matches!(text.as_bytes()[text.len() - 6], b'+' | b'-');
    date.len() == 10 && zone && text.parse::<Timestamp>().is_ok()
}

fn object<'a>(value: &'a Value, field: &str) -> Result<Option<&'a Map<String, Value>>, String> {
    let Value::Object(fields) = value else {
        return match value {
            Value::Null => Ok(None),
            _ => Err("it is no object".to_owned()),
        };
    };
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(format!("its {field} is no object")),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Recorded {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        name: String,
        body: String,
        accepted: bool,
    }

    /// Events that the specification allows and the SDK refuses.
    const LENIENT: [&str; 6] = [
        "build.finished.0.2.0 with what is required",
        "build.finished.0.2.0 without artifactId",
        "incident.detected.0.2.0 with what is required",
        "incident.reported.0.2.0 with what is required",
        "incident.resolved.0.2.0 with what is required",
        "change: links [{\"linkType\": \"PATH\", \"from\": {\"contextId\": \"x\"}}]",
    ];

    #[test]
    fn events_are_taken_and_refused_as_the_go_sdk_does() {
        let recorded: Recorded = serde_json::from_str(include_str!("cdevents/cases.json")).unwrap();
        let mut different = Vec::new();
        for case in &recorded.cases {
            let is_lenient = LENIENT.contains(&case.name.as_str())
                || case.name.ends_with("without artifactId") && case.name.starts_with("incident")
                || case.name.contains("\"linkKind\": \"k\"");
            let answer = validate(case.body.as_bytes());
            if answer.is_ok() != (case.accepted || is_lenient) {
                different.push(format!("{}: {answer:?}", case.name));
            }
        }
        assert!(different.is_empty(), "{}", different.join("\n"));
    }

    #[test]
    fn an_event_is_known_by_its_source_and_id() {
        let recorded: Recorded = serde_json::from_str(include_str!("cdevents/cases.json")).unwrap();
        let id = validate(recorded.cases[0].body.as_bytes());
        assert_eq!(id, Ok("/event/source/1\n271069a8".to_owned()));
    }
}

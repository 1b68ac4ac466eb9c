//! Lines as they are written.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing::subscriber::with_default;

use super::*;
use crate::flags::LogEncoding;

/// Runs `work` with a log of its own; gives its lines.
fn lines(encoding: LogEncoding, level: LogLevel, work: impl FnOnce()) -> Vec<String> {
    let written = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&written);
    let layer = LineLayer::new(encoding, move |line: &str| {
        sink.lock().expect("no panic").push_str(line);
    });
    with_default(Registry::default().with(layer.with_filter(targets(level))), work);
    written
        .lock()
        .expect("no panic")
        .lines()
        .map(str::to_owned)
        .collect()
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn a_line_has_the_shape_of_zap() {
    let lines = lines(LogEncoding::Json, LogLevel::Info, || {
        tracing::info!(logger = "setup", count = 3, ok = true, "starting \"manager\"");
    });
    let line = json(&lines[0]);
    let (level, rest) = lines[0].split_once(",\"ts\":").expect("the level stands first");
    assert_eq!(level, r#"{"level":"info""#);
    assert_eq!(
        &rest[25..],
        r#"","logger":"setup","msg":"starting \"manager\"","count":3,"ok":true}"#
    );
    let time: jiff::Timestamp = line["ts"].as_str().expect("a text").parse().expect("a time");
    assert!(time.duration_until(jiff::Timestamp::now()).as_secs() < 60);
}

#[test]
fn lines_about_an_object_name_it_and_the_attempt() {
    let lines = lines(LogEncoding::Json, LogLevel::Error, || {
        let span = reconcile_span::<api::kustomize::Kustomization>(&ObjectKey::new("apps", "web"));
        let _entered = span.enter();
        tracing::error!(error = "boom", "Reconciler error");
    });
    let mut line = json(&lines[0]);
    let id = line["reconcileID"].take();
    assert_eq!(id.as_str().map(str::len), Some(36), "{id}");
    line["ts"].take();
    let expected = serde_json::json!({
        "level": "error", "ts": null, "msg": "Reconciler error", "controller": "kustomization",
        "controllerGroup": "kustomize.toolkit.fluxcd.io", "controllerKind": "Kustomization",
        "namespace": "apps", "name": "web", "reconcileID": null, "error": "boom",
    });
    assert_eq!(line, expected);
}

#[test]
fn the_inner_value_of_a_field_wins_and_is_written_once() {
    let lines = lines(LogEncoding::Json, LogLevel::Info, || {
        let span = tracing::error_span!("outer", step = "one", late = tracing::field::Empty);
        span.record("late", "recorded");
        let _entered = span.enter();
        tracing::info!(step = "two", "x");
    });
    assert_eq!(lines[0].matches("\"step\"").count(), 1, "{}", lines[0]);
    assert_eq!(json(&lines[0])["step"], "two");
    assert_eq!(json(&lines[0])["late"], "recorded");
}

#[test]
fn the_whole_chain_of_an_error_is_written() {
    let lines = lines(LogEncoding::Json, LogLevel::Info, || {
        let source = "x".parse::<u8>().expect_err("not a number");
        let error: Box<dyn std::error::Error> = Box::new(std::io::Error::other(source));
        tracing::error!(error = &*error, "failed");
    });
    assert_eq!(json(&lines[0])["error"], "invalid digit found in string");
}

#[test]
fn levels_hold_for_our_crates_and_libraries_apart() {
    let cases = [
        (LogLevel::Error, &["own error", "library error"][..]),
        (LogLevel::Info, &["own info", "own error", "library error"]),
        (
            LogLevel::Debug,
            &[
                "own debug",
                "own info",
                "own error",
                "library info",
                "library error",
            ],
        ),
        (
            LogLevel::Trace,
            &[
                "own trace",
                "own debug",
                "own info",
                "own error",
                "library debug",
                "library info",
                "library error",
            ],
        ),
    ];
    for (level, expected) in cases {
        let lines = lines(LogEncoding::Json, level, || {
            tracing::trace!("own trace");
            tracing::debug!("own debug");
            tracing::info!("own info");
            tracing::error!("own error");
            tracing::trace!(target: "hyper::client", "library trace");
            tracing::debug!(target: "hyper::client", "library debug");
            tracing::info!(target: "hyper::client", "library info");
            tracing::error!(target: "hyper::client", "library error");
        });
        let messages: Vec<String> = lines
            .iter()
            .map(|line| json(line)["msg"].as_str().expect("a text").to_owned())
            .collect();
        assert_eq!(messages, expected, "{level:?}");
    }
}

#[test]
fn the_console_has_columns_and_one_line_per_event() {
    let lines = lines(LogEncoding::Console, LogLevel::Info, || {
        tracing::info!(logger = "setup", key = "a\nb", "first\nsecond");
    });
    assert_eq!(lines.len(), 1);
    let columns: Vec<&str> = lines[0].split('\t').collect();
    assert_eq!(
        columns[1..],
        ["INFO", "setup", "first\\nsecond", r#"{"key":"a\nb"}"#]
    );
}

#[test]
fn credentials_in_urls_are_masked() {
    let lines = lines(LogEncoding::Json, LogLevel::Info, || {
        tracing::info!(url = %"https://user:secret@h/a", "cloning https://user:secret@h/a");
    });
    assert!(!lines[0].contains("secret"), "{}", lines[0]);
}

#[test]
fn random_ids_are_uuids_of_version_four() {
    let id = random_id();
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
    assert!(
        id[14..].starts_with('4') && matches!(&id[19..20], "8" | "9" | "a" | "b"),
        "{id}"
    );
    assert_ne!(id, random_id());
}

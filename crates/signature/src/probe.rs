//! Asks what Flux uses about the same signatures, when `SIGNATURE_PROBE` names a program that does: it reads one JSON
//! object a line (`kind`, and in base64 `signature`, `payload`, `keys`) and answers each with one (`ok`, `who`, `error`).

use std::io::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Both must accept, and name the same key, or both must refuse.
#[track_caller]
pub(crate) fn compare(kind: &str, signature: &[u8], payload: &[u8], keys: &[&[u8]], ours: Option<&String>) {
    let Ok(program) = std::env::var("SIGNATURE_PROBE") else {
        return;
    };
    let encode = |bytes: &[u8]| STANDARD.encode(bytes);
    let keys: Vec<_> = keys.iter().map(|key| encode(key)).collect();
    let case = serde_json::json!({
        "kind": kind, "signature": encode(signature), "payload": encode(payload), "keys": keys,
    });
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{case}").unwrap();
    let answer = child.wait_with_output().unwrap().stdout;
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let theirs = answer["who"].as_str().filter(|_| answer["ok"] == true);
    assert_eq!(ours.map(String::as_str), theirs, "{answer}");
    eprintln!(
        "probe {kind} {}",
        if ours.is_some() { "accepted" } else { "refused" }
    );
}

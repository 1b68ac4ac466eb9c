//! Refusals of a server, made fit to show: one line of its own words, and what to do about it.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use tokio::time::Instant;

use super::{Error, RetryAfter, public, read};

/// Bytes of a server's refusal that are read; fewer characters of it are quoted.
const MAX_REFUSAL_BYTES: u64 = 16 << 10;
const MAX_QUOTED: usize = 300;
const PAGE: &str = " with a web page: is the URL that of a page in a browser?";

/// Turns a refusal into an error that quotes what the server said.
pub async fn checked(response: Response, deadline: Instant) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let url = public(response.url());
    let is_page = is_page(&response);
    let retry_after = RetryAfter::new(status, response.headers(), jiff::Timestamp::now());
    let body = read(response, MAX_REFUSAL_BYTES, deadline)
        .await
        .unwrap_or_default();
    let detail = match quoted(&body) {
        // Someone's web site; of a server in trouble that would say nothing.
        detail if detail.is_empty() && is_page && status == StatusCode::NOT_FOUND => PAGE.to_owned(),
        detail => detail,
    };
    Err(Error::Status {
        url,
        status,
        detail: detail.into(),
        retry_after,
    })
}

/// Refuses an answer that is a page for people, which web sites give for any address, and sign-in pages for all others.
pub fn refuse_page(response: &Response, expected: &'static str) -> Result<(), Error> {
    if is_page(response) {
        let url = public(response.url());
        return Err(Error::WebPage { url, expected });
    }
    Ok(())
}

/// Returns whether this is the beginning of such a page, where servers do not know the type of what they give.
pub fn begins_a_page(content: &[u8]) -> bool {
    let start = content.trim_ascii_start();
    let begins = |word: &[u8]| start.len() >= word.len() && start[..word.len()].eq_ignore_ascii_case(word);
    begins(b"<!doctype html") || begins(b"<html")
}

fn is_page(response: &Response) -> bool {
    let type_ = response.headers().get(CONTENT_TYPE);
    type_.is_some_and(|type_| type_.as_bytes().to_ascii_lowercase().starts_with(b"text/html"))
}

/// One line of what a server answered, after a colon; nothing when it is not text.
fn quoted(body: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(body) else {
        return String::new();
    };
    let line = registry_errors(text).unwrap_or_else(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let markup = line.starts_with(['<', '{', '[']);
    if line.is_empty() || markup || line.chars().any(char::is_control) {
        return String::new();
    }
    format!(": {}", line.chars().take(MAX_QUOTED).collect::<String>())
}

/// The refusals of an OCI registry, written as Flux's library writes them.
fn registry_errors(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Answer {
        errors: Vec<Refusal>,
    }
    #[derive(serde::Deserialize)]
    struct Refusal {
        code: String,
        #[serde(default)]
        message: String,
    }
    let answer: Answer = serde_json::from_str(text).ok()?;
    let lines = answer
        .errors
        .iter()
        .map(|refusal| format!("{}: {}", refusal.code, refusal.message));
    Some(lines.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_of_a_server_are_quoted() {
        assert_eq!(quoted(b"no such\n repository "), ": no such repository");
        assert_eq!(quoted(b"<html>"), "");
        assert_eq!(quoted(br#"{"a": 1}"#), "");
        let refusal =
            br#"{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown", "detail": {}}]}"#;
        assert_eq!(quoted(refusal), ": MANIFEST_UNKNOWN: manifest unknown");
        assert_eq!(quoted("ü".repeat(1000).as_bytes()).chars().count(), 302);
        assert_eq!(quoted(b"\xff\xfe"), "");
        assert_eq!(quoted(b""), "");
    }

    #[test]
    fn pages_are_known_by_their_beginning() {
        for page in ["<!DOCTYPE html><p>", "\n  <HTML lang=en>"] {
            assert!(begins_a_page(page.as_bytes()), "{page}");
        }
        for other in ["", "<", "apiVersion: v1", "<?xml version='1.0'?>"] {
            assert!(!begins_a_page(other.as_bytes()), "{other}");
        }
    }
}

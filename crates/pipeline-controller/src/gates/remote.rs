//! Gates that ask servers: the answer of one over HTTP, or of a query of Prometheus.
//!
//! The URL, the query and the expression are a tenant's, and the request comes from inside the cluster: only hosts that the operator
//! lists are asked, no redirect is followed, and nothing of an answer is shown but its status.

use api::delivery::{GateHttp, GateMethod, GatePrometheus};
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;
use transport::auth::{SecretData, access};
use transport::http::{self, public};
use url::Url;

use super::{Closed, TIMEOUT};
use crate::context::Context;

/// Bytes of an answer.
const MAX_ANSWER: u64 = 1 << 20;
/// Series of an answer of Prometheus.
const MAX_SERIES: usize = 1000;
const JSON: &str = "application/json";

/// An answer.
struct Answer {
    /// What was asked, for people.
    asked: String,
    status: StatusCode,
    body: Bytes,
}

/// Asks an HTTP server. Returns what was asked, for people, and the answer for an expression; an error if the answer says by itself
/// that the gate is closed.
pub(super) async fn http(
    gate: &GateHttp,
    has_expression: bool,
    told: &Value,
    (namespace, context): (&str, &Context),
) -> Result<(String, Value), Closed> {
    let url = url(&gate.url)?;
    let body = match gate.method.unwrap_or_default() {
        GateMethod::Get => None,
        GateMethod::Post => Some(Bytes::from(told.to_string())),
    };
    let secret = gate.secret_ref.as_ref().map(|secret| secret.name.as_str());
    let answer = ask(url, body, secret, (namespace, context)).await?;
    let Answer { asked, status, body } = answer;
    if !has_expression && !status.is_success() {
        return Err(Closed::False(format!("{asked} answered {status}")));
    }
    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
    let body = serde_json::from_slice(&body).unwrap_or_else(|_| text());
    Ok((asked, json!({"status": status.as_u16(), "body": body})))
}

/// Asks Prometheus. Returns what was asked, for people, the number that it gives and all series.
pub(super) async fn prometheus(
    gate: &GatePrometheus,
    (namespace, context): (&str, &Context),
) -> Result<(String, f64, Value), String> {
    let mut url = url(&gate.address)?;
    let path = format!("{}/api/v1/query", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.query_pairs_mut().clear().append_pair("query", &gate.query);
    let secret = gate.secret_ref.as_ref().map(|secret| secret.name.as_str());
    let Answer { asked, status, body } = ask(url, None, secret, (namespace, context)).await?;
    let series = series(&body).map_err(|problem| match status.is_success() {
        true => format!("{asked}: {problem}"),
        false => format!("{asked} answered {status}: {problem}"),
    })?;
    let value = series[0].1;
    let result: Vec<Value> = series
        .into_iter()
        .map(|(labels, value)| json!({"labels": labels, "value": value}))
        .collect();
    Ok((asked, value, Value::Array(result)))
}

/// Reads the answer of Prometheus to an instant query: labels and a number for each series, one at least.
fn series(body: &[u8]) -> Result<Vec<(Value, f64)>, String> {
    let unreadable = || "it is no answer of Prometheus".to_owned();
    let answer: Value = serde_json::from_slice(body).map_err(|_| unreadable())?;
    if answer["status"] != "success" {
        // What is wrong with the query; its author may know.
        let word = answer["errorType"].as_str().ok_or_else(unreadable)?;
        let plain: String = word.chars().take(40).collect();
        return Err(format!("the query failed: {plain}"));
    }
    let (kind, result) = (&answer["data"]["resultType"], &answer["data"]["result"]);
    let samples: Vec<(Value, &Value)> = match kind.as_str() {
        Some("scalar") => vec![(json!({}), result)],
        Some("vector") => {
            let all = result.as_array().ok_or_else(unreadable)?.iter();
            all.map(|one| (one["metric"].clone(), &one["value"])).collect()
        }
        Some(_) => return Err("the query must give a number or an instant vector".to_owned()),
        None => return Err(unreadable()),
    };
    if samples.is_empty() {
        return Err("the query gives nothing".to_owned());
    }
    if samples.len() > MAX_SERIES {
        return Err(format!("the query gives more than {MAX_SERIES} series"));
    }
    let read = |(labels, sample): (Value, &Value)| {
        let number: f64 = sample[1]
            .as_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(unreadable)?;
        match number.is_finite() {
            true => Ok((labels, number)),
            false => Err("the query gives what is no number (NaN or infinite)".to_owned()),
        }
    };
    samples.into_iter().map(read).collect()
}

fn url(text: &str) -> Result<Url, String> {
    let url: Url = text
        .parse()
        .map_err(|error| format!("the URL cannot be used: {error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err("the URL is neither http nor https".to_owned()),
    }
}

/// Returns whether a host is one that may be asked: by its name, or by the end of it, as `*.example.com`.
fn is_allowed(host: &str, hosts: &[String]) -> bool {
    let host = host.to_ascii_lowercase();
    hosts.iter().any(|allowed| {
        let allowed = allowed.to_ascii_lowercase();
        match allowed.strip_prefix('*') {
            Some(end) => end.starts_with('.') && host.len() > end.len() && host.ends_with(end),
            None => host == allowed,
        }
    })
}

async fn ask(
    mut url: Url,
    body: Option<Bytes>,
    secret: Option<&str>,
    (namespace, context): (&str, &Context),
) -> Result<Answer, String> {
    let host = url.host_str().unwrap_or_default().to_owned();
    if !is_allowed(&host, &context.gate_hosts) {
        return Err(format!(
            "the host '{host}' is not one that gates may ask (--gate-hosts)"
        ));
    }
    let secret = match secret {
        Some(name) => context.reader(namespace).secret(name).await,
        None => Ok(SecretData::new()),
    };
    let secret = secret.map_err(|error| error_chain::chain(&error))?;
    let access = access(&mut url, &secret).map_err(|error| error_chain::chain(&error))?;
    let client = context
        .clients
        .get(&access.settings)
        .map_err(|error| error_chain::chain(&error))?;
    let (method, word) = match body {
        Some(_) => (Method::POST, "POST"),
        None => (Method::GET, "GET"),
    };
    let asked = format!("{word} {}", public(&url));
    let mut request = client.request(method, url.clone()).header(ACCEPT, JSON);
    if let Some(authorization) = access.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    if let Some(body) = body {
        request = request.header(CONTENT_TYPE, JSON).body(body);
    }
    let deadline = Instant::now() + TIMEOUT;
    let failed = |error: http::Error| error_chain::chain(&error);
    // As it is: the target of a redirect is another's to choose.
    let response = http::within(deadline, &url, request.send())
        .await
        .map_err(failed)?;
    let status = response.status();
    let body = http::read(response, MAX_ANSWER, deadline).await.map_err(failed)?;
    Ok(Answer { asked, status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_hosts_are_asked() {
        let hosts = [
            "prometheus.monitoring".to_owned(),
            "*.Example.com".to_owned(),
            "*".to_owned(),
            "*evil".to_owned(),
        ];
        for (host, expected) in [
            ("prometheus.monitoring", true),
            ("Prometheus.Monitoring", true),
            ("prometheus.monitoring.svc", false),
            ("a.example.com", true),
            ("a.b.example.com", true),
            ("example.com", false),
            (".example.com", false),
            ("notexample.com", false),
            ("example.com.evil", false),
            ("169.254.169.254", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(host, &hosts), expected, "{host}");
        }
        assert!(!is_allowed("a", &[]));
    }

    #[test]
    fn urls_have_a_host() {
        for (text, fits) in [
            ("https://h/x", true),
            ("http://h", true),
            ("file:///etc/passwd", false),
            ("h", false),
        ] {
            assert_eq!(url(text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn answers_of_prometheus_are_numbers() {
        let vector = |values: &[&str]| {
            let all: Vec<Value> = values
                .iter()
                .map(|value| json!({"metric": {"code": "500"}, "value": [1.5, value]}))
                .collect();
            json!({"status": "success", "data": {"resultType": "vector", "result": all}})
        };
        let read = |answer: &Value| series(answer.to_string().as_bytes());
        assert_eq!(
            read(&vector(&["0.25"])).unwrap(),
            [(json!({"code": "500"}), 0.25)]
        );
        assert_eq!(read(&vector(&["1", "2"])).unwrap().len(), 2);
        let scalar = json!({"status": "success", "data": {"resultType": "scalar", "result": [1.5, "7"]}});
        assert_eq!(read(&scalar).unwrap(), [(json!({}), 7.0)]);
        let refused = [
            (vector(&[]), "the query gives nothing"),
            (
                vector(&["NaN"]),
                "the query gives what is no number (NaN or infinite)",
            ),
            (
                vector(&["+Inf"]),
                "the query gives what is no number (NaN or infinite)",
            ),
            (vector(&["x"]), "it is no answer of Prometheus"),
            (
                json!({"status": "error", "errorType": "bad_data", "error": "secret"}),
                "the query failed: bad_data",
            ),
            (
                json!({"status": "success", "data": {"resultType": "matrix", "result": []}}),
                "the query must give a number or an instant vector",
            ),
            (
                json!({"status": "success", "data": 1}),
                "it is no answer of Prometheus",
            ),
            (json!([1]), "it is no answer of Prometheus"),
            (json!(null), "it is no answer of Prometheus"),
        ];
        for (answer, problem) in refused {
            assert_eq!(read(&answer).unwrap_err(), problem, "{answer}");
        }
        assert!(series(b"<html>").is_err());
        let many: Vec<&str> = vec!["1"; MAX_SERIES + 1];
        assert!(read(&vector(&many)).unwrap_err().contains("more than"));
    }
}

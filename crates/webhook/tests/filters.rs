//! CEL over calls.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use http::HeaderMap;
use serde_json::json;
use webhook::filter::{Called, Filter};
use webhook::{Accepted, Call};

fn called(content_type: &str, body: &str, accepted: &Accepted) -> Result<Called, String> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", content_type.parse().unwrap());
    Called::read(
        &Call {
            headers: &headers,
            body: body.as_bytes(),
        },
        accepted,
    )
}

#[test]
fn an_object_passes_when_all_expressions_are_true() {
    let call = called(
        "application/json",
        r#"{"tag":"eu.gcr.io/p/r/hello-world:1.1","n":2}"#,
        &Accepted::default(),
    )
    .unwrap();
    let object = json!({"metadata": {"name": "hello-world", "labels": {"environment": "production"}, "generation": 2}});
    let matches = |text: &str| Filter::parse(text, false).unwrap().matches(&call, &object);
    for text in [
        "req.tag.contains(res.metadata.name)",
        "has(res.metadata.labels) && req.tag.split('/').last().value().split(':').first().value() == res.metadata.name",
        "req.n == res.metadata.generation && req.n / 2.0 == 1.0",
    ] {
        assert_eq!(matches(text), Ok(true), "{text}");
    }
    let both = |first: &str, second: &str| {
        Filter::parse(first, false)
            .unwrap()
            .and(Filter::parse(second, false).unwrap())
    };
    let environment = |name| format!("res.metadata.labels['environment'] == '{name}'");
    assert_eq!(
        both("true", &environment("production")).matches(&call, &object),
        Ok(true)
    );
    assert_eq!(
        both("true", &environment("staging")).matches(&call, &object),
        Ok(false)
    );
    assert!(Filter::default().is_empty() && Filter::default().matches(&call, &object) == Ok(true));
    let error = matches("req.missing == 'x'").unwrap_err().to_string();
    assert_eq!(
        error,
        "failed to evaluate the CEL expression 'req.missing == 'x'': no such key: missing"
    );
}

#[test]
fn only_verified_claims_are_there() {
    let error = Filter::parse("claims.repository == 'a'", false)
        .unwrap_err()
        .to_string();
    assert!(error.contains("undeclared reference to 'claims'"), "{error}");
    let accepted = Accepted {
        claims: Some(json!({"repository": "org/a"})),
        ..Accepted::default()
    };
    let call = called("text/plain", "", &accepted).unwrap();
    let object = json!({"metadata": {"annotations": {"source": "org/a"}}});
    let filter = Filter::parse("claims.repository == res.metadata.annotations['source']", true).unwrap();
    assert_eq!(filter.matches(&call, &object), Ok(true));
    assert!(
        Filter::parse("resource.metadata.name", false).is_err() && Filter::parse("res.(", false).is_err()
    );
}

#[test]
fn a_body_is_read_if_it_says_that_it_is_json() {
    let read = |content_type: &str, body: &str| called(content_type, body, &Accepted::default()).map(drop);
    assert_eq!(read("text/plain", "{"), Ok(()));
    assert_eq!(read("application/json; charset=utf-8", "null"), Ok(()));
    for body in ["", "{", "[]", "5"] {
        let error = read("application/json", body).unwrap_err();
        assert!(
            error.starts_with("failed to parse request body as JSON: "),
            "{error}"
        );
    }
    let nested = format!("{{\"a\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(read("application/json", &nested).is_err());
    let many = format!("{{\"a\":[{}1]}}", "1,".repeat(50_000));
    assert!(
        read("application/json", &many)
            .unwrap_err()
            .ends_with("it has more than 50000 values")
    );
}

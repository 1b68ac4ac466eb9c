use super::*;
use crate::git::tests::service::{Service, failed, notification, send as send_to, succeeded, target};
use crate::provider_type::ProviderType as Type;

fn decoded(body: &[u8]) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest::decode(body).unwrap()
}

fn attributes(of: &[KeyValue]) -> Vec<String> {
    let text = |pair: &KeyValue| {
        let value = pair.value.as_ref().and_then(|value| value.string_value.clone());
        format!("{}={}", pair.key, value.unwrap())
    };
    of.iter().map(text).collect()
}

#[test]
fn a_span_says_what_happened_in_the_trace_of_its_revision() {
    let now = "2022-10-28T07:26:20Z".parse().unwrap();
    let request = export(&failed(), now);
    let spans = &request.resource_spans[0];
    assert_eq!(
        attributes(&spans.resource.as_ref().unwrap().attributes),
        [
            "service.name=apps/on-call",
            "service.namespace=apps",
            "service.instance.id=4f2f4dd9-6b0a-4ea9-8e44-6ab0d9f5e2a1",
        ]
    );
    let span = &spans.scope_spans[0].spans[0];
    assert_eq!(span.name, "Kustomization: apps/webapp");
    assert_eq!(
        (span.start_time_unix_nano, span.end_time_unix_nano),
        (1_666_941_979_000_000_000, 1_666_941_980_000_000_000)
    );
    let status = span.status.as_ref().unwrap();
    assert_eq!(
        (status.code, status.message.as_str()),
        (2, "timeout waiting for: Deployment/apps/web")
    );
    assert!(attributes(&span.attributes).contains(&"object.kind=Kustomization".to_owned()));

    // another object of the same rollout is in the same trace, and another attempt is the same span
    let mut other = succeeded();
    other.event.involved_object.kind = "GitRepository".to_owned();
    let other = export(&other, now).resource_spans[0].scope_spans[0].spans[0].clone();
    assert_eq!(other.trace_id, span.trace_id);
    assert_ne!(other.span_id, span.span_id);
    assert_eq!(
        other.status.unwrap(),
        Status {
            message: String::new(),
            code: 1
        }
    );
    let again = &export(&failed(), now).resource_spans[0].scope_spans[0].spans[0];
    assert_eq!(again.span_id, span.span_id);
}

#[test]
fn a_revision_is_that_of_an_oci_artifact_first() {
    let mut event = failed().event;
    assert!(revision(&event).starts_with("main@sha1:"));
    event
        .metadata
        .insert("app-version".to_owned(), "6.5.0".to_owned());
    event
        .metadata
        .insert("oci-digest".to_owned(), "sha256:00".to_owned());
    assert_eq!(revision(&event), "6.5.0@sha256:00");
    event.metadata.clear();
    assert_eq!(revision(&event), "unknown");
}

#[test]
fn an_address_without_a_path_has_the_usual_one() {
    for (address, expected) in [
        ("http://otel:4318", "http://otel:4318/v1/traces"),
        ("http://otel:4318/", "http://otel:4318/"),
        ("https://otel.example/in?x=y", "https://otel.example/in?x=y"),
    ] {
        assert_eq!(endpoint(&target(Type::Otel, address)).unwrap().as_str(), expected);
    }
}

#[tokio::test]
async fn a_collector_gets_protobuf_and_a_login() {
    let collector = Service::start(|asked| {
        assert_eq!(asked.header("content-type"), "application/x-protobuf");
        (200, vec![], String::new())
    })
    .await;
    let mut target = target(Type::Otel, &collector.url);
    for (username, headers, expected) in [
        ("", None, "Bearer hunter2-token"),
        ("user", None, "Basic dXNlcjpodW50ZXIyLXRva2Vu"),
        ("user", Some("Api-Key x"), "Api-Key x"),
    ] {
        target.username = username.to_owned();
        target.headers = headers
            .map(|value| ("authorization".to_owned(), value.to_owned()))
            .into_iter()
            .chain([("content-length".to_owned(), "9".to_owned())])
            .collect();
        send_to(&target, &failed()).await.unwrap();
        let asked = collector.take();
        assert_eq!(asked[0].what(), "POST /v1/traces");
        assert_eq!(asked[0].header("authorization"), expected);
        assert_eq!(decoded(&asked[0].body).resource_spans.len(), 1);
    }
    let mut skipped = notification("info", "NewArtifact", "");
    skipped.event.involved_object.kind = "HelmRepository".to_owned();
    send_to(&target, &skipped).await.unwrap();
    assert!(collector.take().is_empty());
}

#[tokio::test]
async fn a_span_that_is_rejected_is_an_error() {
    let answer = ExportTraceServiceResponse {
        partial_success: Some(protocol::PartialSuccess {
            rejected_spans: 1,
            error_message: "too old".to_owned(),
        }),
    };
    let accepted = crate::request::Answer {
        status: http::StatusCode::OK,
        headers: http::HeaderMap::new(),
        body: answer.encode_to_vec().into(),
        is_cut: false,
    };
    assert_eq!(
        accept(&accepted).unwrap_err().to_string(),
        "the collector rejected the span: too old"
    );
}

#[test]
fn spans_are_those_of_flux() {
    let is_otel = |type_| type_ == Type::Otel;
    let mut compared = 0;
    for record in crate::git::tests::flux::records(is_otel) {
        let case = record.case();
        let mut target = record.target.clone();
        target.address = target.address.replace("LOCAL", "9");
        let now = Timestamp::now();
        let request = render(&target, &record.notification, now).unwrap();
        assert_eq!(request.is_some(), !record.requests.is_empty(), "{case}");
        let (Some(request), Some(theirs)) = (request, record.requests.first()) else {
            continue;
        };
        assert_eq!(request.url.path(), theirs.path, "{case}");
        for (name, value) in &theirs.headers {
            assert_eq!(request.headers[name.as_str()], value.as_str(), "{case}");
        }
        assert_eq!(comparable(&request.body), comparable(&theirs.body()), "{case}");
        compared += 1;
    }
    assert_eq!(compared, 8);
}

/// Without what differs each time, and with attributes in order.
fn comparable(body: &[u8]) -> ExportTraceServiceRequest {
    let mut request = decoded(body);
    for spans in &mut request.resource_spans {
        let resource = spans.resource.as_mut().unwrap();
        resource.attributes.sort_by(|one, other| one.key.cmp(&other.key));
        for span in spans.scope_spans.iter_mut().flat_map(|scope| &mut scope.spans) {
            assert_eq!(span.span_id.len(), 8);
            assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
            span.span_id.clear();
            span.end_time_unix_nano = 0;
            span.attributes.sort_by(|one, other| one.key.cmp(&other.key));
        }
    }
    request
}

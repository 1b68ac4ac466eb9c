//! The layers, in front of a service that answers at once.

use std::convert::Infallible;

use tower::ServiceExt as _;

use super::*;
use crate::flags::ClientFlags;
use crate::metrics::Metrics;

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_code_method_and_host() {
    let metrics = Metrics::new();
    let observe = Observe {
        bucket: None,
        metrics: metrics.rest().clone(),
        host: "10.0.0.1:6443".to_owned(),
    };
    let inner = tower::service_fn(|request: Request<Body>| async move {
        let code = if request.uri().path() == "/missing" {
            404
        } else {
            200
        };
        Ok::<_, Infallible>(
            Response::builder()
                .status(code)
                .body(())
                .expect("it is a response"),
        )
    });
    let service = tower::Layer::layer(&observe, inner);
    for (method, path) in [("GET", "/"), ("GET", "/"), ("PATCH", "/missing")] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(Body::empty())
            .expect("it is a request");
        service.clone().oneshot(request).await.expect("it never fails");
    }
    let text = metrics.encode().expect("writing to a String does not fail");
    for line in [
        r#"rest_client_requests_total{code="200",host="10.0.0.1:6443",method="GET"} 2"#,
        r#"rest_client_requests_total{code="404",host="10.0.0.1:6443",method="PATCH"} 1"#,
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_out_only_after_its_token_came() {
    let flags = ClientFlags {
        kube_api_qps: 2.0,
        kube_api_burst: 1,
    };
    let bucket = TokenBucket::from_flags(&flags);
    let observe = Observe {
        bucket,
        metrics: RestMetrics::default(),
        host: String::new(),
    };
    let began = tokio::time::Instant::now();
    let inner = tower::service_fn(move |_: Request<Body>| async move {
        Ok::<_, Infallible>(Response::new(began.elapsed()))
    });
    let service = tower::Layer::layer(&observe, inner);
    let mut sent = Vec::new();
    for _ in 0..3 {
        let response = service
            .clone()
            .oneshot(Request::new(Body::empty()))
            .await
            .expect("it never fails");
        sent.push(response.into_body().as_millis());
    }
    assert_eq!(sent, [0, 500, 1000]);
}

#[tokio::test]
async fn a_client_is_built_from_a_plain_configuration() {
    let config = Config::new("http://127.0.0.1:1/".parse().expect("it is a URL"));
    let client = build(config, "test", None, RestMetrics::default()).expect("nothing is missing");
    let error = client
        .apiserver_version()
        .await
        .expect_err("nobody listens there");
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
}

#[test]
fn the_user_agent_names_the_controller() {
    let agent = user_agent("helm-controller");
    let agent = agent.to_str().expect("it is text");
    assert!(
        agent.starts_with("helm-controller/") && agent.ends_with(" windlass"),
        "{agent}"
    );
}

//! The layers between a request and the wire.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tower::retry::RetryLayer;
use tower::{BoxError, Service, ServiceBuilder};

use super::error::Error;
use super::limit::TokenBucket;
use crate::metrics::RestMetrics;

/// For TCP and TLS together. Kubernetes' own clients wait 30 s, which hides a dead endpoint for too long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A watch is silent for minutes, so nothing but a ping tells a dead connection from a quiet one. client-go
/// pings after 30 s and waits 15 s.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Builds the client. There is no read timeout, because it would cut watches; a request that must end has a
/// deadline of its own.
pub(super) fn build(
    config: Config,
    name: &str,
    bucket: Option<TokenBucket>,
    metrics: RestMetrics,
) -> Result<Client, Error> {
    let build_error = |error: kube::Error| Error::Build(Box::new(error));
    let host = host(&config.cluster_url);
    let mut config = config;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.headers.push((USER_AGENT, user_agent(name)));
    let observe = Observe {
        bucket,
        metrics,
        host,
    };
    if config.proxy_url.is_some() {
        // kube knows how to talk to proxies, or says that it does not.
        let builder = ClientBuilder::try_from(config).map_err(build_error)?;
        return Ok(builder.with_layer(&observe).build());
    }
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(
            config
                .default_retry
                .then(|| RetryLayer::new(RetryPolicy::server_retry())),
        )
        .option_layer(config.auth_layer().map_err(build_error)?)
        .layer(config.extra_headers_layer().map_err(build_error)?)
        .map_err(BoxError::from)
        .service(http_client(&config)?);
    Ok(ClientBuilder::new(service, config.default_namespace.clone())
        .with_layer(&observe)
        .build())
}

type HttpClient = legacy::Client<TimeoutConnector<HttpsConnector<HttpConnector>>, Body>;

/// Speaks HTTP/2 where the server does, over one connection; else HTTP/1.1.
fn http_client(config: &Config) -> Result<HttpClient, Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let tls = config
        .rustls_client_config()
        .map_err(|error| Error::Build(Box::new(error)))?;
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let server =
            rustls::pki_types::ServerName::try_from(name.clone()).map_err(|source| Error::ServerName {
                name: name.clone(),
                source,
            })?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(server));
    }
    let mut connector = TimeoutConnector::new(https.enable_all_versions().wrap_connector(tcp));
    connector.set_connect_timeout(config.connect_timeout);
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true);
    Ok(builder.build(connector))
}

/// Holds requests back and counts them.
#[derive(Clone)]
struct Observe {
    bucket: Option<TokenBucket>,
    metrics: RestMetrics,
    host: String,
}

impl<S> tower::Layer<S> for Observe {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Observed {
            inner,
            observe: self.clone(),
        }
    }
}

#[derive(Clone)]
struct Observed<S> {
    inner: S,
    observe: Observe,
}

impl<S, B> Service<Request<Body>> for Observed<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Observe {
            bucket,
            metrics,
            host,
        } = self.observe.clone();
        let method = request.method().as_str().to_owned();
        // A future does nothing before it is polled, so the request goes out only after the token came.
        let response = self.inner.call(request);
        async move {
            if let Some(bucket) = bucket {
                bucket.take().await;
            }
            let result = response.await;
            let code = result
                .as_ref()
                .map(|response| response.status().as_str().to_owned());
            metrics.observe(&method, code.as_deref().unwrap_or("<error>"), &host);
            result
        }
        .boxed()
    }
}

/// The label `host` of `rest_client_requests_total`: host and port of the server.
fn host(url: &Uri) -> String {
    url.authority().map(ToString::to_string).unwrap_or_default()
}

/// Controller and version, such as "source-controller/0.0.0 (linux/x86_64) windlass".
fn user_agent(name: &str) -> HeaderValue {
    let (version, os, arch) = (
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    HeaderValue::from_str(&format!("{name}/{version} ({os}/{arch}) windlass"))
        .unwrap_or_else(|_| HeaderValue::from_static("windlass"))
}

#[cfg(test)]
mod tests;

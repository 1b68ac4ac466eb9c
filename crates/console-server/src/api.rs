//! The API: `/api/v1`, and the way in: `/oauth2`.

pub(crate) mod actions;
pub(crate) mod changes;
mod charts;
mod clusters;
pub(crate) mod deliveries;
pub mod description;
pub(crate) mod diff;
mod download;
mod logs;
pub(crate) mod object;
pub(crate) mod objects;
mod running;
mod session;
mod shape;
pub(crate) mod stream;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use sign_in::provider::CALLBACK;

use crate::access::LINKS;
use crate::metrics;
use crate::pages;
use crate::problem::Problem;
use crate::serve::Console;

/// All routes.
pub fn routes(console: Console) -> Router {
    Router::new()
        .route("/api/v1/actions", get(actions::list).post(actions::act))
        .route(
            "/api/v1/changes",
            post(changes::change).layer(DefaultBodyLimit::max(changes::MAX_BODY)),
        )
        .route("/api/v1/charts", get(charts::list))
        .route("/api/v1/clusters", get(clusters::list))
        .route("/api/v1/deliveries", get(deliveries::list))
        .route("/api/v1/diff", get(diff::between))
        .route("/api/v1/dora", get(deliveries::dora))
        .route("/api/v1/me", get(session::me))
        .route("/api/v1/objects", get(objects::list))
        .route("/api/v1/where", get(running::list))
        .route("/api/v1/watch", get(stream::watch))
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}",
            get(object::get),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/tree",
            get(object::tree),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/why",
            get(object::why),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/diff",
            get(diff::diff),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/values",
            get(diff::values),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/manifest",
            get(changes::manifest),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/download",
            get(download::get),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/logs",
            get(logs::get),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/trace",
            get(object::trace),
        )
        .route(
            "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/verbs",
            get(actions::verbs),
        )
        .route("/api/v1/openapi.json", get(description::get))
        .route("/oauth2/sign-in", get(session::begin))
        .route(CALLBACK, get(session::end))
        .route(LINKS, get(session::link))
        .route("/oauth2/sign-out", post(session::sign_out))
        .fallback(missing)
        .layer(middleware::from_fn(shape::shape))
        .layer(DefaultBodyLimit::max(actions::MAX_BODY))
        .layer(middleware::from_fn(private))
        .layer(middleware::from_fn_with_state(
            console.meters.clone(),
            metrics::observe,
        ))
        .with_state(console)
}

async fn missing(State(console): State<Console>, headers: HeaderMap, address: Uri) -> Response {
    pages::missing(&console, &headers, &address).unwrap_or_else(|| {
        let message = "there is no such path; see /api/v1/openapi.json";
        Problem::new(StatusCode::NOT_FOUND, message).into_response()
    })
}

/// Marks answers as private to the caller: they must not be cached, and browsers must not guess their type.
async fn private(request: axum::extract::Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    // A page for an address that nothing is at has its own.
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(
            "default-src 'none'; frame-ancestors 'none'",
        ));
    response
}

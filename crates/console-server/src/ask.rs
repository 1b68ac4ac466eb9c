//! Questions to the API from within the process: other ways in have its rights, limits and answers.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tower::ServiceExt as _;

use crate::problem::Problem;

/// Asks the API as whoever has a token.
#[derive(Clone)]
pub struct Asker(Router);

impl Asker {
    /// Asks an API.
    pub fn new(api: Router) -> Self {
        Self(api)
    }

    /// Sends a GET to an address such as `/api/v1/objects?kind=ks`, with a caller's header `Authorization`.
    pub async fn get(&self, address: &str, token: Option<&HeaderValue>, peer: SocketAddr) -> Response {
        let mut request = Request::get(address);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let Ok(mut request) = request.body(Body::empty()) else {
            return Problem::new(StatusCode::BAD_REQUEST, "this cannot be asked").into_response();
        };
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = self.0.clone().oneshot(request).await;
        answer.unwrap_or_else(|never| match never {})
    }
}

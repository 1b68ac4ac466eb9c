//! Lists of tags as a registry serves them, with pages, and nothing behind them.

use std::collections::HashMap;

use anyhow::Result;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header::LINK;
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::json;
use tokio::net::TcpListener;

/// Tags of a page, if the client asks for no other number.
const PAGE: usize = 1000;

/// Serves the same tags for every name. Dropping it ends it.
pub struct Lists {
    address: String,
    server: tokio::task::JoinHandle<()>,
}

impl Lists {
    /// Listens on a free port.
    pub async fn start(tags: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let tags: Vec<String> = (1..=tags).map(|number| format!("1.{number}.0")).collect();
        let tags: &'static [String] = tags.leak();
        let router = Router::new()
            .route("/v2/", get(|| async { "{}" }))
            .route("/v2/{name}/tags/list", get(list))
            .with_state(tags);
        let server = async move {
            axum::serve(listener, router)
                .await
                .expect("axum serves until it is dropped");
        };
        Ok(Self {
            address,
            server: tokio::spawn(server),
        })
    }

    /// To be put before names of images.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn list(
    State(tags): State<&'static [String]>,
    Path(name): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> impl IntoResponse {
    let size = query
        .get("n")
        .and_then(|n| n.parse().ok())
        .unwrap_or(PAGE)
        .min(PAGE);
    let from = query
        .get("last")
        .and_then(|last| tags.iter().position(|tag| tag == last))
        .map_or(0, |at| at + 1);
    let page = &tags[from..tags.len().min(from + size)];
    let mut headers = Vec::new();
    if from + page.len() < tags.len() {
        let last = page.last().map(String::as_str).unwrap_or_default();
        headers.push((
            LINK,
            format!("</v2/{name}/tags/list?n={size}&last={last}>; rel=\"next\""),
        ));
    }
    let body = json!({"name": name, "tags": page}).to_string();
    (axum::response::AppendHeaders(headers), body)
}

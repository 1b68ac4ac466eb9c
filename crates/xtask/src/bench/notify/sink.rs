//! An HTTP endpoint that counts what is posted to it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Takes messages. Dropping it ends it.
pub struct Sink {
    url: String,
    count: watch::Receiver<usize>,
    server: tokio::task::JoinHandle<()>,
}

impl Sink {
    /// Listens on a free port.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let (sender, count) = watch::channel(0);
        let take = |State(sender): State<watch::Sender<usize>>, _: Bytes| async move {
            sender.send_modify(|count| *count += 1);
        };
        let router = Router::new().route("/", post(take)).with_state(sender);
        let server = async move {
            axum::serve(listener, router)
                .await
                .expect("axum serves until it is dropped");
        };
        Ok(Self {
            url,
            count,
            server: tokio::spawn(server),
        })
    }

    /// Where to post.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Messages so far.
    pub fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// When there were so many; None if there are not within `patience`.
    pub async fn reached(&self, count: usize, patience: Duration) -> Option<Instant> {
        let mut seen = self.count.clone();
        let reached = seen.wait_for(|so_far| *so_far >= count);
        let found = tokio::time::timeout(patience, reached).await.ok()?;
        found.context("the sink is gone").ok().map(|_| Instant::now())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.server.abort();
    }
}

//! A service that takes notifications, as far as tests need one: it remembers what it was told, answers as the test says, and
//! may go away and come back.

use std::io;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::ports::free_port;

/// How long a message is waited for: longer than the pauses of a sender that has failed some times.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long a port may stay taken after its listener was closed.
const CLOSING: Duration = Duration::from_secs(20);

/// Something that was said.
#[derive(Debug, Clone)]
pub struct Call {
    /// The path.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The body as JSON, if it is that.
    pub json: Value,
}

/// The service. Dropping it ends it.
pub struct MessageSink {
    port: u16,
    calls: watch::Sender<Vec<Call>>,
    answer: watch::Sender<u16>,
    serving: Option<(JoinHandle<()>, CancellationToken)>,
}

#[derive(Clone)]
struct Memory {
    calls: watch::Sender<Vec<Call>>,
    answer: watch::Receiver<u16>,
}

impl MessageSink {
    /// Starts one that takes everything.
    pub async fn start() -> Result<Self> {
        let listener = listen(free_port()?).await?;
        let mut sink = Self {
            port: listener.local_addr()?.port(),
            calls: watch::Sender::new(Vec::new()),
            answer: watch::Sender::new(200),
            serving: None,
        };
        sink.serve(listener);
        Ok(sink)
    }

    /// Its address with a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Lets it answer with this status from now on. What it refuses it does not remember.
    pub fn answer(&self, status: u16) {
        self.answer.send_replace(status);
    }

    /// Makes it unreachable, and ends the connections that it has.
    pub async fn stop(&mut self) -> Result<()> {
        let Some((serving, token)) = self.serving.take() else {
            return Ok(());
        };
        token.cancel();
        Ok(timeout(PATIENCE, serving).await??)
    }

    /// Makes it reachable again.
    pub async fn start_again(&mut self) -> Result<()> {
        let listener = listen(self.port).await.context("failed to listen again")?;
        self.serve(listener);
        Ok(())
    }

    /// All that it was told so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    /// Returns the calls to a path so far.
    pub fn said_to(&self, path: &str) -> Vec<Call> {
        let calls = self.calls.borrow();
        calls
            .iter()
            .filter(|call| call.path == format!("/{path}"))
            .cloned()
            .collect()
    }

    /// Messages to a path of a generic provider.
    pub fn messages(&self, path: &str) -> Vec<String> {
        let calls = self.said_to(path);
        calls
            .iter()
            .map(|call| call.json["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Waits until a path was told something that fits.
    pub async fn until(&self, path: &str, fits: impl Fn(&Call) -> bool) -> Result<Call> {
        let path = format!("/{path}");
        let mut calls = self.calls.subscribe();
        let mut found = None;
        let seen = |calls: &Vec<Call>| {
            found = calls.iter().find(|call| call.path == path && fits(call)).cloned();
            found.is_some()
        };
        let outcome = timeout(PATIENCE, calls.wait_for(seen)).await.map(|_| ());
        match (found, outcome) {
            (Some(call), _) => Ok(call),
            (None, _) => bail!(
                "waited {PATIENCE:?} for a message to {path}; there were {:?}",
                self.calls.borrow()
            ),
        }
    }

    /// Waits until a path of a generic provider was told this.
    pub async fn until_message(&self, path: &str, message: &str) -> Result<Call> {
        self.until(path, |call| call.json["message"] == message).await
    }

    fn serve(&mut self, listener: TcpListener) {
        let memory = Memory {
            calls: self.calls.clone(),
            answer: self.answer.subscribe(),
        };
        let routes = Router::new().fallback(take).with_state(memory);
        let token = CancellationToken::new();
        let stopped = token.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, routes)
                .with_graceful_shutdown(stopped)
                .await;
        });
        self.serving = Some((serving, token));
    }
}

impl Drop for MessageSink {
    fn drop(&mut self) {
        if let Some((serving, _)) = self.serving.take() {
            serving.abort();
        }
    }
}

/// Listens on a port that was left. A child that another test is starting holds copies of all sockets until it has become its
/// program, so that the port may be taken for a moment.
async fn listen(port: u16) -> io::Result<TcpListener> {
    let started = Instant::now();
    loop {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && started.elapsed() < CLOSING => {
                sleep(Duration::from_millis(20)).await;
            }
            result => return result,
        }
    }
}

async fn take(
    State(memory): State<Memory>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let is_github = uri.path().starts_with("/api/v3/");
    let is_discord = uri.path().starts_with("/discord");
    let answer = StatusCode::from_u16(*memory.answer.borrow()).unwrap_or(StatusCode::OK);
    if answer.is_success() {
        let json = serde_json::from_slice(&body).unwrap_or_default();
        let path = uri.path().to_owned();
        let call = Call {
            path,
            headers,
            body,
            json,
        };
        memory.calls.send_modify(|calls| calls.push(call));
    }
    // GitHub's API answers with JSON: a list to who asks.
    let body = match (method, is_github) {
        (Method::GET, true) => "[]",
        (_, true) => "{}",
        // Which message it made.
        (_, false) if is_discord => "{\"id\": \"1\"}",
        (_, false) => "ok",
    };
    (answer, body)
}

//! `…/logs`: the log of a container of what an object has applied, as text, and as it is written.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use delivery_graph::{object, tree};
use futures::{AsyncBufRead, stream};
use serde::Deserialize;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::timeout;
use utoipa::IntoParams;

use super::download::{Room, refuse_other_sites};
use super::object::find;
use crate::caller::Signed;
use crate::logs::{self, Wanted};
use crate::problem::Problem;

/// Lines if nothing is said, and at most.
const LINES: i64 = 200;
const MAX_LINES: i64 = 10_000;
/// Bytes of a text that lines must have.
const MAX_GREP: usize = 200;
/// How long the caller may take to read a line, and for all of it.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_TIME: Duration = Duration::from_secs(900);
/// Lines that wait for the caller.
const MAX_WAITING: usize = 64;

/// Which log, and what of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Parameters {
    /// The container, as NAMESPACE/POD/CONTAINER; by default the first of a Pod that is not well, or of any.
    container: String,
    /// Lines from the end; 200 by default, 10,000 at most.
    lines: Option<i64>,
    /// Text that a line must have, in any case.
    grep: String,
    /// `true` for the container before its last restart.
    previous: bool,
    /// `true` to go on with what is written, for a quarter of an hour at most.
    follow: bool,
}

/// The log of a container of a Pod that belongs to what the object has applied. You need `get` on the object and its workloads, `list` on Pods
/// and `get` on `pods/log`.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/logs",
    tag = "objects",
    params(
        Parameters,
        ("cluster", description = "Cluster"), ("kind", description = "Kind"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "Lines", content_type = "text/plain"),
        (status = 400, description = "Invalid parameters, or there is no log before", body = Problem),
        (status = 401, description = "No token or session, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not", body = Problem),
        (status = 404, description = "It does not exist, or has no such Pod", body = Problem),
        (status = 422, description = "This console does not ask as its callers", body = Problem),
        (status = 429, description = "You have other logs or downloads open", body = Problem),
        (status = 502, description = "The API server does not give it", body = Problem),
        (status = 503, description = "The cluster does not answer", body = Problem),
    ),
)]
pub async fn get(
    signed: Signed,
    headers: HeaderMap,
    parameters: Result<Query<Parameters>, QueryRejection>,
    Path(path): Path<(String, String, String, String)>,
) -> Result<Response, Problem> {
    let wrong = |message: String| Problem::new(StatusCode::BAD_REQUEST, message);
    let Query(parameters) = parameters.map_err(|error| wrong(error.body_text()))?;
    // How long an answer is would tell another site what a line has.
    refuse_other_sites(&headers)?;
    let lines = parameters.lines.unwrap_or(LINES);
    if !(1..=MAX_LINES).contains(&lines) {
        return Err(wrong(format!("lines: from 1 to {MAX_LINES}")));
    }
    if parameters.grep.len() > MAX_GREP {
        return Err(wrong(format!("grep: it is longer than {MAX_GREP} bytes")));
    }
    let (key, found) = find(&signed, Path(path)).await?;
    let client = signed.sight.client_of_the_caller(&key.cluster)?;
    let nodes = tree::grow(&signed.sight.of_cluster(&key.cluster), &found, false).await;
    let pods = logs::pods(&client, &nodes).await?;
    let chosen = logs::choose(&pods, &parameters.container);
    let (pod, container) = chosen.ok_or_else(|| {
        let message = format!("{} has no such container, or no Pods", object::id(&found));
        Problem::new(StatusCode::NOT_FOUND, message)
    })?;
    let room = Room::enter(&signed.sight)?;
    let wanted = Wanted {
        pod: (pod.namespace.clone(), pod.name.clone()),
        container: container.name.clone(),
        lines,
        grep: parameters.grep,
        previous: parameters.previous,
        follow: parameters.follow,
    };
    let log = logs::open(&client, &wanted).await?;
    let ending = signed.sight.console.ending.clone();
    let (pieces, mut received) = mpsc::channel(MAX_WAITING);
    tokio::spawn(async move {
        let _room = room;
        tokio::select! {
            () = ending.cancelled() => {}
            _ = timeout(MAX_TIME, pass_on(log, &wanted.grep, &pieces)) => {}
        }
    });
    let mut response = Response::new(Body::from_stream(stream::poll_fn(move |context| {
        received.poll_recv(context)
    })));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    Ok(response)
}

/// Sends lines until the log ends, or the caller leaves or does not read.
async fn pass_on(mut log: impl AsyncBufRead + Unpin, grep: &str, pieces: &Sender<std::io::Result<Bytes>>) {
    loop {
        let next = tokio::select! {
            next = logs::next(&mut log, grep) => next,
            // A log that is silent does not keep room for someone who has left.
            () = pieces.closed() => return,
        };
        let line = match next {
            Ok(Some(line)) => Ok(line),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let is_last = line.is_err();
        let sent = timeout(PATIENCE, pieces.send(line)).await;
        if is_last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

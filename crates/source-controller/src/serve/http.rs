//! Flux's way: GET an archive at the path in status.artifact.
//!
//! A path is looked up among the store's records and never becomes a file name, so there is nothing to traverse and
//! nothing to list. Besides the archive there are `latest.tar.gz` for the newest one of an object, as in Flux,
//! and `<path>.sha256` with a line for `sha256sum --check`. There is no authentication, since Flux's controllers bring
//! none; an address may have a number of downloads at once, and a connection that takes nothing is closed.

mod listener;
mod range;

use std::{fs::File, io::Seek as _, sync::Arc};

use artifact::store::{self, Record, Store};
use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Path, Request, State},
    response::{IntoResponse as _, Response},
    routing::get,
};
use futures::StreamExt as _;
use http::{HeaderMap, Method, StatusCode, header};
use jiff::fmt::rfc2822::DateTimePrinter;
use prometheus_client::metrics::counter::Counter;
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

pub use self::listener::{Listener, Peer};
use self::range::Range;
use super::arrivals::Arrivals;
use crate::metrics::Served;
use access_review::limit::{Limiter, Permit};

/// Bytes that are read from disk at once.
const BUFFER: usize = 64 * 1024;
const DIGEST_SUFFIX: &str = ".sha256";

/// Seconds after which an address with too many downloads may try again.
const RETRY_AFTER: &str = "1";

#[derive(Clone)]
struct Archives {
    arrivals: Arrivals,
    downloads: Limiter,
    served: Served,
}

/// Serves GET and HEAD of what the store has, each address as many downloads at once as `downloads` says.
pub fn router(arrivals: Arrivals, downloads: Limiter, served: Served) -> Router {
    let archives = Archives {
        arrivals,
        downloads,
        served,
    };
    Router::new().route("/{*path}", get(answer)).with_state(archives)
}

async fn answer(State(archives): State<Archives>, Path(path): Path<String>, request: Request) -> Response {
    let (served, is_head) = (archives.served.clone(), request.method() == Method::HEAD);
    let response = find(archives, path, request, is_head).await;
    served.answered(is_head, response.status());
    response
}

async fn find(archives: Archives, path: String, request: Request, is_head: bool) -> Response {
    let Archives {
        arrivals,
        downloads,
        served,
    } = archives;
    let store = arrivals.store().clone();
    // Our own controllers follow an address here that a tenant wrote: what they may read, the tenant may not.
    if request.headers().contains_key(artifact::external::HEADER) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let peer = request.extensions().get::<ConnectInfo<Peer>>();
    let address = peer.map(|ConnectInfo(Peer(address))| address.ip().to_string());
    let address = address.unwrap_or_default();
    let mut found = store.by_path(&path);
    let is_digest = path.ends_with(DIGEST_SUFFIX);
    if found.is_none() && !is_digest && arrivals.are_possible() {
        // Who waits has a place, as who downloads.
        let Some(_permit) = downloads.begin(&address) else {
            return too_many(&downloads);
        };
        found = arrivals.find(|store| store.by_path(&path)).await;
    }
    if let Some(record) = found {
        return match downloads.begin(&address) {
            Some(permit) => {
                let running = Running {
                    _permit: permit,
                    sent: served.sent("http"),
                };
                archive(store, record, request.headers(), is_head, running).await
            }
            None => too_many(&downloads),
        };
    }
    let of = path
        .strip_suffix(DIGEST_SUFFIX)
        .and_then(|path| Some((path, store.by_path(path)?)));
    match of {
        Some((path, record)) => digest_line(path, &record),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn too_many(downloads: &Limiter) -> Response {
    let text = format!(
        "this address has {} downloads running: try again later\n",
        downloads.most()
    );
    (
        StatusCode::TOO_MANY_REQUESTS,
        [(header::RETRY_AFTER, RETRY_AFTER)],
        text,
    )
        .into_response()
}

/// Returns a line as `sha256sum` prints it, with the requested file name.
fn digest_line(path: &str, record: &Record) -> Response {
    let name = path.rsplit('/').next().unwrap_or_default();
    let line = format!("{}  {name}\n", record.digest.hex());
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], line).into_response()
}

/// A download, until the last chunk is taken or the connection ends.
struct Running {
    _permit: Permit,
    sent: Counter,
}

async fn archive(
    store: Arc<Store>,
    record: Record,
    headers: &HeaderMap,
    is_head: bool,
    running: Running,
) -> Response {
    // Strong: the same digest is the same bytes.
    let tag = format!("\"{}\"", record.digest);
    if header_text(headers, header::IF_NONE_MATCH).is_some_and(|tags| names(tags, &tag)) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let range = wanted_range(headers, &tag, record.size);
    let (status, offset, length) = match range {
        Range::Whole => (StatusCode::OK, 0, record.size),
        Range::Part { offset, length } => (StatusCode::PARTIAL_CONTENT, offset, length),
        Range::Unsatisfiable => {
            let range = [(header::CONTENT_RANGE, format!("bytes */{}", record.size))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, range).into_response();
        }
    };
    let body = if is_head {
        Ok(Body::empty())
    } else {
        body(store, &record, offset, length, running).await
    };
    let body = match body {
        Ok(body) => body,
        // It was removed a moment ago.
        Err(store::Error::NotFound { .. }) => return StatusCode::NOT_FOUND.into_response(),
        Err(error) => {
            tracing::error!(
                path = record.path,
                error = &error as &dyn std::error::Error,
                "failed to serve an archive"
            );
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type(&record.path))
        .header(header::CONTENT_LENGTH, length)
        .header(header::ACCEPT_RANGES, "bytes")
        .header(header::ETAG, tag);
    if let Ok(time) = DateTimePrinter::new().timestamp_to_rfc9110_string(&record.last_update_time) {
        response = response.header(header::LAST_MODIFIED, time);
    }
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {offset}-{}/{}", offset + length - 1, record.size);
        response = response.header(header::CONTENT_RANGE, range);
    }
    response
        .body(body)
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

async fn body(
    store: Arc<Store>,
    record: &Record,
    offset: u64,
    length: u64,
    running: Running,
) -> store::Result<Body> {
    let digest = record.digest;
    let open = move || -> store::Result<File> { Ok(store.read_archive(&digest, offset)?.into_file()) };
    let failed = |source| store::Error::Io {
        operation: "open a file",
        source,
    };
    let opened = tokio::task::spawn_blocking(open).await;
    let mut file = opened.map_err(|error| failed(std::io::Error::other(error)))??;
    debug_assert_eq!(file.stream_position().ok(), Some(offset));
    let part = tokio::fs::File::from_std(file).take(length);
    let chunks = ReaderStream::with_capacity(part, BUFFER).map(move |chunk| {
        if let Ok(chunk) = &chunk {
            running.sent.inc_by(chunk.len() as u64);
        }
        chunk
    });
    Ok(Body::from_stream(chunks))
}

/// The range that is asked for; with If-Range only if the client has a part of this very archive.
fn wanted_range(headers: &HeaderMap, tag: &str, size: u64) -> Range {
    let same = header_text(headers, header::IF_RANGE).is_none_or(|known| known == tag);
    match header_text(headers, header::RANGE) {
        Some(range) if same => Range::parse(range, size),
        _ => Range::Whole,
    }
}

/// Returns whether a list of entity tags has this one.
fn names(tags: &str, tag: &str) -> bool {
    tags.split(',')
        .map(|one| one.trim().trim_start_matches("W/"))
        .any(|one| one == "*" || one == tag)
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("gz" | "tgz") => "application/gzip",
        Some("yaml" | "yml") => "application/yaml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;

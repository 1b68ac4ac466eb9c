//! `…/download`: the archive of a source's artifact, passed on as it arrives.
//!
//! It is the only action that is a GET: nothing changes. It is recorded as the others are.

use std::time::Duration;

use access_review::limit::Permit;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use delivery_diff::Archive;
use delivery_graph::object::text;
use futures::stream;
use kube::api::DynamicObject;
use ledger::action::Action;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::timeout;
use utoipa::IntoParams;

use super::actions::{MAX_REASON, Named, refusal, subject};
use super::object::find;
use crate::actions::{self, Mode, Subject, Verb};
use crate::caller::Signed;
use crate::problem::Problem;
use crate::serve::Console;
use crate::sight::Sight;

/// How long a caller may take for a piece, and for all of it.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_TIME: Duration = Duration::from_secs(900);
/// Pieces that wait for the caller.
const MAX_WAITING: usize = 2;

/// Why it is downloaded.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Parameters {
    /// For the record and the Event; at most 1,000 bytes.
    reason: String,
}

/// Download the archive of a source's artifact. You need `get` and the verb `download` on the source.
///
/// It is checked against the digest in the source's status: an answer that ends early is not whole, and not to be used.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/download",
    tag = "actions",
    params(
        Parameters,
        ("cluster", description = "Cluster"), ("kind", description = "Kind of a source"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "The archive; ETag is its digest", content_type = "application/octet-stream"),
        (status = 400, description = "A kind without artifacts, or an invalid name", body = Problem),
        (status = 401, description = "No token or session, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not, whether it is there or not", body = Problem),
        (status = 404, description = "It does not exist", body = Problem),
        (status = 405, description = "This console does nothing", body = Problem),
        (status = 422, description = "Its cluster's artifacts are not reached from here", body = Problem),
        (status = 429, description = "You have other downloads under way, or did too much in the last hour", body = Problem),
        (status = 502, description = "There is no archive, or it cannot be had", body = Problem),
        (status = 503, description = "It cannot be recorded, or the cluster does not say what you may do", body = Problem),
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
    if parameters.reason.len() > MAX_REASON {
        return Err(wrong(format!("reason: it is longer than {MAX_REASON} bytes")));
    }
    // It is recorded as something that they did: a link on another site does not do it for them.
    refuse_other_sites(&headers)?;
    let sight = &signed.sight;
    if sight.console.actions == Mode::None {
        return Err(actions::disabled());
    }
    let (cluster, kind, namespace, name) = path.clone();
    let subject = subject(&Named {
        cluster,
        kind,
        namespace,
        name,
    })?;
    if !subject.kind.has(Verb::Download) {
        return Err(wrong(format!("kind: a {} has no artifact", subject.kind.kind())));
    }
    let refused = |error: actions::Error| Problem::new(refusal(&error), error.to_string());
    let judge = actions::permit(sight, &subject, Verb::Download)
        .await
        .map_err(refused)?;
    let (_, object) = find(&signed, Path(path)).await?;
    let archives = sight.archives(&subject.cluster)?;
    let room = Room::enter(sight)?;
    let action = actions::action(&subject, Verb::Download.word(), &sight.caller, &parameters.reason);
    let record = Record {
        console: sight.console.clone(),
        action,
    };
    actions::begin(record.console.ledger.as_ref(), &record.action)
        .await
        .map_err(refused)?;
    let archive = match archives.open(judge.hand.client.clone(), &object).await {
        Ok(archive) => archive,
        Err(why) => {
            record.end(&why).await;
            return Err(Problem::new(StatusCode::BAD_GATEWAY, why));
        }
    };
    if let Ok(object) = serde_json::from_value::<DynamicObject>(object.clone()) {
        actions::publish(&judge.hand.recorder, &object, &subject, &record.action);
    }
    answer(&subject, &object, pass_on(archive, room, record))
}

/// Refuses what another site had the caller's browser ask for.
pub(super) fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
        let message = "another site had your browser ask for it: begin it from a page of the console";
        return Err(Problem::new(StatusCode::FORBIDDEN, message));
    }
    Ok(())
}

fn answer(subject: &Subject, object: &Value, body: Body) -> Result<Response, Problem> {
    let name = file_name(subject, text(object, "/status/artifact/url"));
    let digest = text(object, "/status/artifact/digest");
    let header = |text: String| HeaderValue::try_from(text);
    let written = || {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        headers.insert(
            CONTENT_DISPOSITION,
            header(format!("attachment; filename=\"{name}\""))?,
        );
        headers.insert(ETAG, header(format!("\"{digest}\""))?);
        Ok::<_, axum::http::header::InvalidHeaderValue>(response)
    };
    let odd = |_| {
        let message = "its digest cannot be written into a header";
        Problem::new(StatusCode::BAD_GATEWAY, message)
    };
    written().map_err(odd)
}

/// Named after the source, and after the file at its server: that has the revision or the version in it, and the ending that is right.
fn file_name(subject: &Subject, url: &str) -> String {
    let last = url.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let last: String = last.chars().filter(is_plain).take(128).collect();
    format!("{}-{}-{last}", subject.namespace, subject.name)
}

/// Room for a download or a log, until it has ended.
pub(super) struct Room {
    _own: Permit,
    _all: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn enter(sight: &Sight) -> Result<Self, Problem> {
        let busy = |message: &str| Problem::new(StatusCode::TOO_MANY_REQUESTS, message);
        let own = sight.console.downloads_of_one.begin(&sight.caller.username);
        let own =
            own.ok_or_else(|| busy("you have other downloads or logs open; wait for them, or close them"))?;
        let all = sight.console.downloads.clone().try_acquire_owned();
        let all = all.map_err(|_| busy("others are downloading; try again"))?;
        Ok(Self { _own: own, _all: all })
    }
}

/// What is recorded of it.
struct Record {
    console: Console,
    action: Action,
}

impl Record {
    async fn end(&self, message: &str) {
        actions::end(self.console.ledger.as_ref(), &self.action, message).await;
    }
}

/// Passes an archive on, and records how it ended, also if the caller leaves.
fn pass_on(archive: Archive, room: Room, record: Record) -> Body {
    let (pieces, mut received) = mpsc::channel(MAX_WAITING);
    tokio::spawn(async move {
        let _room = room;
        let ended = tokio::select! {
            () = record.console.ending.cancelled() => Err("the console ended".to_owned()),
            ended = timeout(MAX_TIME, send(archive, &pieces)) => {
                ended.unwrap_or_else(|_| Err("it took too long".to_owned()))
            }
        };
        if let Err(why) = &ended {
            // What was sent is not whole: the answer must not end as if it were.
            let _ = pieces.try_send(Err(std::io::Error::other(why.clone())));
        }
        record.end(&ended.err().unwrap_or_default()).await;
    });
    Body::from_stream(stream::poll_fn(move |context| received.poll_recv(context)))
}

async fn send(mut archive: Archive, pieces: &Sender<std::io::Result<Bytes>>) -> Result<(), String> {
    while let Some(piece) = archive.next().await? {
        match timeout(PATIENCE, pieces.send(Ok(piece))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err("the caller left".to_owned()),
            Err(_) => return Err("the caller did not read".to_owned()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::Acted;

    #[test]
    fn a_name_of_a_file_is_plain() {
        let subject = Subject {
            cluster: "local".into(),
            kind: Acted::named("git").unwrap(),
            namespace: "shop".to_owned(),
            name: "repo".to_owned(),
        };
        for (url, name) in [
            (
                "http://source/gitrepository/shop/repo/4f3a.tar.gz",
                "shop-repo-4f3a.tar.gz",
            ),
            ("http://source/a\"; x=\r\n\u{202e}é.sh", "shop-repo-ax.sh"),
            ("", "shop-repo-"),
        ] {
            assert_eq!(file_name(&subject, url), name);
        }
    }
}

//! `/api/v1/watch`: what changes, as server-sent events.
//!
//! The reader is a number ([`Picture::changes_since`]): nothing waits for one that is slow, and it can go on where it was.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use access_review::limit::Permit;
use axum::extract::Query as Parsed;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use fleet::picture::Changes;
#[cfg(doc)]
use fleet::picture::Picture;
use fleet::query::{Parameters, Query};
use fleet::row::{Key, Row};
use futures::Stream;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::watch::Receiver;
use utoipa::{IntoParams, ToSchema};

use super::objects::read;
use crate::caller::Signed;
use crate::problem::Problem;
use crate::sight::Answer;

/// Changes are gathered for so long: twenty events a second at most.
const GATHER: Duration = Duration::from_millis(50);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Rights and tokens are looked at again after so long without a change.
const RECHECK: Duration = Duration::from_secs(60);
/// A cluster that did not say what the caller may get is asked again after so long.
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// Where a stream begins.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Start {
    /// `change` of a page, or the id of an event: what changed since then is sent first. Without it, only what changes from now on.
    since: Option<u64>,
}

/// Data of an event `rows`. `id` of the event is the number up to which changes were sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct Rows {
    /// Rows that are new or have changed.
    #[schema(value_type = Vec<Row>)]
    changed: Vec<Arc<Row>>,
    /// Rows that are gone, or are no answer any more: `Kind/namespace/name/cluster`.
    gone: Vec<String>,
}

/// Rows as they change, for the parameters of a list.
///
/// Events are `rows`; `reset` when all must be read again, as after a restart of the console; and `problem`, after which the
/// stream ends. `Last-Event-ID` resumes after that event.
#[utoipa::path(
    get,
    path = "/api/v1/watch",
    tag = "objects",
    params(Parameters, Start),
    responses(
        (status = 200, description = "Server-sent events", content_type = "text/event-stream", body = Rows),
        (status = 400, description = "A parameter that cannot be used", body = Problem),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 429, description = "Too many streams are open", body = Problem),
    ),
)]
pub async fn watch(
    signed: Signed,
    headers: HeaderMap,
    request: axum::http::Uri,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let (start, query) = start(request.query().unwrap_or_default())?;
    if query.repository().is_some() || query.image().is_some() {
        // Each change would be looked for among all rows, for each stream.
        let message = "repository and image cannot be followed: list again when something changes";
        return Err(Problem::new(StatusCode::BAD_REQUEST, message));
    }
    let rooms = room(&signed)?;
    let last_id = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let mut numbers = signed.sight.console.picture.subscribe();
    let now = *numbers.borrow_and_update();
    let follower = Follower {
        at: last_id.or(start.since).unwrap_or(now),
        numbers,
        query: Arc::new(query),
        signed,
        is_first: true,
        unsaid: HashSet::new(),
        _rooms: rooms,
    };
    let events = futures::stream::unfold(Some(follower), next);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

/// Room for one more stream: of this caller, and of all.
pub fn room(signed: &Signed) -> Result<(Permit, OwnedSemaphorePermit), Problem> {
    let full = || {
        Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many streams are open; close some, or try again later",
        )
    };
    let console = &signed.sight.console;
    let own = console
        .streams_of_one
        .begin(&signed.caller().username)
        .ok_or_else(full)?;
    let room = console.streams.clone().try_acquire_owned().map_err(|_| full())?;
    Ok((own, room))
}

/// Reads `since`, and the other parameters, which are those of a list.
fn start(query: &str) -> Result<(Start, Query), Problem> {
    let is_start = |pair: &&str| pair.starts_with("since=");
    let since = query
        .split('&')
        .find(is_start)
        .map(|pair| pair["since=".len()..].parse());
    let wrong = |_| Problem::new(StatusCode::BAD_REQUEST, "since: it is no number");
    let since = since.transpose().map_err(wrong)?;
    let rest: Vec<&str> = query.split('&').filter(|pair| !is_start(pair)).collect();
    let uri = format!("/?{}", rest.join("&")).parse().unwrap_or_default();
    Ok((Start { since }, read(Parsed::try_from_uri(&uri))?))
}

struct Follower {
    /// Up to this number all was sent.
    at: u64,
    numbers: Receiver<u64>,
    query: Arc<Query>,
    signed: Signed,
    /// Nothing was sent yet: what is asked for need not be gathered.
    is_first: bool,
    /// Of this caller, and of all.
    _rooms: (Permit, OwnedSemaphorePermit),
    /// Keys that have changed in clusters that did not say what the caller may get.
    unsaid: HashSet<Key>,
}

/// The next event. The stream ends when the process does, and when the token is not accepted any more.
async fn next(follower: Option<Follower>) -> Option<(Result<Event, Infallible>, Option<Follower>)> {
    let mut follower = follower?;
    let ending = follower.signed.sight.console.ending.clone();
    loop {
        let event = tokio::select! {
            () = ending.cancelled() => return None,
            event = follower.event() => event,
        };
        match event {
            Told::Event(event) => return Some((Ok(*event), Some(follower))),
            Told::Last(event) => return Some((Ok(*event), None)),
            Told::Nothing => {}
            Told::End => return None,
        }
    }
}

enum Told {
    Event(Box<Event>),
    /// The stream ends with it.
    Last(Box<Event>),
    Nothing,
    End,
}

impl Follower {
    async fn event(&mut self) -> Told {
        if *self.numbers.borrow_and_update() == self.at {
            let wait = if self.unsaid.is_empty() {
                RECHECK
            } else {
                ASK_AGAIN
            };
            let changed = tokio::time::timeout(wait, self.numbers.changed()).await;
            if matches!(changed, Ok(Err(_))) {
                return Told::End;
            }
        }
        if !std::mem::take(&mut self.is_first) {
            tokio::time::sleep(GATHER).await;
        }
        if !self.signed.is_still_accepted().await {
            return Told::End;
        }
        let picture = &self.signed.sight.console.picture;
        let (last, changes) = picture.changes_since(self.at);
        let Changes::Rows(mut rows) = changes else {
            self.at = last;
            self.unsaid.clear();
            return Told::Event(Box::new(
                Event::default().event("reset").id(last.to_string()).data("{}"),
            ));
        };
        self.at = last;
        for (key, _) in &rows {
            self.unsaid.remove(key);
        }
        rows.extend(self.unsaid.drain().map(|key| picture.row(&key)));
        let told = match self.told(rows).await {
            Ok(told) => told,
            // Such as a filter that cannot be evaluated, or an API server that does not say what the caller may see.
            Err(problem) => {
                let data = serde_json::to_string(&problem).unwrap_or_default();
                return Told::Last(Box::new(Event::default().event("problem").data(data)));
            }
        };
        if told.changed.is_empty() && told.gone.is_empty() {
            return Told::Nothing;
        }
        let data = serde_json::to_string(&told).unwrap_or_default();
        Told::Event(Box::new(
            Event::default().event("rows").id(last.to_string()).data(data),
        ))
    }

    /// What of these changes the caller may see, and what it means for the query.
    async fn told(&mut self, rows: Vec<(Key, Option<Arc<Row>>)>) -> Result<Rows, Problem> {
        let mut seen = Vec::new();
        for (key, row) in rows {
            if !self.query.concerns(&key) {
                continue;
            }
            match self.signed.sight.may_get(&key).await? {
                Answer::Yes => seen.push((key, row)),
                Answer::No => {}
                Answer::Silent => {
                    self.unsaid.insert(key);
                }
            }
        }
        let query = self.query.clone();
        if !query.is_costly() {
            return sorted(&query, seen);
        }
        self.signed.sight.in_turn(move || sorted(&query, seen)).await?
    }
}

/// Rows that are an answer, and keys of those that are none.
fn sorted(query: &Query, rows: Vec<(Key, Option<Arc<Row>>)>) -> Result<Rows, Problem> {
    let there = rows
        .iter()
        .filter_map(|(key, row)| Some((key.clone(), row.clone()?)));
    let matching = query.matching(there.collect())?;
    let keys: HashSet<&Key> = matching.iter().map(|(key, _)| key).collect();
    let others = rows.iter().filter(|(key, _)| !keys.contains(key));
    let gone = others.map(|(key, _)| key.to_string()).collect();
    let changed = matching.into_iter().map(|(_, row)| row).collect();
    Ok(Rows { changed, gone })
}

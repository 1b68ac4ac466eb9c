//! `/live`: the parts of a page that change, as server-sent events.
//!
//! The page is shown again when something changes that concerns it, and the parts that differ from what was sent are sent. A stream
//! holds a hash of each part and the number of the last change; who does not read gets the newest state once they do.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use access_review::limit::Permit;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use console_pages::{View, layout};
use fleet::picture::Changes;
use fleet::row::Key;
use futures::Stream;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::place::Place;
use super::rows::{APPLICATIONS, DELIVERY, query};
use super::{Asked, refuse, show, view};
use crate::api::stream::room;
use crate::caller::Signed;
use crate::problem::Problem;
use crate::serve::Console;

/// Changes are gathered for so long; and there are four patches a second at most.
const GATHER: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(250);
/// After a page that took long to show, it rests for so many times that: one tab takes a twentieth of a core at most.
const REST: u32 = 20;
const MAX_REST: Duration = Duration::from_secs(3);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Rights, and what is stuck by now, are looked at again after so long without a change.
const RECHECK: Duration = Duration::from_secs(60);

/// What a tab shows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Open {
    /// Path and query of the page.
    at: String,
    /// The number of the last change that it has.
    since: u64,
}

pub async fn live(
    State(console): State<Console>,
    signed: Result<Signed, Problem>,
    headers: HeaderMap,
    address: Uri,
    open: Query<Open>,
) -> Response {
    let mut view = view(&console, &headers, &address);
    match begin(signed, &headers, open.0, &mut view) {
        Ok(tab) => {
            let events = futures::stream::unfold(Some(tab), next);
            answer(events)
        }
        Err(problem) => refuse(&console, &view, &problem),
    }
}

fn answer(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    // Proxies that gather answers would hold it back.
    ([("x-accel-buffering", "no")], stream).into_response()
}

fn begin(
    signed: Result<Signed, Problem>,
    headers: &HeaderMap,
    open: Open,
    view: &mut View,
) -> Result<Tab, Problem> {
    let signed = signed?;
    let rooms = room(&signed)?;
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    view.address = open.at;
    let concern = Concern::of(&Place::read(&view.address)?)?;
    let numbers = signed.sight.console.picture.subscribe();
    Ok(Tab {
        at: last.unwrap_or(open.since),
        view: view.clone(),
        concern,
        numbers,
        signed,
        sent: HashMap::new(),
        hashes: RandomState::new(),
        shown: Instant::now(),
        rest: Duration::ZERO,
        is_first: true,
        _rooms: rooms,
    })
}

/// What a page is concerned by.
enum Concern {
    Anything,
    Nothing,
    /// Of this cluster: what an object needs and applied may be anything there.
    Cluster(String),
    Rows(Box<fleet::query::Query>),
}

impl Concern {
    fn of(place: &Place) -> Result<Self, Problem> {
        Ok(match place {
            Place::Home | Place::Wall | Place::Change(_) => Self::Anything,
            Place::List(kinds, asked) => Self::Rows(Box::new(query(*kinds, asked)?)),
            Place::Graph(asked) => Self::Rows(Box::new(query(DELIVERY, asked)?)),
            Place::Fleet { asked, .. } => Self::Rows(Box::new(query(APPLICATIONS, asked)?)),
            Place::Object((cluster, ..)) => Self::Cluster(cluster.clone()),
            Place::Compared(_)
            | Place::Events(_)
            | Place::Edit(_)
            | Place::New(_)
            | Place::Values(_)
            | Place::Logs(_)
            | Place::Between(_)
            | Place::State(_)
            | Place::History(_)
            | Place::Profile
            | Place::Design => Self::Nothing,
        })
    }

    fn has(&self, key: &Key) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => false,
            Self::Cluster(cluster) => *cluster == *key.cluster,
            // Those with an image are told by Pods, which are no rows.
            Self::Rows(query) => query.concerns(key),
        }
    }
}

/// A page that is open somewhere.
struct Tab {
    /// Up to this number all was looked at.
    at: u64,
    view: View,
    concern: Concern,
    numbers: Receiver<u64>,
    signed: Signed,
    /// Hashes of the parts as they were sent.
    sent: HashMap<String, u64>,
    hashes: RandomState,
    /// When it was shown, and how long it then waits before it is shown again.
    shown: Instant,
    rest: Duration,
    is_first: bool,
    /// Of this caller, and of all.
    _rooms: (Permit, OwnedSemaphorePermit),
}

/// The next event. The stream ends when the process does, and when the reader may not read any more.
async fn next(tab: Option<Tab>) -> Option<(Result<Event, Infallible>, Option<Tab>)> {
    let mut tab = tab?;
    let ending = tab.signed.sight.console.ending.clone();
    loop {
        let patch = tokio::select! {
            () = ending.cancelled() => return None,
            patch = tab.patch() => patch,
        };
        match patch {
            Patch::Parts(html) => {
                let event = Event::default().id(tab.at.to_string()).data(html);
                return Some((Ok(event), Some(tab)));
            }
            Patch::Nothing => {}
            Patch::End => return None,
        }
    }
}

enum Patch {
    Parts(String),
    Nothing,
    End,
}

impl Tab {
    async fn patch(&mut self) -> Patch {
        let is_first = std::mem::take(&mut self.is_first);
        if !is_first {
            let changed = tokio::time::timeout(RECHECK, self.numbers.changed()).await;
            if matches!(changed, Ok(Err(_))) {
                return Patch::End;
            }
            let due = self.shown + PAUSE.max(self.rest);
            tokio::time::sleep_until(due.max(Instant::now() + GATHER)).await;
        }
        self.numbers.borrow_and_update();
        if !self.signed.is_still_accepted().await {
            return Patch::End;
        }
        let (last, changes) = self.signed.sight.console.picture.changes_since(self.at);
        let is_same = last == self.at;
        self.at = last;
        let is_concerned = self.is_concerned(&changes);
        // The first look tells what the page has; without a change for long, rights and time are looked at.
        if !is_concerned && !is_first && !is_same {
            return Patch::Nothing;
        }
        let began = Instant::now();
        self.view.now = jiff::Timestamp::now();
        let Ok(shown) = show(&self.signed, &self.view, Asked::Stream).await else {
            // Such as an object that was deleted: opening the page says what it is.
            return Patch::End;
        };
        self.shown = Instant::now();
        self.rest = (began.elapsed() * REST).min(MAX_REST);
        // What changed while the page was shown may be in it, and the reader does not have that.
        let is_known = is_first && !is_concerned && {
            let (_, since) = self.signed.sight.console.picture.changes_since(self.at);
            !self.is_concerned(&since)
        };
        self.difference(&shown, is_known)
    }

    fn is_concerned(&self, changes: &Changes) -> bool {
        match changes {
            Changes::Reset => true,
            Changes::Rows(rows) => rows.iter().any(|(key, _)| self.concern.has(key)),
        }
    }

    /// The parts that are not as they were sent. Of those that the page has already, none.
    fn difference(&mut self, shown: &console_pages::Shown, is_known: bool) -> Patch {
        let state = ("state".to_owned(), layout::state(shown));
        let parts: Vec<_> = [&state].into_iter().chain(&shown.parts).collect();
        let mut now = HashMap::new();
        let mut html = String::new();
        for (id, markup) in &parts {
            let hash = self.hashes.hash_one(&markup.0);
            now.insert(id.clone(), hash);
            if self.sent.get(id) != Some(&hash) {
                html.push_str(&layout::patch(id, markup).0);
            }
        }
        let is_framed = self.sent.len() == now.len() && self.sent.keys().all(|id| now.contains_key(id));
        self.sent = now;
        if is_known {
            return Patch::Nothing;
        }
        if let (false, Some((id, frame))) = (is_framed, &shown.frame) {
            html.insert_str(0, &layout::patch(id, frame).0);
        }
        match html.is_empty() {
            true => Patch::Nothing,
            false => Patch::Parts(html),
        }
    }
}

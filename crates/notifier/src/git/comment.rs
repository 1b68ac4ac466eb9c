//! Comments on a change request (pull request, merge request): one for each Provider and object, found by an
//! HTML comment in it. Flux writes and finds the same.

use event::{Event, keys};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::error::Error;
use crate::markdown;
use crate::notification::{Notification, Sent, Thread};
use crate::target::ProviderRef;
use forge::api::Api;

/// GitHub takes 65,536 characters, of which the marker has some hundred.
const MAX_TEXT: usize = 60_000;
/// Names of objects have at most 253 characters each.
const MAX_MARKER: usize = 2_000;

/// As many as services give at once.
const PAGE: usize = 100;
/// The comment is among the first ones as a rule: it is made when the change request is opened.
const MAX_PAGES: usize = 5;

/// As GitHub and Gitea are marked.
pub(super) const PULL_REQUEST: &str = "flux-pr-comment-key";
/// As GitLab is marked.
pub(super) const MERGE_REQUEST: &str = "flux-mr-comment-key";

/// A comment to make or to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comment {
    /// The number of the change request.
    pub(super) number: u64,
    /// The whole text, which begins with the marker.
    pub(super) body: String,
    marker: String,
}

/// Where comments are.
pub(super) struct Places<'a> {
    /// Those of the change request.
    pub(super) all: Vec<&'a str>,
    /// One of them: its number follows.
    pub(super) each: Vec<&'a str>,
    /// How one is changed.
    pub(super) change: Method,
    /// In which order they come, where that can be said.
    pub(super) query: &'a [(&'a str, &'a str)],
    /// True if they come in pages.
    pub(super) is_paged: bool,
}

/// A comment as services have it.
#[derive(Deserialize)]
struct Found {
    id: u64,
    body: Option<String>,
    user: Option<Person>,
    author: Option<Person>,
}

/// Author of a comment. Gitea gives both names.
#[derive(Deserialize)]
struct Person {
    login: Option<String>,
    username: Option<String>,
}

impl Person {
    fn name(self) -> Option<String> {
        self.login.or(self.username).filter(|name| !name.is_empty())
    }
}

/// Returns the owner of the token.
pub(super) async fn me(api: &Api<'_>) -> Result<String, Error> {
    let person: Result<Person, _> = api.get(&["user"], &[]).await;
    let person =
        person.map_err(|error: forge::Error| error.within("failed to get authenticated user info"))?;
    person
        .name()
        .ok_or_else(|| Error::passing("failed to get authenticated user info: the answer has no name"))
}

impl Comment {
    /// Builds the comment, marked with this key.
    pub(super) fn new(
        notification: &Notification,
        provider: &ProviderRef,
        key: &'static str,
    ) -> Result<Self, Error> {
        if provider.uid.is_empty() {
            return Err(Error::invalid("provider UID cannot be empty"));
        }
        let object = &notification.event.involved_object;
        let marker = format!(
            "<!-- {key}:{}/{}/{}/{} -->",
            provider.uid, object.kind, object.namespace, object.name
        );
        if marker.len() > MAX_MARKER {
            return Err(Error::invalid("the name of the object is too long for a comment"));
        }
        Ok(Self {
            number: number(&notification.event)?,
            body: format!("{marker}\n\n{}", markdown::post(notification, MAX_TEXT)),
            marker,
        })
    }

    /// Explains why a change request is not found.
    pub(super) fn missing(&self, what: &str, repository: &str) -> String {
        format!(
            "there is no {what} {} in repository {repository}, or the token may not see it",
            self.number
        )
    }

    /// Changes the comment that is there, or makes one. `me` wrote it: comments of others stay theirs.
    pub(super) async fn put(
        &self,
        api: &Api<'_>,
        places: &Places<'_>,
        notification: &Notification,
        me: impl Future<Output = Result<String, Error>>,
    ) -> Result<Sent, Error> {
        let body = json!({"body": self.body});
        if let Some(id) = self.known(notification)
            && self.change(api, places, &id, &body).await?
        {
            return Ok(self.sent(notification, &id));
        }
        if let Some(id) = self.find(api, places, &me.await?).await?
            && self.change(api, places, &id, &body).await?
        {
            return Ok(self.sent(notification, &id));
        }
        let made = api.post(&places.all, &[], &body).await;
        let made = made.map_err(|error| error.within("failed to create comment"))?;
        let id = serde_json::from_slice::<Found>(&made.body).map(|found| found.id.to_string());
        Ok(id.map_or_else(|_| Sent::default(), |id| self.sent(notification, &id)))
    }

    async fn change(
        &self,
        api: &Api<'_>,
        places: &Places<'_>,
        id: &str,
        body: &serde_json::Value,
    ) -> Result<bool, Error> {
        let path = [&places.each[..], &[id]].concat();
        let changed = api.change(places.change.clone(), &path, body).await;
        Ok(changed
            .map_err(|error| error.within("failed to update comment"))?
            .is_some())
    }

    async fn find(&self, api: &Api<'_>, places: &Places<'_>, me: &str) -> Result<Option<String>, Error> {
        let per_page = PAGE.to_string();
        for page in 1..=MAX_PAGES {
            let page = page.to_string();
            let pages = [("per_page", per_page.as_str()), ("page", page.as_str())];
            let query = [places.query, if places.is_paged { &pages } else { &[] }].concat();
            let found: Vec<Found> = api
                .get(&places.all, &query)
                .await
                .map_err(|error| error.within("failed to list comments"))?;
            let is_last = found.len() < PAGE || !places.is_paged;
            if let Some(mine) = found.into_iter().find_map(|found| self.mine(found, me)) {
                return Ok(Some(mine));
            }
            if is_last {
                break;
            }
        }
        Ok(None)
    }

    fn mine(&self, found: Found, me: &str) -> Option<String> {
        let by = found.user.or(found.author)?.name()?;
        (by == me && self.is(&found.body?)).then(|| found.id.to_string())
    }

    /// The comment that was made before, if it is on the same change request.
    fn known(&self, notification: &Notification) -> Option<String> {
        let number = notification.thread_text("change_request")?;
        let id: u64 = notification.thread_text("comment")?.parse().ok()?;
        (number == self.number.to_string()).then(|| id.to_string())
    }

    fn sent(&self, notification: &Notification, id: &str) -> Sent {
        let number = self.number.to_string();
        let thread = Thread::of_texts(&[("change_request", Some(&number)), ("comment", Some(id))]);
        Sent {
            thread: thread.filter(|_| notification.threaded),
        }
    }

    /// Returns whether this is the text of an earlier version of it. A comment that only quotes the marker is someone's answer.
    fn is(&self, body: &str) -> bool {
        body.trim_start().starts_with(&self.marker)
    }
}

fn number(event: &Event) -> Result<u64, Error> {
    let key = keys::CHANGE_REQUEST;
    let text = event.metadata.get(key);
    let text = text.ok_or_else(|| Error::invalid(format!("missing \"{key}\" metadata key")))?;
    text.trim().parse().map_err(|_| {
        let quoted: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
        Error::invalid(format!(
            "invalid \"{key}\" metadata value \"{quoted}\": it must be a number"
        ))
    })
}

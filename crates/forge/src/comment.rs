//! One comment on a pull request that is kept up to date: it is found again by a marker, an HTML comment that it begins with.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::Api;
use crate::error::Error;

/// As many as services give at once.
const PAGE: usize = 100;
/// The comment is among the first ones as a rule: it is made when the pull request is opened.
const MAX_PAGES: usize = 5;

/// A comment to make or to change.
#[derive(Debug, Clone, Copy)]
pub struct Comment<'a> {
    /// The HTML comment with which it begins.
    pub marker: &'a str,
    /// The whole text, marker included.
    pub body: &'a str,
}

/// Where comments are.
pub struct Places<'a> {
    /// Those of the pull request.
    pub all: Vec<&'a str>,
    /// One of them: its number follows.
    pub each: Vec<&'a str>,
    /// How one is changed.
    pub change: Method,
    /// In which order they come, where that can be said.
    pub query: &'a [(&'a str, &'a str)],
    /// True if they come in pages.
    pub is_paged: bool,
}

/// Whose comments are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mine {
    /// Those of this user.
    Named(String),
    /// Those of any robot: a token of a GitHub App does not tell its name.
    Robots,
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
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Person {
    fn name(self) -> Option<String> {
        self.login.or(self.username).filter(|name| !name.is_empty())
    }

    fn is(self, mine: &Mine) -> bool {
        match mine {
            Mine::Named(me) => self.name().is_some_and(|name| name == *me),
            Mine::Robots => self.kind.as_deref() == Some("Bot"),
        }
    }
}

/// Returns the owner of the token.
///
/// # Errors
/// When the forge does not say it.
pub async fn me(api: &Api<'_>) -> Result<String, Error> {
    let person: Result<Person, _> = api.get(&["user"], &[]).await;
    let person = person.map_err(|error: Error| error.within("failed to get authenticated user info"))?;
    person
        .name()
        .ok_or_else(|| Error::passing("failed to get authenticated user info: the answer has no name"))
}

impl Comment<'_> {
    /// Changes the comment that is there, or makes one; returns its number. It is looked for among those of `mine` unless its number
    /// is known: comments of others stay theirs.
    ///
    /// # Errors
    /// When the forge refuses.
    pub async fn put<E: From<Error>>(
        self,
        api: &Api<'_>,
        places: &Places<'_>,
        known: Option<u64>,
        mine: impl Future<Output = Result<Mine, E>>,
    ) -> Result<Option<u64>, E> {
        let body = json!({"body": self.body});
        if let Some(id) = known
            && change(api, places, id, &body).await?
        {
            return Ok(Some(id));
        }
        if let Some(id) = self.find(api, places, &mine.await?).await?
            && change(api, places, id, &body).await?
        {
            return Ok(Some(id));
        }
        let made = api.post(&places.all, &[], &body).await;
        let made = made.map_err(|error| error.within("failed to create comment"))?;
        let found = serde_json::from_slice::<Found>(&made.body);
        Ok(found.ok().map(|found| found.id))
    }

    async fn find(self, api: &Api<'_>, places: &Places<'_>, mine: &Mine) -> Result<Option<u64>, Error> {
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
            if let Some(mine) = found.into_iter().find_map(|found| self.mine(found, mine)) {
                return Ok(Some(mine));
            }
            if is_last {
                break;
            }
        }
        Ok(None)
    }

    fn mine(self, found: Found, mine: &Mine) -> Option<u64> {
        let is_mine = found.user.or(found.author)?.is(mine);
        (is_mine && self.is(&found.body?)).then_some(found.id)
    }

    /// Returns whether this is the text of an earlier version of it. A comment that only quotes the marker is someone's answer.
    fn is(self, body: &str) -> bool {
        body.trim_start().starts_with(self.marker)
    }
}

async fn change(api: &Api<'_>, places: &Places<'_>, id: u64, body: &Value) -> Result<bool, Error> {
    let id = id.to_string();
    let path = [&places.each[..], &[&id]].concat();
    let changed = api.change(places.change.clone(), &path, body).await;
    Ok(changed
        .map_err(|error| error.within("failed to update comment"))?
        .is_some())
}

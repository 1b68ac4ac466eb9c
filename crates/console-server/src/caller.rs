//! Who calls: the owner of the bearer token, as the API server knows them, or whoever the browser's session names.

use std::net::SocketAddr;
use std::sync::Arc;

use access_review::Caller;
use access_review::limit::Permit;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use jiff::Timestamp;
use sign_in::sessions::Session;

use crate::access::MISSING_TOKEN;
use crate::problem::Problem;
use crate::serve::Console;
use crate::sight::Sight;

/// Longer tokens are not looked at, in bytes.
const MAX_TOKEN: usize = 16 << 10;

/// A caller who was let in, and what they see.
pub struct Signed {
    pub sight: Sight,
    pub by: By,
}

/// Why they were let in.
pub enum By {
    /// The API server accepted this token.
    Token(Arc<str>),
    /// They signed in; with the name for pages.
    Session(Box<Session>),
    /// Everyone is.
    Anonymous,
}

impl Signed {
    /// Whether they would still be let in; answers about tokens are kept for a minute.
    pub async fn is_still_accepted(&self) -> bool {
        let console = &self.sight.console;
        match &self.by {
            By::Token(token) => console.reviews.caller(token).await.is_ok(),
            By::Session(session) => console
                .access
                .as_ref()
                .is_some_and(|access| access.goes_on(session)),
            By::Anonymous => true,
        }
    }

    /// How a page calls them.
    pub fn name(&self) -> &str {
        match &self.by {
            By::Session(session) => &session.user.name,
            By::Token(_) | By::Anonymous => &self.sight.caller.username,
        }
    }

    /// How they are let in, as answers have it, and when their session ends.
    pub fn way(&self) -> (&'static str, Option<Timestamp>) {
        match &self.by {
            By::Token(_) => ("token", None),
            By::Session(session) => ("session", Timestamp::from_second(session.until).ok()),
            By::Anonymous => ("anonymous", None),
        }
    }

    /// Who it is.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.sight.caller
    }
}

impl FromRequestParts<Console> for Signed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Problem> {
        let signed = |caller, by| Self {
            sight: Sight {
                console: console.clone(),
                caller,
            },
            by,
        };
        if !parts.headers.contains_key(AUTHORIZATION)
            && let Some(access) = &console.access
            && let Some(visitor) = access.visitor(&parts.method, &parts.headers)?
        {
            let by = visitor.session.map(Box::new).map_or(By::Anonymous, By::Session);
            return Ok(signed(visitor.caller, by));
        }
        let header = parts.headers.get(AUTHORIZATION);
        let token = header.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let missing = || {
            let message = console
                .access
                .as_ref()
                .map_or(MISSING_TOKEN, |access| access.missing());
            Problem::new(StatusCode::UNAUTHORIZED, message)
        };
        let token = token
            .map(str::trim)
            .filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN);
        let token = token.ok_or_else(missing)?;
        let looking = begin(parts, console)?;
        let caller = console.reviews.caller(token).await?;
        drop(looking);
        Ok(signed(caller, By::Token(token.into())))
    }
}

/// Makes room for a request that costs someone else a question, while nobody knows who sent it.
pub fn begin(parts: &Parts, console: &Console) -> Result<Permit, Problem> {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let address = peer
        .map(|ConnectInfo(peer)| peer.ip().to_string())
        .unwrap_or_default();
    let busy = || {
        let message = "too many callers of your address are being looked at; try again";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, message)
    };
    console.unknown.begin(&address).ok_or_else(busy)
}
